"""DCQCN's reaction point: how a queue pair's rate falls and rises.

Zhu et al., SIGCOMM 2015, section 5, with the NIC's parameters
(``fabric.qos.Dcqcn``): a cut is ``rate *= 1 - alpha / 2`` (unless ``gd`` says another
share of alpha, or ``min_dec_fac`` a larger rest), at most once in
``rate_reduce_interval_us`` (a CNP in between is answered at its end); alpha
moves once per ``alpha_update_interval_us``, up where a CNP came in it, else
down; the timer and the byte counter each raise the rate: fast recovery, then
additive, then hyper increase. The target follows the rate at a cut only when the
rate has risen since the cut before: as in the HPCC simulator and in mlx5's defaults
(clamp_tgt_rate off, clamp_tgt_rate_after_time_inc on).
"""

from __future__ import annotations

from fabric.sim.engine.heap import push
from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    CLAMP_AFTER_TIME,
    CLAMP_ALWAYS,
    EVENT_RATE_CUT,
    EVENT_RATE_TIMER,
    PORT_RP_CNP_HANDLED,
    PORT_RP_CNP_IGNORED,
    QP_SOURCE,
    RATE_AI,
    RATE_ALPHA,
    RATE_ALPHA_START,
    RATE_FIRST,
    RATE_GD,
    RATE_HAI,
    RATE_KEEP,
    RATE_LEAST,
    RATE_LINE,
    RATE_MIN,
    RATE_NOW,
    RATE_TARGET,
    RP_ACTIVE,
    RP_ALPHA_AT,
    RP_ALPHA_INTERVAL,
    RP_BYTE_RESET,
    RP_BYTE_STAGE,
    RP_BYTES_LEFT,
    RP_CLAMPS,
    RP_CNP_SEEN,
    RP_CUT_AT,
    RP_CUT_INTERVAL,
    RP_CUT_PENDING,
    RP_CUTS,
    RP_ENABLED,
    RP_STAGES,
    RP_TIMER,
    RP_TIMER_AT,
    RP_TIMER_SET,
    RP_TIMER_STAGE,
    Memory,
)
from fabric.sim.engine.pointer import floats


@jit
def _advance_alpha(m: Memory, q: int, now: int) -> None:
    """Bring alpha up to now: one update for each interval that has ended."""
    f = floats(m)
    ended = (now - m[q + RP_ALPHA_AT]) // m[q + RP_ALPHA_INTERVAL]
    if ended <= 0:
        return
    keep, alpha = f[q + RATE_KEEP], f[q + RATE_ALPHA]
    if m[q + RP_CNP_SEEN]:
        alpha = keep * alpha + (1.0 - keep)
        m[q + RP_CNP_SEEN] = 0
        f[q + RATE_ALPHA] = alpha * keep ** (ended - 1)
    else:
        f[q + RATE_ALPHA] = alpha * keep**ended
    m[q + RP_ALPHA_AT] += ended * m[q + RP_ALPHA_INTERVAL]


@jit
def _cut(m: Memory, q: int, now: int) -> None:
    f = floats(m)
    _advance_alpha(m, q, now)
    clamps = m[q + RP_CLAMPS]
    by_time = clamps & CLAMP_AFTER_TIME and m[q + RP_TIMER_STAGE]
    if clamps & CLAMP_ALWAYS or m[q + RP_BYTE_STAGE] or by_time:
        f[q + RATE_TARGET] = f[q + RATE_NOW]
    if m[q + RP_CUTS] == 0 and f[q + RATE_FIRST] > 0:
        cut = min(f[q + RATE_FIRST], f[q + RATE_LINE])
    else:
        rest = 1.0 - f[q + RATE_ALPHA] * f[q + RATE_GD]
        cut = f[q + RATE_NOW] * max(rest, f[q + RATE_LEAST])
    f[q + RATE_NOW] = max(f[q + RATE_MIN], cut)
    m[q + RP_CUTS] += 1
    m[q + RP_CUT_AT] = now
    m[q + RP_CUT_PENDING] = 0
    m[q + RP_TIMER_STAGE] = 0
    m[q + RP_BYTE_STAGE] = 0
    m[q + RP_BYTES_LEFT] = m[q + RP_BYTE_RESET]
    m[q + RP_TIMER_AT] = now + m[q + RP_TIMER]
    if m[q + RP_TIMER_SET] == 0:
        m[q + RP_TIMER_SET] = 1
        push(m, m[q + RP_TIMER_AT], EVENT_RATE_TIMER, q)


@jit
def on_cnp(m: Memory, q: int, now: int) -> None:
    """A congestion notification for this queue pair has arrived."""
    f = floats(m)
    if m[q + RP_ENABLED] == 0:
        m[m[q + QP_SOURCE] + PORT_RP_CNP_IGNORED] += 1
        return
    m[m[q + QP_SOURCE] + PORT_RP_CNP_HANDLED] += 1
    if m[q + RP_ACTIVE] == 0:
        m[q + RP_ACTIVE] = 1
        f[q + RATE_ALPHA] = f[q + RATE_ALPHA_START]
        m[q + RP_ALPHA_AT] = now
        m[q + RP_CNP_SEEN] = 1
        _cut(m, q, now)
        return
    _advance_alpha(m, q, now)
    m[q + RP_CNP_SEEN] = 1
    again = m[q + RP_CUT_AT] + m[q + RP_CUT_INTERVAL]
    if now >= again:
        _cut(m, q, now)
    elif m[q + RP_CUT_PENDING] == 0:
        m[q + RP_CUT_PENDING] = 1
        push(m, again, EVENT_RATE_CUT, q)


@jit
def on_cut_due(m: Memory, q: int, now: int) -> None:
    """The interval since the last cut has ended, and a CNP came in it."""
    if m[q + RP_CUT_PENDING]:
        _cut(m, q, now)


@jit
def _increase(m: Memory, q: int) -> None:
    f = floats(m)
    timer, counter = m[q + RP_TIMER_STAGE], m[q + RP_BYTE_STAGE]
    if m[q + RP_BYTE_RESET] == 0:
        counter = timer
    stages = m[q + RP_STAGES]
    if max(timer, counter) >= stages:
        if min(timer, counter) > stages:
            f[q + RATE_TARGET] += f[q + RATE_HAI]
        else:
            f[q + RATE_TARGET] += f[q + RATE_AI]
        f[q + RATE_TARGET] = min(f[q + RATE_TARGET], f[q + RATE_LINE])
    f[q + RATE_NOW] = (f[q + RATE_NOW] + f[q + RATE_TARGET]) / 2


@jit
def on_rate_timer(m: Memory, q: int, now: int) -> None:
    """The increase timer may have expired; a cut in between has moved it."""
    f = floats(m)
    if m[q + RP_TIMER_AT] > now:
        push(m, m[q + RP_TIMER_AT], EVENT_RATE_TIMER, q)
        return
    _increase(m, q)
    m[q + RP_TIMER_STAGE] += 1
    if f[q + RATE_NOW] >= 0.999999 * f[q + RATE_LINE]:
        # At line rate there is nothing to raise; the next cut starts the timer.
        f[q + RATE_NOW] = f[q + RATE_LINE]
        m[q + RP_TIMER_SET] = 0
        return
    m[q + RP_TIMER_AT] = now + m[q + RP_TIMER]
    push(m, m[q + RP_TIMER_AT], EVENT_RATE_TIMER, q)


@jit
def count_sent(m: Memory, q: int, wire_bytes: int) -> None:
    """Advance the byte counter of a queue pair that is being held back."""
    if m[q + RP_BYTE_RESET] == 0:
        return
    m[q + RP_BYTES_LEFT] -= wire_bytes
    if m[q + RP_BYTES_LEFT] <= 0:
        _increase(m, q)
        m[q + RP_BYTE_STAGE] += 1
        m[q + RP_BYTES_LEFT] += m[q + RP_BYTE_RESET]
