"""Switches under plain Linux: hardware behind switchdev drivers, and software bridges."""

from fabric.devices.switchdev.module import BRIDGE, MODULE

__all__ = ["BRIDGE", "MODULE"]
