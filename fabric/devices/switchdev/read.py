"""From a switch's outputs to what it does, port by port."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fabric.devices.base import Outputs, ReadError, Target
from fabric.devices.linux.dump import parse_dump
from fabric.devices.linux.tools import link_pause
from fabric.devices.switchdev import red, shown, state
from fabric.devices.switchdev.shown import Filter
from fabric.devices.switchdev.state import PREFS, Ets, Held, Place
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    DeviceQos,
    Ecn,
    IngressBuffer,
    Neighbor,
    PortFacts,
    PortQos,
    Queue,
    Scheduler,
)
from fabric.unread import Fact, lacking

LINKS = "ip -j -d link show"
QDISCS = "tc -j -d qdisc show"
SPEEDS = "grep -H . /sys/class/net/*/speed 2>/dev/null"
KERNEL = "uname -r"
LLDP = "lldpctl -f json"
BINDINGS = "devlink -j sb tc bind show"
DEVICES = "devlink -j dev info"

COMMON = (LINKS, QDISCS, SPEEDS, KERNEL, LLDP)
HARDWARE = (BINDINGS, DEVICES)

# Parts of DCB, and what each tells of a port.
_DCB = {
    "app": ((Fact.TRUST, ""), (Fact.DSCPS, "")),
    "pfc": ((Fact.PFC, "all priorities"),),
    "buffer": ((Fact.BUFFER, "of all priorities"),),
    "ets": ((Fact.SCHEDULING, "all queues"), (Fact.CLASSES, "")),
}
_FIFOS = ("pfifo", "bfifo", "pfifo_head_drop")
# What stands at a root that nobody has put anything at.
_NO_HANDLE = "0:"


def filter_command(port: str) -> str:
    """Shows the filters of what comes in at a port."""
    return f"tc -j filter show dev {port} ingress"


def dcb_command(kind: str, port: str) -> str:
    """Shows one part of a port's DCB settings; ``-N``: DSCPs as numbers."""
    return f"dcb -j -N {kind} show dev {port}"


def pause_command(port: str) -> str:
    """Shows 802.3x pause."""
    return f"ethtool -a {port}"


def commands(target: Target, *, hardware: bool) -> tuple[str, ...]:
    """Everything that shows what a switch with these ports does."""
    found = [*COMMON, *(HARDWARE if hardware else ())]
    for port in target.ports:
        if hardware:
            found += [dcb_command(kind, port.name) for kind in _DCB]
            found.append(pause_command(port.name))
        else:
            found.append(filter_command(port.name))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PortState:
    """One port's settings, where its scheduler goes, and what was not ours or not shown."""

    held: Held
    place: Place
    queues: tuple[Queue, ...]
    classes: tuple[int, ...]
    dscps: tuple[int, ...]
    trust: str
    unread: tuple[str, ...]


class Switch:
    """The outputs of one switch, taken apart once.

    Raises ReadError where the commands that every Linux has were not answered.
    """

    def __init__(self, target: Target, outputs: Outputs, *, hardware: bool) -> None:
        for command in (LINKS, QDISCS):
            if command not in outputs:
                raise ReadError(
                    f"{target.device}: '{command}' was not answered; "
                    "it needs iproute2 and, to be changed, root"
                )
        self._outputs = outputs
        self._hardware = hardware
        self.links = {row.get("ifname", ""): row for row in shown.rows(LINKS, outputs[LINKS])}
        self._qdiscs: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in shown.rows(QDISCS, outputs[QDISCS]):
            self._qdiscs[row.get("dev", "")].append(row)
        self._bindings = shown.record(BINDINGS, outputs.get(BINDINGS, "")).get("tc_bind", {})

    def port(self, name: str) -> PortState | None:
        """What a port holds; None where there is no such interface."""
        link = self.links.get(name)
        if link is None:
            return None
        qdiscs = self._qdiscs.get(name, [])
        place, ets = _scheduler(qdiscs)
        reds, unread = _reds(name, qdiscs, ets)
        held = Held(mtu_bytes=int(link.get("mtu", 0)), ets=ets, reds=reds)
        part = self._in_hardware if self._hardware else self._in_software
        return part(name, held, place, unread)

    def _in_software(self, name: str, held: Held, place: Place, unread: list[str]) -> PortState:
        command = filter_command(name)
        if command not in self._outputs:
            unread.append(lacking(name, Fact.DSCPS, f"'{command}' was not answered"))
        listed = list(shown.filters(shown.rows(command, self._outputs.get(command, ""))))
        table: dict[int, int] = {}
        for found in listed:
            if not found.plain:
                why = f"filter {found.pref} is of another kind"
                unread.append(lacking(name, Fact.DSCPS, why))
            elif found.protocol in ("ip", "all"):
                table.setdefault(found.dscp or 0, found.priority or 0)
        filters = {f.pref: (f.dscp or 0, f.priority or 0) for f in listed if _is_ours(f)}
        hook = any(row.get("kind") in ("clsact", "ingress") for row in self._qdiscs.get(name, ()))
        held = _replace(held, filters=filters, ingress_hook=hook)
        queues, classes = _scheduling(held, self._qdiscs.get(name, []))
        dscps = state.dscp_priorities(table)
        return PortState(held, place, queues, classes, dscps, "dscp", tuple(unread))

    def _in_hardware(self, name: str, held: Held, place: Place, unread: list[str]) -> PortState:
        # Where the kernel schedules the port, nobody needs to know what ETS of DCB is.
        parts = {kind: self._dcb(kind, name, unread) for kind in _DCB if kind != "ets"}
        parts["ets"] = self._dcb("ets", name, unread if held.ets is None else [])
        app: dict[int, set[int]] = defaultdict(set)
        for dscp, priority in parts["app"].get("dscp_prio", []):
            app[int(dscp)].add(int(priority))
        pause = link_pause(self._outputs.get(pause_command(name), ""))
        if pause is None:
            why = f"'{pause_command(name)}' does not show it"
            unread.append(lacking(name, Fact.LINK_PAUSE, why))
        held = _replace(
            held,
            app={dscp: frozenset(priorities) for dscp, priorities in app.items()},
            pfc=shown.switches(parts["pfc"].get("prio_pfc")),
            pause=pause is not None and any(pause),
            prio_buffer=shown.numbers(parts["buffer"].get("prio_buffer")),
            buffer_bytes=shown.numbers(parts["buffer"].get("buffer_size")),
            thresholds=self._thresholds(name, unread),
        )
        default = max(shown.numbers(parts["app"].get("default_prio")), default=0)
        # Of several priorities for a DSCP the highest one counts: Linux, dcb_ieee_getapp_*.
        table = {dscp: max(priorities) for dscp, priorities in held.app.items()}
        queues, classes = _scheduling(held, self._qdiscs.get(name, []), parts["ets"])
        # A port without any entry for a DSCP trusts the VLAN tag: mlxsw wiki, Trust DSCP.
        trust = "dscp" if table or "app" not in parts else "pcp"
        dscps = state.dscp_priorities(table, default)
        return PortState(held, place, queues, classes, dscps, trust, tuple(unread))

    def blocked_bands(self, name: str, found: PortState) -> dict[int, str]:
        """Bands whose queue is neither RED nor plain, with its kind."""
        handle = found.held.ets.handle if found.held.ets else ""
        return _blocked_bands(self._qdiscs.get(name, []), handle)

    def _dcb(self, kind: str, name: str, unread: list[str]) -> dict[str, Any]:
        command = dcb_command(kind, name)
        found = shown.record(command, self._outputs.get(command, ""))
        if command not in self._outputs:
            why = f"'{command}' was not answered"
            unread += [lacking(name, fact, why, of) for fact, of in _DCB[kind]]
        return found

    def _thresholds(self, name: str, unread: list[str]) -> dict[int, tuple[int, int]]:
        rows = self._bindings.get(name, []) if isinstance(self._bindings, Mapping) else []
        if not rows:
            why = f"'{BINDINGS}' does not show it"
            unread.append(lacking(name, Fact.BUFFER, why, "of all priorities: alpha"))
        return {
            row["tc"]: (row["pool"], row["threshold"])
            for row in rows
            if row.get("type") == "ingress" and {"tc", "pool", "threshold"} <= row.keys()
        }


def _replace(held: Held, **changes: Any) -> Held:  # noqa: ANN401 - fields of several types
    values = {name: getattr(held, name) for name in held.__dataclass_fields__}
    return Held(**(values | changes))


def _is_ours(found: Filter) -> bool:
    first = PREFS.get(found.protocol)
    return found.plain and first is not None and 0 <= found.pref - first < DSCP_COUNT


def _scheduler(qdiscs: Iterable[Mapping[str, Any]]) -> tuple[Place, Ets | None]:
    """Where the scheduler of a port is: at its root, or below a shaper that is there."""
    rows = list(qdiscs)
    root = next((row for row in rows if row.get("root")), {})
    if root.get("kind") == "tbf" and root.get("handle", _NO_HANDLE) != _NO_HANDLE:
        return _below_shaper(root, rows)
    if root.get("kind") == "ets":
        return Place("root", "del dev {port} root"), _ets(root)
    blocked = "" if root.get("handle", _NO_HANDLE) == _NO_HANDLE else str(root.get("kind"))
    return Place("root", "del dev {port} root", blocked), None


def _below_shaper(
    root: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]
) -> tuple[Place, Ets | None]:
    parent = f"{root['handle']}1"
    child = next((row for row in rows if row.get("parent") == parent), None)
    where = f"parent {parent}"
    if child is None or child.get("kind") == "ets":
        # Taken out, a shaper's child leaves a hole that drops all: its own queue goes back.
        vacate = f"replace dev {{port}} {where} bfifo limit {_shaper_limit(root)}"
        return Place(where, vacate), None if child is None else _ets(child)
    limit = child.get("options", {}).get("limit")
    if child.get("kind") in _FIFOS and isinstance(limit, int):
        kept = f"handle {child['handle']} {child['kind']} limit {limit}"
        return Place(where, f"replace dev {{port}} {where} {kept}"), None
    return Place(where, "", str(child.get("kind"))), None


def _shaper_limit(root: Mapping[str, Any]) -> int:
    """``tc`` shows the latency that it made of the limit, in microseconds."""
    options = root.get("options", {})
    burst = shown.size_bytes(str(options.get("burst", "0")))
    queued = float(options.get("rate", 0)) * float(options.get("lat", 0)) / 1e6
    return round(queued) + burst


def _ets(row: Mapping[str, Any]) -> Ets:
    options = row.get("options", {})
    quanta = shown.numbers(options.get("quanta"))
    strict = int(options.get("strict", options.get("bands", len(quanta)) - len(quanta)))
    handle = str(row.get("handle", "")).rstrip(":")
    return Ets(handle, strict, quanta, shown.numbers(options.get("priomap")))


def _reds(
    name: str, qdiscs: Iterable[Mapping[str, Any]], ets: Ets | None
) -> tuple[dict[int, red.Red], list[str]]:
    found: dict[int, red.Red] = {}
    unread = []
    for row in qdiscs:
        major, _, minor = str(row.get("parent", "")).partition(":")
        if ets is None or major != ets.handle or not minor or row.get("kind") != "red":
            continue
        band = int(minor, 16) - 1
        one = red.of_options(str(row.get("handle", "")).rstrip(":"), row.get("options", {}))
        if one is None:
            queue = f"queue {PRIORITY_COUNT - 1 - band}"
            unread.append(lacking(name, Fact.ECN, "its RED is half shown", queue))
        else:
            found[band] = one
    return found, unread


def _blocked_bands(qdiscs: Iterable[Mapping[str, Any]], handle: str) -> dict[int, str]:
    """Bands below which there is neither RED nor a plain queue, with its kind."""
    found = {}
    for row in qdiscs:
        major, _, minor = str(row.get("parent", "")).partition(":")
        if major == handle and minor and row.get("kind") not in ("red", *_FIFOS):
            found[int(minor, 16) - 1] = str(row.get("kind"))
    return found


def _scheduling(
    held: Held, qdiscs: Iterable[Mapping[str, Any]], dcb_ets: Mapping[str, Any] | None = None
) -> tuple[tuple[Queue, ...], tuple[int, ...]]:
    """Queues and the traffic class of each priority, by whatever schedules the port."""
    if held.ets is not None:
        return state.queues(held), state.classes(held.ets)
    kinds = list((dcb_ets or {}).get("tc_tsa", []))
    shares = shown.numbers((dcb_ets or {}).get("tc_bw"))
    classes = shown.numbers((dcb_ets or {}).get("prio_tc"))
    if len(kinds) == len(shares) == len(classes) == PRIORITY_COUNT:
        queues = tuple(
            Queue(
                number, Scheduler("ets", shares[number]) if kind == "ets" else Scheduler("strict")
            )
            for number, kind in enumerate(kinds)
        )
        return queues, classes
    return (Queue(0, Scheduler("ets", 100), _root_ecn(qdiscs)),), (0,) * PRIORITY_COUNT


def _root_ecn(qdiscs: Iterable[Mapping[str, Any]]) -> Ecn | None:
    for row in qdiscs:
        if row.get("root") and row.get("kind") == "red":
            one = red.of_options("", row.get("options", {}))
            return one.ecn if one else None
    return None


def read(target: Target, outputs: Outputs, *, os: str, hardware: bool) -> DeviceQos:
    """What the switch does on each of the target's ports.

    Raises ReadError without ``ip`` or ``tc``, or where one of them is cut off. Nothing
    of it survives a reboot by itself: ``saved`` is None.
    """
    switch = Switch(target, outputs, hardware=hardware)
    unread = ["whether the settings survive a reboot: Linux keeps none by itself"]
    ports = []
    for port in target.ports:
        found = switch.port(port.name)
        if found is None:
            unread.append(f"{port.name}: '{LINKS}' shows no such interface")
            continue
        ports.append(_qos(port.name, found))
        unread += found.unread
    info = shown.record(DEVICES, outputs.get(DEVICES, "")).get("info", {})
    facts: Mapping[str, Any] = next(iter(info.values()), {}) if isinstance(info, Mapping) else {}
    return DeviceQos(
        device=target.device,
        kind="switch",
        os=os,
        ports=tuple(ports),
        model=str(facts.get("driver", "")),
        firmware=_firmware(facts, outputs.get(KERNEL, "").strip()),
        serial=str(facts.get("serial_number", "")),
        config_sha256=_sha256(switch, target),
        neighbors=_neighbors(outputs, unread),
        unread=tuple(dict.fromkeys(unread)),
        facts=tuple(_facts(target, switch, outputs)),
    )


def _firmware(facts: Mapping[str, Any], kernel: str) -> str:
    running = facts.get("versions", {}).get("running", {})
    parts = [str(running["fw.version"])] if "fw.version" in running else []
    return ", ".join([*parts, *([f"Linux {kernel}"] if kernel else [])])


def _sha256(switch: Switch, target: Target) -> str:
    """Hash of the settings of the target's ports: the part of a Linux that can be seen."""
    held = [repr(state_ and state_.held) for state_ in map(switch.port, _names(target))]
    return hashlib.sha256("\n".join(held).encode()).hexdigest()


def _names(target: Target) -> list[str]:
    return [port.name for port in target.ports]


def _qos(name: str, found: PortState) -> PortQos:
    held = found.held
    return PortQos(
        name=name,
        mtu_bytes=held.mtu_bytes,
        trust="dscp" if found.trust == "dscp" else "pcp",
        dscp_to_priority=found.dscps,
        priority_to_class=found.classes,
        class_mtu_bytes=(held.mtu_bytes,) * PRIORITY_COUNT,
        pfc_priorities=held.pfc,
        link_pause=held.pause,
        queues=found.queues,
        ingress_buffers=tuple(_buffers(held)),
    )


def _buffers(held: Held) -> Iterable[IngressBuffer]:
    """Headroom of lossless priorities; XOFF comes when the share of the pool is used up."""
    for priority in held.pfc:
        if not held.prio_buffer or not held.buffer_bytes:
            continue
        group = held.prio_buffer[priority]
        bound = held.thresholds.get(group)
        alpha = state.alpha_of(bound[1]) if bound else None
        yield IngressBuffer(priority, held.buffer_bytes[group], 0, 0, alpha)


def _facts(target: Target, switch: Switch, outputs: Outputs) -> Iterable[PortFacts]:
    speeds = parse_dump(outputs.get(SPEEDS, ""))
    for port in target.ports:
        link = switch.links.get(port.name)
        if link is None:
            continue
        speed = speeds.number(f"/sys/class/net/{port.name}/speed")
        operational = link.get("operstate")
        up = {"UP": True, "DOWN": False, "LOWERLAYERDOWN": False}.get(str(operational))
        yield PortFacts(
            port.name,
            up=up,
            admin_up="UP" in link["flags"] if "flags" in link else None,
            speed_bps=speed * 10**6 if speed is not None and speed > 0 else None,
            mac=str(link.get("address", "")).replace(":", "").lower() or None,
        )


def _neighbors(outputs: Outputs, unread: list[str]) -> tuple[Neighbor, ...] | None:
    """``lldpd`` gives one interface as an object, several as a list of objects."""
    if LLDP not in outputs:
        unread.append(f"neighbours: '{LLDP}' was not answered")
        return None
    listed = shown.record(LLDP, outputs[LLDP]).get("lldp", {}).get("interface", [])
    entries = [listed] if isinstance(listed, dict) else listed
    found = []
    for entry in entries:
        for port, facts in entry.items():
            peer = next(iter(facts.get("chassis", {})), "id")
            identity = facts.get("port", {}).get("id", {})
            if peer != "id":
                found.append(Neighbor(port, peer, str(identity.get("value", ""))))
    return tuple(found)
