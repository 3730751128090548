"""What each host has for a test: programs, release, options, GIDs, the state of its ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fabric.devices.linux.dump import parse_dump
from fabric.site import HostSpec
from validation.probes.hosts.gids import Gid, choose, gid_command, gids_of
from validation.probes.hosts.instrument import Instrument
from validation.probes.hosts.options import Options

_HELPERS = ("timeout", "setsid", "awk")
_EXTRAS = ("stdbuf", "iperf3", "python3")


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


def commands(spec: HostSpec, instrument: Instrument, options: Options) -> tuple[str, ...]:
    """What :func:`read_facts` reads. No command fails for what a host lacks."""
    return (
        found_command(instrument.programs(options)),
        *instrument.questions(options),
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


def read_facts(
    spec: HostSpec, instrument: Instrument, options: Options, outputs: Mapping[str, str]
) -> HostFacts:
    """A host's facts from what its commands printed."""
    here = frozenset(outputs.get(found_command(instrument.programs(options)), "").split())
    found = instrument.installed(options, here, outputs)
    absent = [name for name in _HELPERS if name not in here]
    missing = f"{', '.join(absent)} not found: install coreutils, util-linux and awk there"
    return HostFacts(
        release=found.release,
        programs=here,
        options=found.options,
        ports={
            name: _port(name, nic.rdma, nic.address, outputs) for name, nic in spec.nics.items()
        },
        problem=found.problem or (missing if absent else ""),
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
