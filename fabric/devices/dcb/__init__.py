"""What iproute2's ``dcb`` shows and sets: the base that several NIC families share."""

from fabric.devices.dcb.family import DcbFamily
from fabric.devices.dcb.traits import Traits

__all__ = ["DcbFamily", "Traits"]
