"""The network itself: intent, topology, device knowledge, provisioning, simulator, twin."""
