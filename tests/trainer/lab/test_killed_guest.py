"""A guest that is killed in the middle of a job. Afterwards: ``paisoar lab down``."""

import json
import os
import signal
import time
from pathlib import Path

from tests.trainer.lab.guests import LAB, end, need_guests, ranks, results, running

pytestmark = need_guests


def test_a_killed_guest_is_named_within_thirty_seconds():
    state = json.loads(Path(LAB).with_name("state.json").read_text())
    processes = ranks("endless", 21201, patience_s=20)
    running(processes)
    time.sleep(5)
    # A login, with a command that ends it, takes long on a processor that ranks keep busy.
    os.kill(state["guests"]["host2"]["pid"], signal.SIGKILL)
    began = time.monotonic()
    (found,) = results(processes[:1])
    assert time.monotonic() - began < 30
    assert "rank 1" in found["error"]
    assert "host2" in found["error"]
    end(processes[1:])
