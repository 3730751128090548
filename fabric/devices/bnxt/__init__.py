"""Broadcom NetXtreme-E (BCM575xx Thor, BCM576xx Thor 2) with bnxt_en and bnxt_re."""

from fabric.devices.bnxt.family import BnxtFamily

FAMILY = BnxtFamily()
