"""Writing chosen settings into a copy of ``fabric.yaml``; comments and order are kept."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from fabric.errors import InputError
from fabric.site import Site, load_site


def write_copy(original: Path, copy: Path, settings: Mapping[str, str]) -> Site:
    """Write the copy and check it as ``paisoar check`` does.

    InputError where the copy is there already, cannot be written or makes no valid
    site; then nothing is left behind. The original is never written to.
    """
    if copy.exists():
        raise InputError(
            "exists already; a copy overwrites nothing", file=copy, advice="Name another file."
        )
    text = copied_text(original.read_text(encoding="utf-8"), settings)
    try:
        with copy.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=copy) from error
    try:
        return load_site(copy)
    except InputError:
        copy.unlink()
        raise


def copied_text(text: str, settings: Mapping[str, str]) -> str:
    """The text of a ``fabric.yaml`` with these settings, dotted keys and YAML values."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 16
    yaml.indent(mapping=2, sequence=4, offset=2)
    data = yaml.load(text)
    for key, value in settings.items():
        steps = key.split(".")
        owner: Any = data
        for step in steps[:-1]:
            owner = owner.setdefault(step, {})
        new = yaml.load(value)
        if owner.get(steps[-1]) != new:
            owner[steps[-1]] = new
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()
