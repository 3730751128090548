"""Reading and writing a file that people name.

What cannot be a text is refused before it is parsed; what cannot be written leaves
the file as it was.
"""

from __future__ import annotations

import codecs
import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fabric.errors import InputError

MAX_FILE_BYTES = 64 * 2**20
# Control characters that no text holds: NUL first, but neither tab, line ends nor escapes.
_BINARY = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")


def read_bytes(path: Path, *, advice: str = "") -> bytes:
    """The whole file. InputError where there is none, or it is no file, or too large.

    ``advice`` says what to do where there is no such file.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise InputError("no such file", file=path, advice=advice) from None
    except IsADirectoryError:
        raise InputError("is a folder, not a file", file=path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", file=path) from error
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"is larger than {MAX_FILE_BYTES // 2**20} MiB", file=path)
    return data


def read_text(path: Path, *, advice: str = "") -> str:
    """The file's text, UTF-8 with or without its mark. InputError has the line of what is none."""
    data = read_bytes(path, advice=advice)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError("is UTF-16, not UTF-8", file=path, line=1, advice="Save it as UTF-8.")
    refuse_binary(path, data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8: byte 0x{data[error.start]:02x}",
            file=path,
            line=_line(data, error.start),
            advice="Save it as UTF-8.",
        ) from None


def write_text(path: Path, text: str) -> None:
    """Write the whole file or leave it as it was. InputError where it cannot be written.

    A link stays one; what it leads to is written.
    """
    try:
        target = path.resolve()
        with naming(path), tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as folder:
            fresh = Path(folder) / target.name
            fresh.write_text(text, encoding="utf-8")
            if target.exists():
                fresh.chmod(target.stat().st_mode)
            fresh.replace(target)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be written: {reason}", file=path) from error


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let what the system refuses here carry this path: a full disk names none by itself."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def refuse_binary(path: Path, data: bytes) -> None:
    """InputError where these bytes hold what no text does."""
    found = _BINARY.search(data)
    if found is not None:
        raise InputError(
            f"is no text: it holds the byte 0x{found[0][0]:02x}",
            file=path,
            line=_line(data, found.start()),
        )


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1
