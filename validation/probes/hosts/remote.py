"""One command on each of several hosts at once; a host that fails hides no other's answer."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fabric.errors import PaisoarError
from fabric.reach.access import access_to
from fabric.reach.collect import needs_sudo
from fabric.reach.hostssh import Answer, run_on_host
from fabric.site import Site

# Programs start in the background: their host answers at once.
_BEGIN_S = 10.0


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

    @property
    def only(self) -> dict[str, Answer]:
        """The answer of each host that was asked one thing."""
        return {host: next(iter(answers.values())) for host, answers in self.answers.items()}

    def outputs(self, host: str) -> dict[str, str]:
        """What a host printed, by command."""
        return {command: a.stdout for command, a in self.answers.get(host, {}).items()}


def ask_all(site: Site, commands: Mapping[str, Sequence[str]], *, begins: bool = False) -> Asked:
    """Run each host's commands; all hosts at once, as far as connections allow.

    ``begins``: they start what must be ended again. Ctrl-C then waits for the answers
    before it goes on, so that nothing begins after it was to be ended.
    """
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
    if begins:
        _all_begun(waiting)
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


def ask(site: Site, commands: Mapping[str, str], *, begins: bool = False) -> Asked:
    """As :func:`ask_all` with one command a host."""
    return ask_all(site, {h: (command,) for h, command in commands.items()}, begins=begins)


def _all_begun(waiting: Iterable[concurrent.futures.Future[dict[str, Answer]]]) -> None:
    try:
        concurrent.futures.wait(waiting)
    except KeyboardInterrupt:
        concurrent.futures.wait(waiting, timeout=_BEGIN_S)
        raise
