"""The counters of a port that is set with ``dcb``, in the names of ``fabric.counters``.

PFC frames of every driver: ``dcb -s pfc show`` (requests are sent, indications
received: IEEE 802.1Qaz, Linux include/uapi/linux/dcbnl.h). The rest by each driver's
names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabric.counters import Counter
from fabric.devices.base import Outputs, TargetPort
from fabric.devices.dcb.text import pfc_frames
from fabric.devices.linux.dump import parse_dump
from fabric.devices.linux.tools import statistics
from fabric.qos import PRIORITY_COUNT


@dataclass(frozen=True, slots=True)
class CounterNames:
    """A driver's names.

    ``port``: the sum of these of ``ethtool -S``. ``priority``: with ``{}`` for the
    priority. ``rdma``: the first of these of hw_counters; ``bits`` is how wide they are.
    ``uncounted``: ours that such a NIC does not have, each with the reason.
    """

    port: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    priority: Mapping[str, str] = field(default_factory=dict)
    rdma: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bits: int = 64
    uncounted: Mapping[str, str] = field(default_factory=dict)


def commands(port: TargetPort) -> tuple[str, str, str]:
    """The commands that show all counters of a port."""
    folder = f"/sys/class/infiniband/{port.rdma_device}/ports/1/hw_counters"
    return (
        f"ethtool -S {port.name}",
        f"dcb -j -s pfc show dev {port.name}",
        f"grep -rH . {folder} 2>&1 || true",
    )


def read(
    device: str, port: TargetPort, outputs: Outputs, names: CounterNames
) -> tuple[tuple[Counter, ...], tuple[str, ...]]:
    """Counters, and what is missing with its reason."""
    ethtool, pfc, grep = commands(port)
    counters: list[Counter] = []
    missing = [f"{port.name}: {name}: {reason}" for name, reason in names.uncounted.items()]
    shown = statistics(outputs.get(ethtool, ""))
    for name, theirs in names.port.items():
        if all(part in shown for part in theirs):
            value = sum(shown[part] for part in theirs)
            counters.append(Counter(device, port.name, name, value))
        else:
            missing.append(f"{port.name}: {name}: ethtool has no {' or no '.join(theirs)}")
    for priority in range(PRIORITY_COUNT):
        for name, template in names.priority.items():
            key = template.format(priority)
            if key in shown:
                counters.append(Counter(device, port.name, name, shown[key], priority))
            else:
                missing.append(f"{port.name}: {name} of priority {priority}: ethtool has no {key}")
    _read_pfc(device, port.name, pfc, outputs.get(pfc), counters, missing)
    _read_rdma(device, port, outputs.get(grep, ""), names, counters, missing)
    return tuple(counters), tuple(missing)


def _read_pfc(
    device: str,
    port: str,
    command: str,
    text: str | None,
    counters: list[Counter],
    missing: list[str],
) -> None:
    """PFC frames, unless the driver's own names have them already."""
    if any(counter.name == "rx_pause_frames" for counter in counters):
        return
    frames = pfc_frames(command, text) if text is not None else None
    if frames is None:
        missing.append(f"{port}: PFC frames of every priority: `{command}` shows none")
        return
    for name, values in zip(("tx_pause_frames", "rx_pause_frames"), frames, strict=True):
        counters += [Counter(device, port, name, v, p) for p, v in enumerate(values)]


def _read_rdma(
    device: str,
    port: TargetPort,
    text: str,
    names: CounterNames,
    counters: list[Counter],
    missing: list[str],
) -> None:
    folder = f"/sys/class/infiniband/{port.rdma_device}/ports/1/hw_counters"
    dump = parse_dump(text)
    if not any(path.startswith(folder) for path in dump.files):
        why = dump.complaint(folder) or "nothing of it is shown"
        missing.append(f"{port.name}: every RDMA counter of {port.rdma_device}: {why}")
        return
    for name, theirs in names.rdma.items():
        values = (dump.number(f"{folder}/{their}") for their in theirs)
        value = next((value for value in values if value is not None), None)
        if value is None:
            missing.append(f"{port.name}: {name}: hw_counters has no {' or '.join(theirs)}")
        else:
            counters.append(Counter(device, port.name, name, value, bits=names.bits))
