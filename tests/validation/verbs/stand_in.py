"""Stands in for the verbs program on hosts of tests: its TCP rendezvous, then a report.

``stand_in.py PROGRAM WORDS``: PROGRAM is the file that the host was sent, whose own
command line is used. Settings and faults as in the stand-in of perftest.
"""

import json
import os
import runpy
import socket
import sys
import time
from pathlib import Path


def loopback(address):
    """Where a host's NIC address listens in tests: 10.0.0.2 is 127.NETWORK.0.2."""
    return f"127.{os.environ['STAND_IN_NETWORK']}.0.{address.rpartition('.')[2]}"


def gid(address):
    last = int(address.rpartition(".")[2])
    return f"0000:0000:0000:0000:0000:ffff:0a00:{last:04x}"


def main(program, *words):
    asked = runpy.run_path(program)["arguments"](words)
    host = os.environ["STAND_IN_HOST"]
    settings = json.loads(Path(os.environ["STAND_IN"]).read_text())
    fault = settings["faults"].get(host, "")
    own = f"10.0.0.{host.removeprefix('host')}"
    if fault == "no-device":
        sys.exit(f"verbs: IB device {asked.device} not found, only none")
    if not asked.peer:
        print("Waiting for client", flush=True)
        with socket.create_server((loopback(own), asked.port)) as listener:
            peer, _ = listener.accept()
        with peer:
            peer.recv(1)
        return
    with socket.create_connection((loopback(asked.peer), asked.port), 5):
        print(json.dumps(report(asked, own, settings, fault)))


def report(asked, own, settings, fault):
    found = {
        "verb": asked.verb, "kind": asked.kind, "device": asked.device,
        "gid_index": asked.gid_index, "local_gid": gid(own), "remote_gid": gid(asked.peer),
        "mtu": 1024 if fault == "mtu" else asked.mtu, "bytes": asked.bytes, "qps": asked.qps,
        "completed": (asked.count or 10_000) * asked.qps,
    }  # fmt: skip
    if asked.kind == "stream":
        target = f"host{asked.peer.rpartition('.')[2]}"
        return found | {"goodput_bps": settings["gbps"][target] * 1e9, "window_s": 1e-3}
    samples = [2.5 + number % 7 / 10 for number in range(asked.count)]
    # So many round trips take this long at the least.
    time.sleep(2 * sum(samples) / 1e6)
    return found | {"percentiles_us": {"50": 2.8}, "samples_us": samples}


main(*sys.argv[1:])
