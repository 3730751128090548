"""The lab: virtual machines with Soft-RoCE around a Linux bridge, on this machine.

``running`` is a lab for the length of a block; ``up`` and ``down`` are what the
commands do.
"""

from fabric.lab.lifecycle import LabGuest, LabStatus, down, running, status, up
from fabric.lab.plan import Sizes

__all__ = ["LabGuest", "LabStatus", "Sizes", "down", "running", "status", "up"]
