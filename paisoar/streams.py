"""Standard streams as a program of the shell should treat them.

A reader that goes away (``| head -1``) ends a program quietly, a full disk or a
closed stdout is said in one line, and what happens to stderr never matters to the
work. Nothing here imports more than a moment's worth.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import BinaryIO, TextIO, cast

STDOUT, STDERR = 1, 2


class StdoutLostError(BaseException):
    """Stdout takes no more. No ``Exception``: whoever handles faults must not take it for one.

    ``reader_gone`` says that somebody stopped reading, which is no fault at all.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror)
        self.reader_gone = error.errno == errno.EPIPE
        self.reason = error.strerror or str(error)


class _Stdout(io.TextIOWrapper):
    """Raises StdoutLostError the first time that it cannot write, then swallows all."""

    _lost = False

    def write(self, text: str, /) -> int:
        if self._lost:
            return len(text)
        try:
            return super().write(text)
        except OSError as error:
            raise self._lose(error) from None

    def flush(self) -> None:
        if self._lost:
            return
        try:
            super().flush()
        except OSError as error:
            raise self._lose(error) from None

    def _lose(self, error: OSError) -> StdoutLostError:
        self._lost = True
        # What is still buffered, here or in a child process, has somewhere to go.
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, STDOUT)
        os.close(sink)
        return StdoutLostError(error)


class _Stderr(io.TextIOWrapper):
    """Loses what it cannot write: no work ends because nobody hears of its progress."""

    def write(self, text: str, /) -> int:
        with contextlib.suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def guard_streams() -> None:
    """Put these streams in the place of Python's own, and something behind closed ones.

    A file that is opened later must not get the number of a closed stream: what
    others print would be written into it. A closed stdout refuses, a closed stderr
    swallows. Text that the terminal's encoding lacks is written with escapes.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
    for name, number, kind in (("stdout", STDOUT, _Stdout), ("stderr", STDERR, _Stderr)):
        guarded = _wrapped(getattr(sys, name), number, kind)
        setattr(sys, name, guarded)
        setattr(sys, f"__{name}__", guarded)


def _wrapped(stream: TextIO | None, number: int, kind: type[io.TextIOWrapper]) -> TextIO:
    if isinstance(stream, io.TextIOWrapper):
        encoding, lines = stream.encoding, stream.line_buffering
        buffer = cast(BinaryIO, stream.detach())
    else:
        encoding, lines = "utf-8", True
        buffer = open(number, "wb", closefd=False)  # noqa: SIM115 - it stays open
    return kind(buffer, encoding=encoding, errors="backslashreplace", line_buffering=lines)
