"""The verbs transport between two guests: right sums, and how fast."""

import re
import statistics

from tests.trainer.lab.guests import (
    DEVICE,
    PATIENCE_S,
    active_mtu,
    address,
    hears,
    index,
    need_guests,
    ranks,
    results,
    said,
    start,
)

pytestmark = need_guests


def test_sums_are_exact_over_sizes_and_types():
    for found in results(ranks("correct", 21001)):
        assert found == {"checked": 60, "wrong": [], "same": True}


def both_ways_bps(port):
    """What ib_write_bw reaches each way while it sends both ways."""
    words = (
        f"ib_write_bw -b -F -d {DEVICE} -x {{}} -m {active_mtu()} -s 1048576 -n 30 -u 18 "
        f"-p {port} --report_gbits"
    )
    server = start("host1", words.format(index("host1", "IPv4")))
    hears("host1", port)
    out = said("host2", f"{words.format(index('host2', 'IPv4'))} {address('host1')}")
    server.communicate(timeout=PATIENCE_S)
    average = float(re.search(r"#bytes.*\n\s*\d+\s+\d+\s+\S+\s+(\S+)", out)[1])
    return average * 1e9 / 2


def test_busbw_is_near_what_the_device_carries_both_ways():
    theirs = [both_ways_bps(21101)]
    options = {"nbytes": 4 << 20, "turns": 7, "steps": 3}
    found = results(ranks("speed", 21102, options=options))
    # Their median: one turn beside something else would ask for less.
    theirs += [both_ways_bps(port) for port in (21103, 21105)]
    reached = statistics.median(found[0]["busbw_bps"])
    print(f"busbw {reached / 1e6:.1f}, ib_write_bw -b {[round(bps / 1e6, 1) for bps in theirs]}")
    assert reached >= 0.8 * statistics.median(theirs), (found[0], theirs)
