"""What NVUE's tree makes of one port."""

from __future__ import annotations

from fabric.devices.nvue.normalise import POLL_MS
from fabric.devices.nvue.tree import Tree, get, integer, value
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    Ecn,
    IngressBuffer,
    PortQos,
    Queue,
    Scheduler,
    Trust,
    Watchdog,
)
from fabric.unread import Fact, lacking

DEFAULT_MTU = 9216
GLOBAL = "default-global"
# What the profile default-global holds where nothing is configured.
_DEFAULT_MARKING: Tree = {"traffic-class": {"0": {}}}
_DEFAULT_SHARES: Tree = {
    "traffic-class": {
        str(number): {"mode": "dwrr", "bw-percent": "12" if number % 2 == 0 else "13"}
        for number in range(PRIORITY_COUNT)
    }
}
_DEFAULT_KMIN, _DEFAULT_KMAX, _CERTAIN_PERCENT = 150_000, 1_500_000, 100
_DEFAULT_ROBUSTNESS = 3
# What RoCE mode sets. Source: Cumulus Linux 5.14, "RDMA over Converged Ethernet - RoCE".
_OF_ROCE_MODE = (
    Fact.TRUST,
    Fact.DSCPS,
    Fact.CLASSES,
    f"{Fact.PFC} all priorities",
    f"{Fact.ECN} all queues",
    f"{Fact.SCHEDULING} all queues",
    f"{Fact.BUFFER} of all priorities",
)
_TRUST: dict[str, Trust] = {"l2": "pcp", "l3": "dscp", "both": "dscp", "port": "none"}


class PortReader:
    """Reads ports one by one; what the tree does not tell goes to ``unread``."""

    def __init__(self, tree: Tree, unread: list[str]) -> None:
        self._tree = tree
        self._unread = unread
        if "roce" in get(tree, "qos"):
            why = "'nv set qos roce' sets what the tree does not show"
            unread += [f"{fact}: {why}" for fact in _OF_ROCE_MODE]

    def port(self, name: str) -> PortQos:
        """What this port does."""
        interface = get(self._tree, "interface", name)
        qos = get(interface, "qos")
        mtu_bytes = _number(interface, DEFAULT_MTU, "link", "mtu")
        pfc = self._profile(qos, "pfc", {})
        if self._profile(qos, "egress-shaper", {}):
            self._unread.append(lacking(name, Fact.RATE, "it has an egress-shaper", "all queues"))
        return PortQos(
            name=name,
            mtu_bytes=mtu_bytes,
            trust=self._trust(qos),
            dscp_to_priority=self._dscps(qos),
            priority_to_class=self._classes(),
            class_mtu_bytes=(mtu_bytes,) * PRIORITY_COUNT,
            pfc_priorities=_paused(pfc),
            link_pause="link-pause" in qos,
            queues=self._queues(qos),
            ingress_buffers=self._buffers(name, pfc),
            watchdog=self._watchdog(qos),
        )

    def _profile(self, qos: Tree, kind: str, default: Tree) -> Tree:
        """The port's own profile, or the one of all ports."""
        name = value(qos, kind, "profile") or GLOBAL
        return get(self._tree, "qos", kind, name) or (default if name == GLOBAL else {})

    def _trust(self, qos: Tree) -> Trust:
        return _TRUST.get(value(self._profile(qos, "mapping", {}), "trust"), "pcp")

    def _dscps(self, qos: Tree) -> tuple[int, ...]:
        """DSCPs that a profile does not name: eight of them to a priority."""
        found = get(self._profile(qos, "mapping", {}), "dscp")
        return tuple(
            _number(found, dscp // 8, str(dscp), "switch-priority") for dscp in range(DSCP_COUNT)
        )

    def _classes(self) -> tuple[int, ...]:
        found = get(self._tree, "qos", "egress-queue-mapping", GLOBAL, "switch-priority")
        return tuple(
            _number(found, number, str(number), "traffic-class") for number in range(PRIORITY_COUNT)
        )

    def _queues(self, qos: Tree) -> tuple[Queue, ...]:
        shares = get(self._profile(qos, "egress-scheduler", _DEFAULT_SHARES), "traffic-class")
        marking = get(self._profile(qos, "congestion-control", _DEFAULT_MARKING), "traffic-class")
        return tuple(
            Queue(number, _scheduler(get(shares, str(number))), _ecn(marking, str(number)))
            for number in range(PRIORITY_COUNT)
        )

    def _buffers(self, name: str, pfc: Tree) -> tuple[IngressBuffer, ...]:
        size, xoff, delta = (
            integer(pfc, field) for field in ("port-buffer", "xoff-threshold", "xon-threshold")
        )
        paused = _paused(pfc)
        if not paused:
            return ()
        if size is None or xoff is None or delta is None:
            self._unread += [
                lacking(name, Fact.BUFFER, "switchd computes it", f"of priority {priority}")
                for priority in paused
            ]
            return ()
        return tuple(IngressBuffer(priority, size, xoff, xoff - delta) for priority in paused)

    def _watchdog(self, qos: Tree) -> Watchdog | None:
        if "pfc-watchdog" not in qos:
            return None
        if value(qos, "pfc-watchdog", "state").startswith("disable"):
            return None
        timing = get(self._tree, "qos", "pfc-watchdog")
        poll = _number(timing, POLL_MS, "polling-interval")
        polls = _number(timing, _DEFAULT_ROBUSTNESS, "robustness")
        return Watchdog(poll * polls, None, "drop")


def _paused(pfc: Tree) -> tuple[int, ...]:
    """Priorities that pause; a profile that does not send pause frames protects none."""
    if value(pfc, "tx").startswith("disable"):
        return ()
    return tuple(sorted(int(number) for number in get(pfc, "switch-priority")))


def _scheduler(row: Tree) -> Scheduler:
    if value(row, "mode") == "strict":
        return Scheduler("strict")
    return Scheduler("ets", _number(row, 0, "bw-percent"))


def _ecn(marking: Tree, number: str) -> Ecn | None:
    if number not in marking or value(marking, number, "ecn").startswith("disable"):
        return None
    row = get(marking, number)
    return Ecn(
        _number(row, _DEFAULT_KMIN, "min-threshold"),
        _number(row, _DEFAULT_KMAX, "max-threshold"),
        _number(row, _CERTAIN_PERCENT, "probability"),
    )


def _number(tree: Tree, default: int, *path: str) -> int:
    """What stands at a path, or what NVUE has where nothing does."""
    found = integer(tree, *path)
    return default if found is None else found
