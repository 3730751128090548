"""One watch on a site at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from validation.alone import only_one


def alone(state_dir: Path) -> AbstractContextManager[None]:
    """Hold the site's watch; AccessError that names the process which has it."""
    return only_one(
        state_dir / "watch" / "lock",
        "this site is watched already",
        "One watch is enough; stop it first to start another.",
    )
