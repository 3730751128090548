"""A guest that is killed in the middle of a job. Afterwards: ``paisoar lab down``."""

import time

from tests.trainer.lab.guests import end, need_guests, ranks, results, running, start

pytestmark = need_guests


def test_a_killed_guest_is_named_within_thirty_seconds():
    processes = ranks("endless", 21201, patience_s=20)
    running(processes)
    time.sleep(5)
    killer = start("host2", "echo o > /proc/sysrq-trigger")
    began = time.monotonic()
    (found,) = results(processes[:1])
    assert time.monotonic() - began < 30
    assert "rank 1" in found["error"]
    assert "host2" in found["error"]
    end((killer, processes[1]))
