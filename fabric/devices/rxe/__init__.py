"""Soft-RoCE: the kernel's rxe over any interface."""

from fabric.devices.rxe.family import RxeFamily

FAMILY = RxeFamily()
