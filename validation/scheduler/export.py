"""Files that tie schedulers and monitoring to PAISoar, made out for one program and site."""

from __future__ import annotations

import getpass
import shutil
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from fabric.errors import InputError
from fabric.site import Site
from validation.files import write_whole

# They are put between quotes of a shell, of JSON and of systemd.
_REFUSED = set("'\"\\%$`\n@")


def templates() -> Traversable:
    """The folder of the files as they ship."""
    return files("validation.scheduler") / "files"


def program() -> Path:
    """The ``paisoar`` that runs now, or that is first on PATH."""
    beside = Path(sys.executable).with_name("paisoar")
    found = beside if beside.exists() else Path(shutil.which("paisoar") or beside)
    return found.absolute()


def export_files(site: Site, folder: Path) -> tuple[Path, ...]:
    """Write all of them below ``folder``; scripts are executable.

    InputError where a path has characters that would have to be quoted, or nothing
    can be written there.
    """
    values = {
        "PAISOAR": str(program()),
        "SITE": str(site.path.resolve()),
        "NAME": site.name,
        "USER": getpass.getuser(),
        "FOLDER": str(folder.resolve()),
    }
    for value in values.values():
        if bad := _REFUSED & set(value):
            raise InputError(
                f"{value!r} cannot be written into scripts: it has {' '.join(sorted(bad))}",
                advice="Use paths without quotes, backslashes, dollar and per cent signs.",
            )
    written = []
    for kind in sorted(templates().iterdir(), key=lambda entry: entry.name):
        for entry in sorted(kind.iterdir(), key=lambda entry: entry.name):
            text = entry.read_text(encoding="utf-8")
            for name, value in values.items():
                text = text.replace(f"@{name}@", value)
            path = folder / kind.name / entry.name
            mode = 0o755 if entry.name.endswith(".sh") else 0o644
            write_whole(path, text.encode(), mode)
            written.append(path)
    return tuple(written)
