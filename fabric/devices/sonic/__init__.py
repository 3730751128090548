"""SONiC: a Linux shell, and a configuration that is a database of tables."""

from fabric.devices.sonic.module import MODULE

__all__ = ["MODULE"]
