"""What hardware stands in an emulated host for each NIC family."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Adapter:
    """A product as sysfs and ``ethtool -i`` name it."""

    driver: str
    version: str
    firmware: str
    vendor: str
    device: str
    hca_type: str
    mac_prefix: str


_CONNECTX = Adapter(
    "mlx5_core", "24.10-1.1.4", "22.43.1014 (MT_0000000359)", "0x15b3", "0x101d", "MT4125",
    "b8:ce:f6",
)  # fmt: skip
# ConnectX-6 Dx with MLNX_OFED 24.10; BCM57504 with Broadcom's driver; E810-XXV with
# Intel's. A generic NIC is the first of them without its vendor's tools.
ADAPTERS = {
    "mlx5": _CONNECTX,
    "generic": _CONNECTX,
    "bnxt": Adapter(
        "bnxt_en", "1.10.3-232.0.155.5", "232.0.164.0/pkg 232.1.132.8", "0x14e4", "0x1751",
        "BCM57504", "bc:97:e1",
    ),
    "irdma": Adapter(
        "ice", "1.15.4", "4.60 0x8001e8b2 1.3682.0", "0x8086", "0x159b", "irdma", "b4:96:91"
    ),
}  # fmt: skip


def adapter_of(family: str) -> Adapter:
    """The product of this family; a ConnectX for one that has none of its own."""
    return ADAPTERS.get(family, _CONNECTX)
