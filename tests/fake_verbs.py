"""A stand-in for pyverbs 44 and its devices: moves real bytes, and refuses every illegal call.

One :class:`FakeFabric` is the network between any number of contexts in this
process. Each queue pair has a thread that carries out what was posted, later
and in order, as a NIC would; so memory that is changed too early travels
changed. What real verbs would answer with an error code or a broken queue
pair raises :class:`Illegal` here, in the caller or (for what happens later) at
``FakeFabric.check``.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import queue
import random
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any

from trainer.collective.transports.verbs_device import Verbs

CONSTANTS = {
    "IBV_QPT_RC": 2,
    "IBV_QPS_RESET": 0,
    "IBV_QPS_INIT": 1,
    "IBV_QPS_RTR": 2,
    "IBV_QPS_RTS": 3,
    "IBV_QPS_ERR": 6,
    "IBV_ACCESS_LOCAL_WRITE": 1,
    "IBV_ACCESS_REMOTE_WRITE": 2,
    "IBV_ACCESS_REMOTE_READ": 4,
    "IBV_WR_RDMA_WRITE": 0,
    "IBV_WR_RDMA_WRITE_WITH_IMM": 1,
    "IBV_WR_SEND": 2,
    "IBV_WR_RDMA_READ": 4,
    "IBV_SEND_SIGNALED": 2,
    "IBV_SEND_INLINE": 8,
    "IBV_WC_SUCCESS": 0,
    "IBV_WC_LOC_PROT_ERR": 4,
    "IBV_WC_WR_FLUSH_ERR": 5,
    "IBV_WC_REM_ACCESS_ERR": 10,
    "IBV_WC_RETRY_EXC_ERR": 12,
    "IBV_WC_RNR_RETRY_EXC_ERR": 13,
    "IBV_WC_SEND": 0,
    "IBV_WC_RDMA_WRITE": 1,
    "IBV_WC_RDMA_READ": 2,
    "IBV_WC_RECV": 128,
    "IBV_WC_RECV_RDMA_WITH_IMM": 129,
    "IBV_MTU_256": 1,
    "IBV_MTU_4096": 5,
    "IBV_PORT_ACTIVE": 4,
    "IBV_PORT_DOWN": 1,
    "IBV_GID_TYPE_ROCE_V1": 1,
    "IBV_GID_TYPE_ROCE_V2": 2,
}
C = SimpleNamespace(**CONSTANTS)


class Illegal(AssertionError):  # noqa: N818
    """A call that real verbs do not allow."""


class PyverbsError(Exception):
    pass


class PyverbsRDMAError(PyverbsError):
    def __init__(self, message: str, error_code: int = -1):
        super().__init__(f"{message}. Errno: {error_code}")
        self.error_code = error_code


class PyverbsUserError(PyverbsError):
    pass


def require(condition: object, rule: str) -> None:
    if not condition:
        raise Illegal(rule)


class FakeFabric:
    """The devices and the network between them. ``slow`` adds random delays to transfers."""

    def __init__(
        self,
        *,
        slow: bool = False,
        memlock_bytes: int | None = None,
        active_mtu: int = 5,
        reuse: bool = False,
    ):
        # Real verbs copy a request when it is posted; the trainer promises more.
        self.reuse = reuse
        self.max_inline = 1 << 10
        self.extended = True
        self.queue_pairs: dict[int, QP] = {}
        self.problems: list[BaseException] = []
        self.receiver_not_ready = 0
        self.chains: list[int] = []
        self.signalled = 0
        self.requests_made = 0
        self.posted = 0
        self.immediates: list[int] = []
        self.routes: list[Any] = []
        self.attributes: list[Any] = []
        self.devices = ["rxe0"]
        self.gids = [
            ("fe80:0000:0000:0000:0000:0000:0000:0001", C.IBV_GID_TYPE_ROCE_V1),
            ("fe80:0000:0000:0000:0000:0000:0000:0001", C.IBV_GID_TYPE_ROCE_V2),
            ("0000:0000:0000:0000:0000:ffff:0a00:0001", C.IBV_GID_TYPE_ROCE_V2),
        ]
        self.port_state = C.IBV_PORT_ACTIVE
        self.active_mtu = active_mtu
        self.memlock_bytes = memlock_bytes
        self.registered_bytes = 0
        self.open_objects = 0
        self.cut = False
        self.no_way = False
        self.exhausted = False
        self._slow = slow
        self._random = random.Random(7)
        self._numbers = itertools.count(100)
        self._keys = itertools.count(0x1000)
        self.lock = threading.RLock()

    def verbs(self) -> Verbs:
        """What ``load_verbs`` would return."""
        names: dict[str, Any] = dict(CONSTANTS)
        for kind in (
            PD, MR, CQ, CQEX, CqInitAttrEx, PollCqAttr, QP, QPCap, QPInitAttr, QPAttr, GID,
            GlobalRoute, AHAttr, SGE, SendWR, RecvWR,
        ):  # fmt: skip
            names[kind.__name__] = kind
        names |= {
            "PyverbsError": PyverbsError,
            "PyverbsRDMAError": PyverbsRDMAError,
            "PyverbsUserError": PyverbsUserError,
            "Context": lambda name: Context(self, name),
            "get_device_list": self._list,
        }
        return Verbs(names)

    def number(self) -> int:
        return next(self._numbers)

    def key(self) -> int:
        return next(self._keys)

    def delay(self) -> None:
        if self._slow and self._random.random() < 0.2:
            time.sleep(self._random.random() * 2e-3)

    def check(self) -> None:
        """Raise what went wrong behind the callers' backs."""
        if self.problems:
            raise self.problems[0]

    def _list(self) -> list[Any]:
        if not self.devices:
            raise PyverbsRDMAError("Failed to get devices list")
        return [SimpleNamespace(name=name.encode()) for name in self.devices]


class _Closes:
    """Counts open objects; closing twice or with children is a leak in the making."""

    def __init__(self, fabric: FakeFabric, parent: _Closes | None):
        self.fabric = fabric
        self.parent = parent
        self.children = 0
        self.closed = False
        with fabric.lock:
            fabric.open_objects += 1
            if parent is not None:
                require(not parent.closed, "made with something that is closed")
                parent.children += 1

    def close(self) -> None:
        with self.fabric.lock:
            if self.closed:
                return
            require(self.children == 0, f"{type(self).__name__} closed before what hangs on it")
            self.closed = True
            self.fabric.open_objects -= 1
            if self.parent is not None:
                self.parent.children -= 1


class Context(_Closes):
    def __init__(self, fabric: FakeFabric, name: str):
        if name not in fabric.devices:
            raise PyverbsUserError(f"Failed to find device {name}")
        super().__init__(fabric, None)
        self.name = name

    def query_port(self, port: int) -> Any:
        if port != 1:
            raise PyverbsRDMAError("Failed to query port", errno.EINVAL)
        return SimpleNamespace(state=self.fabric.port_state, active_mtu=self.fabric.active_mtu)

    def query_gid_table(self, max_entries: int) -> list[Any]:
        return [self.query_gid_ex(1, i) for i in range(min(max_entries, len(self.fabric.gids)))]

    def query_gid_ex(self, port_num: int, gid_index: int) -> Any:
        if gid_index >= len(self.fabric.gids):
            raise PyverbsRDMAError("Failed to query gid table", errno.ENODATA)
        text, kind = self.fabric.gids[gid_index]
        return SimpleNamespace(
            port_num=port_num, gid_index=gid_index, gid_type=kind, gid_str=lambda: text
        )


class PD(_Closes):
    def __init__(self, creator: Context):
        super().__init__(creator.fabric, creator)
        self.regions: dict[int, MR] = {}


class MR(_Closes):
    def __init__(self, creator: PD, length: int, access: int, address: int):
        fabric = creator.fabric
        require(length > 0, "a memory region of no bytes")
        require(
            access & C.IBV_ACCESS_LOCAL_WRITE or not access & C.IBV_ACCESS_REMOTE_WRITE,
            "remote write needs local write",
        )
        limit = fabric.memlock_bytes
        if limit is not None and fabric.registered_bytes + length > limit:
            raise PyverbsRDMAError("Failed to register a MR", errno.ENOMEM)
        super().__init__(fabric, creator)
        self.address, self.length, self.access = address, length, access
        self.lkey, self.rkey = fabric.key(), fabric.key()
        fabric.registered_bytes += length
        creator.regions[self.lkey] = creator.regions[self.rkey] = self

    def close(self) -> None:
        if not self.closed:
            super().close()
            self.fabric.registered_bytes -= self.length
            for key in (self.lkey, self.rkey):
                del self.parent.regions[key]

    def holds(self, address: int, length: int) -> bool:
        return self.address <= address and address + length <= self.address + self.length


class CQ(_Closes):
    def __init__(self, context: Context, cqe: int):
        if context.fabric.exhausted:
            raise PyverbsRDMAError("Failed to create a CQ", errno.ENOMEM)
        super().__init__(context.fabric, context)
        self.cqe = cqe
        self._entries: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def push(self, entry: Any) -> None:
        require(self._entries.qsize() < self.cqe, "the completion queue overflows")
        self._entries.put(entry)

    def poll(self, num_entries: int = 1) -> tuple[int, list[Any] | None]:
        self.fabric.check()
        require(not self.closed, "polling a closed completion queue")
        entries: list[Any] = []
        while len(entries) < num_entries and not self._entries.empty():
            entry = self._entries.get()
            entry.retire()
            entries.append(entry.wc)
        if not entries:
            # Whoever asks again and again lets the devices' threads go on.
            time.sleep(0)
        return len(entries), entries


class CqInitAttrEx:
    def __init__(self, cqe: int = 100, wc_flags: int = 0):
        self.cqe, self.wc_flags = cqe, wc_flags


class PollCqAttr:
    pass


class CQEX(CQ):
    """An extended queue: one completion at a time, from ``start_poll`` to ``end_poll``."""

    def __init__(self, context: Context, init_attr: CqInitAttrEx):
        if not context.fabric.extended:
            raise PyverbsRDMAError("Failed to create extended CQ", errno.EOPNOTSUPP)
        super().__init__(context, init_attr.cqe)
        self._current: Any = None

    def poll(self, num_entries: int = 1) -> tuple[int, list[Any] | None]:
        raise AttributeError("'CQEX' object has no attribute 'poll'")

    def start_poll(self, attr: PollCqAttr) -> int:
        require(isinstance(attr, PollCqAttr), "start_poll takes a PollCqAttr")
        require(self._current is None, "start_poll before end_poll")
        count, entries = super().poll(1)
        if not count:
            return errno.ENOENT
        (self._current,) = entries
        return 0

    @property
    def status(self) -> int:
        require(self._current is not None, "nothing was found that has a status")
        return self._current.status

    def end_poll(self) -> None:
        require(self._current is not None, "end_poll without start_poll")
        self._current = None


class QPCap:
    def __init__(
        self, max_send_wr=1, max_recv_wr=10, max_send_sge=1, max_recv_sge=1, max_inline_data=0
    ):
        self.max_send_wr, self.max_recv_wr = max_send_wr, max_recv_wr
        self.max_send_sge, self.max_recv_sge = max_send_sge, max_recv_sge
        self.max_inline_data = max_inline_data


class QPInitAttr:
    def __init__(self, qp_type, scq, rcq, cap, sq_sig_all):
        self.qp_type, self.scq, self.rcq, self.cap = qp_type, scq, rcq, cap
        self.sq_sig_all = sq_sig_all


_FOR_RTR = ("ah_attr", "path_mtu", "dest_qp_num", "rq_psn", "max_dest_rd_atomic", "min_rnr_timer")
_FOR_RTS = ("sq_psn", "timeout", "retry_cnt", "rnr_retry", "max_rd_atomic")
_KNOWN = {*_FOR_RTR, *_FOR_RTS, "port_num", "qp_access_flags", "pkey_index", "qp_state"}


class QPAttr:
    def __init__(self, port_num: int = 1):
        self.port_num = port_num

    def __setattr__(self, name: str, value: Any) -> None:
        require(name in _KNOWN, f"QPAttr has no {name}")
        object.__setattr__(self, name, value)


class GID:
    def __init__(self, val: str):
        require(len(val.split(":")) == 8, f"{val} is no GID")
        self.gid = val


class GlobalRoute:
    def __init__(self, dgid: GID, sgid_index: int, hop_limit: int, traffic_class: int):
        require(0 <= traffic_class < 256 and 0 < hop_limit < 256, "octets of the IP header")
        self.dgid, self.sgid_index = dgid, sgid_index
        self.hop_limit, self.traffic_class = hop_limit, traffic_class


class AHAttr:
    def __init__(self, gr: GlobalRoute, is_global: int, port_num: int):
        require(is_global == 1, "RoCE needs a global route")
        self.gr, self.port_num = gr, port_num


class SGE:
    def __init__(self, addr: int, length: int, lkey: int):
        self.addr, self.length, self.lkey = addr, length, lkey


class RecvWR:
    def __init__(self, wr_id: int = 0, num_sge: int = 0, sg: list[SGE] | None = None):
        if num_sge < 1 or not sg:
            raise PyverbsUserError("A WR needs at least one SGE")
        self.wr_id, self.sg = wr_id, list(sg[:num_sge])


class SendWR:
    def __init__(self, wr_id=0, opcode=0, num_sge=0, imm_data=0, sg=None, send_flags=0):
        if num_sge < 1 or not sg:
            raise PyverbsUserError("A WR needs at least one SGE")
        self.wr_id, self.opcode, self.imm_data = wr_id, opcode, imm_data
        self.sg = list(sg[:num_sge])
        self.send_flags = send_flags
        self.remote: tuple[int, int] | None = None
        self.in_flight = 0
        # As pyverbs: a raw pointer, which keeps nothing alive.
        self._next: weakref.ref[SendWR] | None = None

    def following(self) -> SendWR | None:
        if self._next is None:
            return None
        following = self._next()
        require(following is not None, "next_wr points to a request that is gone")
        return following

    @property
    def next_wr(self) -> SendWR:
        # pyverbs makes a request of its own without an SGE here, which it refuses.
        raise PyverbsUserError("A WR needs at least one SGE")

    @next_wr.setter
    def next_wr(self, val: SendWR) -> None:
        if not isinstance(val, SendWR):
            raise TypeError("Argument 'val' has incorrect type")
        self._next = weakref.ref(val)

    def set_wr_rdma(self, rkey: int, addr: int) -> None:
        self.remote = (rkey, addr)


_COMPLETES = {
    C.IBV_WR_SEND: C.IBV_WC_SEND,
    C.IBV_WR_RDMA_WRITE: C.IBV_WC_RDMA_WRITE,
    C.IBV_WR_RDMA_WRITE_WITH_IMM: C.IBV_WC_RDMA_WRITE,
    C.IBV_WR_RDMA_READ: C.IBV_WC_RDMA_READ,
}


def _local_access(opcode: int) -> int:
    return C.IBV_ACCESS_LOCAL_WRITE if opcode == C.IBV_WR_RDMA_READ else 0


def _remote_access(opcode: int) -> int:
    read = opcode == C.IBV_WR_RDMA_READ
    return C.IBV_ACCESS_REMOTE_READ if read else C.IBV_ACCESS_REMOTE_WRITE


class _Entry:
    def __init__(self, wc: Any, retire: Any = lambda: None):
        self.wc, self.retire = wc, retire


class QP(_Closes):
    def __init__(self, creator: PD, init_attr: QPInitAttr):
        require(init_attr.qp_type == C.IBV_QPT_RC, "only RC queue pairs write")
        if init_attr.cap.max_inline_data > creator.fabric.max_inline:
            raise PyverbsRDMAError("Failed to create QP", errno.EINVAL)
        super().__init__(creator.fabric, creator)
        for parent in {init_attr.scq, init_attr.rcq}:
            parent.children += 1
        self.pd = creator
        self.init = init_attr
        self.state = C.IBV_QPS_RESET
        self.access = 0
        self.qp_num = self.fabric.number()
        self.received: queue.SimpleQueue[RecvWR] = queue.SimpleQueue()
        self.send_slots = 0
        self._unsignalled = 0
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.fabric.queue_pairs[self.qp_num] = self
        self.peer = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self.closed:
            return
        self._work.put(None)
        self._thread.join()
        super().close()
        for parent in {self.init.scq, self.init.rcq}:
            parent.children -= 1
        del self.fabric.queue_pairs[self.qp_num]

    # -- state transitions (InfiniBand specification, 10.3.1; ibv_modify_qp(3)) --

    def to_init(self, attr: QPAttr) -> None:
        require(self.state == C.IBV_QPS_RESET, "INIT comes after RESET")
        require(attr.port_num == 1, "no such port")
        self.access = getattr(attr, "qp_access_flags", 0)
        self.state = C.IBV_QPS_INIT

    def to_rtr(self, attr: QPAttr) -> None:
        require(self.state == C.IBV_QPS_INIT, "RTR comes after INIT")
        if self.fabric.no_way:
            raise PyverbsRDMAError("Failed to modify QP state to RTR", errno.ENETUNREACH)
        for name in _FOR_RTR:
            require(hasattr(attr, name), f"RTR needs {name}")
        require(C.IBV_MTU_256 <= attr.path_mtu <= self.fabric.active_mtu, "MTU above the port's")
        require(0 <= attr.rq_psn < 1 << 24, "a PSN has 24 bits")
        require(attr.ah_attr.gr.sgid_index < len(self.fabric.gids), "no such GID index")
        self.fabric.routes.append(attr.ah_attr.gr)
        self.rq_psn, self.mtu, self.peer = attr.rq_psn, attr.path_mtu, attr.dest_qp_num
        self.state = C.IBV_QPS_RTR

    def to_rts(self, attr: QPAttr) -> None:
        require(self.state == C.IBV_QPS_RTR, "RTS comes after RTR")
        for name in _FOR_RTS:
            require(hasattr(attr, name), f"RTS needs {name}")
        require(0 <= attr.timeout < 32, "timeout has 5 bits")
        require(0 <= attr.retry_cnt < 8 and 0 <= attr.rnr_retry < 8, "retries have 3 bits")
        self.fabric.attributes.append(attr)
        self.sq_psn = attr.sq_psn
        self.state = C.IBV_QPS_RTS

    # -- posting -----------------------------------------------------------

    def post_recv(self, wr: RecvWR) -> None:
        require(self.state != C.IBV_QPS_RESET, "a receive request before INIT")
        require(len(wr.sg) <= self.init.cap.max_recv_sge, "too many SGEs in a receive request")
        for piece in wr.sg:
            self._local(piece, C.IBV_ACCESS_LOCAL_WRITE)
        require(self.received.qsize() < self.init.cap.max_recv_wr, "the receive queue overflows")
        self.received.put(wr)

    def post_send(self, wr: SendWR) -> None:
        self.fabric.check()
        require(not self.closed, "posting to a closed queue pair")
        if self.state == C.IBV_QPS_ERR:
            return
        require(self.state == C.IBV_QPS_RTS, "posting before RTS")
        length = 0
        request: SendWR | None = wr
        while request is not None:
            self._post(request)
            length += 1
            request = request.following()
        self.fabric.chains.append(length)

    def _post(self, wr: SendWR) -> None:
        fabric = self.fabric
        require(wr.opcode in _COMPLETES, "opcode")
        if wr.opcode != C.IBV_WR_SEND:
            require(wr.remote is not None, "an RDMA request without set_wr_rdma")
        require(len(wr.sg) <= self.init.cap.max_send_sge, "too many SGEs in a send request")
        with fabric.lock:
            require(self.send_slots < self.init.cap.max_send_wr, "the send queue overflows")
            self.send_slots += 1
            fabric.posted += 1
        free = fabric.reuse or wr.in_flight == 0 or wr.send_flags & C.IBV_SEND_INLINE
        require(free, "request in flight reused")
        inline = None
        if wr.send_flags & C.IBV_SEND_INLINE:
            require(wr.opcode != C.IBV_WR_RDMA_READ, "a read has nothing to send inline")
            total = sum(piece.length for piece in wr.sg)
            require(total <= self.init.cap.max_inline_data, "inline data above max_inline_data")
            inline = b"".join(ctypes.string_at(piece.addr, piece.length) for piece in wr.sg)
        else:
            for piece in wr.sg:
                self._local(piece, _local_access(wr.opcode))
        signalled = bool(wr.send_flags & C.IBV_SEND_SIGNALED) or bool(self.init.sq_sig_all)
        with fabric.lock:
            wr.in_flight += 1
            fabric.signalled += signalled
        job = SimpleNamespace(
            wr=wr, inline=inline, signalled=signalled, remote=wr.remote, imm=wr.imm_data,
            opcode=wr.opcode, sg=list(wr.sg), wr_id=wr.wr_id,
        )  # fmt: skip
        self._work.put(job)

    def _local(self, piece: SGE, access: int) -> None:
        region = self.pd.regions.get(piece.lkey)
        require(region is not None and piece.lkey == region.lkey, "no such lkey")
        require(region.holds(piece.addr, piece.length), "an SGE outside of its memory region")
        require(not access or region.access & access, "the memory region does not allow that")

    # -- the device's side -------------------------------------------------

    def _run(self) -> None:
        while (job := self._work.get()) is not None:
            try:
                self._carry_out(job)
            except BaseException as error:
                self.fabric.problems.append(error)

    def _carry_out(self, job: Any) -> None:
        fabric = self.fabric
        fabric.delay()
        status, receiver = C.IBV_WC_SUCCESS, fabric.queue_pairs.get(self.peer)
        if self.state == C.IBV_QPS_ERR:
            status = C.IBV_WC_WR_FLUSH_ERR
        elif fabric.cut or receiver is None or receiver.state < C.IBV_QPS_RTR:
            status = C.IBV_WC_RETRY_EXC_ERR
        else:
            status = self._deliver(job, receiver)
        with fabric.lock:
            job.wr.in_flight -= 1
            self._unsignalled += 1
        if status != C.IBV_WC_SUCCESS:
            self.state = C.IBV_QPS_ERR
        if job.signalled or status != C.IBV_WC_SUCCESS:
            freed, self._unsignalled = self._unsignalled, 0
            wc = SimpleNamespace(
                wr_id=job.wr_id, status=status, opcode=_COMPLETES[job.opcode], qp_num=self.qp_num,
                imm_data=0, byte_len=0,
            )  # fmt: skip
            self.init.scq.push(_Entry(wc, lambda: self._free_slots(freed)))

    def _free_slots(self, count: int) -> None:
        with self.fabric.lock:
            self.send_slots -= count

    def _deliver(self, job: Any, receiver: QP) -> int:
        fabric = self.fabric
        require(receiver.peer == self.qp_num, "the peer is connected to another queue pair")
        require(receiver.rq_psn == self.sq_psn, "the packet sequence numbers do not fit")
        require(receiver.mtu == self.mtu, "the two ends have different MTUs")
        data = job.inline
        if data is None:
            for piece in job.sg:
                self._local(piece, 0)
            data = b"".join(ctypes.string_at(piece.addr, piece.length) for piece in job.sg)
        if job.opcode == C.IBV_WR_SEND:
            return self._send(data, receiver)
        rkey, address = job.remote
        access = _remote_access(job.opcode)
        region = receiver.pd.regions.get(rkey)
        if (
            region is None
            or rkey != region.rkey
            or not region.holds(address, len(data))
            or not region.access & access
            or not receiver.access & access
        ):
            return int(C.IBV_WC_REM_ACCESS_ERR)
        if job.opcode == C.IBV_WR_RDMA_READ:
            at = address
            for piece in job.sg:
                ctypes.memmove(piece.addr, at, piece.length)
                at += piece.length
            return int(C.IBV_WC_SUCCESS)
        if job.opcode == C.IBV_WR_RDMA_WRITE_WITH_IMM and not self._awaited(receiver):
            return int(C.IBV_WC_RNR_RETRY_EXC_ERR)
        half = len(data) // 2
        ctypes.memmove(address, data[:half], half)
        fabric.delay()
        ctypes.memmove(address + half, data[half:], len(data) - half)
        if job.opcode == C.IBV_WR_RDMA_WRITE_WITH_IMM:
            receiver.received.get()
            fabric.immediates.append(job.imm)
            wc = SimpleNamespace(
                wr_id=0, status=C.IBV_WC_SUCCESS, opcode=C.IBV_WC_RECV_RDMA_WITH_IMM,
                qp_num=receiver.qp_num, imm_data=job.imm, byte_len=len(data),
            )  # fmt: skip
            receiver.init.rcq.push(_Entry(wc))
        return int(C.IBV_WC_SUCCESS)

    def _awaited(self, receiver: QP) -> bool:
        """Whether the receiver has a receive request, or posts one soon."""
        if not receiver.received.empty():
            return True
        self.fabric.receiver_not_ready += 1
        deadline = time.monotonic() + 1.0
        while receiver.received.empty():
            if time.monotonic() > deadline:
                return False
            time.sleep(1e-4)
        return True

    def _send(self, data: bytes, receiver: QP) -> int:
        if not self._awaited(receiver):
            return int(C.IBV_WC_RNR_RETRY_EXC_ERR)
        request = receiver.received.get()
        room = sum(piece.length for piece in request.sg)
        require(room >= len(data), "a message longer than its receive request")
        at = 0
        for piece in request.sg:
            part = data[at : at + piece.length]
            ctypes.memmove(piece.addr, part, len(part))
            at += len(part)
        wc = SimpleNamespace(
            wr_id=request.wr_id, status=C.IBV_WC_SUCCESS, opcode=C.IBV_WC_RECV,
            qp_num=receiver.qp_num, imm_data=0, byte_len=len(data),
        )  # fmt: skip
        receiver.init.rcq.push(_Entry(wc))
        return int(C.IBV_WC_SUCCESS)
