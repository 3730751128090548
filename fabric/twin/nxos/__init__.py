"""Emulated Cisco NX-OS switches (Nexus 9000).

Written from the vendor's documentation and recorded sessions alone, and on
purpose without ``fabric.devices.nxos``: the emulator is there to find that
module's mistakes.
"""

from fabric.twin.nxos.switch import EmulatedSwitch

__all__ = ["EmulatedSwitch"]
