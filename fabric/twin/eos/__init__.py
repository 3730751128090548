"""Emulated Arista EOS switches (Trident: 7050X3).

Written from the vendor's documentation and public captures alone, and on purpose
without ``fabric.devices.eos``: the emulator is there to find that module's
mistakes.
"""

from fabric.twin.eos.switch import EmulatedSwitch

__all__ = ["EmulatedSwitch"]
