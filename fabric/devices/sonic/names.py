"""Names: of ports, and of the rows that PAISoar makes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

PREFIX = "PAISOAR_"

# Front ports, broken out or not; ``Ethernet0.100`` is a subinterface, ``Ethernet-BP0``
# leads to another ASIC of the same switch.
_PHYSICAL = re.compile(r"Ethernet\d+")


def is_physical(name: str) -> bool:
    """Whether this is a front port."""
    return _PHYSICAL.fullmatch(name) is not None


def content_name(kind: str, row: Mapping[str, str]) -> str:
    """Name of a row of this kind, derived from what it holds.

    A row is never redefined under its name: SCHEDULER's fields can only be
    given when it is made (``create-only`` in its YANG module), and a map in use
    would change for all ports at once.
    """
    text = json.dumps(dict(row), sort_keys=True)
    return f"{PREFIX}{kind}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
