"""Latency and bandwidth of one pair by pyverbs; sent to hosts as it is, by itself.

    python3 verbs.py VERB KIND -d DEVICE -x GID_INDEX -m MTU -p PORT -s BYTES -q QPS
        (-n COUNT | -D SECONDS -f MARGIN) [-r RATE] [--tclass TOS] [--peer PEER]

-r sends one message at a time on each queue pair, RATE a second. VERB is send, write or read,
KIND ping or stream. Without --peer it waits for one on TCP port PORT, over which both ends
tell each other where they are. The client ends with one line of JSON: every half round trip
(read: the whole one) in us, or the goodput. It needs Python 3.8 and the distribution's
pyverbs, nothing else. Queue pairs are RC, as perftest's; the states they go through and what
each needs: ibv_modify_qp(3).
"""

# ruff: noqa: ANN401 (pyverbs has no types)

from __future__ import annotations

import argparse
import ctypes
import errno
import functools
import importlib
import json
import math
import mmap
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

MODULES = ("addr", "cq", "device", "mr", "pd", "qp", "wr", "pyverbs_error")
DEPTH = 128
# Requests that one doorbell rings for; the last of them is signalled.
CHAIN = 16
INLINE_BYTES = 64
MTUS = (256, 512, 1024, 2048, 4096)
# 4.096 us * 2**18 = 1.07 s, six times (ibv_modify_qp(3)): emulated hosts answer late, and
# what is sent again although it is under way breaks more than it mends.
# Not 7 times: Soft-RoCE would try for ever (Linux drivers/infiniband/sw/rxe/rxe_comp.c).
TIMEOUT, RETRIES, FOR_EVER = 18, 6, 7
SPINS = 20000
# What a look at an extended queue gives where there is no completion (ibv_start_poll(3)).
NONE = errno.ENOENT
HELLO_S = 60.0


class Failed(Exception):  # noqa: N818 (it is what came out, as often as not the peer's)
    """Why there is no result."""


def load() -> dict[str, Any]:
    """Pyverbs' classes and constants as one mapping; constants have moved between releases."""
    names = {}
    for module in MODULES:
        names.update(vars(importlib.import_module("pyverbs." + module)))
    try:
        names.update(vars(importlib.import_module("pyverbs.enums")))
    except ImportError:
        names.update(vars(importlib.import_module("pyverbs.libibverbs_enums")))
    return names


class Line:
    """JSON lines over TCP between the two ends."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(HELLO_S)

    def tell(self, value: object) -> None:
        """Send one value."""
        self.sock.sendall((json.dumps(value) + "\n").encode())

    def hear(self) -> Any:
        """The next value. Failed where the peer is gone."""
        text = b""
        # No byte more than the line: what follows is looked for while traffic flows.
        while not text.endswith(b"\n"):
            try:
                byte = self.sock.recv(1)
            except ConnectionError as error:
                raise Failed("the other end broke off") from error
            except OSError as error:
                raise Failed(f"the other end says nothing: {error}") from error
            if not byte:
                raise Failed("the other end broke off")
            text += byte
        return json.loads(text.decode())

    def swap(self, value: object) -> Any:
        """Send one value and get the peer's."""
        self.tell(value)
        return self.hear()

    def gone(self) -> bool:
        """Whether the peer has closed the connection."""
        self.sock.setblocking(False)
        try:
            return self.sock.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.sock.settimeout(HELLO_S)

    def close(self) -> None:
        """End it."""
        self.sock.close()


def meet(asked: argparse.Namespace) -> Line:
    """The connection to the other end."""
    if asked.peer:
        until = time.monotonic() + HELLO_S
        while True:
            try:
                return Line(socket.create_connection((asked.peer, asked.port), 10))
            except OSError as error:
                if time.monotonic() > until:
                    raise Failed(
                        f"Couldn't connect to {asked.peer}:{asked.port}: {error}"
                    ) from error
                time.sleep(0.2)
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        listener = socket.create_server(("", asked.port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise Failed(f"Couldn't listen to port {asked.port}: {error}") from error
    print("Waiting for client", flush=True)
    peer, _ = listener.accept()
    listener.close()
    return Line(peer)


class Buffer:
    """Registered memory: whole pages of our own."""

    def __init__(self, end: End, length: int) -> None:
        verbs = end.verbs
        self.map = mmap.mmap(-1, max(mmap.PAGESIZE, length))
        self.view = memoryview(self.map)
        self.address = address_of(self.map)
        access = (
            verbs.IBV_ACCESS_LOCAL_WRITE
            | verbs.IBV_ACCESS_REMOTE_WRITE
            | verbs.IBV_ACCESS_REMOTE_READ
        )
        try:
            self.region = verbs.MR(end.pd, len(self.map), access, address=self.address)
        except verbs.PyverbsError as error:
            raise Failed(f"Couldn't allocate MR of {len(self.map)} bytes: {error}") from error


def address_of(mapped: mmap.mmap) -> int:
    """Where a mapping lies in memory."""
    anchor = ctypes.c_char.from_buffer(mapped)
    return ctypes.addressof(anchor)


class Bell:
    """A completion queue that is looked at for one completion, as fast as Python can.

    It is an extended one (ibv_create_cq_ex(3)), of which no more than a completion's status
    is read: the object that pyverbs otherwise makes of each takes longer than a message on a
    fast wire.
    """

    def __init__(self, verbs: Any, context: Any, depth: int) -> None:
        self.queue = verbs.CQEX(context, verbs.CqInitAttrEx(cqe=depth, wc_flags=0))
        # NONE, or else there is something to take.
        self.look: Callable[[], int] = functools.partial(self.queue.start_poll, verbs.PollCqAttr())

    def take(self, code: int) -> int:
        """The status of the completion that a look has found which gave ``code``."""
        if code:
            raise Failed(f"Failed to poll the completion queue: {os.strerror(code)}")
        status = int(self.queue.status)
        self.queue.end_poll()
        return status

    def poll(self, _most: int) -> tuple[int, list[Any]]:
        """As a plain queue's, of one at most."""
        code = self.look()
        return (0, []) if code == NONE else (1, [SimpleNamespace(status=self.take(code))])

    def close(self) -> None:
        """Give the queue back."""
        self.queue.close()


class PlainBell(Bell):
    """The same of a plain queue, for devices without extended ones."""

    def __init__(self, verbs: Any, context: Any, depth: int) -> None:
        self.queue = verbs.CQ(context, depth)
        self.look = self._look

    def _look(self) -> int:
        count, self._found = self.queue.poll(1)
        return 0 if count else NONE

    def take(self, _code: int) -> int:
        """As above."""
        return int(self._found[0].status)


def bell(verbs: Any, context: Any, depth: int) -> Bell:
    """The faster one that the device can have."""
    try:
        return Bell(verbs, context, depth)
    except verbs.PyverbsError:
        return PlainBell(verbs, context, depth)


class End:
    """One end of the pair: its device, its queue pairs, connected to the peer's."""

    def __init__(self, verbs: Any, asked: argparse.Namespace, line: Line) -> None:
        self.verbs, self.asked, self.line = verbs, asked, line
        # Completions of our requests that came while something else was waited for.
        self.seen: list[Any] = []
        self.glances = 0

    def open(self) -> None:
        """Open the device and connect. Failed says what cannot be had."""
        self._open_device()
        size = self.asked.bytes * (self.asked.qps if self.asked.kind == "stream" else 1)
        self.sent, self.inbox = Buffer(self, size), Buffer(self, size)
        self._queues()
        self._connect()

    def _open_device(self) -> None:
        verbs, asked = self.verbs, self.asked
        names = [str(getattr(d.name, "decode", lambda d=d: d.name)()) for d in devices(verbs)]
        if asked.device not in names:
            raise Failed(f"IB device {asked.device} not found, only {names or 'none'}")
        try:
            self.context = verbs.Context(name=asked.device)
            self.pd = verbs.PD(self.context)
            port = self.context.query_port(1)
        except verbs.PyverbsError as error:
            raise Failed(f"Couldn't get context for the device: {error}") from error
        if port.state != verbs.IBV_PORT_ACTIVE:
            raise Failed(f"port 1 is not ACTIVE (state {port.state})")
        active = MTUS[port.active_mtu - verbs.IBV_MTU_256]
        if active < asked.mtu:
            raise Failed(f"Requested mtu is higher than active mtu: {asked.mtu} of {active}")
        try:
            entry = self.context.query_gid_ex(1, asked.gid_index)
        except verbs.PyverbsError as error:
            raise Failed(f"Failed to get GID {asked.gid_index}: {error}") from error
        if entry.gid_type != verbs.IBV_GID_TYPE_ROCE_V2:
            raise Failed(f"Failed to get GID {asked.gid_index}: it is not RoCE v2")
        self.gid = entry.gid_str()

    def _queues(self) -> None:
        verbs, asked = self.verbs, self.asked
        self.inline = INLINE_BYTES
        depth = DEPTH * asked.qps
        try:
            queue = functools.partial(bell, verbs) if asked.kind == "ping" else verbs.CQ
            self.send_queue = queue(self.context, depth)
            self.receive_queue = queue(self.context, 2 * depth)
            self.pairs = [self._pair(verbs) for _ in range(asked.qps)]
        except verbs.PyverbsError as error:
            raise Failed(f"Couldn't create queue pairs: {error}") from error
        self.place = {pair.qp_num: number for number, pair in enumerate(self.pairs)}

    def _pair(self, verbs: Any) -> Any:
        try:
            return self._pair_with(verbs, INLINE_BYTES)
        except verbs.PyverbsError:
            # Some NICs send less inline, and are asked for none then.
            self.inline = 0
            return self._pair_with(verbs, 0)

    def _pair_with(self, verbs: Any, inline: int) -> Any:
        capacity = verbs.QPCap(
            max_send_wr=DEPTH,
            max_recv_wr=2 * DEPTH,
            max_send_sge=1,
            max_recv_sge=1,
            max_inline_data=inline,
        )
        attributes = verbs.QPInitAttr(
            qp_type=verbs.IBV_QPT_RC,
            scq=getattr(self.send_queue, "queue", self.send_queue),
            rcq=getattr(self.receive_queue, "queue", self.receive_queue),
            cap=capacity,
            sq_sig_all=0,
        )
        pair = verbs.QP(self.pd, attributes)
        initial = verbs.QPAttr(port_num=1)
        initial.qp_access_flags = verbs.IBV_ACCESS_REMOTE_WRITE | verbs.IBV_ACCESS_REMOTE_READ
        pair.to_init(initial)
        return pair

    def _connect(self) -> None:
        asked = self.asked
        self.psn = secrets.randbelow(1 << 24)
        mine = {
            "test": [asked.verb, asked.kind, asked.bytes, asked.qps, asked.mtu],
            "gid": self.gid,
            "psn": self.psn,
            "pairs": [pair.qp_num for pair in self.pairs],
            "inbox": [self.inbox.address, self.inbox.region.rkey],
        }
        self.peer = self.line.swap(mine)
        if self.peer["test"] != mine["test"]:
            raise Failed("the other end runs {}, not {}".format(self.peer["test"], mine["test"]))
        if asked.verb == "send":
            for pair in range(asked.qps):
                self.receive(pair, 2 * DEPTH)
        for number, pair in enumerate(self.pairs):
            try:
                self._ready(pair, self.peer["pairs"][number])
            except self.verbs.PyverbsError as error:
                raise Failed(
                    "Failed to modify QP to reach {}: {}".format(self.peer["gid"], error)
                ) from error
        self.line.swap("ready")

    def _ready(self, pair: Any, number: int) -> None:
        verbs, asked = self.verbs, self.asked
        route = verbs.GlobalRoute(
            dgid=verbs.GID(self.peer["gid"]),
            sgid_index=asked.gid_index,
            hop_limit=64,
            traffic_class=asked.tclass,
        )
        attributes = verbs.QPAttr(port_num=1)
        attributes.ah_attr = verbs.AHAttr(gr=route, is_global=1, port_num=1)
        attributes.path_mtu = verbs.IBV_MTU_256 + MTUS.index(asked.mtu)
        attributes.dest_qp_num = number
        attributes.rq_psn = self.peer["psn"]
        attributes.max_dest_rd_atomic = 1
        attributes.min_rnr_timer = 12
        pair.to_rtr(attributes)
        attributes.sq_psn = self.psn
        attributes.timeout = TIMEOUT
        attributes.retry_cnt = RETRIES
        attributes.rnr_retry = FOR_EVER
        attributes.max_rd_atomic = 1
        pair.to_rts(attributes)

    def receive(self, pair: int, count: int = 1) -> None:
        """Post receive requests of a queue pair."""
        verbs, size = self.verbs, self.asked.bytes
        if not hasattr(self, "_receives"):
            self._receives = [
                verbs.RecvWR(
                    num_sge=1,
                    sg=[verbs.SGE(self.inbox.address + n * size, size, self.inbox.region.lkey)],
                )
                for n in range(self.asked.qps)
            ]
        for _ in range(count):
            self.pairs[pair].post_recv(self._receives[pair])

    def request(self, pair: int, signalled: bool) -> Any:
        """One send request of the test's verb, over the pair's part of the memory."""
        verbs, asked = self.verbs, self.asked
        opcode = {
            "send": verbs.IBV_WR_SEND,
            "write": verbs.IBV_WR_RDMA_WRITE,
            "read": verbs.IBV_WR_RDMA_READ,
        }[asked.verb]
        flags = verbs.IBV_SEND_SIGNALED if signalled else 0
        if asked.bytes <= self.inline and asked.verb != "read":
            flags |= verbs.IBV_SEND_INLINE
        at = pair * asked.bytes
        piece = verbs.SGE(self.sent.address + at, asked.bytes, self.sent.region.lkey)
        made = verbs.SendWR(wr_id=pair, opcode=opcode, num_sge=1, sg=[piece], send_flags=flags)
        if asked.verb != "send":
            address, key = self.peer["inbox"]
            made.set_wr_rdma(key, address + at)
        return made

    def poll(self, queue: Any, most: int = CHAIN) -> Sequence[Any]:
        """Completions that are there. Failed where one is an error."""
        count, completions = queue.poll(most)
        for completion in completions or ():
            self.refuse(completion.status)
        return completions[:count] if count else ()

    def refuse(self, status: int) -> None:
        """Failed where a completion's status is an error."""
        if status != self.verbs.IBV_WC_SUCCESS:
            raise Failed(
                "Completion with error: Failed status {} towards {}".format(
                    int(status), self.peer["gid"]
                )
            )

    def wait(self, queue: Any) -> Sequence[Any]:
        """The next completions; Failed where the peer has gone."""
        spins = 0
        while True:
            if queue is self.send_queue and self.seen:
                seen, self.seen = self.seen, []
                return seen
            found = self.poll(queue)
            if found:
                return found
            spins += 1
            if spins % SPINS == 0:
                self.look()

    def glance(self, queue: Any) -> Sequence[Any]:
        """Completions that are there, of a queue that is asked often; Failed as by wait."""
        self.glances += 1
        if self.glances % SPINS == 0:
            self.look()
        if self.seen:
            seen, self.seen = self.seen, []
            return seen
        return self.poll(queue)

    def look(self) -> None:
        """Failed where the peer has gone, or a request of ours has failed."""
        self.seen += self.poll(self.send_queue)
        if self.line.gone():
            raise Failed("the other end broke off")

    def close(self) -> None:
        """Give everything back, in the order in which it hangs together."""
        for pair in getattr(self, "pairs", ()):
            pair.close()
        for name in ("send_queue", "receive_queue"):
            if hasattr(self, name):
                getattr(self, name).close()
        for name in ("sent", "inbox"):
            if hasattr(getattr(self, name, None), "region"):
                getattr(self, name).region.close()
        for name in ("pd", "context"):
            if hasattr(self, name):
                getattr(self, name).close()


def devices(verbs: Any) -> Sequence[Any]:
    """All verbs devices; none where pyverbs raises for it."""
    try:
        return list(verbs.get_device_list())
    except verbs.PyverbsError:
        return []


def ping(end: End, client: bool) -> list[int]:
    """Times of round trips in ns; the server's are not of interest."""
    verb, count = end.asked.verb, end.asked.count
    if verb == "read":
        return read_times(end, count) if client else []
    exchange = {"send": send_once, "write": write_once}[verb]
    # Every 64th is signalled, which frees the queue of all before it.
    plain, signalled = end.request(0, False), end.request(0, True)
    clock, times = time.perf_counter_ns, []
    began = clock()
    for number in range(1, count + 1):
        exchange(end, client, number, signalled if number % 64 == 0 else plain)
        now = clock()
        times.append(now - began)
        began = now
    return times


def send_once(end: End, client: bool, number: int, request: Any) -> None:
    """One message there and one back; its receive request is renewed while one is under way."""
    pair = end.pairs[0]
    if client:
        pair.post_send(request)
        if number > 1:
            end.receive(0)
        heard(end, end.receive_queue)
    else:
        heard(end, end.receive_queue)
        pair.post_send(request)
        end.receive(0)
    if number % 64 == 0:
        heard(end, end.send_queue)


def heard(end: End, queue: Bell) -> None:
    """Wait for one completion. Few instructions a look: what they take is measured too."""
    look = queue.look
    while True:
        if queue is end.send_queue and end.seen:
            end.seen.pop()
            return
        for _ in range(SPINS):
            code = look()
            if code != NONE:
                end.refuse(queue.take(code))
                return
        end.look()


def write_once(end: End, client: bool, number: int, request: Any) -> None:
    """The last byte of the peer's memory, then of ours, becomes the number's."""
    pair, last, view = end.pairs[0], end.asked.bytes - 1, end.inbox.view
    wanted = number % 255 + 1
    if client:
        end.sent.view[last] = wanted
        pair.post_send(request)
    while True:
        for _ in range(SPINS):
            if view[last] == wanted:
                break
        else:
            end.look()
            continue
        break
    if not client:
        end.sent.view[last] = wanted
        pair.post_send(request)
    if number % 64 == 0:
        heard(end, end.send_queue)


def read_times(end: End, count: int) -> list[int]:
    """Times of reads in ns: there and back."""
    request, times = end.request(0, True), []
    clock = time.perf_counter_ns
    for _ in range(count):
        began = clock()
        end.pairs[0].post_send(request)
        heard(end, end.send_queue)
        times.append(clock() - began)
    return times


class Chains:
    """Requests of one queue pair, linked in CHAINs; pyverbs links raw pointers, so all are held."""

    def __init__(self, end: End, pair: int) -> None:
        self.full = self._linked(end, pair, CHAIN)
        self.single = self._linked(end, pair, 1)

    @staticmethod
    def _linked(end: End, pair: int, length: int) -> list[Any]:
        made = [end.request(pair, number == length - 1) for number in range(length)]
        for request, following in zip(made, made[1:]):  # noqa: B905, RUF007 (Python 3.8)
            request.next_wr = following
        return made

    def post(self, pair: Any, most: float) -> int:
        """Post a chain of so many at most; how many were."""
        chain = self.full if most >= CHAIN else self.single
        pair.post_send(chain[0])
        return len(chain)


class Window:
    """What was completed between two moments; all of it where there are none."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.began = time.monotonic()
        self.timed = asked.seconds is not None
        self.opens = self.began + (asked.margin if self.timed else 0.0)
        self.closes = self.began + asked.seconds - asked.margin if self.timed else math.inf
        self.ends = self.began + asked.seconds if self.timed else math.inf
        self.first = None if self.timed else (self.began, 0)
        self.last = self.first

    def note(self, done: int) -> None:
        """So many messages are complete by now."""
        now = time.monotonic()
        if self.first is None and now >= self.opens:
            self.first = (now, done)
        elif self.first is not None and now <= self.closes:
            self.last = (now, done)

    def rate(self, size: int) -> tuple[float, float]:
        """Messages of so many bytes in the window, as bit/s and the window's seconds."""
        if self.first is None or self.last is None or self.last[0] <= self.first[0]:
            raise Failed("nothing was completed in the time that is measured")
        seconds = self.last[0] - self.first[0]
        return (self.last[1] - self.first[1]) * size * 8 / seconds, seconds


def stream(end: End) -> tuple[int, float, float]:
    """Send until all messages, or the time, are over; what was complete, rate and window."""
    asked = end.asked
    chains = [Chains(end, number) for number in range(asked.qps)]
    left = [asked.count if asked.seconds is None else math.inf] * asked.qps
    # Lengths of chains under way, by queue pair: a completion is of the oldest.
    flying: list[list[int]] = [[] for _ in chains]
    window, done = Window(asked), 0
    gap = 1 / asked.rate if asked.rate else 0.0
    due = [window.began] * asked.qps
    while True:
        now = time.monotonic()
        over = now >= window.ends
        for number, pair in enumerate(end.pairs):
            while not over and left[number] > 0 and now >= due[number]:
                if sum(flying[number]) + CHAIN > DEPTH:
                    break
                posted = chains[number].post(pair, 1 if gap else left[number])
                left[number] -= posted
                flying[number].append(posted)
                # One that is late is followed at once by no more than the next.
                due[number] = max(due[number] + gap, now)
                now = time.monotonic() if gap else now
        idle = not any(flying)
        if idle and (over or not any(left)):
            break
        for completion in end.glance(end.send_queue) if gap else end.wait(end.send_queue):
            done += flying[end.place[completion.qp_num]].pop(0)
        window.note(done)
    rate, seconds = window.rate(asked.bytes)
    return done, rate, seconds


def take(end: End) -> None:
    """The receiver's part of a stream: sends use up receive requests, writes nothing."""
    spins = 0
    while True:
        if end.asked.verb == "send":
            for completion in end.poll(end.receive_queue):
                end.receive(end.place[completion.qp_num])
        else:
            time.sleep(0.05)
        spins += 1
        if end.asked.verb != "send" or spins % SPINS == 0:
            end.line.sock.settimeout(0.0)
            try:
                end.line.sock.recv(1, socket.MSG_PEEK)
                return
            except BlockingIOError:
                continue
            finally:
                end.line.sock.settimeout(HELLO_S)


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Of numbers: the least of which so many percent are no greater."""
    ordered = sorted(times)
    return {
        str(p): ordered[max(0, math.ceil(len(ordered) * p / 100) - 1)]
        for p in (50, 90, 99, 99.9, 100)
    }


def carry(end: End) -> dict[str, Any] | None:
    """Run the test; the client's report, nothing of the server."""
    asked = end.asked
    client = bool(asked.peer)
    report = {
        "verb": asked.verb,
        "kind": asked.kind,
        "device": asked.device,
        "gid_index": asked.gid_index,
        "local_gid": end.gid,
        "remote_gid": end.peer["gid"],
        "mtu": asked.mtu,
        "bytes": asked.bytes,
        "qps": asked.qps,
    }
    if asked.kind == "ping":
        times = ping(end, client)
        if client:
            halves = [t / 1000 if asked.verb == "read" else t / 2000 for t in times]
            report.update(completed=len(halves), percentiles_us=percentiles(halves))
            report["samples_us"] = halves
        elif asked.verb == "read":
            end.line.sock.settimeout(None)
    elif client:
        done, rate, seconds = stream(end)
        report.update(completed=done, goodput_bps=rate, window_s=seconds)
    else:
        take(end)
    end.line.swap("done")
    return report if client else None


def between(least: int, most: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number from ``least`` to ``most``."""

    def whole(text: str) -> int:
        number = int(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text} is not from {least} to {most}")
        return number

    return whole


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="verbs.py")
    parser.add_argument("verb", choices=("send", "write", "read"))
    parser.add_argument("kind", choices=("ping", "stream"))
    parser.add_argument("-d", dest="device", required=True)
    parser.add_argument("-x", dest="gid_index", type=between(0, 65535), required=True)
    parser.add_argument("-m", dest="mtu", type=int, choices=MTUS, required=True)
    parser.add_argument("-p", dest="port", type=between(1, 65535), required=True)
    parser.add_argument("-s", dest="bytes", type=between(1, 1 << 30), required=True)
    parser.add_argument("-q", dest="qps", type=between(1, 16384), default=1)
    parser.add_argument("-n", dest="count", type=between(1, 1 << 31))
    parser.add_argument("-D", dest="seconds", type=float)
    parser.add_argument("-f", dest="margin", type=float, default=0.0)
    parser.add_argument("-r", dest="rate", type=float, default=0.0)
    parser.add_argument("--tclass", type=between(0, 255), default=0)
    parser.add_argument("--peer", default="")
    asked = parser.parse_args(words)
    if (asked.count is None) == (asked.seconds is None):
        parser.error("one of -n and -D is needed")
    if asked.kind == "ping" and asked.count is None:
        parser.error("a ping needs -n")
    return asked


def run(verbs: Any, words: Sequence[str]) -> dict[str, Any] | None:
    """One end's test, on these verbs; the client's report."""
    asked = arguments(words)
    line = meet(asked)
    end = End(verbs, asked, line)
    try:
        end.open()
        return carry(end)
    finally:
        end.close()
        line.close()


def main() -> int:
    """Print the report, or why there is none on stderr."""
    try:
        verbs: Any = SimpleNamespace(**load())
    except ImportError as error:
        print(f"pyverbs cannot be loaded: {error}", file=sys.stderr)
        return 1
    try:
        report = run(verbs, sys.argv[1:])
    except (Failed, verbs.PyverbsError, ValueError) as error:
        print(f"verbs: {error}", file=sys.stderr)
        return 1
    if report is not None:
        print(json.dumps(report))
    return 0


if __name__ == "__main__":
    # Whatever pyverbs would still take apart at exit is closed already.
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
