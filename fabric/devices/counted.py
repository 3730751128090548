"""From counted values to a snapshot that says what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fabric.counters import Counter, CounterSnapshot
from fabric.devices.base import Outputs, Target

# (port, name, priority or queue) -> value
Key = tuple[str, str, int | None]


def snapshot(
    target: Target,
    outputs: Outputs,
    taken_at_s: float,
    values: Mapping[Key, int],
    expected: Mapping[str, Sequence[str]],
    not_counted: Mapping[str, str],
) -> CounterSnapshot:
    """All values, and the reason for each counter that is not among them.

    ``expected`` are the names that a command shows for every port of the target;
    ``not_counted`` are those that the system has nowhere, with the reason.
    """
    return CounterSnapshot(
        target.device,
        taken_at_s,
        tuple(
            Counter(target.device, port, name, value, priority)
            for (port, name, priority), value in values.items()
        ),
        (
            *_missing(target, outputs, values, expected),
            *(f"{name}: {reason}" for name, reason in not_counted.items()),
        ),
    )


def _missing(
    target: Target,
    outputs: Outputs,
    values: Mapping[Key, int],
    expected: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    shown = {(port, name) for port, name, _ in values}
    for command, names in expected.items():
        if command not in outputs:
            yield from (f"{name}: '{command}' was not answered" for name in names)
            continue
        for port in target.ports:
            for name in names:
                if (port.name, name) not in shown:
                    yield f"{name}: '{command}' does not show it for {port.name}"
