"""The probe of real hosts: real traffic over SSH, between the NICs that the site names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from fabric.errors import DevicesError, PaisoarError, ToolError
from fabric.site import EvidenceClass, HostSpec, Site
from validation.probes.hosts.facts import HostFacts, commands, read_facts
from validation.probes.hosts.instrument import Instrument
from validation.probes.hosts.instruments import INSTRUMENTS, choose
from validation.probes.hosts.options import Options, ProbeName
from validation.probes.hosts.ports import Ports
from validation.probes.hosts.remote import ask_all
from validation.probes.hosts.setting import Setting
from validation.probes.hosts.step import Pace, StepRun
from validation.traffic import Step, StepMeasure

_PACES = {"site": Pace(), "lab": Pace(setup_s=120.0, lead_s=5.0)}
# Counters of NICs are cached for some 10 ms (hw_counters/lifespan); SONiC reads its
# queues' every 10 s (sonic-net/sonic-utilities pull request 470, `counterpoll show`).
_SETTLE_S = {"sonic": 11.0}
_SETTLE_DEFAULT_S = 1.0
# How often a step is tried in a lab, whose hosts' clocks may fail them.
_TURNS = 5


class HostsProbe:
    """Carries steps by perftest or pyverbs, and plain TCP beside it by iperf3 or Python."""

    def __init__(
        self, site: Site, options: Options | None = None, pace: Pace | None = None
    ) -> None:
        self._site = site
        self._options = Options.of(site, options)
        self._why = "asked for"
        if self._options.rdma_cm and not self._options.probe:
            self._options = replace(self._options, probe="perftest")
            self._why = "the only one that connects by rdma_cm"
        self._pace = pace or _PACES[site.environment]
        self._ports = Ports()
        self._facts: dict[str, HostFacts] = {}

    @property
    def name(self) -> str:
        """The instrument's; which one is known once prepared, where none was asked for."""
        return self._options.probe or "perftest"

    @property
    def evidence_class(self) -> EvidenceClass:
        """``soft-roce`` where any NIC's verbs are software, whatever the site is called."""
        software = any(p.software for f in self._facts.values() for p in f.ports.values())
        named = any(
            nic.family == "rxe"
            for host in self._site.topology.hosts
            for nic in self._site.host(host).nics.values()
        )
        return "soft-roce" if software or named else self._site.evidence_class

    @property
    def versions(self) -> dict[str, str]:
        """The release on every host, and what it was asked to use."""
        hosts: dict[str, list[str]] = defaultdict(list)
        for host, facts in self._facts.items():
            hosts[facts.release].append(host)
        each = [f"{release} on {', '.join(names)}" for release, names in hosts.items()]
        return {
            self.name: next(iter(hosts)) if len(hosts) == 1 else "; ".join(each),
            f"{self.name} options": self._options.text,
            "probe": f"{self.name}: {self._why}",
        }

    @property
    def settle_s(self) -> float:
        """Time until every device's counters show traffic that has ended."""
        systems = (self._site.switch(name).os for name in self._site.topology.switches)
        return max((_SETTLE_S.get(os, 0.0) for os in systems), default=0.0) or _SETTLE_DEFAULT_S

    def prepare(self) -> None:
        """Look what every host has. DevicesError where none of them can measure."""
        specs = {name: self._site.host(name) for name in self._site.topology.hosts}
        known = self._look(specs)
        if not self._options.probe:
            answering = {
                name: {host: facts for host, facts in theirs.items() if facts.ports}
                for name, theirs in known.items()
            }
            name, self._why = choose(answering)
            self._options = replace(self._options, probe=name)
        self._facts = known[self._options.probe or "perftest"]
        problems = {name: _problem(name, facts) for name, facts in self._facts.items()}
        if all(problems.values()):
            errors = {name: error for name, error in problems.items() if error is not None}
            raise DevicesError("prepare the hosts for real traffic", errors)

    def _look(self, specs: Mapping[str, HostSpec]) -> dict[ProbeName, dict[str, HostFacts]]:
        """Every host's facts for each instrument that may be used."""
        asked_for = self._options.probe
        names: tuple[ProbeName, ...] = (asked_for,) if asked_for else tuple(INSTRUMENTS)
        choices = {name: (INSTRUMENTS[name], replace(self._options, probe=name)) for name in names}
        asked = ask_all(
            self._site,
            {
                host: tuple(
                    dict.fromkeys(c for pair in choices.values() for c in commands(spec, *pair))
                )
                for host, spec in specs.items()
            },
        )
        return {
            name: {
                host: HostFacts(release="unknown", problem=str(asked.failed[host]))
                if host in asked.failed
                else read_facts(spec, *pair, asked.outputs(host))
                for host, spec in specs.items()
            }
            for name, pair in choices.items()
        }

    @property
    def _instrument(self) -> Instrument:
        return INSTRUMENTS[self._options.probe or "perftest"]

    def run(self, step: Step) -> StepMeasure:
        """One step; a pair that brings no result is in ``lost`` with its reason."""
        setting = Setting(self._site, self._facts, self._options, self._instrument)
        measure = StepRun(setting, self._ports, self._pace).carry(step)
        for _ in range(_TURNS - 1):
            clockless = [why for why in measure.lost.values() if _clockless(why)]
            if not clockless or self._site.environment != "lab":
                break
            note = f"{step.id} was sent once more: {clockless[0]}"
            again = StepRun(setting, self._ports, self._pace).carry(step)
            measure = replace(again, notes=(*measure.notes, note, *again.notes))
        return measure


def _clockless(why: str) -> bool:
    """Whether perftest could not tell its processor's frequency: all times are 0 or infinite then.

    It samples that at its start (``get_clock.c``), in vain where an emulated processor
    is kept waiting meanwhile.
    """
    return any(words in why for words in ("a bandwidth of zero", "says inf for", "says nan for"))


def _problem(host: str, facts: HostFacts) -> PaisoarError | None:
    """Why nothing can be measured on a host: itself, or every one of its ports."""
    ports = [port.problem for port in facts.ports.values()]
    if facts.problem:
        return ToolError(f"{host}: {facts.problem}")
    return ToolError(f"{host}: {'; '.join(ports)}") if all(ports) else None
