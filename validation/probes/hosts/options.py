"""What is measured with: which probe and verb, how queue pairs connect, for how long."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from fabric.errors import InputError
from fabric.site import Site

Kind = Literal["ping", "stream"]
Verb = Literal["send", "write", "read"]
ProbeName = Literal["perftest", "verbs"]

# The 99th percentile then rests on fifty samples; on ten where processors are emulated,
# whose latency means nothing.
PINGS = 5000
LAB_PINGS = 1000
MIN_SECONDS = 4
MAX_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Tool:
    """One program of perftest, or one test of our own.

    ``title`` begins the name that its report carries. ``trips`` of one sample: a
    read is answered before it counts, so that its time is a whole round trip, where
    send and write halve it themselves.
    """

    program: str
    kind: Kind
    title: str
    trips: int = 1


LATENCY: dict[Verb, Tool] = {
    "send": Tool("ib_send_lat", "ping", "Send Latency"),
    "write": Tool("ib_write_lat", "ping", "RDMA_Write Latency"),
    "read": Tool("ib_read_lat", "ping", "RDMA_Read Latency", trips=2),
}
BANDWIDTH: dict[Verb, Tool] = {
    "write": Tool("ib_write_bw", "stream", "RDMA_Write BW"),
    "send": Tool("ib_send_bw", "stream", "Send BW"),
}
# Our own program has one name a verb, too, so that results say what they are of.
_OWN_LATENCY: dict[Verb, Tool] = {
    verb: Tool(f"verbs_{verb}_lat", "ping", verb, trips=tool.trips)
    for verb, tool in LATENCY.items()
}
_OWN_BANDWIDTH: dict[Verb, Tool] = {
    verb: Tool(f"verbs_{verb}_bw", "stream", verb) for verb in BANDWIDTH
}


@dataclass(frozen=True, slots=True)
class Options:
    """How to measure. Raises InputError where there is no such test.

    ``probe`` is perftest, or our own program over pyverbs; empty: what hosts have.
    ``seconds`` is how long a stream runs that has no number of messages; half of
    it is measured, so that senders that begin a little apart still overlap.
    ``rdma_cm`` connects queue pairs through rdma_cm as some applications do.
    ``pings`` is how many round trips of a pair are timed.
    """

    latency: Verb = "send"
    bandwidth: Verb = "write"
    rdma_cm: bool = False
    seconds: int = 8
    probe: ProbeName | Literal[""] = ""
    pings: int = PINGS
    tools: tuple[Tool, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.probe not in ("", "perftest", "verbs"):
            raise InputError(
                f"there is no probe {self.probe!r}",
                key="--probe",
                advice="There are: perftest, verbs.",
            )
        for name, verb, table in (
            ("latency", self.latency, LATENCY),
            ("bandwidth", self.bandwidth, BANDWIDTH),
        ):
            if verb not in table:
                raise InputError(
                    f"{name} cannot be measured with {verb!r}",
                    key=f"--{name}-verb",
                    advice=f"There are: {', '.join(table)}.",
                )
        if not MIN_SECONDS <= self.seconds <= MAX_SECONDS:
            raise InputError(
                f"{self.seconds} seconds: a stream takes {MIN_SECONDS} to {MAX_SECONDS}",
                key="--seconds",
            )
        if self.rdma_cm and self.probe == "verbs":
            raise InputError(
                "the verbs probe does not connect queue pairs by rdma_cm",
                key="--rdma-cm",
                advice="Use --probe perftest for that, or leave it out.",
            )
        own = self.probe == "verbs"
        tools = (
            (_OWN_LATENCY if own else LATENCY)[self.latency],
            (_OWN_BANDWIDTH if own else BANDWIDTH)[self.bandwidth],
        )
        object.__setattr__(self, "tools", tools)

    @classmethod
    def of(cls, site: Site, asked: Options | None = None) -> Options:
        """What was asked for, or the usual, as the site's environment has it."""
        options = asked or cls()
        return replace(options, pings=LAB_PINGS) if site.environment == "lab" else options

    def tool(self, kind: Kind) -> Tool:
        """The program that measures a stream of this kind."""
        return self.tools[0] if kind == "ping" else self.tools[1]

    @property
    def margin_s(self) -> int:
        """Seconds at each end of a stream that are not measured."""
        return self.seconds // 4

    @property
    def text(self) -> str:
        """What a result was measured with, in one line."""
        programs = ", ".join(tool.program for tool in self.tools)
        way = "rdma_cm" if self.rdma_cm else "sockets"
        return f"{programs}; connected by {way}; streams of {self.seconds} s"
