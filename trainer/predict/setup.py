"""What is to be predicted, and what comes out; plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fabric.errors import InputError

Sync = Literal["ring", "ps"]
Transport = Literal["verbs", "tcp"]
Overlap = Literal["timeline", "none", "full"]
Placement = Literal["bytes", "whole", "round-robin"]
HostLink = Literal["pcie", "nvlink"]
Software = Literal["paisoar", "horovod", "horovod-mpi", "tensorflow", "byteps"]

SYNCS: tuple[Sync, ...] = ("ring", "ps")
TRANSPORTS: tuple[Transport, ...] = ("verbs", "tcp")
OVERLAPS: tuple[Overlap, ...] = ("timeline", "none", "full")
WIRE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}


@dataclass(frozen=True)
class Setup:
    """One way to train one model.

    ``software`` is whose exchange it is; ``hierarchical`` adds a host's gradients
    before the ring. ``servers`` 0 is one a host. ``copies`` is how often a host fetches
    and pushes each variable: once for every GPU (0), or once (1). ``placement`` says which
    server holds what: cut and balanced by bytes, balanced but whole, or in turns.
    ``newer_grpc`` is that of the article's TensorFlow, else of 2017's.
    ``pipelined`` lets the stages of one bucket overlap, which our trainer's do not.
    """

    model: str
    step_s: float
    batch: int
    gpus_per_host: int
    sync: Sync = "ring"
    transport: Transport = "verbs"
    software: Software = "paisoar"
    overlap: Overlap = "timeline"
    wire: str = "fp32"
    hierarchical: bool = True
    host_link: HostLink = "pcie"
    servers: int = 0
    copies: int = 0
    placement: Placement = "bytes"
    newer_grpc: bool = True
    pipelined: bool = False

    def __post_init__(self) -> None:
        """InputError, with the option, for what makes no sense."""
        known = {
            "--sync": (self.sync, SYNCS),
            "--transport": (self.transport, TRANSPORTS),
            "--overlap": (self.overlap, OVERLAPS),
            "--wire": (self.wire, tuple(WIRE_BYTES)),
            "--placement": (self.placement, ("bytes", "whole", "round-robin")),
        }
        for option, (value, choices) in known.items():
            if value not in choices:
                raise InputError(f"{option} {value}: not known", advice=f"One of {choices}.")
        for option, count in (("--gpus-per-host", self.gpus_per_host), ("--batch", self.batch)):
            if count < 1:
                raise InputError(f"{option} {count}: 1 or more")
        if self.servers < 0:
            raise InputError(f"--servers {self.servers}: 1 or more, or 0 for one on every host")
        if not 0 < self.step_s < math.inf:
            raise InputError(f"--step-ms {1000 * self.step_s:g}: no time that a step takes")

    def hosts(self, gpus: int) -> tuple[int, int]:
        """How many hosts, and how many GPUs train on each; InputError for uneven ones."""
        if gpus < 1:
            raise InputError(f"--gpus {gpus}: 1 or more")
        if gpus <= self.gpus_per_host:
            return 1, gpus
        if gpus % self.gpus_per_host:
            raise InputError(
                f"--gpus {gpus}: no multiple of {self.gpus_per_host} GPUs a host",
                advice="All hosts train with all their GPUs, or one host with some.",
            )
        return gpus // self.gpus_per_host, self.gpus_per_host


@dataclass(frozen=True, slots=True)
class Prediction:
    """One step of ``gpus`` GPUs, predicted.

    ``exchange_s`` is how long the network or the servers are busy in a step,
    ``exposed_s`` the part of it that computation does not hide.
    """

    model: str
    gpus: int
    hosts: int
    images_per_s: float
    speedup: float
    efficiency: float
    step_s: float
    compute_s: float
    exchange_s: float
    exposed_s: float
    exchanges: int
    bucket_bytes: int
    rate_bps: float
    notes: tuple[str, ...] = ()
