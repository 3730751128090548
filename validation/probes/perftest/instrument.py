"""perftest, as the probe of real hosts uses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from validation.probes.hosts.instrument import Complaint, Expected, Figures, Installed
from validation.probes.hosts.options import Options
from validation.probes.hosts.pairtest import End, PairTest
from validation.probes.perftest.commands import arguments
from validation.probes.perftest.complaints import complaints, noise
from validation.probes.perftest.figures import figures
from validation.probes.perftest.text import parse_report, without_samples

_INSTALL = (
    "install perftest there (Debian, Ubuntu, RHEL: the package is called so), "
    "or python3-pyverbs on all hosts"
)


class Perftest:
    """See :class:`~validation.probes.hosts.instrument.Instrument`."""

    name = "perftest"
    files: Mapping[str, str] = {}

    def programs(self, options: Options) -> tuple[str, ...]:
        """See Instrument: two programs, by verb."""
        return tuple(tool.program for tool in options.tools)

    def questions(self, options: Options) -> tuple[str, ...]:
        """See Instrument: release and options."""
        first, *_ = self.programs(options)
        return (
            f"{first} --version 2>&1; true",
            f"{first} --help 2>&1 | grep -oE -e '--[a-zA-Z_-]+' | sort -u",
        )

    def installed(
        self, options: Options, here: frozenset[str], outputs: Mapping[str, str]
    ) -> Installed:
        """See Instrument."""
        version, helped = self.questions(options)
        release = outputs.get(version, "").strip().removeprefix("Version:").strip()
        absent = [name for name in self.programs(options) if name not in here]
        return Installed(
            release=release.splitlines()[0] if release and not absent else "unknown",
            options=frozenset(outputs.get(helped, "").split()),
            problem=f"{', '.join(absent)} not found: {_INSTALL}" if absent else "",
        )

    def words(
        self, test: PairTest, end: End, options: Options, *, mtu: int, port: int,
        folder: str, peer: str = "", json_file: str = "",
    ) -> tuple[str, ...]:  # fmt: skip
        """See Instrument."""
        del folder
        return arguments(test, end, options, mtu=mtu, port=port, peer=peer, json_file=json_file)

    def figures(self, test: PairTest, out: str, expected: Expected, json_text: str) -> Figures:
        """See Instrument."""
        return figures(test, parse_report(out), expected, json_text)

    def complaints(self, text: str) -> Iterator[Complaint]:
        """See Instrument."""
        return complaints(text)

    def noise(self, text: str) -> tuple[str, ...]:
        """See Instrument."""
        return noise(text)

    def without_samples(self, out: str) -> str:
        """See Instrument."""
        return without_samples(out)


PERFTEST = Perftest()
