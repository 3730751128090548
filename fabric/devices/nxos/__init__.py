"""Cisco NX-OS on Nexus 9000 switches in 8-queue mode."""

from fabric.devices.nxos.module import MODULE

__all__ = ["MODULE"]
