"""From a port to its queues and ingresses."""

from __future__ import annotations

from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    INGRESS_WORDS,
    PORT_INGRESSES,
    PORT_QUEUES,
    QUEUE_WORDS,
)


@jit
def queue_of(p: int, traffic_class: int) -> int:
    """The egress queue of this traffic class of port ``p``."""
    return p + PORT_QUEUES + QUEUE_WORDS * traffic_class


@jit
def ingress_of(p: int, priority: int) -> int:
    """The receiving side of this priority of port ``p``."""
    return p + PORT_INGRESSES + INGRESS_WORDS * priority
