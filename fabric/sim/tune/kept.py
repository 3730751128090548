"""Keeping the answer of a search under ``.paisoar/``, for who then wants to write a choice."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fabric.errors import InputError
from fabric.sim.engine.jit import source_hash
from fabric.site import Site


def kept_path(site: Site, question: object) -> Path:
    """Where the answer to this question about this site is kept, from this very simulator.

    ``question`` is plain JSON values.
    """
    digest = hashlib.sha256(json.dumps([site.sha256, question, source_hash()]).encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return site.state_dir / "tune" / f"{digest.hexdigest()[:16]}.json"


def read_kept(path: Path) -> dict[str, Any] | None:
    """The answer; None where there is none that can be read."""
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document


def keep(path: Path, document: dict[str, Any]) -> None:
    """Keep an answer. InputError where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from error
