"""How numbers and evidence are written, on pages and in the corners of figures."""

from __future__ import annotations

from typing import Any

import pandas as pd

# What evidence of each class may be called.
_SAID = {
    "simulated": "simulated",
    "soft-roce": "measured over software RoCE (soft-roce)",
    "hardware": "measured on hardware",
}


def evidence_said(evidence_class: str) -> str:
    """``simulated``, or ``measured`` with what it was measured on."""
    return _SAID.get(evidence_class, evidence_class)


def count_of(count: int, one: str, many: str = "") -> str:
    """``1 check``, ``1,142 checks``; the plural takes an s unless it is given."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def number(value: Any) -> str:  # noqa: ANN401 - a frame's cell
    """At most three decimals, two digits of what is smaller; nothing for no value."""
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return ""
    if isinstance(value, float):
        if 0 < abs(value) < 0.0005:
            return f"{value:.2g}"
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def percent(value: float) -> str:
    """A share as per cent."""
    return f"{number(round(value * 100, 2))} %"
