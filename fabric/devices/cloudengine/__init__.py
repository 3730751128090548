"""Huawei CloudEngine (VRP 8)."""

from fabric.devices.cloudengine.module import MODULE

__all__ = ["MODULE"]
