"""Real traffic: perftest on real hosts, started and read over SSH."""

from validation.probes.perftest.ends import planned_commands, planned_us
from validation.probes.perftest.options import Options
from validation.probes.perftest.probe import PerftestProbe

__all__ = ["Options", "PerftestProbe", "planned_commands", "planned_us"]
