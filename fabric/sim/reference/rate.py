"""DCQCN's reaction point as the reference's NIC model has it.

Alpha's periodic updates and the periodic checks whether to cut the rate are
not events here: most of them decide nothing. A tick of alpha is caught up on
when alpha is looked at; a check is scheduled only after a congestion
notification. What is due in the very nanosecond of another event of the same
sender runs in the order that the reference's event queue would have had:
:func:`settle`.
"""

from __future__ import annotations

from fabric.sim.reference.columns import (
    ALPHA,
    ALPHA_EVERY,
    CHECK_BASE,
    CLAMP,
    CNP_SINCE_TICK,
    CUT_DUE,
    CUT_EVERY,
    CUT_NODE,
    CUT_PENDING,
    CUTS,
    FIRST_CNP,
    GAP,
    LINE_RATE,
    MIN_RATE,
    NEVER,
    RAISE_DUE,
    RAISE_EVERY,
    RAISE_NODE,
    RAISE_PENDING,
    RATE,
    RATE_AI,
    RATE_HAI,
    STAGE,
    STAGES,
    TARGET,
    TICKED,
    Memory,
)
from fabric.sim.reference.jit import inline, outline
from fabric.sim.reference.wheel import put


@inline
def nanoseconds(seconds: float) -> int:
    """Truncated as ns-3 truncates: by way of a 64.64 fixed-point number."""
    whole = int(seconds)
    part = (seconds - whole) * 4294967296.0
    high = int(part)
    low = int((part - high) * 4294967296.0)
    return whole * 1000000000 + ((high * 1000000000 + ((low * 1000000000) >> 32)) >> 32)


@outline
def tick(m: Memory, f: int, until: int) -> None:
    """Bring alpha up to this time, inclusive."""
    every = m.settings[ALPHA_EVERY]
    at = m.flows[f + TICKED]
    if at + every > until:
        return
    keep = 1 - m.gains[0]
    alpha = keep * m.alphas[f + ALPHA]
    if m.flows[f + CNP_SINCE_TICK]:
        alpha += m.gains[0]
        m.flows[f + CNP_SINCE_TICK] = 0
    at += every
    while at + every <= until:
        alpha *= keep
        at += every
    m.alphas[f + ALPHA] = alpha
    m.flows[f + TICKED] = at


@outline
def cut(m: Memory, f: int, now: int) -> None:
    """A check that found a notification: lower the rate, restart the increase."""
    tick(m, f, now)
    if m.settings[CLAMP] or m.flows[f + STAGE]:
        m.flows[f + TARGET] = m.flows[f + RATE]
    rate = int(m.flows[f + RATE] * (1 - m.alphas[f + ALPHA] / 2))
    m.flows[f + RATE] = max(m.settings[MIN_RATE], rate)
    m.flows[f + GAP] = -1
    m.flows[f + STAGE] = 0
    m.flows[f + CUT_DUE] = NEVER
    m.flows[f + CUTS] += 1
    m.flows[f + RAISE_DUE] = now + m.settings[RAISE_EVERY]
    if not m.flows[f + RAISE_PENDING]:
        m.flows[f + RAISE_PENDING] = 1
        put(m, m.flows[f + RAISE_NODE], m.flows[f + RAISE_DUE])


@outline
def raise_rate(m: Memory, f: int, now: int) -> None:
    """One step of the increase: fast recovery, one additive step, then hyper steps."""
    m.flows[f + RAISE_DUE] = now + m.settings[RAISE_EVERY]
    stage, target = m.flows[f + STAGE], m.flows[f + TARGET]
    if stage >= m.settings[STAGES]:
        step = m.settings[RATE_AI] if stage == m.settings[STAGES] else m.settings[RATE_HAI]
        target = min(target + step, m.flows[f + LINE_RATE])
        m.flows[f + TARGET] = target
    m.flows[f + RATE] = (m.flows[f + RATE] >> 1) + (target >> 1)
    m.flows[f + GAP] = -1
    m.flows[f + STAGE] = stage + 1


@outline
def settle(m: Memory, f: int, now: int, since: int) -> None:
    """Run what is due now and comes before an event that was scheduled at ``since``.

    A check or a timer counts as scheduled one interval ago.
    """
    cut_every, raise_every = m.settings[CUT_EVERY], m.settings[RAISE_EVERY]
    cut_due = m.flows[f + CUT_DUE] == now and now - cut_every <= since
    raise_due = m.flows[f + RAISE_DUE] == now and now - raise_every <= since
    if raise_due and (not cut_due or raise_every > cut_every):
        raise_rate(m, f, now)
    if cut_due:
        cut(m, f, now)


@outline
def notify(m: Memory, f: int, now: int, since: int) -> None:
    """A congestion notification, in an event that was scheduled at ``since``."""
    settle(m, f, now, since)
    every = m.settings[CUT_EVERY]
    if m.flows[f + FIRST_CNP]:
        m.flows[f + FIRST_CNP] = 0
        m.alphas[f + ALPHA] = 1.0
        m.flows[f + CNP_SINCE_TICK] = 0
        m.flows[f + TICKED] = now
        m.flows[f + CHECK_BASE] = now + every + 1
        m.flows[f + TARGET] = m.flows[f + RATE]
    else:
        tick(m, f, now if now - m.settings[ALPHA_EVERY] <= since else now - 1)
        m.flows[f + CNP_SINCE_TICK] = 1
    if m.flows[f + CUT_DUE] != NEVER:
        return
    due = m.flows[f + CHECK_BASE]
    if due <= now:
        due += (now - due) // every * every
        if due < now or now - every <= since:
            due += every
    m.flows[f + CUT_DUE] = due
    if not m.flows[f + CUT_PENDING]:
        m.flows[f + CUT_PENDING] = 1
        put(m, m.flows[f + CUT_NODE], due)


@outline
def on_cut_node(m: Memory, f: int, now: int) -> None:
    """The node of a flow's check has come up; the check itself may have moved."""
    m.flows[f + CUT_PENDING] = 0
    settle(m, f, now, now)
    due = m.flows[f + CUT_DUE]
    if due != NEVER and not m.flows[f + CUT_PENDING]:
        m.flows[f + CUT_PENDING] = 1
        put(m, m.flows[f + CUT_NODE], due)


@outline
def on_raise_node(m: Memory, f: int, now: int) -> None:
    """The node of a flow's increase timer has come up; the timer may have moved."""
    m.flows[f + RAISE_PENDING] = 0
    settle(m, f, now, now)
    due = m.flows[f + RAISE_DUE]
    if due != NEVER and not m.flows[f + RAISE_PENDING]:
        m.flows[f + RAISE_PENDING] = 1
        put(m, m.flows[f + RAISE_NODE], due)
