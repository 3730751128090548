"""How ranks talk over the network: what can be set, and what both ends must have equal."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal

from fabric.errors import InputError
from fabric.intended import roce_tos
from fabric.site import HostSpec, Site

WireType = Literal["native", "fp16", "bf16"]
WIRE_TYPES: tuple[WireType, ...] = ("native", "fp16", "bf16")
PATH_MTUS = (256, 512, 1024, 2048, 4096)
VARIABLE = "PAISOAR_NETWORK"
# A host's own: they name its hardware.
_OWN = frozenset({"device", "gid_index", "port", "address"})


@dataclass(frozen=True)
class NetworkSettings:
    """Settings of the transports between hosts.

    ``device`` and ``gid_index`` choose the RDMA NIC and its address; empty and
    -1 mean the first active RoCE device and its last RoCEv2 address.
    ``address`` is where the rank listens for TCP; empty means the interface by which
    it reaches the launcher. ``traffic_class`` is the IP header's octet of RDMA, DSCP in
    its upper six bits; ``tcp_traffic_class`` that of TCP, which has no place in the lossless class.
    ``tcp_congestion_control`` is the kernel's name of an algorithm; empty means the
    host's own between hosts and reno, which does not pace, within one.
    ``mtu`` is the path MTU in bytes. ``timeout`` (4.096 us * 2**timeout),
    ``retry_count``, ``rnr_retry`` (7: for ever) and ``min_rnr_timer`` are codes
    of the InfiniBand specification, as in ibv_modify_qp(3). ``channels`` are
    connections between two neighbours, ``segment_bytes`` is passed on at once.
    ``wire`` is what fp32 is rounded to on its way.
    """

    device: str = ""
    port: int = 1
    gid_index: int = -1
    address: str = ""
    traffic_class: int = 0
    tcp_traffic_class: int = 0
    tcp_congestion_control: str = ""
    mtu: int = 1024
    timeout: int = 18
    # Not 7: Soft-RoCE would try for ever (Linux drivers/infiniband/sw/rxe/rxe_comp.c).
    retry_count: int = 6
    rnr_retry: int = 7
    min_rnr_timer: int = 12
    hop_limit: int = 64
    channels: int = 1
    segment_bytes: int = 1 << 20
    wire: WireType = "native"

    def __post_init__(self) -> None:
        """InputError, with the key, for what no device takes."""
        ranges = {
            "port": (1, 255),
            "gid_index": (-1, 255),
            "traffic_class": (0, 255),
            "tcp_traffic_class": (0, 255),
            "timeout": (0, 31),
            "retry_count": (0, 7),
            "rnr_retry": (0, 7),
            "min_rnr_timer": (0, 31),
            "hop_limit": (1, 255),
            "channels": (1, 16),
            "segment_bytes": (64, 1 << 30),
        }
        for key, (low, high) in ranges.items():
            value = getattr(self, key)
            if not isinstance(value, int) or not low <= value <= high:
                raise InputError(
                    f"{value!r} is not possible", key=f"network.{key}", advice=f"{low} to {high}."
                )
        if self.mtu not in PATH_MTUS:
            known = ", ".join(map(str, PATH_MTUS))
            raise InputError(f"{self.mtu} is no path MTU", key="network.mtu", advice=f"{known}.")
        if self.wire not in WIRE_TYPES:
            known = ", ".join(WIRE_TYPES)
            raise InputError(f"{self.wire!r} is not known", key="network.wire", advice=f"{known}.")
        if self.segment_bytes % 64:
            raise InputError("segments end on cache lines", key="network.segment_bytes")

    @classmethod
    def for_site(cls, site: Site, host: str = "", place: int = 0) -> NetworkSettings:
        """What the site's certificate was measured with: the DSCP of its RDMA class, its MTU.

        The ranks of one host, by their ``place`` on it, take its NICs in turns;
        of a host that is none of the site's the device stays open. TCP goes over the same
        NICs, but for a twin's, which have no addresses.
        """
        spec = site.devices.get(host)
        nics = list(spec.nics.values()) if isinstance(spec, HostSpec) else []
        nic = nics[place % len(nics)] if nics else None
        return cls(
            device=nic.rdma if nic else "",
            address=nic.address if nic and site.environment != "twin" else "",
            traffic_class=roce_tos(site.intent),
            mtu=site.intent.mtu.roce,
        )

    @classmethod
    def from_environment(
        cls, variables: Mapping[str, str] | None = None, defaults: NetworkSettings | None = None
    ) -> NetworkSettings:
        """What ``$PAISOAR_NETWORK`` (a JSON object) sets, and ``defaults`` for the rest."""
        defaults = defaults or cls()
        text = (os.environ if variables is None else variables).get(VARIABLE, "")
        if not text:
            return defaults
        try:
            values = json.loads(text)
            unknown = set(values) - _names()
        except (ValueError, TypeError) as error:
            raise InputError(f"${VARIABLE} is no JSON object: {error}") from error
        if unknown:
            raise InputError(f"${VARIABLE} has unknown keys: {', '.join(sorted(unknown))}")
        return replace(defaults, **values)

    def changed_by(self, wishes: Sequence[str]) -> NetworkSettings:
        """These settings, but for what each wish (``KEY=VALUE``) says."""
        values: dict[str, str | int] = {}
        for wish in wishes:
            key, equals, value = wish.partition("=")
            if not equals or key not in _names():
                raise InputError(
                    f"{wish!r} sets nothing",
                    key="network",
                    advice=f"Write KEY=VALUE; keys are {', '.join(sorted(_names()))}.",
                )
            if isinstance(getattr(self, key), str):
                values[key] = value
                continue
            try:
                values[key] = int(value)
            except ValueError:
                raise InputError(f"{value!r} is no number", key=f"network.{key}") from None
        return replace(self, **values)  # type: ignore[arg-type] # by each field's own type

    def to_environment(self) -> dict[str, str]:
        """The variable that makes ranks use these settings."""
        return {VARIABLE: json.dumps(asdict(self))}

    def shared(self) -> dict[str, str | int]:
        """What all ranks must have equal."""
        return {key: value for key, value in asdict(self).items() if key not in _OWN}


def _names() -> frozenset[str]:
    return frozenset(field.name for field in fields(NetworkSettings))


def settings_for(
    site: Site, host: str = "", place: int = 0, wishes: Sequence[str] = ()
) -> NetworkSettings:
    """A rank's settings: the certified site's, but for ``$PAISOAR_NETWORK``, but for ``wishes``."""
    certified = NetworkSettings.for_site(site, host, place)
    return NetworkSettings.from_environment(defaults=certified).changed_by(wishes)
