"""Names: of ports, and of the profiles that PAISoar makes."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

PREFIX = "paisoar-"
_PHYSICAL = re.compile(r"swp\d+(?:s\d+)?")


def is_physical(name: str) -> bool:
    """Whether this is a front port; broken-out ports (``swp1s0``) are, ``swp1.100`` is not."""
    return _PHYSICAL.fullmatch(name) is not None


def order(name: str) -> tuple[int, ...]:
    """Sort key of a front port: as people count."""
    return tuple(int(number) for number in re.findall(r"\d+", name))


def content_name(profile: Any) -> str:  # noqa: ANN401 - a tree
    """Name of a profile, derived from what it holds."""
    text = json.dumps(profile, sort_keys=True)
    return f"{PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:8]}"
