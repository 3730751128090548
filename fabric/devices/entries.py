"""Device modules and NIC families by name, as the entry points hold them."""

from __future__ import annotations

import contextlib
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from fabric.errors import InputError

SWITCHES = "paisoar.switches"
NICS = "paisoar.nics"
# The module of hosts: registered beside the switches, but none.
HOSTS = "linux"


@cache
def _entries(group: str) -> dict[str, Any]:
    return {entry.name: entry for entry in entry_points(group=group)}


def known(group: str) -> tuple[str, ...]:
    """Every name that this entry-point group holds, sorted."""
    return tuple(sorted(_entries(group)))


@cache
def load(group: str, name: str) -> Any:  # noqa: ANN401 - each group has its own type
    """The object that this entry-point group holds under this name.

    Raises InputError that lists the known names.
    """
    entries = _entries(group)
    if name not in entries:
        raise InputError(
            f"nothing called {name!r} is known in {group}",
            advice=f"Known are: {', '.join(sorted(entries)) or 'none'}.",
        )
    return entries[name].load()


def preload() -> None:
    """Import every known module, for a process that is about to fork workers.

    One that cannot be imported says so when it is needed.
    """
    for group in (SWITCHES, NICS):
        for name in _entries(group):
            with contextlib.suppress(Exception):
                load(group, name)
