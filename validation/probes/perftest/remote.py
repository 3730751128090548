"""One command on each of several hosts at once; a host that fails hides no other's answer."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fabric.access import access_to
from fabric.collect import needs_sudo
from fabric.errors import PaisoarError
from fabric.hostssh import Answer, run_on_host
from fabric.site import Site


@dataclass(frozen=True)
class Asked:
    """Answers by host and command, and what failed; a host is in one of both.

    ``middle_ns`` is our clock half way between a host's question and its answer,
    ``trip_ns`` the time between.
    """

    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)
    failed: dict[str, PaisoarError] = field(default_factory=dict)
    middle_ns: dict[str, int] = field(default_factory=dict)
    trip_ns: dict[str, int] = field(default_factory=dict)

    def outputs(self, host: str) -> dict[str, str]:
        """What a host printed, by command."""
        return {command: a.stdout for command, a in self.answers.get(host, {}).items()}


def ask_all(site: Site, commands: Mapping[str, Sequence[str]]) -> Asked:
    """Run each host's commands; all hosts at once, as far as connections allow."""
    asked = Asked()
    waiting: dict[concurrent.futures.Future[dict[str, Answer]], str] = {}
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    for host, theirs in commands.items():
        try:
            access = access_to(site, host)
            begun[host] = time.time_ns()
            future = run_on_host(host, access, theirs, sudo=needs_sudo(site, access))
        except PaisoarError as error:
            asked.failed[host] = error
            continue
        future.add_done_callback(lambda _, name=host: ended.update({name: time.time_ns()}))  # type: ignore[misc]
        waiting[future] = host
    for future in concurrent.futures.as_completed(waiting):
        host = waiting[future]
        try:
            asked.answers[host] = future.result()
        except PaisoarError as error:
            asked.failed[host] = error
            continue
        end = ended.get(host, time.time_ns())
        asked.middle_ns[host] = (begun[host] + end) // 2
        asked.trip_ns[host] = end - begun[host]
    return asked


def ask(site: Site, commands: Mapping[str, str]) -> Asked:
    """As :func:`ask_all` with one command a host."""
    return ask_all(site, {host: (command,) for host, command in commands.items()})
