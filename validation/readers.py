"""How validation reads devices: injected, so that it never depends on how that is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fabric.counters import CounterSnapshot
from fabric.qos import DeviceQos
from fabric.site import Site


class StatesRead(Protocol):
    """What ``fabric.reach.collect.read_states`` returns."""

    @property
    def states(self) -> Mapping[str, DeviceQos]:
        """States of the devices that answered."""

    @property
    def failed(self) -> Mapping[str, Exception]:
        """Errors of those that did not."""


class CountersRead(Protocol):
    """What ``fabric.reach.collect.read_counters`` returns."""

    @property
    def snapshots(self) -> Mapping[str, CounterSnapshot]:
        """Counters of the devices that answered."""

    @property
    def failed(self) -> Mapping[str, Exception]:
        """Errors of those that did not."""


class StateReader(Protocol):
    """Reads the states of these devices; of all of them where None."""

    def __call__(self, site: Site, devices: tuple[str, ...] | None = None) -> StatesRead:
        """Devices that fail are in ``failed``; nothing is raised for them."""


class CounterReader(Protocol):
    """Reads the counters of these devices; of all of them where None."""

    def __call__(self, site: Site, devices: tuple[str, ...] | None = None) -> CountersRead:
        """Devices that fail are in ``failed``; nothing is raised for them."""


@dataclass(frozen=True, slots=True)
class Readers:
    """Both of them."""

    states: StateReader
    counters: CounterReader


def read_states(site: Site, devices: tuple[str, ...] | None = None) -> StatesRead:
    """States over SSH, all devices at once."""
    from fabric.reach.collect import read_states as read  # noqa: PLC0415 - pulls in SSH clients

    return read(site, devices)


def read_counters(site: Site, devices: tuple[str, ...] | None = None) -> CountersRead:
    """Counters over SSH, all devices at once."""
    from fabric.reach.collect import read_counters as read  # noqa: PLC0415 - pulls in SSH clients

    return read(site, devices)


def live_readers() -> Readers:
    """The readers of production."""
    return Readers(read_states, read_counters)
