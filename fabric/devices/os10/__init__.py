"""Dell SmartFabric OS10."""

from fabric.devices.os10.module import MODULE

__all__ = ["MODULE"]
