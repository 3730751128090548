"""From a switch's outputs to what it does."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

from fabric.devices.base import (
    CUT_OFF,
    Outputs,
    ReadError,
    Target,
    TargetPort,
    require_shown,
    understood,
)
from fabric.devices.junos.fit import (
    ALPHAS,
    DEFAULT_POLLS,
    DEFAULT_RECOVERY_MS,
    DEFAULT_THRESHOLD,
    ETHERNET_HEADER_BYTES,
    POLL_MS,
    ecn_of_percents,
    headroom_of,
)
from fabric.devices.junos.ranges import ranges_of, unfollowed_groups
from fabric.devices.junos.render import DEFAULT_MTU, THRESHOLD
from fabric.devices.junos.shown import (
    confirmed,
    parse_links,
    parse_neighbors,
    parse_serial,
    parse_version,
)
from fabric.devices.junos.statements import COS, Config, Statement, is_physical, parse, sha256
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    DeviceQos,
    Ecn,
    IngressBuffer,
    PortFacts,
    PortQos,
    Queue,
    Scheduler,
    Trust,
    Watchdog,
)
from fabric.unread import Fact, lacking

CONFIGURATION = "show configuration | display set"
COMMIT = "show system commit"
VERSION = "show version"
HARDWARE = "show chassis hardware"
PORTS = "show interfaces"
LLDP = "show lldp neighbors"

COMMANDS = (CONFIGURATION, COMMIT, VERSION, HARDWARE, PORTS, LLDP)

# Forwarding classes of a switch where none are configured. Juniper, Traffic
# Management User Guide (QFX Series), "Default Forwarding Classes".
_DEFAULT_CLASSES = (
    ("best-effort", "queue-num", "0"),
    ("fcoe", "queue-num", "3", "no-loss"),
    ("no-loss", "queue-num", "4", "no-loss"),
    ("network-control", "queue-num", "7"),
)
_DEFAULT_MRU = 2500
_DEFAULT_CABLE_M = 100


def running_statements(target: Target, outputs: Outputs) -> tuple[Statement, ...]:
    """The configuration; ReadError without one, for nothing is known then."""
    return require_shown(parse(outputs.get(CONFIGURATION, "")), target.device, CONFIGURATION)


def read(target: Target, outputs: Outputs) -> DeviceQos:
    """What the switch does on every physical port that it shows.

    A commit takes effect at once and is what the switch boots with, unless it
    waits to be confirmed. Raises ReadError where an output is none of Junos, or the
    configuration seems cut off.
    """
    unread: list[str] = []
    config = Config(running_statements(target, outputs))
    version = parse_version(outputs.get(VERSION, ""))
    serial = parse_serial(outputs.get(HARDWARE, ""))
    shown = {"model": version.model, "firmware": version.firmware, "serial": serial}
    commands = {"model": VERSION, "firmware": VERSION, "serial": HARDWARE}
    unread += [f"{f}: '{commands[f]}' does not show it" for f, value in shown.items() if not value]
    saved = confirmed(outputs.get(COMMIT, ""))
    if saved is None:
        unread.append(f"startup configuration: '{COMMIT}' shows no commit")
    neighbors = understood(outputs, LLDP, "neighbours", partial(parse_neighbors, LLDP), unread)
    switch = _Switch(target, config, unread)
    links = parse_links(outputs.get(PORTS, ""))
    _require_whole(target, config, links.values())
    names = tuple(links) or _configured_ports(config)
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="junos",
        ports=tuple(switch.port(name) for name in names),
        model=version.model,
        firmware=version.firmware,
        serial=serial,
        config_sha256=sha256(outputs[CONFIGURATION]),
        saved=saved,
        neighbors=neighbors,
        unread=tuple(dict.fromkeys(unread)),
        facts=tuple(links.values()),
    )


def _require_whole(target: Target, config: Config, links: Iterable[PortFacts]) -> None:
    """ReadError where a port is up that no statement names, and no class of service follows.

    Statements have no last one by which to tell that they are all there. Those of
    ``class-of-service`` come behind those of ``interfaces``.
    """
    grouped = any("interfaces" in rest for _, *rest in config.under("groups"))
    if config.has(COS) or grouped or not config.has("interfaces"):
        return
    for port in links:
        named = config.has("interfaces", port.port) or ranges_of(config, port.port)
        if port.up and not named:
            raise ReadError(
                f"{target.device}: {CUT_OFF}: {port.port} is up, and '{CONFIGURATION}' has no "
                f"statement of it and none of {COS}"
            )


def _configured_ports(config: Config) -> tuple[str, ...]:
    rows = config.under("interfaces") + config.under(COS, "interfaces")
    names = [row[0] for row in rows if row]
    return tuple(dict.fromkeys(name for name in names if is_physical(name)))


class _Switch:
    """What is the same for all ports, found once."""

    def __init__(self, target: Target, config: Config, unread: list[str]) -> None:
        self._config = config
        self._unread = unread
        self._model = target.model
        self._cabled: dict[str, TargetPort] = {port.name: port for port in target.ports}
        rows = config.under(COS, "forwarding-classes", "class") or list(_DEFAULT_CLASSES)
        # Class -> queue and PFC priority.
        self._classes: dict[str, tuple[int, int]] = {}
        for row in rows:
            facts = dict(pairwise(row))
            if "queue-num" in facts:
                queue = int(facts["queue-num"])
                self._classes[row[0]] = (queue, int(facts.get("pfc-priority", queue)))
        threshold = config.number(*THRESHOLD)
        number = DEFAULT_THRESHOLD if threshold is None else threshold
        self._alpha = ALPHAS.get(number, ALPHAS[DEFAULT_THRESHOLD])
        unread += unfollowed_groups(config)
        if config.has(COS, "shared-buffer", "egress", "buffer-partition", "lossless"):
            unread.append(f"{Fact.ECN} all queues: the egress buffer is partitioned otherwise")

    def port(self, name: str) -> PortQos:
        """What the statements make of this port."""
        mtu = self._mtu(name)
        classifier, trust = self._classifier(name)
        classes = self._dscp_classes(name, classifier)
        # A priority is what a peer is paused by: that of the class, where it has one.
        priorities = tuple(self._of_class(name, c)[1] for c in classes)
        profile = self._attached(name, "congestion-notification-profile")
        pfc = self._pfc(name, profile, classes)
        return PortQos(
            name=name,
            mtu_bytes=mtu,
            trust=trust,
            dscp_to_priority=priorities if trust == "dscp" else (0,) * DSCP_COUNT,
            priority_to_class=self._priority_to_class(name, classes),
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=pfc,
            link_pause=profile is None and self._link_pause(name),
            queues=self._queues(name),
            ingress_buffers=self._buffers(name, profile, pfc),
            watchdog=self._watchdog(profile),
        )

    def _link_pause(self, name: str) -> bool:
        owners = ((name,), *(("interface-range", one) for one in ranges_of(self._config, name)))
        return any(
            self._config.has("interfaces", *owner, "ether-options", option)
            for owner in owners
            for option in ("flow-control", "configured-flow-control")
        )

    def _mtu(self, name: str) -> int:
        held = self._of_port(name, "mtu")
        media = DEFAULT_MTU if held is None else held
        packet = media - ETHERNET_HEADER_BYTES
        inet = self._config.number("interfaces", name, "unit", "0", "family", "inet", "mtu")
        return packet if inet is None else min(packet, inet)

    def _of_port(self, name: str, *path: str) -> int | None:
        """A number of a port, or of an interface-range that it is a member of."""
        owners = (name, *(f"interface-range {one}" for one in ranges_of(self._config, name)))
        numbers = (self._config.number("interfaces", *owner.split(), *path) for owner in owners)
        return next((number for number in numbers if number is not None), None)

    def _attached(self, name: str, *path: str) -> str | None:
        """What is attached to a port: by its name, by a wildcard, or to all."""
        kind = name.partition("-")[0]
        for owner in (name, f"{kind}-*", "all"):
            value = self._config.value(COS, "interfaces", owner, *path)
            if value is not None:
                return value
        return None

    def _classifier(self, name: str) -> tuple[str, Trust]:
        for place in (("unit", "0"), ("unit", "*"), ()):
            dscp = self._attached(name, *place, "classifiers", "dscp")
            if dscp is not None:
                return dscp, "dscp"
        for place in (("unit", "0"), ("unit", "*"), ()):
            if self._attached(name, *place, "classifiers", "ieee-802.1") is not None:
                return "", "pcp"
        return "", "none"

    def _dscp_classes(self, name: str, classifier: str) -> list[str]:
        """Forwarding class of each DSCP; those that none has are best effort."""
        rows = self._config.under(COS, "classifiers", "dscp", classifier) if classifier else []
        if classifier and not rows:
            why = f"classifier {classifier} is not shown"
            self._unread.append(lacking(name, Fact.DSCPS, why))
        if any(row[:1] == ("import",) for row in rows):
            why = f"classifier {classifier} imports another one"
            self._unread.append(lacking(name, Fact.DSCPS, why))
        lowest = min(self._classes, key=lambda c: self._classes[c], default="")
        found = [lowest] * DSCP_COUNT
        for row in rows:
            if row[:1] == ("forwarding-class",) and "code-points" in row:
                point = row[row.index("code-points") + 1]
                dscp = _DSCPS.get(point)
                if dscp is None:
                    why = f"classifier {classifier}: code point {point}"
                    self._unread.append(lacking(name, Fact.DSCPS, why))
                else:
                    found[dscp] = row[1]
        return found

    def _of_class(self, where: str, name: str) -> tuple[int, int]:
        if name not in self._classes:
            why = f"forwarding class {name} has no queue"
            self._unread.append(lacking(where, Fact.CLASSES, why))
        return self._classes.get(name, (0, 0))

    def _priority_to_class(self, port: str, used: Iterable[str]) -> tuple[int, ...]:
        """Queue of each priority: of the classes that the port uses, else of any."""
        queues = {priority: queue for queue, priority in self._classes.values()}
        queues |= {priority: queue for queue, priority in (self._of_class(port, c) for c in used)}
        return tuple(queues.get(priority, priority) for priority in range(PRIORITY_COUNT))

    def _pfc(self, name: str, profile: str | None, classes: list[str]) -> tuple[int, ...]:
        if profile is None:
            return ()
        found = set()
        for row in self._config.under(COS, "congestion-notification-profile", profile, "input"):
            if row[:2] == ("dscp", "code-point") and "pfc" in row:
                dscp = _DSCPS.get(row[2])
                if dscp is not None:
                    found.add(self._of_class(name, classes[dscp])[1])
            elif row[:2] == ("ieee-802.1", "code-point") and "pfc" in row:
                found.add(int(row[2], 2))
        return tuple(sorted(found))

    def _buffers(
        self, name: str, profile: str | None, priorities: Iterable[int]
    ) -> tuple[IngressBuffer, ...]:
        cabled = self._cabled.get(name)
        if profile is None or cabled is None:
            return ()
        head = (COS, "congestion-notification-profile", profile, "input")
        cable_m = self._config.number(*head, "cable-length") or _DEFAULT_CABLE_M
        mrus = [
            int(row[row.index("mru") + 1]) for row in self._config.under(*head) if "mru" in row[:-1]
        ]
        size = headroom_of(cabled, cable_m, min(mrus, default=_DEFAULT_MRU))
        return tuple(IngressBuffer(p, size, 0, 0, self._alpha) for p in priorities)

    def _watchdog(self, profile: str | None) -> Watchdog | None:
        head = (COS, "congestion-notification-profile", profile or "", "pfc-watchdog")
        if profile is None or not self._config.has(*head):
            return None
        poll_ms = self._config.number(*head, "poll-interval") or POLL_MS
        polls = self._config.number(*head, "detection") or DEFAULT_POLLS
        recovery = self._config.number(*head, "recovery") or DEFAULT_RECOVERY_MS
        action = self._config.value(*head, "watchdog-action")
        return Watchdog(poll_ms * polls, recovery, "forward" if action == "forward" else "drop")

    def _queues(self, name: str) -> tuple[Queue, ...]:
        queues = {n: Queue(n, Scheduler("ets", 0)) for n in range(PRIORITY_COUNT)}
        if (rate := self._attached(name, "shaping-rate")) is not None:
            self._unread.append(lacking(name, Fact.RATE, f"shaping-rate {rate}", "the port"))
        if self._attached(name, "forwarding-class-set") is not None:
            why = "it has forwarding-class-sets"
            self._unread.append(lacking(name, Fact.SCHEDULING, why, "all queues"))
        scheduling = self._attached(name, "scheduler-map")
        for row in self._config.under(COS, "scheduler-maps", scheduling) if scheduling else ():
            if row[:1] == ("forwarding-class",) and row[2:3] == ("scheduler",):
                number = self._of_class(name, row[1])[0]
                if number in queues:
                    queues[number] = self._queue(name, number, row[3])
        return tuple(queues.values())

    def _queue(self, port: str, number: int, scheduler: str) -> Queue:
        head = (COS, "schedulers", scheduler)
        for row in self._config.under(*head):
            self._note_rates(port, number, scheduler, row)
        strict = self._config.value(*head, "priority") in ("strict-high", "strict-priority")
        share = self._config.number(*head, "transmit-rate", "percent") or 0
        return Queue(
            number,
            Scheduler("strict") if strict else Scheduler("ets", share),
            self._ecn(port, number, scheduler),
        )

    def _note_rates(self, port: str, number: int, scheduler: str, row: Statement) -> None:
        """Shares that are no percent, and shapers, are not read."""
        why, of = f"scheduler {scheduler}: {' '.join(row)}", f"queue {number}"
        if row[:1] == ("transmit-rate",) and row[1:2] not in (("percent",), ("remainder",)):
            self._unread.append(lacking(port, Fact.SCHEDULING, why, of))
        if row[:1] == ("shaping-rate",) or (row[:1] == ("transmit-rate",) and "exact" in row):
            self._unread.append(lacking(port, Fact.RATE, why, of))

    def _ecn(self, port: str, number: int, scheduler: str) -> Ecn | None:
        """Thresholds of a scheduler; without ``explicit-congestion-notification`` it drops."""
        if not self._config.has(COS, "schedulers", scheduler, "explicit-congestion-notification"):
            return None
        rows = self._config.under(COS, "schedulers", scheduler, "drop-profile-map")
        profile = next((row[-1] for row in rows if "drop-profile" in row), "")
        head = (COS, "drop-profiles", profile)
        points = [
            sorted(int(row[2]) for row in self._config.under(*head) if row[1:2] == (what,))
            for what in ("fill-level", "drop-probability")
        ]
        if any(len(row) != 2 for row in points) or points[1][0]:
            why = f"scheduler {scheduler} has drop profile {profile or 'none'}"
            self._unread.append(lacking(port, Fact.ECN, why, f"queue {number}"))
            return None
        (low, high), (_, percent) = points
        return ecn_of_percents(low, high, percent, self._model)


# Names of code points beside their bits. Junos, default DSCP aliases.
_DSCPS = {f"{dscp:06b}": dscp for dscp in range(DSCP_COUNT)}
_DSCPS |= {"be": 0, "ef": 46}
_DSCPS |= {f"af{x}{y}": 8 * x + 2 * y for x in range(1, 5) for y in range(1, 4)}
_DSCPS |= {f"cs{x}": 8 * x for x in range(1, 8)} | {"nc1": 48, "nc2": 56}
