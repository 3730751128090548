"""What each host has for a test: programs, release, options, GIDs, the state of its ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fabric.devices.linux.dump import parse_dump
from fabric.site import HostSpec
from validation.probes.perftest.gids import Gid, choose, gid_command, gids_of

_HELPERS = ("timeout", "setsid", "awk")
_EXTRAS = ("stdbuf", "iperf3", "python3")
_INSTALL = "install perftest there (Debian, Ubuntu, RHEL: the package is called so)"


@dataclass(frozen=True, slots=True)
class PortFacts:
    """One NIC port: its GID, or why it cannot be used (``problem``).

    ``software`` says that its verbs are those of rxe: only software devices have a
    parent interface (Linux drivers/infiniband/sw/rxe/rxe_verbs.c, ``parent_show``).
    """

    gid: Gid | None
    problem: str
    software: bool


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host. ``problem`` says why nothing can be measured on it; empty where it can."""

    release: str = ""
    programs: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    ports: Mapping[str, PortFacts] = field(default_factory=dict)
    problem: str = ""

    @property
    def json(self) -> bool:
        """Whether its perftest writes a report in JSON."""
        return "--out_json_file" in self.options

    @property
    def line_buffered(self) -> bool:
        """Whether a program can be made to print line by line."""
        return "stdbuf" in self.programs


def commands(spec: HostSpec, programs: Iterable[str]) -> tuple[str, ...]:
    """What :func:`read_facts` reads. No command fails for what a host lacks."""
    first, *_ = programs
    return (
        found_command(programs),
        f"{first} --version 2>&1; true",
        f"{first} --help 2>&1 | grep -oE -e '--[a-zA-Z_-]+' | sort -u",
        *(command for nic in spec.nics.values() for command in _nic_commands(nic.rdma)),
    )


def found_command(programs: Iterable[str]) -> str:
    """The command that prints which of these programs there are."""
    names = " ".join((*programs, *_HELPERS, *_EXTRAS))
    return f'for p in {names}; do command -v "$p" > /dev/null && echo "$p"; done; true'


def _nic_commands(rdma: str) -> tuple[str, str]:
    device = f"/sys/class/infiniband/{rdma}"
    port = f"{device}/ports/1"
    return (
        f"{gid_command(rdma)}; true",
        f"grep -H . {port}/state {port}/link_layer {device}/parent 2>/dev/null; true",
    )


def read_facts(spec: HostSpec, programs: Iterable[str], outputs: Mapping[str, str]) -> HostFacts:
    """A host's facts from what its commands printed."""
    found, version, helped, *_ = commands(spec, programs)
    here = frozenset(outputs.get(found, "").split())
    absent = [name for name in (*programs, *_HELPERS) if name not in here]
    release = outputs.get(version, "").strip().removeprefix("Version:").strip()
    return HostFacts(
        release=release.splitlines()[0] if release else "unknown",
        programs=here,
        options=frozenset(outputs.get(helped, "").split()),
        ports={
            name: _port(name, nic.rdma, nic.address, outputs) for name, nic in spec.nics.items()
        },
        problem=f"{', '.join(absent)} not found: {_INSTALL}" if absent else "",
    )


def _port(name: str, rdma: str, address: str, outputs: Mapping[str, str]) -> PortFacts:
    table, about = (outputs.get(command, "") for command in _nic_commands(rdma))
    device = f"/sys/class/infiniband/{rdma}"
    dump = parse_dump(about)
    software = f"{device}/parent" in dump.files
    state = dump.text(f"{device}/ports/1/state")
    layer = dump.text(f"{device}/ports/1/link_layer")
    if state is None:
        return PortFacts(None, f"there is no RDMA device {rdma}: see `rdma link` there", software)
    if layer != "Ethernet":
        return PortFacts(None, f"the link layer of {rdma} is {layer}, not Ethernet", software)
    if not state.endswith("ACTIVE"):
        return PortFacts(None, f"the port of {rdma} is {state.split()[-1]}, not ACTIVE", software)
    gid = choose(gids_of(parse_dump(table), rdma), name, address)
    if isinstance(gid, str):
        return PortFacts(None, f"{rdma}: {gid}", software)
    return PortFacts(gid, "", software)
