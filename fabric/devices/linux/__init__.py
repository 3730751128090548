"""Linux hosts: NIC families composed port by port, and settings that survive a reboot."""

from fabric.devices.linux.module import LinuxModule

MODULE = LinuxModule()
