"""The mlx5 family: composes reading, settings and counters of one port."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache

from fabric.counters import Counter
from fabric.devices.base import Capabilities, Outputs, ReadError, TargetPort
from fabric.devices.mlx5 import counters, firmware, kernel_dcb
from fabric.devices.mlx5.facts import Facts, commands, facts_of
from fabric.devices.mlx5.reading import Reader
from fabric.devices.mlx5.settings import (
    Item,
    Values,
    items,
    set_pfc,
    values_of_facts,
    values_of_port,
)
from fabric.devices.mlx5.shell import commands as shell_commands
from fabric.devices.mlx5.shell import script_setting
from fabric.devices.nic import NicReading, Setting, SettingChange
from fabric.headroom import MLX5_MAX_CABLE_M, mlx5_buffer_bytes
from fabric.qos import PRIORITY_COUNT, PortQos

# PCI device ids, which hca_type prints in decimal. Source: Linux
# drivers/net/ethernet/mellanox/mlx5/core/main.c (mlx5_core_pci_table).
MODELS = {
    "MT4115": "ConnectX-4",
    "MT4117": "ConnectX-4 Lx",
    "MT4119": "ConnectX-5",
    "MT4121": "ConnectX-5 Ex",
    "MT4123": "ConnectX-6",
    "MT4125": "ConnectX-6 Dx",
    "MT4127": "ConnectX-6 Lx",
    "MT4129": "ConnectX-7",
    "MT4131": "ConnectX-8",
    "MT41686": "BlueField-2",
    "MT41692": "BlueField-3",
}
_BUFFERS = ("receive buffers", "pfc", "cable length")


class Mlx5Family:
    """NVIDIA ConnectX-4 and later, with MLNX_OFED/DOCA or the kernel's own driver."""

    name = "mlx5"

    def capabilities(self, port: TargetPort) -> Capabilities:  # noqa: ARG002
        """Eight receive buffers, one of them for all lossy traffic."""
        return Capabilities(
            max_lossless_classes=PRIORITY_COUNT - 1,
            notes=(
                "XOFF and XON follow from cable length, speed and MTU (mlx5 driver)",
                "ECN per priority, and the verbs traffic class, need MLNX_OFED or DOCA",
            ),
        )

    def read_commands(self, port: TargetPort) -> tuple[str, ...]:
        """Eight commands of this port and one of all mlx5 ports of the host."""
        return (*commands(port), kernel_dcb.command(port), firmware.command(port))

    def counter_commands(self, port: TargetPort) -> tuple[str, ...]:
        """Port counters and RDMA counters."""
        return counters.commands(port)

    def read(self, port: TargetPort, outputs: Outputs) -> NicReading:
        """What the port does. Raises ReadError where an output makes no sense."""
        facts = facts_of(port, outputs)
        reader = Reader(port, facts, self.name)
        state = reader.port()
        known = {item.name for item in _held(facts, ())}
        return NicReading(
            port=state,
            unread=tuple(reader.unread),
            settings=tuple(s for s in self.settings(state) if s.name in known) if state else (),
            shown=frozenset(known),
            model=_model(facts.hca_type),
            driver=_driver(facts),
            remarks=firmware.remarks(port, facts.firmware, facts.pci) if state else (),
        )

    def read_counters(
        self, device: str, port: TargetPort, outputs: Outputs
    ) -> tuple[tuple[Counter, ...], tuple[str, ...]]:
        """Counters in the schema of ``fabric.counters``, and what is missing and why."""
        return counters.read(device, port, outputs)

    def normalise(self, port: PortQos) -> PortQos:
        """Buffers in sizes that every NIC stores exactly; the headroom stays what it is."""
        buffers = []
        for buffer in port.ingress_buffers:
            size = mlx5_buffer_bytes(buffer.size_bytes)
            less = buffer.size_bytes - size
            buffers.append(
                dataclasses.replace(
                    buffer,
                    size_bytes=size,
                    xoff_bytes=max(0, buffer.xoff_bytes - less),
                    xon_bytes=max(0, buffer.xon_bytes - less),
                )
            )
        nic = port.nic
        if nic is not None:
            nic = dataclasses.replace(nic, cable_m=min(nic.cable_m, MLX5_MAX_CABLE_M))
        return dataclasses.replace(port, ingress_buffers=tuple(buffers), nic=nic)

    def settings(self, port: PortQos) -> tuple[Setting, ...]:
        """Everything that the intent owns on this port."""
        return _settings(port)

    def changes(
        self, port: TargetPort, outputs: Outputs, intended: PortQos
    ) -> tuple[SettingChange, ...]:
        """From what the outputs show to what is intended, in the order of doing it.

        A setting that the host's driver does not offer is left out; ``read``
        names it in ``unread``. Raises ReadError where an output is missing.
        """
        facts = facts_of(port, outputs)
        if facts.missing:
            lacking = ", ".join(f"`{command}`" for command in facts.missing)
            raise ReadError(f"{port.name}: nothing can be planned without the output of {lacking}")
        if not facts.has_mlnx_qos:
            raise ReadError(
                f"{port.name}: nothing can be planned without mlnx_qos; install it (mlnx-tools), "
                "or make the family generic in fabric.yaml"
            )
        return _changes(facts, intended, known_only=False)

    def known_changes(
        self, port: TargetPort, outputs: Outputs, intended: PortQos
    ) -> tuple[SettingChange, ...]:
        """The same of the settings whose values the outputs show, whatever is missing."""
        facts = facts_of(port, outputs)
        return _changes(facts, intended, known_only=True) if facts.has_mlnx_qos else ()


def _changes(facts: Facts, intended: PortQos, *, known_only: bool) -> tuple[SettingChange, ...]:
    held, wanted = values_of_facts(facts), values_of_port(intended)
    lossless = intended.pfc_priorities
    now = {i.name: i for i in items(held, lossless, wanted.dscp_to_priority)}
    todo = {
        item.name: item
        for item in items(wanted, lossless, held.dscp_to_priority)
        if (not known_only if item.name not in now else now[item.name].value != item.value)
    }
    changes = []
    for name, item in todo.items():
        if name in _BUFFERS:
            forth, back = _buffer_commands(name, todo, held, wanted, facts, lossless)
        else:
            offered = shell_commands(item, facts)
            if offered is None:
                continue
            forth, back = offered, _undo(now.get(name), facts)
        before = now[name].value if name in now else None
        changes.append(SettingChange(name, before, item.value, forth, back))
    return tuple(changes)


@lru_cache(maxsize=256)
def _settings(port: PortQos) -> tuple[Setting, ...]:
    wanted = items(values_of_port(port), port.pfc_priorities)
    return tuple(script_setting(item) for item in wanted)


def _held(facts: Facts, lossless: tuple[int, ...]) -> tuple[Item, ...]:
    return tuple(items(values_of_facts(facts), lossless))


def _undo(item: Item | None, facts: Facts) -> tuple[str, ...]:
    if item is None:
        return ()
    return shell_commands(item, facts) or ()


def _buffer_commands(
    name: str,
    todo: dict[str, Item],
    held: Values,
    wanted: Values,
    facts: Facts,
    lossless: tuple[int, ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """There and back for buffers, PFC and cable length, which depend on each other.

    All of it belongs to the first of them that changes, so that the order is
    right both ways: the driver refuses to move buffers that PFC makes lossless.
    """
    if name != next(other for other in _BUFFERS if other in todo):
        return (), ()
    moving = "receive buffers" in todo
    return (
        _buffer_steps(held, wanted, facts, lossless, moving=moving),
        _buffer_steps(wanted, held, facts, lossless, moving=moving),
    )


def _buffer_steps(
    start: Values, end: Values, facts: Facts, lossless: tuple[int, ...], *, moving: bool
) -> tuple[str, ...]:
    steps: list[str] = []
    by_name = {item.name: item for item in items(end, lossless)}
    names: Sequence[str] = ("receive buffers", "pfc") if moving else ("pfc",)
    if moving and start.pfc != () and "receive buffers" in by_name:
        off = Item("pfc", "off", (set_pfc(start.interface, (), None),))
        steps += shell_commands(off, facts) or ()
    for name in names:
        if name in by_name:
            steps += shell_commands(by_name[name], facts) or ()
    return tuple(steps)


def _model(hca_type: str) -> str:
    return f"{MODELS[hca_type]} ({hca_type})" if hca_type in MODELS else hca_type


def _driver(facts: Facts) -> str:
    """Driver and firmware as one text; empty where not shown."""
    driver = " ".join(facts.driver[key] for key in ("driver", "version") if facts.driver.get(key))
    firmware = facts.driver.get("firmware-version", "")
    return ", ".join(part for part in (driver, firmware and f"firmware {firmware}") if part)
