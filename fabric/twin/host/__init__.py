"""Emulated hosts: real shells in a private view of the machine, NICs in files.

:class:`EmulatedHost` is what the twin's server serves over SSH.
"""

from fabric.twin.host.host import EmulatedHost

__all__ = ["EmulatedHost"]
