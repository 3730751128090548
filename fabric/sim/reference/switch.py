"""Switches: shared buffer, PFC, ECN marking and queues, as in the reference's MMU.

Two queues a port: queue 0 (pause frames, and ACKs where they go first) is
served strictly first and counts nowhere; queue 3 has data and ACKs.
"""

from __future__ import annotations

from fabric.sim.reference.columns import (
    ACK_FIRST,
    AT,
    BUSY,
    CE,
    DATA,
    DATA_HOPS,
    DELAY,
    DEPTH,
    DROPS,
    ECN,
    FREE,
    FREE_COUNT,
    HEADROOM,
    HEADROOM_USED,
    INFO,
    INGRESS,
    KIND_MASK,
    KMAX,
    KMIN,
    MARKS,
    NEXT,
    NONE,
    PAUSE,
    PAUSED,
    PAUSING,
    PEER,
    Q0_HEAD,
    Q3_HEAD,
    RESERVE,
    RESUME,
    RESUME_OFFSET,
    SHIFT,
    SIZE_MASK,
    SIZE_SHIFT,
    SWITCH,
    TX_NODE,
    TX_SINCE,
    TX_TIMES,
    Memory,
)
from fabric.sim.reference.jit import inline, outline
from fabric.sim.reference.randoms import skip, uniform
from fabric.sim.reference.wheel import put_near

PAUSE_BYTES = 43


@inline
def append(m: Memory, p: int, head: int, node: int) -> None:
    """Put a packet at the end of the queue whose head is in column ``head``."""
    m.nodes[node + NEXT] = NONE
    if m.ports[p + head] < 0:
        m.ports[p + head] = node
    else:
        m.nodes[m.ports[p + head + 1] + NEXT] = node
    m.ports[p + head + 1] = node


@inline
def start(m: Memory, p: int, node: int, size: int, now: int) -> None:
    """Send a packet: the port is busy until it has left, and it arrives a delay later."""
    m.ports[p + BUSY] = 1
    m.ports[p + TX_SINCE] = now
    sent = now + m.tx_times[m.ports[p + TX_TIMES] + size]
    put_near(m, m.ports[p + TX_NODE], sent)
    put_near(m, node, sent + m.ports[p + DELAY])


@inline
def take(m: Memory) -> int:
    """A node for a packet; the event loop keeps enough of them."""
    node: int = m.settings[FREE]
    m.settings[FREE] = m.nodes[node + NEXT]
    m.settings[FREE_COUNT] -= 1
    return node


@inline
def give(m: Memory, node: int) -> None:
    """Give a packet's node back."""
    m.nodes[node + NEXT] = m.settings[FREE]
    m.settings[FREE] = node
    m.settings[FREE_COUNT] += 1


@outline
def signal(m: Memory, ingress: int, kind: int, now: int) -> None:
    """Send a pause or resume frame out of this port, ahead of all but what is being sent."""
    skip(m.random)  # the reference numbers its frames at random
    node = take(m)
    m.nodes[node + INFO] = kind | PAUSE_BYTES << SIZE_SHIFT
    m.nodes[node + AT] = m.ports[ingress + PEER]
    m.ports[ingress + PAUSING] = 1 if kind == PAUSE else 0
    if m.ports[ingress + BUSY]:
        append(m, ingress, Q0_HEAD, node)
    else:
        start(m, ingress, node, PAUSE_BYTES, now)


@inline
def enter(m: Memory, node: int, info: int, now: int) -> int:
    """A packet has arrived at a switch; returns the port that it waits at, or NONE."""
    at = m.nodes[node + AT]
    p: int = m.hops[at]
    ingress = m.hops[at + 1]
    if m.settings[ACK_FIRST] and (info & KIND_MASK) != DATA:
        append(m, p, Q0_HEAD, node)
        return p
    size = info >> SIZE_SHIFT & SIZE_MASK
    switch = m.ports[p + SWITCH]
    threshold = m.shares[switch] >> m.ports[ingress + SHIFT]
    reserve = m.settings[RESERVE]
    used = m.ports[ingress + INGRESS]
    spill = m.ports[ingress + HEADROOM_USED]
    if size + spill > m.ports[ingress + HEADROOM] and size + max(0, used - reserve) > threshold:
        m.ports[ingress + DROPS] += 1
        give(m, node)
        return NONE
    grown = used + size - reserve
    if grown <= 0:
        m.ports[ingress + INGRESS] = used + size
    elif grown > threshold:
        spill += size
        m.ports[ingress + HEADROOM_USED] = spill
    else:
        used += size
        m.ports[ingress + INGRESS] = used
        m.shares[switch] -= min(size, grown)
        threshold = m.shares[switch] >> m.ports[ingress + SHIFT]
    m.ports[p + DEPTH] += size
    if not m.ports[ingress + PAUSING] and (
        spill > 0 or max(0, m.ports[ingress + INGRESS] - reserve) >= threshold
    ):
        signal(m, ingress, PAUSE, now)
    append(m, p, Q3_HEAD, node)
    return p


@inline
def leave(m: Memory, p: int, node: int, info: int, now: int) -> int:
    """A packet leaves queue 3: give its buffer back, mark it, resume; returns its info."""
    ingress = m.hops[m.nodes[node + AT] + 1]
    size = info >> SIZE_SHIFT & SIZE_MASK
    switch = m.ports[p + SWITCH]
    reserve = m.settings[RESERVE]
    spill = m.ports[ingress + HEADROOM_USED]
    used = m.ports[ingress + INGRESS]
    from_spill = min(spill, size)
    rest = size - from_spill
    m.shares[switch] += min(rest, max(0, used - reserve))
    spill -= from_spill
    used -= rest
    m.ports[ingress + HEADROOM_USED] = spill
    m.ports[ingress + INGRESS] = used
    depth = m.ports[p + DEPTH] - size
    m.ports[p + DEPTH] = depth
    if depth > m.ports[p + KMIN] and m.settings[ECN]:
        marked = depth > m.ports[p + KMAX]
        if not marked:
            above = float(depth - m.ports[p + KMIN])
            chance = m.gains[1] * above / (m.ports[p + KMAX] - m.ports[p + KMIN])
            marked = uniform(m.random) < chance
        if marked:
            # On an ACK the mark changes nothing: its own flag echoes the data's.
            if (info & KIND_MASK) == DATA:
                info |= CE
                m.nodes[node + INFO] = info
            m.ports[p + MARKS] += 1
    if m.ports[ingress + PAUSING] and spill == 0:
        shared = max(0, used - reserve)
        threshold = m.shares[switch] >> m.ports[ingress + SHIFT]
        if shared == 0 or shared + m.settings[RESUME_OFFSET] <= threshold:
            signal(m, ingress, RESUME, now)
    return info


@inline
def serve_switch(m: Memory, p: int, now: int) -> None:
    """Send the next packet of an idle switch port."""
    node = m.ports[p + Q0_HEAD]
    if node >= 0:
        m.ports[p + Q0_HEAD] = m.nodes[node + NEXT]
        info = m.nodes[node + INFO]
        if info & KIND_MASK < PAUSE:
            m.nodes[node + AT] += 2
    else:
        node = m.ports[p + Q3_HEAD]
        if node < 0 or m.ports[p + PAUSED]:
            return
        m.ports[p + Q3_HEAD] = m.nodes[node + NEXT]
        info = leave(m, p, node, m.nodes[node + INFO], now)
        m.nodes[node + AT] += 2
        if (info & KIND_MASK) == DATA:
            m.settings[DATA_HOPS] += 1
    start(m, p, node, info >> SIZE_SHIFT & SIZE_MASK, now)
