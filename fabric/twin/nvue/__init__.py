"""Emulated Cumulus Linux switches with NVUE.

Written from NVIDIA's public documentation alone, and on purpose without
``fabric.devices.nvue``: the emulator is there to find that module's mistakes.
"""

from fabric.twin.nvue.switch import EmulatedSwitch

__all__ = ["EmulatedSwitch"]
