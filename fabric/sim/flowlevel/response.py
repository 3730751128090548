"""The rate that DCQCN settles at when each packet is marked with one probability.

The reaction point of ``fabric.sim.engine.dcqcn`` and the notification point of a
receiver, run packet by packet against independent marks: the steady state of one
queue pair, whatever the parameters. Closed forms of it (Zhu et al., SIGCOMM 2015,
section 5; Zhu et al., CoNEXT 2016) hold for one bottleneck, marks spread evenly and
the byte counter on; marks that come in bursts within one CNP interval count once,
which shifts the whole curve, so it is measured instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fabric.qos import Dcqcn
from fabric.sim.flowlevel.jit import inner, kernel

Floats = NDArray[np.float64]

# Marking probabilities at which a curve is measured, and where it is read.
LOG_P_MIN = float(np.log(1e-5))
POINTS = 48
_CUTS = 3000
_MAX_PACKETS = 3_000_000


@dataclass(frozen=True, eq=False)
class Curve:
    """Rate on the wire, in bits a second, at ``POINTS`` marking probabilities.

    Their logarithms run evenly from ``LOG_P_MIN`` to 0; rates never rise with p.
    """

    line_bps: float
    rates_bps: Floats

    def rate_bps(self, p: float) -> float:
        """Rate at marking probability ``p``: line rate at 0, falling as 1/p beyond 1."""
        if p <= 0:
            return self.line_bps
        grid = np.linspace(LOG_P_MIN, 0, POINTS)
        found = float(np.interp(np.log(p), grid, self.rates_bps))
        return found / max(1.0, p)


@lru_cache(maxsize=64)
def curve_of(dcqcn: Dcqcn, line_bps: float, packet_bytes: float) -> Curve:
    """The curve of these parameters on a NIC of this speed.

    ``packet_bytes`` is a full packet on the wire, preamble and gap included.
    """
    parameters = np.array(
        [
            line_bps,
            packet_bytes * 8,
            dcqcn.min_time_between_cnps_us * 1e-6,
            dcqcn.rate_reduce_interval_us * 1e-6,
            max(1, dcqcn.alpha_update_interval_us) * 1e-6,
            max(1, dcqcn.time_reset_us) * 1e-6,
            dcqcn.byte_reset * 8,
            min(dcqcn.min_rate_mbps * 1e6, line_bps),
            dcqcn.g_of_1024 / 1024,
            dcqcn.initial_alpha_of_1024 / 1024,
            dcqcn.fast_recovery_stages,
            dcqcn.ai_rate_mbps * 1e6,
            dcqcn.hai_rate_mbps * 1e6,
            line_bps,
        ]
    )
    points = np.exp(np.linspace(LOG_P_MIN, 0, POINTS))
    rates = np.array([_steady_rate(parameters, p, _CUTS, _MAX_PACKETS) for p in points])
    rates = np.minimum.accumulate(np.minimum(rates, line_bps))
    rates.setflags(write=False)
    return Curve(line_bps, rates)


@inner
def _caught_up(alpha: float, keep: float, ended: int, seen: bool) -> float:
    """Alpha after so many update intervals, the first of them with a notification or not."""
    if ended == 0:
        return alpha
    first = keep * alpha + 1 - keep if seen else keep * alpha
    return float(first * keep ** (ended - 1))


@inner
def _raised(target: float, timer: int, counter: int, rise: Floats) -> float:
    """The target after one expiry; ``rise`` is stages, AI, HAI and line rate."""
    if max(timer, counter) >= rise[0]:
        target += rise[2] if min(timer, counter) > rise[0] else rise[1]
    return float(min(target, rise[3]))


@kernel
def _steady_rate(parameters: Floats, p: float, cuts: int, packets: int) -> float:
    """Mean rate over ``cuts`` rate cuts, or over ``packets`` packets where those are fewer."""
    line, bits, cnp, cut_every, alpha_every, timer = parameters[:6]
    byte_reset, least, keep, alpha = parameters[6:10]
    rise = parameters[10:]
    np.random.seed(1)
    rate = target = line
    now = sent = sent_from = counted_from = alpha_at = timer_at = 0.0
    last_cnp = last_cut = -1.0
    pending = seen = False
    timer_stage = byte_stage = count = 0
    bits_left = byte_reset if byte_reset > 0 else np.inf
    for _ in range(packets):
        now += bits / rate
        sent += bits
        bits_left -= bits
        while timer_at <= now or bits_left <= 0:
            counter = byte_stage if byte_reset > 0 else timer_stage
            target = _raised(target, timer_stage, counter, rise)
            rate = (rate + target) / 2
            if timer_at <= now:
                timer_stage += 1
                timer_at += timer
            else:
                byte_stage += 1
                bits_left += byte_reset
        if np.random.random() < p and now - last_cnp >= cnp:
            ended = int((now - alpha_at) / alpha_every)
            alpha = _caught_up(alpha, keep, ended, seen)
            alpha_at += ended * alpha_every
            last_cnp, seen, pending = now, True, True
        if pending and now >= last_cut + cut_every:
            ended = int((now - alpha_at) / alpha_every)
            alpha = _caught_up(alpha, keep, ended, seen)
            alpha_at += ended * alpha_every
            seen = seen and ended == 0
            if timer_stage or byte_stage:
                target = rate
            rate = max(least, rate * (1 - alpha / 2))
            last_cut, timer_at, pending = now, now + timer, False
            timer_stage = byte_stage = 0
            bits_left = byte_reset if byte_reset > 0 else np.inf
            count += 1
            if count == cuts // 10:
                sent_from, counted_from = sent, now
            if count == cuts:
                break
    return float((sent - sent_from) / (now - counted_from))
