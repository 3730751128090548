"""Emulated SONiC switches.

Written from sonic-utilities, sonic-swss and sonic-buildimage alone, and on purpose
without ``fabric.devices.sonic``: the emulator is there to find that module's mistakes.
"""

from fabric.twin.sonic.switch import EmulatedSwitch

__all__ = ["EmulatedSwitch"]
