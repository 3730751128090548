"""The instruments by name, and which one a site's hosts can measure with."""

from __future__ import annotations

from collections.abc import Mapping

from validation.probes.hosts.facts import HostFacts
from validation.probes.hosts.instrument import Instrument
from validation.probes.hosts.options import ProbeName
from validation.probes.perftest.instrument import PERFTEST
from validation.probes.verbs.instrument import VERBS

INSTRUMENTS: Mapping[ProbeName, Instrument] = {"perftest": PERFTEST, "verbs": VERBS}


def choose(facts: Mapping[ProbeName, Mapping[str, HostFacts]]) -> tuple[ProbeName, str]:
    """The instrument to measure with, and why, where none was asked for.

    ``facts`` are those of hosts that answered. perftest, wherever all hosts have it; else
    pyverbs, where all have that; else perftest, whose problems then say what to install.
    """
    lacking = {
        name: [host for host, known in hosts.items() if known.problem]
        for name, hosts in facts.items()
    }
    if not lacking["perftest"]:
        return "perftest", "every host has perftest"
    if not lacking["verbs"]:
        return "verbs", f"{', '.join(lacking['perftest'])} without perftest, all with pyverbs"
    return "perftest", f"neither is on every host: pyverbs is not on {', '.join(lacking['verbs'])}"
