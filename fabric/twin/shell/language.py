"""The part of bash's language that people type on a switch.

Words with quotes, pipes, ``;``, ``&&`` and ``||``, ``sudo`` before a program, and
redirection to ``/dev/null``. Everything else is refused as bash would refuse it, or
as a shell that may write nowhere.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

_JOINTS = (";", "&&", "||")
_PUNCTUATION = "|&;<>()"
_NULL = "/dev/null"


class SyntaxRefusedError(Exception):
    """bash cannot make sense of a line, or may not do what it says."""


@dataclass
class Pipeline:
    """Programs joined by pipes. ``joint`` is what stands before it (empty for the first)."""

    joint: str
    programs: list[list[str]] = field(default_factory=lambda: [[]])
    silent: bool = False


def parse(line: str) -> list[Pipeline]:
    """The pipelines of a line; SyntaxRefusedError where it is none."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        pieces = list(lexer)
    except ValueError:
        quote = '"' if line.count('"') % 2 else "'"
        raise SyntaxRefusedError(f"unexpected EOF while looking for matching `{quote}'") from None
    pipelines = [Pipeline("")]
    rest = iter(pieces)
    for piece in rest:
        last = pipelines[-1]
        if piece in _JOINTS:
            _require_word(last, piece)
            pipelines.append(Pipeline(piece))
        elif piece == "|":
            _require_word(last, piece)
            last.programs.append([])
        elif piece in (">", ">>", ">&"):
            _redirect(last, piece, next(rest, "newline"))
        elif piece and set(piece) <= set(_PUNCTUATION):
            raise SyntaxRefusedError(f"syntax error near unexpected token `{piece}'")
        else:
            last.programs[-1].append(piece)
    if not pipelines[-1].programs[-1]:
        if pipelines[-1].joint in ("", ";") and len(pipelines[-1].programs) == 1:
            pipelines.pop()
        else:
            raise SyntaxRefusedError("syntax error: unexpected end of file")
    return pipelines


def _require_word(pipeline: Pipeline, piece: str) -> None:
    if not pipeline.programs[-1]:
        raise SyntaxRefusedError(f"syntax error near unexpected token `{piece}'")


def _redirect(pipeline: Pipeline, piece: str, target: str) -> None:
    """``>/dev/null`` silences, ``2>/dev/null`` and ``2>&1`` change nothing here."""
    words = pipeline.programs[-1]
    stream = words.pop() if words and words[-1] in ("1", "2") else "1"
    if piece == ">&" and target in ("1", "2"):
        return
    if target != _NULL:
        raise SyntaxRefusedError(f"{target}: Permission denied")
    pipeline.silent = pipeline.silent or stream == "1"
