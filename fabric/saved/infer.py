"""What a fabric is meant to do, by what most of it does.

Field by field, every port has one vote. Where what most do makes no sense (no PFC
anywhere, Kmin above Kmax, CNPs in a paused priority), what ``paisoar init`` writes
takes its place: then most ports are wrong, and are found to be. Each value says how
many voted for it, or that it is assumed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from fabric.intent import ROCE_HEADER_BYTES, DcqcnIntent, Intent
from fabric.qos import DSCP_COUNT, Dcqcn, DeviceQos, Nic, PortQos, Watchdog
from fabric.topology import PortRef
from fabric.units import format_speed

Value = TypeVar("Value")

ROCE_PRIORITY, ROCE_DSCP, CNP_PRIORITY, CNP_DSCP = 3, 26, 6, 48
# The starter's thresholds in bytes for each Gbit/s of the port.
KMIN, KMAX, XOFF, PMAX_PERCENT = 4_000, 16_000, 6_000, 20
XON_BELOW = 10_000
_ECT = 0b10


@dataclass(frozen=True, slots=True)
class Inferred:
    """One value and how it came about: ``votes`` of ``of`` ports, or assumed."""

    key: str
    value: str
    votes: int
    of: int

    @property
    def assumed(self) -> bool:
        """Nobody's vote: the starter's value."""
        return self.votes == 0

    def __str__(self) -> str:
        if self.assumed:
            why = "what most ports do makes no sense" if self.of else "no port shows it"
            return f"{self.key} = {self.value} ({why})"
        return f"{self.key} = {self.value} ({self.votes} of {self.of})"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dataclasses.asdict(self) | {"assumed": self.assumed}


@dataclass(frozen=True, slots=True)
class Voter:
    """One port that has a vote."""

    device: str
    system: str
    kind: str
    speed_bps: int
    port: PortQos


def voters(
    states: Mapping[str, DeviceQos], speed_bps: Callable[[PortRef], int | None]
) -> list[Voter]:
    """The ports in use: those whose speed is known, because they have a cable."""
    found = []
    for name, state in states.items():
        for port in state.ports:
            speed = speed_bps(PortRef(name, port.name))
            if speed:
                found.append(Voter(name, state.os, state.kind, speed, port))
    return found


class Inference:
    """Infers an intent; ``said`` is every value with its votes.

    ``speeds_bps`` are those of ports that have no vote, and that it is for all the same.
    """

    def __init__(
        self,
        states: Mapping[str, DeviceQos],
        ports: list[Voter],
        speeds_bps: Iterable[int] = (),
    ) -> None:
        self._states = states
        self._ports = ports
        self._speeds_bps = frozenset(speeds_bps).union(voter.speed_bps for voter in ports)
        self._switches = [voter for voter in ports if voter.kind == "switch"]
        self._nics: list[Nic] = [v.port.nic for v in ports if v.port.nic is not None]
        self.said: list[Inferred] = []

    def _vote(
        self,
        key: str,
        values: Iterable[Value],
        assumed: Value,
        valid: Callable[[Value], bool] = lambda _: True,
        text: Callable[[Value], str] = str,
    ) -> Value:
        """The most frequent value where it is valid, or else the assumed one."""
        count = Counter(values)
        value, votes = count.most_common(1)[0] if count else (assumed, 0)
        if not votes or not valid(value):
            value, votes = assumed, 0
        self.said.append(Inferred(key, text(value), votes, sum(count.values())))
        return value

    def intent(self) -> Intent:
        """The intent; valid whatever the ports do."""
        lossless = self._vote(
            "lossless priorities",
            (v.port.pfc_priorities for v in self._ports),
            (ROCE_PRIORITY,),
            lambda value: 0 < len(value) < 4,
            _list,
        )
        mapping = self._mapping()
        roce = self._roce(lossless, mapping)
        default = self._default(roce, lossless, mapping)
        cnp_dscp = self._vote(
            "CNP DSCP",
            # A NIC that does not show it reads as 0.
            (nic.dcqcn.cnp_dscp for nic in self._nics if nic.dcqcn and nic.dcqcn.cnp_dscp),
            CNP_DSCP,
            lambda dscp: mapping[dscp] not in lossless,
        )
        cnp = self._cnp(roce, default, lossless, mapping, cnp_dscp)
        tos = self._vote(
            "RoCE TOS byte",
            (t for n in self._nics for t in (n.rdma_cm_tos, n.verbs_traffic_class) if t),
            self._tos_of(roce, mapping),
            lambda byte: mapping[byte >> 2] == roce and byte >> 2 != cnp_dscp,
        )
        dscps = _with_others(tos >> 2, mapping, roce, without=(cnp_dscp,))
        cnps = _with_others(cnp_dscp, mapping, cnp, without=dscps)
        share = self._share(roce)
        return Intent.model_validate(
            {
                "mtu": self._mtu(),
                "classes": {
                    "roce": {
                        "role": "roce",
                        "dscp": dscps,
                        "priority": roce,
                        "lossless": True,
                        "scheduler": {"mode": "ets", "percent": share},
                    },
                    "cnp": {
                        "role": "cnp",
                        "dscp": cnps,
                        "priority": cnp,
                        "scheduler": {"mode": "strict"},
                    },
                    "default": {
                        "role": "default",
                        "priority": default,
                        "scheduler": {"mode": "ets", "percent": 100 - share},
                    },
                },
                "profiles": self._profiles(roce),
                "watchdog": self._watchdog(),
                "dcqcn": self._dcqcn(roce).model_dump(),
                "host": {
                    "mark_ect": tos & 0b11 != 0,
                    "receive_buffer": f"{self._receive_buffer(roce)}B",
                },
            }
        )

    def _mapping(self) -> tuple[int, ...]:
        """Priority of each DSCP on most switch ports, of most NICs where there is no switch."""
        maps = [v.port.dscp_to_priority for v in self._switches if v.port.trust == "dscp"]
        maps = maps or [v.port.dscp_to_priority for v in self._ports if v.port.trust == "dscp"]
        count = Counter(maps)
        if not count:
            return tuple(
                {ROCE_DSCP: ROCE_PRIORITY, CNP_DSCP: CNP_PRIORITY}.get(d, 0)
                for d in range(DSCP_COUNT)
            )
        return count.most_common(1)[0][0]

    def _roce(self, lossless: tuple[int, ...], mapping: tuple[int, ...]) -> int:
        """The lossless priority in which RDMA travels: its TOS, then ECN, tells."""
        votes: Counter[int] = Counter()
        for nic in self._nics:
            for byte in (nic.rdma_cm_tos, nic.verbs_traffic_class):
                if byte is not None and mapping[byte >> 2] in lossless:
                    votes[mapping[byte >> 2]] += 1
        for voter in self._switches:
            for queue in voter.port.queues:
                if queue.ecn is not None and queue.traffic_class in lossless:
                    votes[queue.traffic_class] += 1
        return self._vote("RoCE priority", votes.elements(), min(lossless))

    def _default(self, roce: int, lossless: tuple[int, ...], mapping: tuple[int, ...]) -> int:
        usual = Counter(p for p in mapping if p not in lossless).most_common(1)
        return usual[0][0] if usual else next(p for p in range(8) if p != roce)

    def _cnp(
        self,
        roce: int,
        default: int,
        lossless: tuple[int, ...],
        mapping: tuple[int, ...],
        dscp: int,
    ) -> int:
        """Where most switches put CNPs, unless that is RoCE's or everybody's class."""
        taken = {roce, default, *lossless}
        strict = (
            queue.traffic_class
            for voter in self._switches
            for queue in voter.port.queues
            if queue.scheduler.mode == "strict" and queue.traffic_class not in taken
        )
        spare = next(p for p in (CNP_PRIORITY, 7, 5, 4, 2, 1, 0) if p not in taken)
        if mapping[dscp] not in taken:
            return self._vote("CNP priority", [mapping[dscp]] * len(self._switches), spare)
        return self._vote("CNP priority", strict, spare)

    @staticmethod
    def _tos_of(roce: int, mapping: tuple[int, ...]) -> int:
        own = [dscp for dscp in range(DSCP_COUNT) if mapping[dscp] == roce]
        dscp = own[0] if own and ROCE_DSCP not in own else ROCE_DSCP
        return dscp << 2 | _ECT

    def _share(self, roce: int) -> int:
        percents = (
            queue.scheduler.percent
            for voter in self._ports
            if (queue := voter.port.queue(roce)) is not None
        )
        return self._vote("RoCE share", percents, 50, lambda p: 0 < p < 100, lambda p: f"{p} %")

    def _mtu(self) -> dict[str, int]:
        host = self._vote(
            "host MTU",
            (v.port.mtu_bytes for v in self._ports if v.kind == "host" and v.port.mtu_bytes),
            9000,
            lambda mtu: 4096 + ROCE_HEADER_BYTES <= mtu <= 9216,
        )
        switch = self._vote(
            "switch MTU",
            (min(v.port.mtu_bytes, 9216) for v in self._switches),
            9216,
            lambda mtu: host <= mtu,
        )
        return {"switch_port": switch, "host": host, "roce": 4096}

    def _profiles(self, roce: int) -> dict[str, dict[str, Any]]:
        """Thresholds by port speed, as ``25G``."""
        speeds = sorted(self._speeds_bps) or [25 * 10**9]
        return {format_speed(speed_bps): self._profile(speed_bps, roce) for speed_bps in speeds}

    def _profile(self, speed_bps: int, roce: int) -> dict[str, Any]:
        name = format_speed(speed_bps)
        ports = [v.port for v in self._switches if v.speed_bps == speed_bps]
        start_kmin, start_kmax, start_pmax, start_xoff, _ = profile_of_speed(speed_bps)
        kmin, kmax, pmax = self._vote(
            f"ECN of {name} ports",
            (
                (q.ecn.kmin_bytes, q.ecn.kmax_bytes, q.ecn.pmax_percent)
                for p in ports
                if (q := p.queue(roce)) is not None and q.ecn is not None
            ),
            (start_kmin, start_kmax, start_pmax),
            lambda ecn: 0 < ecn[0] < ecn[1] and ecn[2] > 0,
            lambda ecn: f"{ecn[0]} to {ecn[1]} B, {ecn[2]} %",
        )
        # Congestion is to be marked before it is paused.
        start_xoff = max(start_xoff, kmin + kmin // 2)
        buffers = (b for p in ports if (b := p.ingress_buffer(roce)) is not None)
        xoff, xon = self._vote(
            f"XOFF and XON of {name} ports",
            ((b.xoff_bytes, b.xon_bytes) for b in buffers if b.alpha is None),
            (start_xoff, _xon_below(start_xoff)),
            lambda pair: 0 < pair[1] <= pair[0] and kmin < pair[0],
            lambda pair: f"{pair[0]} and {pair[1]} B",
        )
        return {
            "kmin": f"{kmin}B",
            "kmax": f"{kmax}B",
            "pmax_percent": pmax,
            "xoff": f"{xoff}B",
            # An intent wants XON below XOFF; equal ones are put back port by port.
            "xon": f"{min(xon, xoff - 1)}B",
        }

    def _watchdog(self) -> dict[str, Any]:
        start = Watchdog(200, 400, "drop")
        got = self._vote(
            "watchdog",
            (v.port.watchdog for v in self._switches if v.port.watchdog is not None),
            start,
            sensible_watchdog,
            lambda w: f"{w.action} after {w.detect_ms or 'default'} ms",
        )
        detect = min(max(got.detect_ms or 200, 100), 5000)
        restore = min(max(got.restore_ms or 400, 100), 60000)
        return {"action": got.action, "detect_ms": detect, "restore_ms": restore}

    def _dcqcn(self, roce: int) -> DcqcnIntent:
        start = DcqcnIntent()

        def right(found: Dcqcn) -> bool:
            return roce in found.np_priorities and roce in found.rp_priorities

        names = DcqcnIntent.model_fields
        assumed = start.for_priority(roce, CNP_DSCP, CNP_PRIORITY)
        got = self._vote(
            "DCQCN",
            (nic.dcqcn for nic in self._nics if nic.dcqcn is not None),
            assumed,
            right,
            lambda d: f"CNPs every {d.min_time_between_cnps_us} us, AI {d.ai_rate_mbps} Mb/s",
        )
        try:
            return DcqcnIntent(**{name: getattr(got, name) for name in names})
        except ValidationError:
            return start

    def _receive_buffer(self, roce: int) -> int:
        sizes = (
            buffer.size_bytes
            for voter in self._ports
            if voter.kind == "host" and (buffer := voter.port.ingress_buffer(roce)) is not None
        )
        return self._vote("host receive buffer", sizes, 156096, lambda size: size > 0)


def _with_others(
    first: int, mapping: Sequence[int], priority: int, *, without: Collection[int]
) -> list[int]:
    """A class's DSCPs: the first, and the others that are mapped to its priority."""
    own = (dscp for dscp in range(DSCP_COUNT) if mapping[dscp] == priority)
    return [first, *(dscp for dscp in own if dscp != first and dscp not in without)]


def profile_of_speed(speed_bps: int) -> tuple[int, int, int, int, int]:
    """The starter's Kmin, Kmax (bytes), Pmax (percent), XOFF and XON for this port speed."""
    gbps = max(speed_bps // 10**9, 1)
    xoff = XOFF * gbps
    return KMIN * gbps, KMAX * gbps, PMAX_PERCENT, xoff, _xon_below(xoff)


def _xon_below(xoff_bytes: int) -> int:
    return xoff_bytes - min(XON_BELOW, xoff_bytes // 2)


def sensible_watchdog(watchdog: Watchdog) -> bool:
    """Whether it waits long enough not to act on ordinary congestion."""
    return watchdog.detect_ms is None or 100 <= watchdog.detect_ms <= 5000


def _list(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values)) or "none"
