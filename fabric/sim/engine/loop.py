"""The event loop: one slice of simulated time per call."""

from __future__ import annotations

from collections.abc import Callable

from fabric.sim.engine.dcqcn import on_cut_due, on_rate_timer
from fabric.sim.engine.heap import drop_first
from fabric.sim.engine.intake import on_storm, on_storm_end
from fabric.sim.engine.jit import entry_point, jit, source_hash
from fabric.sim.engine.layout import (
    EVENT_ARRIVE,
    EVENT_HANDLE_MASK,
    EVENT_KICK,
    EVENT_KIND_MASK,
    EVENT_KIND_SHIFT,
    EVENT_LINK_DOWN,
    EVENT_LINK_UP,
    EVENT_PAUSE_END,
    EVENT_PAUSE_REFRESH,
    EVENT_POST,
    EVENT_RATE_CUT,
    EVENT_RATE_TIMER,
    EVENT_RECEIVED,
    EVENT_RETRANSMIT,
    EVENT_STORM,
    EVENT_STORM_END,
    EVENT_WATCHDOG,
    EVENT_XOFF,
    EVENT_XON,
    EVENTS,
    FLOW_BYTES,
    FLOW_COUNT,
    FLOW_WARMUP_BYTES,
    FLOW_WORDS,
    FLOWS,
    FREE_COUNT,
    HEAP,
    HEAP_ROOM,
    HEAP_SIZE,
    LOG_CAPPED,
    LOG_ROOM,
    LOG_SIZE,
    NEVER,
    NONE,
    NOW,
    PACKET_AT,
    PORT_COUNT,
    PORT_DEPTH,
    PORT_KICK,
    PORT_NODE,
    PORT_WORDS,
    PORTS,
    QP_TRANSPORT,
    RDMA,
    SAMPLE_AT,
    SAMPLE_DEPTHS,
    SAMPLE_EVERY,
    SAMPLE_GOODPUT,
    SAMPLE_ROOM,
    SAMPLES,
    WARMUP,
    Memory,
)
from fabric.sim.engine.link import on_link_down, on_link_up
from fabric.sim.engine.pause import on_pause_end, on_refresh, on_xoff, on_xon
from fabric.sim.engine.pointer import words
from fabric.sim.engine.receiver import arrive_at_host, on_received
from fabric.sim.engine.sender import on_retransmit_timer, post, serve_host
from fabric.sim.engine.switch import arrive_at_switch, serve_switch
from fabric.sim.engine.tcp_ack import on_tcp_timer
from fabric.sim.engine.watchdog import on_watchdog

DONE, MORE, GROW = range(3)
# No event schedules more events, takes more packets or ends more messages than this.
SLACK = 1024


@jit
def _observe(m: Memory, until: int) -> None:
    """Take the samples that fall before ``until``, and the bytes at the end of warm-up."""
    flows, ports = m[FLOW_COUNT], m[PORT_COUNT]
    if m[WARMUP] <= until:
        for number in range(flows):
            flow = m[FLOWS] + FLOW_WORDS * number
            m[flow + FLOW_WARMUP_BYTES] = m[flow + FLOW_BYTES]
        m[WARMUP] = NEVER
    while m[SAMPLE_AT] <= until:
        sample = m[SAMPLES]
        if sample == m[SAMPLE_ROOM]:
            m[SAMPLE_AT] = NEVER
            return
        for number in range(ports):
            depth = m[m[PORTS] + PORT_WORDS * number + PORT_DEPTH]
            m[m[SAMPLE_DEPTHS] + sample * ports + number] = depth
        for number in range(flows):
            received = m[m[FLOWS] + FLOW_WORDS * number + FLOW_BYTES]
            m[m[SAMPLE_GOODPUT] + sample * flows + number] = received
        m[SAMPLES] = sample + 1
        m[SAMPLE_AT] += m[SAMPLE_EVERY]


@jit
def _kick(m: Memory, p: int, now: int) -> None:
    if m[p + PORT_KICK] != now:  # an earlier look has made this one void
        return
    m[p + PORT_KICK] = NEVER
    if m[p + PORT_NODE] == NONE:
        serve_host(m, p, now)
    else:
        serve_switch(m, p, now)


@jit
def _dispatch_rare(m: Memory, kind: int, handle: int, now: int) -> None:
    if kind == EVENT_XOFF:
        on_xoff(m, handle, now)
    elif kind == EVENT_XON:
        on_xon(m, handle, now)
    elif kind == EVENT_PAUSE_END:
        on_pause_end(m, handle, now)
    elif kind == EVENT_PAUSE_REFRESH:
        on_refresh(m, handle, now)
    elif kind == EVENT_POST:
        post(m, handle, now)
    elif kind == EVENT_RATE_TIMER:
        on_rate_timer(m, handle, now)
    elif kind == EVENT_RATE_CUT:
        on_cut_due(m, handle, now)
    elif kind == EVENT_RETRANSMIT:
        if m[handle + QP_TRANSPORT] == RDMA:
            on_retransmit_timer(m, handle, now)
        else:
            on_tcp_timer(m, handle, now)
    else:
        _dispatch_fault(m, kind, handle, now)


@jit
def _dispatch_fault(m: Memory, kind: int, handle: int, now: int) -> None:
    if kind == EVENT_RECEIVED:
        on_received(m, handle, now)
    elif kind == EVENT_WATCHDOG:
        on_watchdog(m, handle, now)
    elif kind == EVENT_STORM:
        on_storm(m, handle, now)
    elif kind == EVENT_STORM_END:
        on_storm_end(m, handle, now)
    elif kind == EVENT_LINK_DOWN:
        on_link_down(m, handle, now)
    elif kind == EVENT_LINK_UP:
        on_link_up(m, handle, now)


def _build() -> Callable[[Memory, int, int], int]:
    sources = source_hash()

    def run_slice(memory: Memory, until: int, max_events: int) -> int:
        """Run events up to ``until`` (inclusive), at most ``max_events`` of them.

        Returns DONE where the time is reached, MORE where events are left, GROW
        where heap, packets or message log must grow first.
        """
        m = words(memory)
        events = sources * 0
        status = DONE
        while m[HEAP_SIZE] > 0:
            now = m[m[HEAP]]
            if now > until:
                break
            if events >= max_events:
                status = MORE
                break
            if (
                m[HEAP_SIZE] + SLACK > m[HEAP_ROOM]
                or m[FREE_COUNT] < SLACK
                or (m[LOG_SIZE] + SLACK > m[LOG_ROOM] and not m[LOG_CAPPED])
            ):
                status = GROW
                break
            if now >= m[SAMPLE_AT] or now >= m[WARMUP]:
                _observe(m, now)
            word = m[m[HEAP] + 1]
            drop_first(m)
            m[NOW] = now
            kind, handle = word >> EVENT_KIND_SHIFT & EVENT_KIND_MASK, word & EVENT_HANDLE_MASK
            if kind == EVENT_ARRIVE:
                p = m[handle + PACKET_AT]
                if m[p + PORT_NODE] == NONE:
                    arrive_at_host(m, p, handle, now)
                else:
                    arrive_at_switch(m, p, handle, now)
            elif kind == EVENT_KICK:
                _kick(m, handle, now)
            else:
                _dispatch_rare(m, kind, handle, now)
            events += 1
        if status == DONE:
            _observe(m, until)
            m[NOW] = until
        m[EVENTS] += events
        return status

    return entry_point(run_slice)


run_slice = _build()
