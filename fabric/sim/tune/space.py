"""What tune may change, as points of a unit cube, and each point as settings of an intent.

Thresholds are searched as the time that a port needs to send them, so that one number
serves every speed; increase rates as parts of the NIC's speed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.devices.registry import expected_qos
from fabric.intent import Intent
from fabric.site import Site
from fabric.units import parse_speed_bps

Floats = NDArray[np.float64]

_KMIN_BELOW_XOFF = 0.9


@dataclass(frozen=True)
class Dimension:
    """One number, searched evenly in its logarithm."""

    name: str
    low: float
    high: float

    def at(self, place: float) -> float:
        """The number at this place of 0..1."""
        return float(self.low * (self.high / self.low) ** min(1.0, max(0.0, place)))

    def place(self, value: float) -> float:
        """The inverse of :meth:`at`, clipped to 0..1."""
        found = math.log(max(value, 1e-12) / self.low) / math.log(self.high / self.low)
        return min(1.0, max(0.0, found))


_COMMON = (
    Dimension("kmin_us", 1, 120),
    Dimension("kmax_over_kmin", 1.2, 20),
    Dimension("pmax_percent", 1, 100),
    Dimension("min_time_between_cnps_us", 1, 60),
    Dimension("rate_reduce_interval_us", 1, 60),
    Dimension("alpha_update_interval_us", 1, 60),
    Dimension("g", 1 / 1024, 1 / 8),
    Dimension("time_reset_us", 20, 1000),
    Dimension("fast_recovery_stages", 1, 5),
    Dimension("ai_of_line", 1e-4, 2e-2),
    Dimension("hai_over_ai", 1, 10),
    Dimension("min_rate_of_line", 1e-4, 1e-2),
)
# A dynamic threshold, where the intent has one; else the static one, never above today's:
# what it needs of the switches' buffers must still fit them.
_ALPHA = Dimension("alpha", 2**-6, 2**3)
_XOFF = Dimension("xoff_of_todays", 0.35, 1)


class Space:
    """The search space of one (small) site. Points are (dimensions,) arrays within 0..1."""

    def __init__(self, site: Site) -> None:
        self._intent = site.intent
        used = {link.speed_bps for link in site.topology.links}
        self._profiles = {
            text: profile
            for text, profile in site.intent.profiles.items()
            if parse_speed_bps(text) in used
        }
        nics = {site.topology.link_of[end].speed_bps for end in site.topology.endpoints}
        self._line_mbps = min(nics) / 1e6
        self.dynamic = _shares_buffer(site) and all(
            profile.alpha is not None for profile in self._profiles.values()
        )
        self.dimensions = (*_COMMON, _ALPHA if self.dynamic else _XOFF)

    def today(self) -> Floats:
        """The point nearest to the intent; thresholds as the first profile has them."""
        text, profile = next(iter(self._profiles.items()))
        dcqcn, line = self._intent.dcqcn, self._line_mbps
        values = {
            "kmin_us": profile.kmin * 8e6 / parse_speed_bps(text),
            "kmax_over_kmin": profile.kmax / profile.kmin,
            "pmax_percent": profile.pmax_percent,
            "min_time_between_cnps_us": dcqcn.min_time_between_cnps_us,
            "rate_reduce_interval_us": dcqcn.rate_reduce_interval_us,
            "alpha_update_interval_us": dcqcn.alpha_update_interval_us,
            "g": 1 - dcqcn.g_of_1024 / 1024,
            "time_reset_us": dcqcn.time_reset_us,
            "fast_recovery_stages": dcqcn.fast_recovery_stages,
            "ai_of_line": dcqcn.ai_rate_mbps / line,
            "hai_over_ai": dcqcn.hai_rate_mbps / dcqcn.ai_rate_mbps,
            "min_rate_of_line": dcqcn.min_rate_mbps / line,
            "alpha": profile.alpha or 1.0,
            "xoff_of_todays": 1.0,
        }
        return np.array([d.place(values[d.name]) for d in self.dimensions])

    def settings(self, point: Floats) -> dict[str, str]:
        """A point as dotted keys of ``fabric.yaml`` and YAML values."""
        value = {d.name: d.at(float(p)) for d, p in zip(self.dimensions, point, strict=True)}
        found: dict[str, str] = {}
        for text in self._profiles:
            for key, said in self._thresholds(text, value).items():
                found[f"intent.profiles.{text}.{key}"] = said
        for key, number in self._rates(value).items():
            found[f"intent.dcqcn.{key}"] = str(number)
        return found

    def _thresholds(self, text: str, value: Mapping[str, float]) -> dict[str, str]:
        profile = self._profiles[text]
        xoff, gap = profile.xoff, profile.xoff - profile.xon
        found: dict[str, str] = {}
        if self.dynamic:
            found["alpha"] = f"{2.0 ** round(math.log2(value['alpha'])):g}"
        else:
            xoff = min(xoff, max(_kb(xoff * value["xoff_of_todays"]), 2 * _kb(gap)))
            found |= {"xoff": _size(xoff), "xon": _size(xoff - gap)}
        kmin = min(
            _kb(value["kmin_us"] * parse_speed_bps(text) / 8e6), _kb(_KMIN_BELOW_XOFF * xoff)
        )
        kmax = max(_kb(kmin * value["kmax_over_kmin"]), kmin + 1000)
        pmax = min(100, max(1, round(value["pmax_percent"])))
        return found | {"kmin": _size(kmin), "kmax": _size(kmax), "pmax_percent": str(pmax)}

    def _rates(self, value: Mapping[str, float]) -> dict[str, int]:
        ai = max(1, round(value["ai_of_line"] * self._line_mbps))
        names = (
            "min_time_between_cnps_us",
            "rate_reduce_interval_us",
            "alpha_update_interval_us",
            "time_reset_us",
            "fast_recovery_stages",
        )
        return {name: max(1, round(value[name])) for name in names} | {
            "g_of_1024": min(1023, 1024 - max(1, round(1024 * value["g"]))),
            "ai_rate_mbps": ai,
            "hai_rate_mbps": max(1, round(ai * value["hai_over_ai"])),
            "min_rate_mbps": max(1, round(value["min_rate_of_line"] * self._line_mbps)),
        }


def _shares_buffer(site: Site) -> bool:
    """Some switch takes its XOFF from what is free of its buffer."""
    states = (expected_qos(site, switch) for switch in site.topology.switches)
    ports = (port for state in states for port in state.ports)
    return any(buffer.alpha is not None for port in ports for buffer in port.ingress_buffers)


def todays_settings(intent: Intent, keys: list[str]) -> dict[str, str]:
    """What the intent has under these keys, as :meth:`Space.settings` writes it."""
    found = {}
    for key in keys:
        _, part, *rest = key.split(".")
        owner = intent.dcqcn if part == "dcqcn" else intent.profiles[".".join(rest[:-1])]
        value = getattr(owner, rest[-1])
        sizes = rest[-1] in ("kmin", "kmax", "xoff", "xon")
        found[key] = _size(value) if sizes else f"{value:g}"
    return found


def _kb(size_bytes: float) -> int:
    """Whole kilobytes, at least one."""
    return max(1, round(size_bytes / 1000)) * 1000


def _size(size_bytes: int) -> str:
    whole, rest = divmod(size_bytes, 1000)
    return f"{size_bytes}B" if rest else f"{whole}KB"
