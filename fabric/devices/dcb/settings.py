"""The settings of a port that is set with ``dcb``: name, value, commands.

The DSCP map, the traffic classes and PFC depend on each other (a driver may put the
classes back when the first DSCP is mapped, and wants them before PFC): they are set
together, in this order.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabric.devices.dcb.text import Ets, rate_word
from fabric.devices.dcb.traits import Traits
from fabric.devices.linux.common import bond_mtu_command, dscp_text, pause_command, rdma_cm_command
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT, PortQos
from fabric.units import format_speed

DSCP_MAP, CLASSES, PFC, RATES = "dscp map", "traffic classes", "pfc", "rate limits"
TOGETHER = (DSCP_MAP, CLASSES, PFC)

Entry = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Item:
    """One setting: its name and value for people, and shell commands that make it so.

    ``needs`` is a path that only drivers have that offer the setting; empty for all.
    """

    name: str
    value: str
    commands: tuple[str, ...]
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Dcb:
    """What ``dcb`` holds of a port; None where it is not known."""

    entries: tuple[Entry, ...] | None
    ets: Ets | None
    pfc: tuple[int, ...] | None


def entries_of(port: PortQos, traits: Traits) -> tuple[Entry, ...]:
    """The APP entries that this map needs; none for a port that does not trust DSCP."""
    if port.trust != "dscp":
        return ()
    every = tuple(enumerate(port.dscp_to_priority))
    needed = tuple(entry for entry in every if entry[1] != traits.unmapped)
    return needed or every


def ets_of(port: PortQos) -> Ets:
    """ETS as this port is to have it; classes that it does not name are ETS with 0 %."""
    schedulers = {queue.traffic_class: queue.scheduler for queue in port.queues}
    modes = [schedulers.get(tc) for tc in range(PRIORITY_COUNT)]
    return Ets(
        willing=False,
        tsa=tuple(mode.mode if mode else "ets" for mode in modes),
        percent=tuple(mode.percent if mode else 0 for mode in modes),
        priority_to_class=port.priority_to_class,
    )


def dcb_of(port: PortQos, traits: Traits) -> Dcb:
    """What ``dcb`` is to hold of this port."""
    return Dcb(entries_of(port, traits), ets_of(port), port.pfc_priorities)


def _map_steps(
    now: Sequence[Entry], then: Sequence[Entry]
) -> Iterator[tuple[str, Sequence[Entry]]]:
    """From one APP table to another.

    New DSCPs first, so that the table is never empty in between: an empty one makes
    drivers trust PCP again. A DSCP that has a priority loses it before it gets
    another, because drivers refuse a second one or forget both.
    """
    gone = [entry for entry in now if entry not in then]
    held = {dscp for dscp, _ in gone}
    moved = [entry for entry in then if entry[0] in held]
    if fresh := [entry for entry in then if entry not in now and entry not in moved]:
        yield "add", fresh
    for entry in moved:
        yield "del", [old for old in now if old[0] == entry[0]]
        yield "add", [entry]
    targets = {dscp for dscp, _ in moved}
    if rest := [entry for entry in gone if entry[0] not in targets]:
        yield "del", rest


def map_commands(interface: str, now: Sequence[Entry], then: Sequence[Entry]) -> Iterator[str]:
    """Commands from one APP table to another."""
    for verb, entries in _map_steps(now, then):
        yield _app(interface, verb, entries)


def map_back_commands(interface: str, now: Sequence[Entry], then: Sequence[Entry]) -> Iterator[str]:
    """The same where the way there may have broken off: what is so already is no failure."""
    for verb, entries in _map_steps(now, then):
        for entry in entries:
            shown = f"dcb -N app show dev {shlex.quote(interface)} dscp-prio"
            held = f"{shown} | grep -qw {entry[0]}:{entry[1]}"
            yield f"{'! ' if verb == 'del' else ''}{held} || {_app(interface, verb, [entry])}"


def _app(interface: str, verb: str, entries: Iterable[Entry]) -> str:
    words = " ".join(f"{dscp}:{priority}" for dscp, priority in entries)
    return f"dcb app {verb} dev {shlex.quote(interface)} dscp-prio {words}"


def map_lines(interface: str, entries: Sequence[Entry]) -> Iterator[str]:
    """Lines of a boot script that reach this APP table from whatever there is."""
    quoted = shlex.quote(interface)
    show = f"$(dcb -N app show dev {quoted} dscp-prio)"
    wanted = " ".join(f"{dscp}:{priority}" for dscp, priority in sorted(entries))
    yield f'wanted="{wanted}"'
    yield f'held="{show}"'
    yield "for entry in $wanted; do"
    yield '    case " $held " in *" $entry "*) continue ;; esac'
    yield "    for old in $held; do"
    yield '        [ "${old%%:*}" = "${entry%%:*}" ] || continue'
    yield f'        run dcb app del dev {quoted} dscp-prio "$old"'
    yield "    done"
    yield f'    run dcb app add dev {quoted} dscp-prio "$entry"'
    yield "done"
    yield f"for old in {show}; do"
    yield '    case " dscp-prio $wanted " in *" $old "*) continue ;; esac'
    yield f'    run dcb app del dev {quoted} dscp-prio "$old"'
    yield "done"


def ets_command(interface: str, ets: Ets) -> str:
    """Set all of ETS at once, so that the shares are judged together."""

    def mapping(values: Sequence[object]) -> str:
        return " ".join(f"{index}:{value}" for index, value in enumerate(values))

    return (
        f"dcb ets set dev {shlex.quote(interface)} willing {'on' if ets.willing else 'off'} "
        f"tc-tsa {mapping(ets.tsa)} tc-bw {mapping(ets.percent)} "
        f"prio-tc {mapping(ets.priority_to_class)}"
    )


def pfc_command(interface: str, priorities: Sequence[int]) -> str:
    """Set PFC of all eight priorities."""
    switches = " ".join(f"{p}:{'on' if p in priorities else 'off'}" for p in range(PRIORITY_COUNT))
    return f"dcb pfc set dev {shlex.quote(interface)} prio-pfc {switches}"


def dcb_commands(interface: str, now: Dcb, then: Dcb, *, back: bool = False) -> tuple[str, ...]:
    """From one state to another; what is not known of ``then`` is left as it is.

    ``back``: the way there may have broken off, so that ``now`` need not be what is there.
    """
    lines: list[str] = []
    if then.entries is not None:
        mapped = map_back_commands if back else map_commands
        lines += mapped(interface, now.entries or (), then.entries)
    if then.ets is not None:
        lines.append(ets_command(interface, then.ets))
    if then.pfc is not None:
        lines.append(pfc_command(interface, then.pfc))
    return tuple(lines)


def rates_of(port: PortQos) -> tuple[int, ...]:
    """What each class of this port may send at most, in bit/s; 0 for no limit."""
    limits = {queue.traffic_class: queue.max_rate_bps for queue in port.queues}
    return tuple(limits.get(tc, 0) for tc in range(PRIORITY_COUNT))


def rates_command(interface: str, rates_bps: Sequence[int], version: str = "") -> str:
    """Set every class's limit; ``version`` is that of ``dcb``, which matters unless all are 0."""
    words = " ".join(
        f"{tc}:{rate_word(bps, version) if bps else 0}" for tc, bps in enumerate(rates_bps)
    )
    return f"dcb maxrate set dev {shlex.quote(interface)} tc-maxrate {words}"


def rates_lines(interface: str, rates_bps: Sequence[int]) -> Iterator[str]:
    """Lines of a boot script that set the limits where the driver knows any."""
    yield f"if dcb maxrate show dev {shlex.quote(interface)} > /dev/null 2>&1; then"
    yield f"    run {rates_command(interface, rates_bps)}"
    yield "fi"


def rates_text(rates_bps: Sequence[int]) -> str:
    """The limits for people."""
    shown = (f"tc{tc} {format_speed(bps)}" for tc, bps in enumerate(rates_bps) if bps)
    return ", ".join(shown) or "none"


def map_text(entries: Sequence[Entry] | None, unmapped: int | None) -> str:
    """The map for people; DSCPs without an entry are left out where nobody knows them."""
    if not entries:
        return "none, PCP is trusted"
    table = dict(entries)
    if unmapped is None and len(table) < DSCP_COUNT:
        return " ".join(f"{dscp}:{priority}" for dscp, priority in sorted(entries))
    return dscp_text([table.get(dscp, unmapped or 0) for dscp in range(DSCP_COUNT)])


def classes_text(ets: Ets) -> str:
    """Classes of priorities and how each is served."""
    served = [
        f"tc{tc} {mode} {percent}%" if mode == "ets" else f"tc{tc} {mode}"
        for tc, (mode, percent) in enumerate(zip(ets.tsa, ets.percent, strict=True))
    ]
    mapped = ",".join(map(str, ets.priority_to_class))
    return f"{mapped} ({', '.join(served)}){' willing' if ets.willing else ''}"


def pfc_text(priorities: Sequence[int]) -> str:
    """Priorities with PFC."""
    return ",".join(map(str, priorities)) or "off"


def common_items(port: PortQos) -> tuple[Item, ...]:
    """Link pause and MTU, before anything of PFC."""
    way = "on" if port.link_pause else "off"
    return (
        Item(
            "link pause",
            f"rx {way}, tx {way}",
            (pause_command(port.name, receive=port.link_pause, send=port.link_pause),),
        ),
        Item(
            "mtu",
            str(port.mtu_bytes),
            (
                f"ip link set dev {shlex.quote(port.name)} mtu {port.mtu_bytes}",
                bond_mtu_command(port.name, port.mtu_bytes),
            ),
        ),
    )


def rdma_cm_items(rdma_device: str, tos: int | None) -> tuple[Item, ...]:
    """The TOS of rdma_cm, where it is known."""
    if tos is None:
        return ()
    return (Item("rdma_cm TOS", str(tos), (rdma_cm_command(rdma_device, tos),)),)
