"""The event loop."""

from __future__ import annotations

from collections.abc import Callable

from fabric.sim.reference.columns import (
    ALPHA,
    AT,
    BUSY,
    CUT,
    DATA,
    DEPTH,
    END_TIME,
    EVENTS,
    FLOW_SHIFT,
    FLOW_WORDS,
    FLOWS,
    FREE_COUNT,
    FREE_LOW,
    HOST,
    INFO,
    INPUT,
    INPUT_NEXT,
    INPUTS,
    INSTALL,
    KIND_MASK,
    LATENCY_ACK,
    LOG_COUNT,
    LOG_ROOM,
    NACK,
    NEXT,
    NEXT_SEND,
    NONE,
    NOW,
    PAUSE,
    PAUSED,
    PAUSED_NS,
    PAUSED_SINCE,
    PAUSES_RX,
    RAISE,
    RATE,
    RECEIVED,
    RECEIVED_BEFORE,
    RESUME,
    SAMPLE_COUNT,
    SAMPLE_EVERY,
    SAMPLE_QUEUES,
    SAMPLE_ROOM,
    SAMPLE_SERIES,
    SEND_PENDING,
    SEND_SINCE,
    SERIES_COUNT,
    SERIES_EVERY,
    SERIES_PORT,
    SERIES_ROOM,
    SLOT_START,
    START,
    SWITCH,
    SWITCH_PORTS,
    TARGET,
    TX_DONE,
    TX_SINCE,
    WARM,
    Arrays,
    Memory,
)
from fabric.sim.reference.host import open_message, receive_ack, receive_data, serve_host
from fabric.sim.reference.jit import entry_point, first_bit, inline, outline, source_hash
from fabric.sim.reference.pointer import pointers
from fabric.sim.reference.rate import on_cut_node, on_raise_node, settle, tick
from fabric.sim.reference.switch import enter, give, serve_switch
from fabric.sim.reference.wheel import put, turn

DONE, MORE, GROW = range(3)


@outline
def _end_warm_up(m: Memory) -> None:
    for number in range(m.settings[FLOWS]):
        f = FLOW_WORDS * number
        m.flows[f + RECEIVED_BEFORE] = m.flows[f + RECEIVED]


@outline
def _sample_queues(m: Memory) -> None:
    count = m.settings[SAMPLE_COUNT]
    ports = m.settings[SWITCH_PORTS]
    if count < m.settings[SAMPLE_ROOM]:
        for number in range(ports):
            m.samples[count * ports + number] = m.ports[m.switch_ports[number] + DEPTH]
        m.settings[SAMPLE_COUNT] = count + 1


@outline
def _sample_series(m: Memory, now: int, every: int) -> None:
    count = m.settings[SERIES_COUNT]
    if count == m.settings[SERIES_ROOM]:
        return
    flows = m.settings[FLOWS]
    row = count * (1 + 2 * flows)
    m.series[row] = m.ports[m.settings[SERIES_PORT] + DEPTH]
    for number in range(flows):
        f = FLOW_WORDS * number
        settle(m, f, now, now - every)
        tick(m, f, now)
        m.series[row + 1 + 2 * number] = m.flows[f + RATE]
        m.series[row + 2 + 2 * number] = m.flows[f + TARGET]
        m.series_alphas[count * flows + number] = m.alphas[f + ALPHA]
    m.settings[SERIES_COUNT] = count + 1


@outline
def _pause(m: Memory, p: int, kind: int, now: int) -> None:
    if kind == PAUSE:
        m.ports[p + PAUSES_RX] += 1
        if not m.ports[p + PAUSED]:
            m.ports[p + PAUSED] = 1
            m.ports[p + PAUSED_SINCE] = now
    elif m.ports[p + PAUSED]:
        m.ports[p + PAUSED] = 0
        m.ports[p + PAUSED_NS] += now - m.ports[p + PAUSED_SINCE]


@outline
def _timer(m: Memory, node: int, kind: int, handle: int, now: int) -> int:
    """An event that is neither packet nor port; returns a NIC's port that may send now."""
    if kind == CUT:
        on_cut_node(m, handle, now)
    elif kind == RAISE:
        on_raise_node(m, handle, now)
    elif kind == SAMPLE_QUEUES:
        _sample_queues(m)
        put(m, node, now + m.settings[SAMPLE_EVERY])
    elif kind == SAMPLE_SERIES:
        _sample_series(m, now, m.settings[SERIES_EVERY])
        put(m, node, now + m.settings[SERIES_EVERY])
    elif kind == WARM:
        _end_warm_up(m)
    elif kind == INPUT:
        _read_inputs(m, node, now)
    elif kind == INSTALL:
        # The application starts one event after it was installed.
        m.nodes[node + INFO] = START | handle << FLOW_SHIFT
        put(m, node, now)
    else:
        open_message(m, handle, now)
        return int(m.flows[handle + HOST])
    return NONE


@inline
def _read_inputs(m: Memory, node: int, now: int) -> None:
    """Install the flows that start now; come again when the next one starts."""
    number = m.settings[INPUT_NEXT]
    while number < m.settings[INPUTS] and m.inputs[3 * number] == now:
        install = m.inputs[3 * number + 2]
        m.nodes[install + INFO] = INSTALL | m.inputs[3 * number + 1] << FLOW_SHIFT
        put(m, install, now)
        number += 1
    m.settings[INPUT_NEXT] = number
    if number < m.settings[INPUTS]:
        put(m, node, m.inputs[3 * number])


def _build() -> Callable[[Arrays, int], int]:  # noqa: PLR0915 - one loop, for speed
    sources = source_hash()

    def run_slice(arrays: Arrays, until: int) -> int:  # noqa: PLR0912, PLR0915 - one loop
        """Run all events before ``until``, or to the end of a slot beyond it.

        Returns DONE at the end of the run, MORE before it, GROW where nodes or
        message log must grow first.
        """
        m = pointers(arrays)
        events = sources * 0
        settings, nodes, near, bits, ports = m.settings, m.nodes, m.near, m.bits, m.ports
        end = settings[END_TIME]
        slot_ns = m.slot_ns
        mask = 2 * slot_ns - 1
        groups = slot_ns >> 10
        while True:
            start = settings[SLOT_START]
            if start >= end:
                return DONE
            if start >= until:
                return MORE
            if (
                settings[FREE_COUNT] < settings[FREE_LOW]
                or settings[LOG_COUNT] + settings[FREE_LOW] > settings[LOG_ROOM]
            ):
                return GROW
            for group in range(start >> 11, (start + slot_ns) >> 11):
                summary = (slot_ns >> 5) + (group & (groups - 1))
                while bits[summary] != 0:
                    first = first_bit(bits[summary])
                    place = ((group & (groups - 1)) << 5) + first
                    bit = first_bit(bits[place])
                    now = (group << 11) + (first << 6) + bit
                    if now >= end:
                        settings[NOW] = end
                        settings[SLOT_START] = end
                        settings[EVENTS] += events
                        return DONE
                    bucket = 2 * (now & mask)
                    node = int(near[bucket])
                    while node >= 0:
                        near[bucket] = nodes[node + NEXT]
                        events += 1
                        info = nodes[node + INFO]
                        kind = info & KIND_MASK
                        p = NONE
                        since = now
                        if kind == TX_DONE:
                            p = info >> FLOW_SHIFT
                            ports[p + BUSY] = 0
                            since = ports[p + TX_SINCE]
                        elif kind <= NACK:
                            if m.hops[nodes[node + AT]] >= 0:
                                p = enter(m, node, info, now)
                            elif kind == DATA:
                                p = receive_data(m, node, info, now)
                            else:
                                p = receive_ack(m, node, info, now)
                                if p >= 0:
                                    since = now - ports[p + LATENCY_ACK]
                        elif kind == NEXT_SEND:
                            p = info >> FLOW_SHIFT
                            ports[p + SEND_PENDING] = 0
                            since = ports[p + SEND_SINCE]
                        elif kind <= RESUME:
                            p = nodes[node + AT]
                            give(m, node)
                            _pause(m, p, kind, now)
                            since = now - ports[p + LATENCY_ACK]
                            if kind == PAUSE:
                                p = NONE
                        else:
                            p = _timer(m, node, kind, info >> FLOW_SHIFT, now)
                        if p >= 0 and not ports[p + BUSY]:
                            if ports[p + SWITCH] < 0:
                                serve_host(m, p, now, since)
                            else:
                                serve_switch(m, p, now)
                        node = int(near[bucket])
                    left = bits[place] & ~(1 << bit)
                    bits[place] = left
                    if left == 0:
                        bits[summary] &= ~(1 << first)
            settings[SLOT_START] = start + slot_ns
            settings[NOW] = start + slot_ns
            settings[EVENTS] += events
            events = 0
            turn(m)

    return entry_point(run_slice)


run_slice = _build()
