"""Counters as deltas: what moved between two snapshots, and what cannot be known.

Absence is never zero. A counter that went down was reset (or wrapped, where it
is narrow), one that only one snapshot shows has no delta, and each of them says
so; judgement turns that into FAIL or SKIP.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from fabric.counters import Counter, CounterSnapshot

Key = tuple[str, str, str, int | None]
Status = Literal["counted", "wrapped", "reset", "appeared", "vanished"]


@dataclass(frozen=True, slots=True)
class Delta:
    """One counter's movement. ``value`` means something for ``counted`` and ``wrapped`` only."""

    device: str
    port: str
    name: str
    priority: int | None
    before: int | None
    after: int | None
    value: int
    status: Status

    @property
    def known(self) -> bool:
        """Whether ``value`` is what really happened."""
        return self.status in ("counted", "wrapped")

    @property
    def label(self) -> str:
        """``leaf1 Ethernet1/3 queue_drops[3]``."""
        at = "" if self.priority is None else f"[{self.priority}]"
        return " ".join(part for part in (self.device, self.port, f"{self.name}{at}") if part)


class Deltas:
    """All movements between two rounds of snapshots.

    Lookups are by device, port, name and priority (or traffic class).
    """

    def __init__(self, items: Mapping[Key, Delta], missing: Mapping[str, tuple[str, ...]]) -> None:
        self._items = dict(items)
        self._missing = dict(missing)
        self._by_name: dict[tuple[str, str, str], list[Delta]] = defaultdict(list)
        for delta in self._items.values():
            self._by_name[delta.device, delta.port, delta.name].append(delta)

    @classmethod
    def between(
        cls, before: Mapping[str, CounterSnapshot], after: Mapping[str, CounterSnapshot]
    ) -> Deltas:
        """Deltas of every device that either side shows."""
        items: dict[Key, Delta] = {}
        missing: dict[str, tuple[str, ...]] = {}
        for device in sorted({*before, *after}):
            old, new = before.get(device), after.get(device)
            items.update(_device_deltas(old, new))
            said = [*(old.missing if old else ()), *(new.missing if new else ())]
            missing[device] = tuple(dict.fromkeys(said))
        return cls(items, missing)

    def get(self, device: str, port: str, name: str, priority: int | None = None) -> Delta | None:
        """One counter's movement; None where no snapshot shows it."""
        return self._items.get((device, port, name, priority))

    def named(self, device: str, port: str, name: str) -> tuple[Delta, ...]:
        """A counter of a port in every priority that it is shown for."""
        return tuple(self._by_name.get((device, port, name), ()))

    def of(self, device: str) -> tuple[Delta, ...]:
        """Everything that a device shows."""
        return tuple(delta for delta in self._items.values() if delta.device == device)

    def resets(self, device: str) -> tuple[Delta, ...]:
        """Counters of a device that were cleared between the snapshots."""
        return tuple(delta for delta in self.of(device) if delta.status == "reset")

    def moved(self) -> tuple[Delta, ...]:
        """Every counter that moved or cannot be known, for people and tables."""
        return tuple(d for d in self._items.values() if d.value or not d.known)

    def why_missing(
        self, device: str, name: str, port: str = "", priority: int | None = None
    ) -> str:
        """What the device's module said about a counter that it does not show; else empty.

        Modules write ``[PORT: ]NAME[, NAME ...][ of priority N]: REASON``, or name
        the port at the end of the reason. What is said of another port or
        priority is no answer.
        """
        for said in self._missing.get(device, ()):
            words = re.split(r"[\s,:]+", said)
            of_priority = re.search(r"of priority (\d)", said)
            head, _, _ = said.partition(":")
            tail = words[-1] if words[-2:-1] == ["for"] else ""
            elsewhere = (head != port and name not in re.split(r"[\s,]+", head)) or (
                tail not in ("", port)
            )
            other = of_priority is not None and int(of_priority[1]) != priority
            if name in words and not elsewhere and not other:
                return said
        return ""

    def all(self) -> tuple[Delta, ...]:
        """Every movement, sorted by device, port, name and priority."""
        return tuple(self._items[key] for key in sorted(self._items, key=_sortable))


def _sortable(key: Key) -> tuple[str, str, str, int]:
    device, port, name, priority = key
    return device, port, name, -1 if priority is None else priority


def _key(counter: Counter) -> Key:
    return counter.device, counter.port, counter.name, counter.priority


def _device_deltas(
    before: CounterSnapshot | None, after: CounterSnapshot | None
) -> Iterable[tuple[Key, Delta]]:
    old = {_key(counter): counter for counter in before.counters} if before else {}
    new = {_key(counter): counter for counter in after.counters} if after else {}
    # A 64-bit counter cannot wrap within a test: one that went down was cleared,
    # and then the port's narrow ones were cleared with it.
    cleared = {
        counter.port
        for key, counter in new.items()
        if counter.bits == 64 and key in old and counter.value < old[key].value
    }
    for key in {**old, **new}:
        yield key, _delta(key, old.get(key), new.get(key), cleared=key[1] in cleared)


def _delta(key: Key, before: Counter | None, after: Counter | None, *, cleared: bool) -> Delta:
    value = 0
    status: Status
    if before is None or after is None:
        status = "appeared" if before is None else "vanished"
    elif after.value >= before.value:
        # A cleared counter may have passed its old value again, which nothing
        # shows; siblings that went down betray it.
        status = "reset" if cleared and before.value else "counted"
        value = after.value - before.value
    else:
        value = (after.value - before.value) % (1 << after.bits)
        wrapped = after.bits < 64 and not cleared and value < 1 << (after.bits - 1)
        status = "wrapped" if wrapped else "reset"
    if status == "reset":
        value = 0
    return Delta(
        *key,
        before=before.value if before else None,
        after=after.value if after else None,
        value=value,
        status=status,
    )
