"""The emulated fabric: devices behind real SSH on loopback, traffic from the simulator."""
