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
from fabric.devices.switchdev import shown, state
from fabric.devices.switchdev.qdiscs import blocked_bands, reds_of, scheduler_of, scheduling_of
from fabric.devices.switchdev.shown import Filter
from fabric.devices.switchdev.state import PREFS, Held, Place
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    DeviceQos,
    IngressBuffer,
    Neighbor,
    PortFacts,
    PortQos,
    Queue,
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

    def chip_ports(self) -> tuple[str, ...]:
        """Ports that a switch chip forwards between, past the kernel."""
        return tuple(name for name, row in self.links.items() if row.get("phys_switch_id"))

    def front_ports(self) -> tuple[str, ...]:
        """Ports of a switch chip, else those of a bridge, else all that are no tunnels."""
        rows = self.links.items()
        return (
            self.chip_ports()
            or tuple(name for name, row in rows if row.get("master"))
            or tuple(
                name
                for name, row in rows
                if row.get("link_type", "ether") == "ether"
                and "info_kind" not in row.get("linkinfo", {})
            )
        )

    def port(self, name: str) -> PortState | None:
        """What a port holds; None where there is no such interface."""
        link = self.links.get(name)
        if link is None:
            return None
        qdiscs = self._qdiscs.get(name, [])
        place, ets = scheduler_of(qdiscs)
        reds, unread = reds_of(name, qdiscs, ets)
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
        queues, classes = scheduling_of(held, self._qdiscs.get(name, []))
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
        queues, classes = scheduling_of(held, self._qdiscs.get(name, []), parts["ets"])
        # A port without any entry for a DSCP trusts the VLAN tag: mlxsw wiki, Trust DSCP.
        trust = "dscp" if table or "app" not in parts else "pcp"
        dscps = state.dscp_priorities(table, default)
        return PortState(held, place, queues, classes, dscps, trust, tuple(unread))

    def blocked_bands(self, name: str, found: PortState) -> dict[int, str]:
        """Bands whose queue is neither RED nor plain, with its kind."""
        handle = found.held.ets.handle if found.held.ets else ""
        return blocked_bands(self._qdiscs.get(name, []), handle)

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


def read(target: Target, outputs: Outputs, *, os: str, hardware: bool) -> DeviceQos:
    """What the switch does on each of the target's ports; on every one where it names none.

    Raises ReadError without ``ip`` or ``tc``, where one of them is cut off, or where a chip
    forwards that the kernel was said to. Nothing
    of it survives a reboot by itself: ``saved`` is None.
    """
    switch = Switch(target, outputs, hardware=hardware)
    if not hardware and (chip := switch.chip_ports()):
        raise ReadError(f"{target.device}: {chip[0]} is a switch chip's: its system is switchdev")
    unread = ["whether the settings survive a reboot: Linux keeps none by itself"]
    ports = []
    names = _names(target) or switch.front_ports()
    for name in names:
        found = switch.port(name)
        if found is None:
            unread.append(f"{name}: '{LINKS}' shows no such interface")
            continue
        ports.append(_qos(name, found))
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
        facts=tuple(_facts(names, switch, outputs)),
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


def _facts(names: Iterable[str], switch: Switch, outputs: Outputs) -> Iterable[PortFacts]:
    speeds = parse_dump(outputs.get(SPEEDS, ""))
    for name in names:
        link = switch.links.get(name)
        if link is None:
            continue
        speed = speeds.number(f"/sys/class/net/{name}/speed")
        operational = link.get("operstate")
        up = {"UP": True, "DOWN": False, "LOWERLAYERDOWN": False}.get(str(operational))
        yield PortFacts(
            name,
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
