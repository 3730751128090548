"""H3C switches (Comware 7)."""

from fabric.devices.comware.module import MODULE

__all__ = ["MODULE"]
