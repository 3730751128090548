"""NVIDIA Cumulus Linux, configured by NVUE (``nv``)."""

from fabric.devices.nvue.module import MODULE

__all__ = ["MODULE"]
