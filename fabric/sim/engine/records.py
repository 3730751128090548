"""From a port to its queues and ingresses, and from words to floats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    INGRESS_WORDS,
    PORT_INGRESSES,
    PORT_QUEUES,
    QUEUE_WORDS,
    Memory,
)


@jit
def queue_of(p: int, traffic_class: int) -> int:
    """The egress queue of this traffic class of port ``p``."""
    return p + PORT_QUEUES + QUEUE_WORDS * traffic_class


@jit
def ingress_of(p: int, priority: int) -> int:
    """The receiving side of this priority of port ``p``."""
    return p + PORT_INGRESSES + INGRESS_WORDS * priority


@jit
def floats(m: Memory) -> NDArray[np.float64]:
    """The same memory as float words, for the fields called ``RATE_...``."""
    return m.view(np.float64)
