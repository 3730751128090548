"""How a TCP sender's window grows and shrinks: CUBIC, and DCTCP.

Both start slowly (RFC 5681, from 10 segments, RFC 6928). CUBIC (RFC 9438) cuts to
0.7 on a loss, then follows ``C (t - K)^3 + W_max`` or what Reno would have, if that
is more. DCTCP (RFC 8257) cuts by half the moving average of the marked fraction,
once a window, and by half on a loss; between cuts it grows by one segment a window.
"""

from __future__ import annotations

from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import (
    DCTCP,
    PS_PER_US,
    QP_ACKED,
    QP_SENT,
    QP_TRANSPORT,
    TCP_EPOCH,
    TCP_WINDOW_ACKED,
    TCP_WINDOW_END,
    TCP_WINDOW_MARKED,
    WINDOW_ALPHA,
    WINDOW_BEFORE,
    WINDOW_FRIENDLY,
    WINDOW_K,
    WINDOW_MOST,
    WINDOW_NOW,
    WINDOW_THRESHOLD,
    Memory,
)
from fabric.sim.engine.pointer import floats

FIRST_WINDOW = 10.0
# Two, so that a receiver that answers every second segment always answers.
_SMALLEST_WINDOW = 2.0
_BETA = 0.7  # RFC 9438, 4.6
_C = 0.4  # RFC 9438, 5.1
_RENO_GAIN = 3.0 * (1.0 - _BETA) / (1.0 + _BETA)  # RFC 9438, 4.3
_DCTCP_G = 1.0 / 16.0  # RFC 8257, 3.3
_PS_PER_S = 1e6 * PS_PER_US


@jit
def _shrink(m: Memory, q: int, factor: float) -> None:
    f = floats(m)
    f[q + WINDOW_NOW] = max(_SMALLEST_WINDOW, f[q + WINDOW_NOW] * factor)
    f[q + WINDOW_THRESHOLD] = f[q + WINDOW_NOW]
    m[q + TCP_EPOCH] = 0


@jit
def cut(m: Memory, q: int) -> None:
    """A segment was lost; called once for each window of losses."""
    f = floats(m)
    if m[q + QP_TRANSPORT] == DCTCP:
        _shrink(m, q, 0.5)
        return
    now, before = f[q + WINDOW_NOW], f[q + WINDOW_BEFORE]
    # Fast convergence (RFC 9438, 4.7): make room for newcomers.
    f[q + WINDOW_BEFORE] = now * (1.0 + _BETA) / 2.0 if now < before else now
    _shrink(m, q, _BETA)


@jit
def collapse(m: Memory, q: int) -> None:
    """A time-out: slow start up to half, or CUBIC's share, of the old window."""
    f = floats(m)
    cut(m, q)
    f[q + WINDOW_NOW] = _SMALLEST_WINDOW


@jit
def count_marks(m: Memory, q: int, news: int, echo: int) -> None:
    """DCTCP: at the end of each window, average its marks and answer them."""
    f = floats(m)
    m[q + TCP_WINDOW_ACKED] += news
    m[q + TCP_WINDOW_MARKED] += news * echo
    if m[q + QP_ACKED] < m[q + TCP_WINDOW_END] or m[q + TCP_WINDOW_ACKED] == 0:
        return
    marked = m[q + TCP_WINDOW_MARKED] / m[q + TCP_WINDOW_ACKED]
    f[q + WINDOW_ALPHA] += _DCTCP_G * (marked - f[q + WINDOW_ALPHA])
    if marked > 0.0:
        _shrink(m, q, 1.0 - f[q + WINDOW_ALPHA] / 2.0)
    m[q + TCP_WINDOW_ACKED] = m[q + TCP_WINDOW_MARKED] = 0
    m[q + TCP_WINDOW_END] = m[q + QP_SENT]


@jit
def grow(m: Memory, q: int, news: int, now: int) -> None:
    """``news`` segments were acknowledged while the window was full."""
    f = floats(m)
    window = f[q + WINDOW_NOW]
    if window < f[q + WINDOW_THRESHOLD]:
        f[q + WINDOW_NOW] = min(window + news, f[q + WINDOW_THRESHOLD])
    elif m[q + QP_TRANSPORT] == DCTCP:
        f[q + WINDOW_NOW] = window + news / window
    else:
        _grow_cubic(m, q, news, now)
    # Beyond what the receiver can hold a window cannot be full.
    f[q + WINDOW_NOW] = min(f[q + WINDOW_NOW], f[q + WINDOW_MOST])


@jit
def _grow_cubic(m: Memory, q: int, news: int, now: int) -> None:
    f = floats(m)
    window = f[q + WINDOW_NOW]
    if m[q + TCP_EPOCH] == 0:
        m[q + TCP_EPOCH] = max(1, now)
        f[q + WINDOW_BEFORE] = max(window, f[q + WINDOW_BEFORE])
        f[q + WINDOW_K] = ((f[q + WINDOW_BEFORE] - window) / _C) ** (1.0 / 3.0)
        f[q + WINDOW_FRIENDLY] = window
    t = (now - m[q + TCP_EPOCH]) / _PS_PER_S - f[q + WINDOW_K]
    target = min(max(_C * t * t * t + f[q + WINDOW_BEFORE], window), 1.5 * window)
    f[q + WINDOW_FRIENDLY] += _RENO_GAIN * news / window
    f[q + WINDOW_NOW] = max(window + (target - window) / window * news, f[q + WINDOW_FRIENDLY])
