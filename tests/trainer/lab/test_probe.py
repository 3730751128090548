"""Our own instrument over pyverbs tells what perftest tells, in turns.

An emulated processor takes half a millisecond for a message in one run and a whole one in
the next, whichever measures; so latency is the median of many short runs of each.
"""

import json
import re
import statistics

import pytest

from tests.trainer.lab.guests import (
    DEVICE,
    PATIENCE_S,
    ROOT,
    active_mtu,
    address,
    hears,
    index,
    need_guests,
    said,
    start,
)

pytestmark = need_guests

PROGRAM = ROOT / "validation" / "probes" / "verbs" / "program.py"
TURNS = {"bandwidth": 5, "latency": 12}
MESSAGES = 1000
# Of what perftest tells, how far ours may be away.
APART = 0.15


def client_says(port, command, peer):
    """What the client prints; the same command, without ``peer``, is the server's."""
    words = f"{command} -d {DEVICE} -m {active_mtu()} -p {port} -x {{}}"
    server = start("host1", words.format(index("host1", "IPv4")))
    hears("host1", port)
    out = said("host2", f"{words.format(index('host2', 'IPv4'))} {peer}{address('host1')}")
    _, err = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0, err
    return out


def by_perftest(port, command, column):
    """A column of the last row of its table."""
    out = client_says(port, f"{command} -F -u 18", "")
    return float(re.search(rf"#bytes.*\n\s*(?:\S+\s+){{{column}}}(\S+)", out)[1])


def by_probe(port, words):
    out = client_says(port, f"/usr/bin/python3 {PROGRAM} {words}", "--peer ")
    return json.loads(out.splitlines()[-1])


def bandwidths(port):
    """Gbit/s of payload."""
    count = "-s 65536 -n 300"
    theirs = by_perftest(port, f"ib_write_bw {count} --report_gbits", 3)
    return theirs, by_probe(port + 1, f"write stream {count}")["goodput_bps"] / 1e9


def latencies(verb, port):
    """Half a round trip of eight bytes, in microseconds: medians."""
    count = f"-s 8 -n {MESSAGES}"
    theirs = by_perftest(port, f"ib_{verb}_lat {count}", 4)
    return theirs, by_probe(port + 1, f"{verb} ping {count}")["percentiles_us"]["50"]


def difference(pairs):
    """How far the median of ours is from that of theirs."""
    theirs, ours = zip(*pairs, strict=True)
    return statistics.median(ours) / statistics.median(theirs) - 1


def test_bandwidth_is_perftests():
    told = [bandwidths(21601 + 2 * turn) for turn in range(TURNS["bandwidth"])]
    assert abs(difference(told)) <= APART, told


@pytest.mark.parametrize(("verb", "port"), [("write", 21651), ("send", 21701)])
def test_latency_is_perftests(verb, port):
    told = [latencies(verb, port + 2 * turn) for turn in range(TURNS["latency"])]
    assert abs(difference(told)) <= APART, told
