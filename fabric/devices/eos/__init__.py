"""Arista EOS on switches with Trident or Tomahawk chips (7050X, 7060X, 7260X, 7300X)."""

from fabric.devices.eos.module import MODULE

__all__ = ["MODULE"]
