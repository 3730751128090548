"""Intel E810 (800 series) with ice and irdma."""

from fabric.devices.irdma.family import IrdmaFamily

FAMILY = IrdmaFamily()
