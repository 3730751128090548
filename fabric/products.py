"""The switches and NICs that ``paisoar init`` can write: models, port names, buffers.

A new switch system adds one entry here, beside its device module and its
emulated CLI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

HOST_PORTS = 48  # of a leaf; its uplinks sit behind them


@dataclass(frozen=True, slots=True)
class SwitchProduct:
    """A leaf of 48 25G ports with 100G uplinks, and a spine of 100G ports.

    ``leaf_port`` and ``spine_port`` name port 1, 2, ...; a leaf's ports above
    ``HOST_PORTS`` are its uplinks. ``leaf_buffer`` and ``spine_buffer`` are the
    shared packet buffers as ``fabric.yaml`` writes them. ``alphas`` are what a site's
    25G and 100G profiles need to say where the product shares its buffer dynamically.
    """

    leaf_model: str
    leaf_buffer: str
    leaf_port: Callable[[int], str]
    spine_model: str
    spine_buffer: str
    spine_port: Callable[[int], str]
    alphas: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class NicProduct:
    """A NIC family: names of the RDMA device and network interface of port 0, 1, ..."""

    rdma: Callable[[int], str]
    interface: Callable[[int], str] = field(default=lambda index: f"ens1f{index}")


def _slot_port(number: int) -> str:
    return f"Ethernet1/{number}"


def _sonic_leaf_port(number: int) -> str:
    """One name a lane: 25G ports take one, the 100G ports behind them four."""
    return f"Ethernet{number - 1 if number <= HOST_PORTS else 4 * number - 3 * HOST_PORTS - 4}"


def _eos_leaf_port(number: int) -> str:
    return f"Ethernet{number}" if number <= HOST_PORTS else _lanes_port(number)


def _lanes_port(number: int) -> str:
    """A port of four lanes, all of them in one: the first names it."""
    return f"Ethernet{number}/1"


def _fpc_port(number: int) -> str:
    return f"et-0/0/{number - 1}"


SWITCHES: dict[str, SwitchProduct] = {
    # Cisco's data sheets of N9K-C93180YC-FX and N9K-C9336C-FX2 say 40 MB each.
    "nxos": SwitchProduct(
        "N9K-C93180YC-FX", "40MB", _slot_port, "N9K-C9336C-FX2", "40MB", _slot_port
    ),
    # Arista's data sheet of the 7050X3 series says 32 MB for both.
    "eos": SwitchProduct(
        "DCS-7050SX3-48YC8", "32MB", _eos_leaf_port, "DCS-7050CX3-32S", "32MB", _lanes_port
    ),
    # "QFX5K-Series Switches Packet Buffer Architecture" says 32256 KB for the QFX5120.
    "junos": SwitchProduct("QFX5120-48Y", "32MB", _fpc_port, "QFX5120-32C", "32MB", _fpc_port),
    # Trident 3: 32 MB each. Port names: port_config.ini in sonic-buildimage
    # device/accton. Of an idle switch's buffer these fractions are near the XOFF that
    # `paisoar init` writes, so that ECN acts before PFC and PFC before anything is lost.
    "sonic": SwitchProduct(
        "Accton-AS7326-56X",
        "32MB",
        _sonic_leaf_port,
        "Accton-AS7726-32X",
        "32MB",
        lambda number: f"Ethernet{4 * number - 4}",
        alphas=(1 / 128, 1 / 32),
    ),
    # Spectrum-2, 42 MB each.
    "nvue": SwitchProduct(
        "MSN3420",
        "42MB",
        lambda number: f"swp{number}",
        "MSN3700C",
        "42MB",
        lambda number: f"swp{number}",
    ),
}

NICS: dict[str, NicProduct] = {
    "mlx5": NicProduct(rdma=lambda index: f"mlx5_{index}"),
    "bnxt": NicProduct(rdma=lambda index: f"bnxt_re{index}"),
    # Intel's 635330 names RDMA devices so: rdmap and the PCI address.
    "irdma": NicProduct(rdma=lambda index: f"rdmap59s0f{index}"),
}
