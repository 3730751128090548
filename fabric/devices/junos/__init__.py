"""Juniper Junos on QFX5000 switches."""

from fabric.devices.junos.module import MODULE

__all__ = ["MODULE"]
