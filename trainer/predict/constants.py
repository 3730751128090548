"""Every number that the predictor does not compute: its value, and where it is from.

Sourced ones were read somewhere, or follow from a standard. Fitted ones are set by
``trainer.predict.fit`` so that a few published figures come out; ``fitted_on`` names
them, and ``paisoar predict --check`` tests on the others.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Constants:
    """Rates in bytes a second, times in seconds."""

    rdma_hop_s: float = 2.5e-6
    tcp_hop_s: float = 12.5e-6
    host_hop_s: float = 4e-6
    post_s: float = 1.35e-6
    pcie_rate: float = 14.4e9
    memory_rate: float = 7.8e9
    tcp_core_rate: float = 3.17e9
    nvlink_rate: float = 20e9
    rto_s: float = 1.07
    tcp_segment_bytes: float = 8948.0
    nccl_tcp_rate: float = 1.70e9
    mpi_host_rate: float = 1.93e9
    sync_part: float = 0.0397
    nccl_rdma_part: float = 0.841
    grpc_2017_rate: float = 0.770e9
    grpc_2017_call_s: float = 174e-6
    grpc_rate: float = 2.39e9
    grpc_call_s: float = 467e-6
    verbs_call_s: float = 305e-6


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a constant is from. ``fitted_on`` are keys of published figures."""

    what: str
    unit: str
    source: str
    fitted_on: tuple[str, ...] = ()


_ARTICLE = "the PAISoar article"
_MEASURED = "measured for docs/collectives.md and in the trainer's notes, two cores of a VM"
_COLUMNS = ("inception_v3", "vgg16")
_NCCL_RDMA = tuple(f"horovod-16/nccl-rdma/{model}" for model in _COLUMNS)
_PS_2017 = tuple(f"horovod-16/ps/{model}" for model in _COLUMNS)
_PS_ARTICLE = tuple(
    f"article/{ratio}/{model}"
    for ratio in ("rdma-ps-over-grpc-ps", "ring-over-grpc-ps")
    for model in _COLUMNS
)

ORIGINS: dict[str, Origin] = {
    "rdma_hop_s": Origin("one way from host to host, RoCE", "s", f"{_ARTICLE}: 2 to 3 us"),
    "tcp_hop_s": Origin("one way from host to host, TCP", "s", f"{_ARTICLE}: 10 to 15 us"),
    "host_hop_s": Origin(
        "one step between ranks of a host",
        "s",
        "Open MPI's shared memory, 7 to 9 us for the two steps of 4 KiB; " + _MEASURED,
    ),
    "post_s": Origin("post a work request and poll it, Python", "s", "1.2 to 1.5 us; " + _MEASURED),
    "pcie_rate": Origin(
        "PCI Express 3.0 x16, one direction",
        "B/s",
        "8 GT/s, 16 lanes, 128b/130b: 15.75 GB/s; packets of 256 B with 24 B around them",
    ),
    "memory_rate": Origin(
        "ranks of a host combining in its memory, busbw",
        "B/s",
        "64 MiB over shared memory; " + _MEASURED,
    ),
    "tcp_core_rate": Origin(
        "TCP of one rank's communication thread",
        "B/s",
        "16 MiB take 5.3 ms of CPU time; " + _MEASURED,
    ),
    "nvlink_rate": Origin(
        "ring over NVLink 1.0, one link a direction",
        "B/s",
        "NVIDIA, Tesla P100 whitepaper: 20 GB/s a link and direction",
    ),
    "rto_s": Origin(
        "a queue pair's timeout when the last packet of a message is lost",
        "s",
        "the trainer's default timeout 18: 4.096 us * 2**18 (InfiniBand specification)",
    ),
    "tcp_segment_bytes": Origin(
        "payload of a TCP segment", "B", "MTU 9000 of hosts less 40 B of IP and TCP, 12 of options"
    ),
    "nccl_tcp_rate": Origin(
        "NCCL over TCP sockets, a host and direction",
        "B/s",
        "",
        ("horovod-16/nccl-tcp/vgg16",),
    ),
    "mpi_host_rate": Origin(
        "allreduce in host memory by MPI: all gradients of a host, combined and copied",
        "B/s",
        "",
        ("horovod-16/mpi-rdma/vgg16",),
    ),
    "sync_part": Origin(
        "what waiting for the slowest GPU and for negotiation adds to a step of several "
        "processes, as a part of its computation",
        "",
        "",
        _NCCL_RDMA,
    ),
    "nccl_rdma_part": Origin(
        "NCCL over verbs, a host and direction: part of what the fabric gives to the ring",
        "",
        "",
        _NCCL_RDMA,
    ),
    "grpc_2017_rate": Origin(
        "gRPC of TensorFlow in 2017: packing one variable, in one thread",
        "B/s",
        "",
        _PS_2017,
    ),
    "grpc_2017_call_s": Origin(
        "a parameter server's time for one call, gRPC in 2017", "s", "", _PS_2017
    ),
    "grpc_rate": Origin(
        "gRPC of the article's TensorFlow: packing one variable, in one thread",
        "B/s",
        "",
        _PS_ARTICLE,
    ),
    "grpc_call_s": Origin("a parameter server's time for one call, gRPC", "s", "", _PS_ARTICLE),
    "verbs_call_s": Origin("a parameter server's time for one call, verbs", "s", "", _PS_ARTICLE),
}

# What the sources leave open and was chosen with these figures in sight: they test nothing.
CHOICES: dict[str, tuple[str, ...]] = {
    "gRPC packs a variable in one thread, and several variables at once": _PS_2017,
    "the article's hosts fetch each variable once, and its ring overlaps its stages": _PS_ARTICLE,
    "the article's Horovod runs over TCP": tuple(
        f"article/ring-over-horovod/{model}" for model in _COLUMNS
    ),
    "NCCL inside of one TensorFlow process of 2017 does not overlap with computation": (
        "dgx1-8/replicated/vgg16",
    ),
}

FITTED = tuple(field.name for field in fields(Constants) if ORIGINS[field.name].fitted_on)
DEFAULTS = Constants()
