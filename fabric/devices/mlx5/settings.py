"""The settings of an mlx5 port: what each is called, its value, how it is set.

The same list serves the boot script, the change and the way back: ``Values``
are either what an intent asks for or what a port holds now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from fabric.devices.linux.common import bond_mtu_command, dscp_text, pause_command, rdma_cm_command
from fabric.devices.mlx5 import paths
from fabric.devices.mlx5.facts import TCLASS_UNSET, Facts
from fabric.devices.mlx5.qos_text import Tsa
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT, PortQos
from fabric.units import format_speed

# What lossy traffic gets: the intent does not own it, but mlnx_qos takes all
# eight sizes at once. A multiple of every NIC's cell, near the driver's default.
LOSSY_BUFFER_BYTES = 20736


@dataclass(frozen=True, slots=True)
class Run:
    """A command, as its words."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """A value for the first of these files that the driver offers.

    ``{pci}`` in a path stands for the port's PCI address.
    """

    value: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """Shell text, the same in the boot script and in a change."""

    text: str


@dataclass(frozen=True, slots=True)
class Move:
    """A command that moves receive buffers, and the one that turns PFC off.

    The driver refuses to move buffers that PFC makes lossless. A change knows
    whether PFC is on; the boot script has to try.
    """

    words: tuple[str, ...]
    pfc_off: tuple[str, ...]


Action = Run | Write | Raw | Move


@dataclass(frozen=True, slots=True)
class Item:
    """One setting: its name and value for people, and what makes it so."""

    name: str
    value: str
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Buffers:
    """Receive buffers: eight sizes, and the buffer of each of the eight priorities."""

    size_bytes: tuple[int, ...]
    of_priority: tuple[int, ...]

    def text(self, lossless: tuple[int, ...]) -> str:
        """What the intent cares about: the buffers of these priorities."""
        parts = []
        for priority in lossless:
            buffer = self.of_priority[priority]
            part = f"priority {priority} {self.size_bytes[buffer]} bytes"
            if any(
                self.of_priority[other] == buffer
                for other in range(PRIORITY_COUNT)
                if other not in lossless
            ):
                part += " shared with lossy priorities"
            parts.append(part)
        return ", ".join(parts) or "none lossless"


@dataclass(frozen=True, slots=True)
class Rates:
    """What each traffic class may send at most, in bit/s; 0 for no limit.

    ``unseen`` are classes that are not shown, because no priority is mapped to them:
    they may have one, and are taken not to.
    """

    limits_bps: tuple[int, ...]
    unseen: tuple[int, ...] = ()

    def text(self) -> str:
        """For people."""
        parts = [f"tc{tc} {format_speed(bps)}" for tc, bps in enumerate(self.limits_bps) if bps]
        if self.unseen:
            parts.append(f"tc{','.join(map(str, self.unseen))} not shown")
        return ", ".join(parts) or "none"

    def whole_gbps(self) -> str:
        """As ``mlnx_qos -r`` takes them: whole Gb/s, a limit below 1 as 1."""
        return ",".join(str(max(1, round(bps / 1e9)) if bps else 0) for bps in self.limits_bps)


@dataclass(frozen=True, slots=True)
class Values:
    """What a port is, or should be, set to. None: not known, or not owned."""

    interface: str
    rdma_device: str
    dcbx: str | None
    trust: str | None
    dscp_to_priority: tuple[int, ...] | None
    priority_to_class: tuple[int, ...] | None
    tsa: tuple[Tsa, ...] | None
    rates: Rates | None
    pause: tuple[bool, bool] | None
    mtu: int | None
    buffers: Buffers | None
    pfc: tuple[int, ...] | None
    cable_m: int | None
    ecn_on: Mapping[str, tuple[int, ...]]
    parameters: Mapping[str, int]
    tclass: int | None
    rdma_cm_tos: int | None


def values_of_port(port: PortQos) -> Values:
    """What this ``PortQos`` asks for."""
    nic = port.nic
    dcqcn = nic.dcqcn if nic else None
    scheduler_of = {queue.traffic_class: queue.scheduler for queue in port.queues}
    rate_of = {queue.traffic_class: queue.max_rate_bps for queue in port.queues}
    return Values(
        interface=port.name,
        rdma_device=nic.rdma_device if nic else "",
        dcbx=nic.dcbx if nic and nic.dcbx != "off" else None,
        trust=port.trust if port.trust != "none" else None,
        dscp_to_priority=port.dscp_to_priority if port.trust == "dscp" else None,
        priority_to_class=port.priority_to_class,
        tsa=tuple(
            (scheduler_of[tc].mode, scheduler_of[tc].percent) if tc in scheduler_of else ("ets", 0)
            for tc in range(PRIORITY_COUNT)
        ),
        rates=Rates(tuple(rate_of.get(tc, 0) for tc in range(PRIORITY_COUNT))),
        pause=(port.link_pause, port.link_pause),
        mtu=port.mtu_bytes,
        buffers=_buffers_of_port(port),
        pfc=port.pfc_priorities,
        cable_m=nic.cable_m if nic else None,
        ecn_on={"np": dcqcn.np_priorities, "rp": dcqcn.rp_priorities} if dcqcn else {},
        parameters={p.field: getattr(dcqcn, p.field) for p in paths.PARAMETERS} if dcqcn else {},
        tclass=nic.verbs_traffic_class if nic else None,
        rdma_cm_tos=nic.rdma_cm_tos if nic else None,
    )


def _buffers_of_port(port: PortQos) -> Buffers:
    """Buffer 0 for all lossy priorities, buffers 1, 2, ... for one lossless priority each."""
    sizes = [LOSSY_BUFFER_BYTES] + [0] * (PRIORITY_COUNT - 1)
    of_priority = [0] * PRIORITY_COUNT
    for index, buffer in enumerate(port.ingress_buffers[: PRIORITY_COUNT - 1], start=1):
        sizes[index] = buffer.size_bytes
        of_priority[buffer.priority] = index
    return Buffers(tuple(sizes), tuple(of_priority))


def values_of_facts(facts: Facts) -> Values:
    """What a port holds now; what its outputs do not show completely is None."""
    qos = facts.qos
    return Values(
        interface=facts.interface,
        rdma_device=facts.rdma_device,
        dcbx=qos.dcbx if qos else None,
        trust=qos.trust if qos and qos.trust != "none" else None,
        dscp_to_priority=_complete(qos.dscp_to_priority, DSCP_COUNT)
        if qos and qos.trust == "dscp"
        else None,
        priority_to_class=_complete(qos.priority_to_class, PRIORITY_COUNT) if qos else None,
        tsa=held_tsa(qos.tsa) if qos else None,
        rates=held_rates(qos.max_rate_bps) if qos else None,
        pause=facts.pause,
        mtu=facts.mtu,
        buffers=_buffers_of_facts(facts),
        pfc=tuple(p for p in range(PRIORITY_COUNT) if qos.pfc[p])
        if qos and len(qos.pfc) == PRIORITY_COUNT
        else None,
        cable_m=qos.cable_m if qos else None,
        ecn_on={
            point: tuple(p for p, on in sorted(switches.items()) if on)
            for point, switches in facts.ecn_on.items()
            if len(switches) == PRIORITY_COUNT
        },
        parameters=facts.parameters,
        tclass=facts.tclass,
        rdma_cm_tos=facts.rdma_cm_tos,
    )


def _complete(table: Mapping[int, int], count: int) -> tuple[int, ...] | None:
    return tuple(table[index] for index in range(count)) if len(table) == count else None


def held_tsa(shown: Mapping[int, Tsa]) -> tuple[Tsa, ...] | None:
    """All eight classes; None where one is scheduled in a way that cannot be set again.

    mlnx_qos leaves out a class that no priority is mapped to: it then gets what
    the driver accepts beside the others.
    """
    modes = [mode for mode, _ in shown.values()]
    if not modes or any(mode not in ("ets", "strict", "vendor") for mode in modes):
        return None
    unused: Tsa = ("ets" if "ets" in modes else modes[0], 0)
    return tuple(shown.get(tc, unused) for tc in range(PRIORITY_COUNT))


def held_rates(shown: Mapping[int, int]) -> Rates | None:
    """The limits of all eight classes; None where no class shows any."""
    if not shown:
        return None
    classes = range(PRIORITY_COUNT)
    return Rates(
        tuple(shown.get(tc, 0) for tc in classes), tuple(tc for tc in classes if tc not in shown)
    )


def _buffers_of_facts(facts: Facts) -> Buffers | None:
    if facts.qos is None:
        return None
    sizes = _complete(facts.qos.buffer_bytes, PRIORITY_COUNT)
    of_priority = _complete(facts.qos.priority_to_buffer, PRIORITY_COUNT)
    return Buffers(sizes, of_priority) if sizes and of_priority else None


def items(
    values: Values,
    lossless: tuple[int, ...],
    dscps_now: tuple[int, ...] | None = None,
) -> Iterator[Item]:
    """Every known setting, in the order in which they have to be set.

    ``lossless`` are the priorities whose buffers count; ``dscps_now`` is the map
    that the port holds already: only what differs from it is set.

    The order: an untrusted DSCP map cannot be set; link pause makes every
    buffer lossless; the MTU decides the thresholds; buffers have to be large
    enough before PFC makes them lossless.
    """
    name = values.interface
    if values.dcbx is not None:
        mode = {"os": "os", "firmware": "fw"}[values.dcbx]
        yield Item("dcbx", values.dcbx, (mlnx_qos(name, "--dcbx", mode),))
    if values.trust is not None:
        yield Item("trust", values.trust, (mlnx_qos(name, "--trust", values.trust),))
    if values.dscp_to_priority is not None:
        yield _dscp_item(name, values.dscp_to_priority, dscps_now)
    if values.priority_to_class is not None and values.tsa is not None:
        yield _classes_item(name, values.priority_to_class, values.tsa)
    if values.rates is not None:
        command = mlnx_qos(name, "-r", values.rates.whole_gbps())
        yield Item("rate limits", values.rates.text(), (command,))
    if values.pause is not None:
        yield _pause_item(name, values.pause)
    if values.mtu is not None:
        command = Run(("ip", "link", "set", "dev", name, "mtu", str(values.mtu)))
        bond = Raw(bond_mtu_command(name, values.mtu))
        yield Item("mtu", str(values.mtu), (command, bond))
    if values.buffers is not None:
        yield Item(
            "receive buffers", values.buffers.text(lossless), (_set_buffers(name, values.buffers),)
        )
    if values.pfc is not None:
        text = ",".join(map(str, values.pfc)) or "off"
        yield Item("pfc", text, (set_pfc(name, values.pfc, values.cable_m),))
        if values.cable_m is not None:
            # Set together with PFC, see set_pfc.
            yield Item("cable length", f"{values.cable_m} m", ())
    yield from _dcqcn_items(values)
    if values.tclass is not None:
        text = "not set" if values.tclass == TCLASS_UNSET else str(values.tclass)
        file = paths.traffic_class_file(values.rdma_device)
        yield Item("verbs traffic class", text, (Write(values.tclass, (file,)),))
    if values.rdma_cm_tos is not None:
        yield _rdma_cm_item(values.rdma_device, values.rdma_cm_tos)


def mlnx_qos(interface: str, *options: str) -> Run:
    """One call of mlnx_qos."""
    return Run(("mlnx_qos", "-i", interface, *options))


def set_pfc(interface: str, priorities: tuple[int, ...], cable_m: int | None) -> Run:
    """PFC and cable length together.

    Older releases of mlnx_qos turn PFC off when they are given ``--cable_len``
    alone.
    """
    switches = ",".join(str(int(p in priorities)) for p in range(PRIORITY_COUNT))
    cable = () if cable_m is None else ("--cable_len", str(cable_m))
    return mlnx_qos(interface, "--pfc", switches, *cable)


def _dscp_item(name: str, wanted: tuple[int, ...], now: tuple[int, ...] | None) -> Item:
    options: list[str] = []
    for dscp, priority in enumerate(wanted):
        if now is None or now[dscp] != priority:
            options += ["--dscp2prio", f"set,{dscp},{priority}"]
    return Item("dscp map", dscp_text(wanted), (mlnx_qos(name, *options),) if options else ())


def _classes_item(name: str, of_priority: tuple[int, ...], tsa: tuple[Tsa, ...]) -> Item:
    command = mlnx_qos(
        name,
        "-p",
        ",".join(map(str, of_priority)),
        "-s",
        ",".join(mode for mode, _ in tsa),
        "-t",
        ",".join(str(percent) for _, percent in tsa),
    )
    text = " ".join(
        f"{priority}:tc{tc}({mode} {percent}%)" if mode == "ets" else f"{priority}:tc{tc}({mode})"
        for priority, tc in enumerate(of_priority)
        for mode, percent in (tsa[tc],)
    )
    return Item("traffic classes", text, (command,))


def _pause_item(name: str, pause: tuple[bool, bool]) -> Item:
    receive, send = ("on" if on else "off" for on in pause)
    command = pause_command(name, receive=pause[0], send=pause[1])
    return Item("link pause", f"rx {receive}, tx {send}", (Raw(command),))


def _set_buffers(name: str, buffers: Buffers) -> Move:
    command = mlnx_qos(
        name,
        "--prio2buffer",
        ",".join(map(str, buffers.of_priority)),
        "--buffer_size",
        ",".join(map(str, buffers.size_bytes)),
    )
    return Move(command.words, set_pfc(name, (), None).words)


def _dcqcn_items(values: Values) -> Iterator[Item]:
    for point, priorities in values.ecn_on.items():
        yield _ecn_item(values.interface, point, tuple(priorities))
    for parameter in paths.PARAMETERS:
        if parameter.field in values.parameters:
            yield _parameter_item(values.interface, parameter, values.parameters[parameter.field])


# Interfaces of thousands of hosts have the same few names and values.
@lru_cache(maxsize=1024)
def _ecn_item(interface: str, point: str, priorities: tuple[int, ...]) -> Item:
    label = {"np": "ECN notification point", "rp": "ECN reaction point"}[point]
    writes = tuple(
        Write(int(p in priorities), (paths.enable_file(interface, point, p),))
        for p in range(PRIORITY_COUNT)
    )
    text = "priority " + ",".join(map(str, priorities)) if priorities else "off"
    return Item(label, text, writes)


@lru_cache(maxsize=4096)
def _parameter_item(interface: str, parameter: paths.Parameter, value: int) -> Item:
    files = (
        f"{paths.ecn_folder(interface)}/{parameter.sysfs}",
        f"{paths.DEBUGFS}/{{pci}}/cc_params/{parameter.debugfs}",
    )
    return Item(parameter.label, f"{value} {parameter.unit}".strip(), (Write(value, files),))


def _rdma_cm_item(rdma_device: str, tos: int) -> Item:
    return Item("rdma_cm TOS", str(tos), (Raw(rdma_cm_command(rdma_device, tos)),))
