"""Our own instrument over pyverbs tells the bandwidth that perftest tells, in turns.

Latency is not compared: an emulated processor takes half a millisecond or a whole one for
the same round trip, and perftest's own medians lie as far apart.
"""

import json
import re
import statistics

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
TURNS = 5
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


def in_turns(measure, port):
    """What each told, turn by turn."""
    return zip(*(measure(port + 2 * turn) for turn in range(TURNS)), strict=True)


def test_bandwidth_is_perftests():
    theirs, ours = in_turns(bandwidths, 21601)
    difference = statistics.median(ours) / statistics.median(theirs) - 1
    assert abs(difference) <= APART, (theirs, ours)
