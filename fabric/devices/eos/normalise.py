"""What EOS can express of an intended state."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from fabric.devices.expressible import Limits, strict_upwards
from fabric.qos import (
    PRIORITY_COUNT,
    DeviceQos,
    IngressBuffer,
    PortQos,
    Watchdog,
)

# The largest that `mtu` takes on most models. EOS User Manual, "mtu".
MAX_MTU = 9214
# Times of the PFC watchdog have two decimals of a second. avd, qos_profiles schema.
WATCHDOG_STEP_MS = 10
# Shares of the free buffer that a lossless priority may take before it is paused:
# EOS has no static threshold. avd, platform schema.
THRESHOLDS = {f"1/{2**n}": 2.0**-n for n in range(7, 0, -1)}
THRESHOLDS |= {str(2**n): 2.0**n for n in range(4)}
# Where the intent names none; the value is ours.
ALPHA = 0.125

LIMITS = Limits("EOS", "Change intent.classes so that all ports of a switch do the same.")


def normalise(intended: DeviceQos) -> DeviceQos:
    """The state that a switch which does all that it can is read back as.

    - The MTU is 9214 at most, and that of every class is that of its port.
    - Queues above a strict one are strict too, and what is shared lies below.
    - Receive buffers: one profile for the switch, with the largest headroom and
      the largest distance of XON that a port asks for. XOFF is dynamic (``alpha``
      of the free buffer, 1/8 where none is intended): ``xoff_bytes`` then holds that
      distance and ``xon_bytes`` nothing, so that both differences mean what they
      always do.
    - Times of the watchdog are rounded up to 10 ms; a port without a restore time
      gets its detection time.
    """
    buffers = [buffer for port in intended.ports for buffer in port.ingress_buffers]
    headroom = max((b.size_bytes - b.xoff_bytes for b in buffers), default=None)
    resume = max((b.xoff_bytes - b.xon_bytes for b in buffers), default=0)
    return dataclasses.replace(
        intended,
        ports=tuple(_port(port, headroom, resume, _alpha(buffers)) for port in intended.ports),
    )


def _alpha(buffers: Iterable[IngressBuffer]) -> float:
    asked = [buffer.alpha for buffer in buffers if buffer.alpha is not None]
    wanted = max(asked, default=ALPHA)
    return min(THRESHOLDS.values(), key=lambda share: abs(math.log2(share / wanted)))


def threshold_of(alpha: float | None) -> str:
    """``1/8``: how EOS writes a share that :func:`normalise` chose."""
    return next(text for text, share in THRESHOLDS.items() if share == alpha)


def _port(port: PortQos, headroom: int | None, resume: int, alpha: float) -> PortQos:
    mtu = min(port.mtu_bytes, MAX_MTU)
    lossless = port.pfc_priorities if headroom is not None else ()
    return dataclasses.replace(
        port,
        mtu_bytes=mtu,
        class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
        queues=strict_upwards(port),
        ingress_buffers=tuple(
            IngressBuffer(priority, (headroom or 0) + resume, resume, 0, alpha)
            for priority in lossless
        ),
        watchdog=_watchdog(port.watchdog),
        nic=None,
    )


def _watchdog(watchdog: Watchdog | None) -> Watchdog | None:
    if watchdog is None or watchdog.detect_ms is None:
        return watchdog and Watchdog(None, None, watchdog.action)
    restore_ms = watchdog.restore_ms or watchdog.detect_ms
    return Watchdog(_step(watchdog.detect_ms), _step(restore_ms), watchdog.action)


def _step(time_ms: int) -> int:
    return max(-(-time_ms // WATCHDOG_STEP_MS), 1) * WATCHDOG_STEP_MS


def require_expressible(intended: DeviceQos) -> None:
    """InputError where EOS has no configuration for what is intended."""
    LIMITS.require_ports(intended, one_queue=True, strict_upwards=True)
    if len({port.dscp_to_priority for port in intended.ports}) > 1:
        raise LIMITS.cannot(intended.device, "map DSCPs otherwise on other ports")
