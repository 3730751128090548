"""The probe of real hosts: perftest over SSH, between the NICs that the site names."""

from __future__ import annotations

from collections import defaultdict

from fabric.errors import DevicesError, PaisoarError, ToolError
from fabric.site import EvidenceClass, Site
from validation.probes.perftest.facts import HostFacts, commands, read_facts
from validation.probes.perftest.options import Options
from validation.probes.perftest.ports import Ports
from validation.probes.perftest.remote import ask_all
from validation.probes.perftest.setting import Setting
from validation.probes.perftest.step import Pace, StepRun
from validation.traffic import Step, StepMeasure

_PACES = {"site": Pace(), "lab": Pace(setup_s=120.0, lead_s=5.0)}
# Counters of NICs are cached for some 10 ms (hw_counters/lifespan); SONiC reads its
# queues' every 10 s (sonic-net/sonic-utilities pull request 470, `counterpoll show`).
_SETTLE_S = {"sonic": 11.0}
_SETTLE_DEFAULT_S = 1.0


class PerftestProbe:
    """Carries steps by perftest, and plain TCP beside it by iperf3 or Python."""

    name = "perftest"

    def __init__(
        self, site: Site, options: Options | None = None, pace: Pace | None = None
    ) -> None:
        self._site = site
        self._options = options or Options()
        self._pace = pace or _PACES[site.environment]
        self._ports = Ports()
        self._facts: dict[str, HostFacts] = {}

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
            "perftest": next(iter(hosts)) if len(hosts) == 1 else "; ".join(each),
            "perftest options": self._options.text,
        }

    @property
    def settle_s(self) -> float:
        """Time until every device's counters show traffic that has ended."""
        systems = (self._site.switch(name).os for name in self._site.topology.switches)
        return max((_SETTLE_S.get(os, 0.0) for os in systems), default=0.0) or _SETTLE_DEFAULT_S

    def prepare(self) -> None:
        """Look what every host has. DevicesError where none of them can measure."""
        programs = [tool.program for tool in self._options.tools]
        specs = {name: self._site.host(name) for name in self._site.topology.hosts}
        asked = ask_all(self._site, {name: commands(s, programs) for name, s in specs.items()})
        for name, spec in specs.items():
            failed = asked.failed.get(name)
            self._facts[name] = (
                read_facts(spec, programs, asked.outputs(name))
                if failed is None
                else HostFacts(release="unknown", problem=str(failed))
            )
        problems = {name: _problem(name, facts) for name, facts in self._facts.items()}
        if all(problems.values()):
            errors = {name: error for name, error in problems.items() if error is not None}
            raise DevicesError("prepare the hosts for real traffic", errors)

    def run(self, step: Step) -> StepMeasure:
        """One step; a pair that brings no result is in ``lost`` with its reason."""
        setting = Setting(self._site, self._facts, self._options)
        return StepRun(setting, self._ports, self._pace).carry(step)


def _problem(host: str, facts: HostFacts) -> PaisoarError | None:
    """Why nothing can be measured on a host: itself, or every one of its ports."""
    ports = [port.problem for port in facts.ports.values()]
    if facts.problem:
        return ToolError(f"{host}: {facts.problem}")
    return ToolError(f"{host}: {'; '.join(ports)}") if all(ports) else None
