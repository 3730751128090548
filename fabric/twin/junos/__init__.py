"""Emulated Juniper QFX5000 switches.

Written from the vendor's documentation and public captures alone, and on purpose
without ``fabric.devices.junos``: the emulator is there to find that module's
mistakes.
"""

from fabric.twin.junos.switch import EmulatedSwitch

__all__ = ["EmulatedSwitch"]
