"""The shell scripts that run on hosts; POSIX sh and what every Linux host has.

What a step starts on a host lives in one folder of its own there. Each program runs
under ``timeout`` in a session of its own, so that one signal ends all of it, it
survives the SSH connection, and it ends by itself where nobody comes back.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Time that a program has to end after the first signal.
_KILL_AFTER_S = 5
# One look at the host takes no longer than this, well below what a command may take.
LOOK_S = 20
_MARK = "@paisoar "


@dataclass(frozen=True, slots=True)
class Job:
    """One program of a step on one host. ``begin_ns`` is its start on that host's clock."""

    name: str
    words: tuple[str, ...]
    limit_s: int
    begin_ns: int | None = None
    line_buffered: bool = False


def view() -> str:
    """The host's clock, and the TCP ports on which somebody listens."""
    return f"date +%s%N; {_LISTENING}"


# Local addresses are in the second column, the state LISTEN is 0A
# (Linux Documentation/networking/proc_net_tcp.rst).
_LISTENING = (
    'awk \'$4 == "0A" { n = split($2, part, ":"); print part[n] }\' '
    "/proc/net/tcp /proc/net/tcp6 2>/dev/null | sort -u"
)


def read_view(text: str) -> tuple[int, frozenset[int]]:
    """Clock in ns and ports of :func:`view`. Raises ValueError where it is another text."""
    clock, *ports = text.split()
    return int(clock), frozenset(int(port, 16) for port in ports)


def launch(folder: str, jobs: Sequence[Job], files: Mapping[str, str] | None = None) -> str:
    """Put the files there, start these programs, return at once. Safe to be sent twice."""
    lines = [
        "umask 077",
        # The terminal that sudo makes goes away before the programs do.
        "trap '' HUP",
        f"mkdir -p {folder} || exit 1",
        f"cd {folder} || exit 1",
        *(_put(name, text) for name, text in (files or {}).items()),
        "go() {",
        '    [ -e "$1.pid" ] && return',
        f'    setsid timeout -k {_KILL_AFTER_S} "$2" sh -c "$3" '
        '< /dev/null > "$1.out" 2> "$1.err" &',
        '    echo $! > "$1.pid"',
        "}",
    ]
    lines += [f"go {job.name} {job.limit_s} {shlex.quote(_body(folder, job))}" for job in jobs]
    return "\n".join(lines)


def _put(name: str, text: str) -> str:
    """Write a file that is not there yet; whoever starts it finds all of it or none."""
    return f"[ -e {name} ] || {{ printf %s {shlex.quote(text)} > new.$$ && mv new.$$ {name}; }}"


def _body(folder: str, job: Job) -> str:
    at = f"{folder}/{job.name}"
    program = shlex.join((*(("stdbuf", "-oL") if job.line_buffered else ()), *job.words))
    wait = ""
    if job.begin_ns is not None:
        wait = (
            f"left=$(({job.begin_ns} - $(date +%s%N))); "
            "[ $left -gt 0 ] && "
            "sleep $((left / 1000000000)).$(printf %09d $((left % 1000000000))); "
        )
    return (
        f"{wait}date +%s%N > {at}.at; {program}; code=$?; "
        f"date +%s%N > {at}.to; echo $code > {at}.rc"
    )


def listening(folder: str, ports: Mapping[str, int]) -> str:
    """Wait until each program listens, or has ended; prints those that do neither."""
    pairs = " ".join(f"{name}:{port:04X}" for name, port in ports.items())
    return _waiting(
        folder,
        pairs,
        f'listening=" $({_LISTENING} | tr "\\n" " ") "',
        [
            "grep -q 'Waiting for client' \"${item%%:*}.out\" && continue",
            'case "$listening" in *" ${item##*:} "*) continue ;; esac',
        ],
    )


def finished(folder: str, names: Sequence[str]) -> str:
    """Wait until each program has ended; prints those that have not."""
    return _waiting(folder, " ".join(names), ":", [])


def _waiting(folder: str, items: str, first: str, conditions: Sequence[str]) -> str:
    lines = [
        f"cd {folder} || exit 1",
        f"until=$(($(date +%s) + {LOOK_S}))",
        "while :; do",
        f"    {first}",
        "    left=",
        f"    for item in {items}; do",
        '        [ -e "${item%%:*}.rc" ] && continue',
        '        kill -0 "$(cat "${item%%:*}.pid")" 2> /dev/null || continue',
        *(f"        {condition}" for condition in conditions),
        '        left="$left ${item%%:*}"',
        "    done",
        '    [ -z "$left" ] && break',
        '    [ "$(date +%s)" -ge "$until" ] && break',
        "    sleep 0.2",
        "done",
        "echo $left",
    ]
    return "\n".join(lines)


def collect(folder: str) -> str:
    """Print every file of the folder, each after a line with its name."""
    return (
        f"cd {folder} || exit 1\n"
        "for file in *; do case $file in *.py) continue ;; esac; "
        f'printf "\\n{_MARK}%s\\n" "$file"; cat "$file"; done'
    )


def read_files(text: str) -> dict[str, str]:
    """Files of :func:`collect` by name."""
    files: dict[str, list[str]] = {}
    inside: list[str] = []
    for line in text.splitlines():
        if line.startswith(_MARK):
            inside = files.setdefault(line.removeprefix(_MARK), [])
        else:
            inside.append(line)
    return {name: "\n".join(lines).strip("\n") for name, lines in files.items()}


def clean(folder: str) -> str:
    """End what still runs of this folder's programs, and remove the folder.

    A number that the system has given to another program since is left alone: ours
    have the folder's name among their words.
    """
    return "\n".join(
        (
            f"cd {folder} 2> /dev/null || exit 0",
            "end() {",
            "    some=",
            "    for file in *.pid; do",
            '        [ -e "$file" ] || continue',
            '        pid=$(cat "$file")',
            f'        grep -aqF {folder}/ "/proc/$pid/cmdline" 2> /dev/null || continue',
            '        kill "-$1" "-$pid" 2> /dev/null && some=1',
            "    done",
            "}",
            "end TERM",
            '[ -n "$some" ] && sleep 0.5',
            "end KILL",
            f"cd / && rm -rf {folder}",
        )
    )
