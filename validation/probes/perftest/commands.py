"""perftest's command lines, both ends of a pair.

Options as in perftest 4.5-0.17 (``--help``) and later releases. Each end gets its
own marking: a one-sided mark leaves acknowledgements in the wrong class
(openucx/ucx issue 10325). ``-F`` keeps a sampled CPU frequency from ending a test.
"""

from __future__ import annotations

from validation.probes.hosts.options import Options
from validation.probes.hosts.pairtest import End, PairTest
from validation.traffic import Stream


def arguments(
    test: PairTest,
    end: End,
    options: Options,
    *,
    mtu: int,
    port: int,
    peer: str = "",
    json_file: str = "",
) -> tuple[str, ...]:
    """One end's words. A server has no ``peer``; ``json_file`` where a report is to be kept."""
    words = [test.tool.program, "-d", end.rdma, "-i", "1", "-x", end.gid_index, "-F"]
    words += ["-p", str(port), "-m", str(mtu), "-s", str(test.stream.message_bytes)]
    if test.tool.kind == "stream":
        words += ["-q", str(test.stream.qps), "--report_gbits"]
        words += _bursts(test.stream) if peer else []
    else:
        words.append("-U")
    if test.seconds is not None:
        words += ["-D", str(test.seconds), "-f", str(options.margin_s)]
    else:
        words += ["-n", str(test.iterations)]
    if end.ack_timeout is not None:
        words += ["-u", str(end.ack_timeout)]
    if options.rdma_cm:
        words.append("-R")
    if end.tos is not None:
        # perftest takes -T for rdma_cm's queue pairs only, --tclass for others only.
        words += ["-T", str(end.tos)] if options.rdma_cm else [f"--tclass={end.tos}"]
    if json_file:
        words += ["--out_json", f"--out_json_file={json_file}"]
    return (*words, peer) if peer else tuple(words)


def _bursts(stream: Stream) -> list[str]:
    """One message at a time, so many a second: perftest's own (SW) rate limiter.

    The default of ``--rate_units`` differs between releases; ``p`` are messages.
    """
    if not stream.messages_per_s:
        return []
    words = ["--rate_limit", str(stream.messages_per_s), "--rate_units", "p"]
    return [*words, "--burst_size", "1", "--rate_limit_type", "SW"]
