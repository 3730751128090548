"""Stands in for a program of perftest in tests: a TCP rendezvous, then a report.

``stand_in.py PROGRAM ARGUMENTS`` on a host of tests (``STAND_IN_HOST``). It moves no
RDMA traffic; the file ``STAND_IN`` says which figures it prints and what goes wrong:
``{"gbps": {TARGET: number}, "faults": {HOST: fault}, "release": "4.5"}``.
"""

import json
import os
import random
import socket
import sys
import time
from argparse import ArgumentParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import formats


def loopback(address):
    """Where a host's NIC address listens in tests: 10.0.0.2 is 127.NETWORK.0.2."""
    return f"127.{os.environ['STAND_IN_NETWORK']}.0.{address.rpartition('.')[2]}"


def arguments(words):
    parser = ArgumentParser()
    for flag in ("-F", "-U", "-R", "--report_gbits", "--out_json"):
        parser.add_argument(flag, action="store_true")
    for flag in ("--rate_limit", "--rate_units", "--burst_size", "--rate_limit_type"):
        parser.add_argument(flag)
    for flag in ("-d", "-i", "-x", "-p", "-m", "-s", "-n", "-D", "-f", "-T", "--tclass"):
        parser.add_argument(flag)
    parser.add_argument("-q", default="1")
    parser.add_argument("--out_json_file")
    parser.add_argument("peer", nargs="?")
    return parser.parse_args(words)


def die(*lines):
    print("\n".join(lines), file=sys.stderr)
    sys.exit(1)


class StandIn:
    def __init__(self, program, words):
        self.program = program
        self.asked = arguments(words)
        self.host = os.environ["STAND_IN_HOST"]
        self.settings = json.loads(Path(os.environ["STAND_IN"]).read_text())
        self.fault = self.settings.get("faults", {}).get(self.host, "")
        self.own = f"10.0.0.{self.host.removeprefix('host')}"
        self.port = int(self.asked.p)

    def run(self):
        if self.fault == "no-device":
            die(f"IB device {self.asked.d} not found", " Unable to find the Infiniband/RoCE device")
        if self.fault == "noise":
            noise = "Conflicting CPU frequency values detected: 800.0 != 3500.0"
            print(f"{noise}. CPU Frequency is not max.", file=sys.stderr)
        if self.asked.peer:
            self.client()
        else:
            self.server()

    def server(self):
        stars = "*" * 36
        print(f"\n{stars}\n* Waiting for client to connect... *\n{stars}")
        with socket.create_server((loopback(self.own), self.port)) as listener:
            peer, _ = listener.accept()
        with peer:
            if self.fault == "modify-qp":
                die(
                    "Failed to modify QP 274 to RTR",
                    " Unable to Connect the HCA's through the link",
                )
            peer.sendall(b"ready\n")
            peer.recv(1)

    def client(self):
        target = f"host{self.asked.peer.rpartition('.')[2]}"
        until = time.monotonic() + 3
        while True:
            try:
                peer = socket.create_connection((loopback(self.asked.peer), self.port), 5)
                break
            except OSError:
                if time.monotonic() > until:
                    die(f"Couldn't connect to {self.asked.peer}:{self.port}")
                time.sleep(0.05)
        with peer:
            if not peer.recv(16):
                die(
                    " Unable to read from socket/rdma_cm",
                    " Failed to exchange data between server and clients",
                )
            if self.fault == "hang":
                time.sleep(60)
            if self.fault == "late":
                time.sleep(4)
            self.report(target)

    def report(self, target):
        gid = 1 if self.fault == "gid" else int(self.asked.x)
        lines = formats.head(
            self.program,
            release=self.settings.get("release", "4.5"),
            device=self.asked.d,
            qps=int(self.asked.q),
            mtu=int(self.asked.m),
            gid=None if self.asked.R else gid,
            rdma_cm=self.asked.R,
            tos=self.asked.T,
        )
        lines += formats.ends(self.own, self.asked.peer)
        lines += self.bandwidth(target) if self.program.endswith("bw") else self.latency()
        print("\n".join(lines))

    def bandwidth(self, target):
        rate = self.settings["gbps"][target]
        rate = {"negative": -rate, "absurd": rate * 100}.get(self.fault, rate)
        self.json({"BW_average": round(rate, 2)})
        count = int(self.asked.n or 10_000) * int(self.asked.q)
        peak = 0.0 if self.asked.D else rate
        return formats.bandwidth(int(self.asked.s), count, rate, peak=peak)

    def latency(self):
        draw = random.Random(self.host)
        samples = [round(2.5 + draw.expovariate(4), 3) for _ in range(int(self.asked.n) - 1)]
        lines = formats.latency(int(self.asked.s), samples)
        # Five thousand round trips take this long at the least.
        time.sleep(2 * sum(samples) / 1e6)
        return lines

    def json(self, results):
        if self.asked.out_json:
            release = self.settings.get("release", "4.5")
            written = formats.json_report(self.program, results, release=release)
            Path(self.asked.out_json_file).write_text(written)


def main():
    program, *words = sys.argv[1:]
    if words == ["--version"]:
        print("Version: 6.06")
        sys.exit(1)
    if words == ["--help"]:
        print("Usage:\n  -F, --CPU-freq\n      --out_json\n      --out_json_file=<file>\n")
        sys.exit(1)
    StandIn(program, words).run()


main()
