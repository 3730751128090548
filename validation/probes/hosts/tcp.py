"""Plain TCP beside RDMA: iperf3 where both ends have it, else a few lines of Python.

iperf3's JSON: https://software.es.net/iperf/invoking.html, ``end.sum_received``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from fabric.site import Site
from validation.probes.hosts.instrument import ReportError
from validation.probes.hosts.options import Kind
from validation.traffic import Stream

_IPERF3, _PYTHON = "iperf3", "python3"

# Server: counts what comes on one connection until it closes. Client: sends for a while.
_SERVE = """
import json, socket, sys, time
listener = socket.create_server(("", int(sys.argv[1])))
print("Waiting for client", flush=True)
peer, _ = listener.accept()
count = begun = last = 0
while data := peer.recv(1 << 20):
    last = time.monotonic()
    begun = begun or last
    count += len(data)
print(json.dumps({"bytes": count, "seconds": last - begun}))
"""
_SEND = """
import socket, sys, time
address, port, seconds, size, tos = sys.argv[1], *map(int, sys.argv[2:])
peer = socket.create_connection((address, port), timeout=10)
peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
data, until, left = bytes(1 << 16), time.monotonic() + seconds, size
while time.monotonic() < until and (left > 0 or not size):
    peer.sendall(data[:left] if size else data)
    left -= len(data)
peer.close()
"""

# Both ends of a ping-pong: half of each round trip, as perftest counts it.
_ANSWER = """
import socket, sys
port, size = map(int, sys.argv[1:])
listener = socket.create_server(("", port))
print("Waiting for client", flush=True)
peer, _ = listener.accept()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while data := peer.recv(size, socket.MSG_WAITALL):
    peer.sendall(data)
"""
_PING = """
import json, socket, sys, time
address, port, count, size, tos = sys.argv[1], *map(int, sys.argv[2:])
peer = socket.create_connection((address, port), timeout=10)
peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
data, samples, now = bytes(size), [], time.perf_counter_ns
for _ in range(count + 100):
    begun = now()
    peer.sendall(data)
    peer.recv(size, socket.MSG_WAITALL)
    samples.append(now() - begun)
peer.close()
print(json.dumps([round(ns / 2000, 3) for ns in samples[100:]]))
"""


def default_tos(site: Site) -> int:
    """The TOS of traffic that no class claims, as in the simulator: the first free DSCP."""
    taken = {dscp for cls in site.intent.classes.values() for dscp in cls.dscp}
    return next(dscp for dscp in range(64) if dscp not in taken) << 2


def sender(source: Set[str], target: Set[str], kind: Kind = "stream") -> str:
    """The program that both ends have; empty where there is none. Only Python plays ping-pong."""
    able = (_PYTHON,) if kind == "ping" else (_IPERF3, _PYTHON)
    return next((name for name in able if name in source and name in target), "")


def server_words(program: str, port: int) -> tuple[str, ...]:
    """The receiving end, for one connection."""
    if program == _IPERF3:
        return (program, "-s", "-1", "-p", str(port))
    return (program, "-c", _SERVE, str(port))


def client_words(
    program: str, stream: Stream, address: str, port: int, seconds: int, tos: int
) -> tuple[str, ...]:
    """The sending end: as many bytes as are planned, or for some seconds."""
    size = (stream.messages or 0) * stream.message_bytes * stream.qps
    if program == _IPERF3:
        extent = ("-n", str(size)) if size else ("-t", str(seconds))
        words = (program, "-c", address, "-p", str(port), "-J", "-P", str(stream.qps))
        return (*words, "-S", str(tos), *extent)
    return (program, "-c", _SEND, address, str(port), str(seconds), str(size), str(tos))


def answer_words(port: int, stream: Stream) -> tuple[str, ...]:
    """The end of a ping-pong that answers, for one connection."""
    return (_PYTHON, "-c", _ANSWER, str(port), str(stream.message_bytes))


def ping_words(stream: Stream, address: str, port: int, count: int, tos: int) -> tuple[str, ...]:
    """The end of a ping-pong that asks, ``count`` times after a hundred that warm up."""
    return (_PYTHON, "-c", _PING, address, *map(str, (port, count, stream.message_bytes, tos)))


def half_trips_us(client_out: str) -> NDArray[np.float64]:
    """Half round trips of a ping-pong. Raises ReportError where there are none."""
    try:
        samples = np.array(json.loads(client_out.splitlines()[-1]), dtype=np.float64)
    except (ValueError, LookupError, TypeError) as error:
        raise ReportError(f"{_PYTHON} reports no ping-pong ({error})") from error
    if samples.ndim != 1 or not len(samples) or not np.all(samples > 0):
        raise ReportError(f"{_PYTHON} reports no ping-pong that can be")
    return samples


def goodput_bps(program: str, client_out: str, server_out: str) -> float:
    """What the receiver got. Raises ReportError where it does not say."""
    try:
        if program == _IPERF3:
            rate = float(json.loads(client_out)["end"]["sum_received"]["bits_per_second"])
        else:
            counted = json.loads(server_out.splitlines()[-1])
            rate = counted["bytes"] * 8 / counted["seconds"]
    except (ValueError, LookupError, TypeError, ZeroDivisionError) as error:
        raise ReportError(f"{program} reports no bandwidth ({error})") from error
    if not math.isfinite(rate) or rate <= 0:
        raise ReportError(f"{program} reports {rate:g} bit/s")
    return rate
