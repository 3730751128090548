"""What a terminal adds to a command's output, taken off again."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|[\x00\x07]")
_CURSOR_LEFT = re.compile(r"\x1b\[(\d*)D")
# The blanks behind it overwrite it where a return or a backspace follows them; those
# behind the last one are the indentation of the line that it stood on.
_PAGER = re.compile(
    r"[ \t]*-{2,} ?\(?more[^\n\r\x08-]*-*(?:\(\d+%\)-*)?(?:[ \t]*[\r\x08]+)*", re.IGNORECASE
)
_PROMPT = re.compile(r"[\w.@:~()/-]+[#>$%] ?")
# A prompt on a line of its own, with or without a command behind it.
_PROMPT_LINE = re.compile(
    r"^(?:[\w.-]+@(?P<host>[\w.-]+)(?::[\w~/.-]*)?[#>$%]|<(?P<vrp>[\w.-]+)>"
    r"|(?P<cli>[A-Za-z][\w.-]*)(?:\([\w./-]+\))?[#>])[ \t]*(?P<typed>[^\n]*)(?:\n|\Z)",
    re.MULTILINE,
)
# Commands that are told by themselves to be some, whatever the switch is called.
_KNOWN = re.compile(
    r"(?:show|sh|display|dis|terminal|term|end|exit|quit|no|screen-length|cat|sudo)\b.*|"
)
_WORDS = re.compile(r"[A-Za-z0-9.-]+")
_AROUND = re.compile(r"^(?:sudo +)?(?:/[\w/.-]*/)?|(?: *\| *no-more)?\s*$")
_HOSTNAME = re.compile(
    r"^(?:set system )?(?:hostname|switchname|sysname|host-name) (\S+)", re.MULTILINE
)
# Log messages of NX-OS, EOS and IOS (``%FACILITY-3-NAME:``), of Comware and VRP.
_LOG_LINE = re.compile(
    r"^(?:(?:<\d+>)?(?:[*.]?(?:\d{4} )?%?[A-Z][a-z]{2} +\d{1,2} |1 \d{4}-\d\d-\d\dT)[^%\n\"]*)?"
    r"(?:%[A-Z]\w*(?:-\w+)*-[0-7]-\w+: |%%\d\d\w+/[0-7]/\w+|\b[A-Z]\w*/[0-7]/[A-Z]\w*: )[^\n]*"
    r"(?:\n|\Z)",
    re.MULTILINE,
)


def clean(text: str, command: str = "", device: str = "") -> str:
    """The output alone: no carriage returns, colours, pager lines, echo or prompt.

    What a terminal has erased is gone. A prompt or a log message that came between
    two lines is left out with its line. ``command`` is the name of the file that the text
    stands in, by which a session of several commands is told apart; ``device`` the name
    of its folder.
    """
    if "\x1b" in text or "\x07" in text or "\x00" in text:
        text = _CURSOR_LEFT.sub(lambda match: "\x08" * min(int(match[1] or 1), 512), text)
        text = _ESCAPES.sub("", text)
    if any(word in text for word in ("--More", "--more", "--MORE", "-- More", "(more")):
        text = _PAGER.sub("", text)
    if "\r" in text or "\x08" in text:
        text = re.sub(r"\r+\n", "\n", text).replace("\r", "\n").replace("\x08", "")
    if any(mark in text for mark in "#>$%"):
        text = _LOG_LINE.sub("", _answer(text, command, device))
    end = text.rstrip()
    last = end[end.rfind("\n") + 1 :]
    if last and len(last) < 64 and _PROMPT.fullmatch(last.strip()):
        text = end[: len(end) - len(last)]
    return text


@dataclass(frozen=True, slots=True)
class _Typed:
    """What stands behind a prompt: the command, and what was printed before the next one."""

    command: str
    known: bool
    printed: str


def _answer(text: str, command: str, device: str) -> str:
    """What a session printed for this command, without the lines that are prompts.

    Where it was typed, what it printed is the answer. Else a session is taken for one
    answer that prompts came in between of, but for what commands of another kind printed.
    """
    own = _HOSTNAME.search(text)
    prompts = list(_PROMPT_LINE.finditer(text))
    known = {_name(match) for match in prompts if _is_known(match)}
    names = {own[1]} if own else {*known, device}
    found = [match for match in prompts if _name(match) in names]
    if not found:
        return text
    ends = [match.start() for match in found[1:]] + [len(text)]
    typed = [
        _Typed(match["typed"].strip(), _is_known(match), text[match.end() : end])
        for match, end in zip(found, ends, strict=True)
    ]
    mine = [one.printed for one in typed if _same(one.command, command) and one.printed.strip()]
    if mine:
        return mine[-1]
    head = text[: found[0].start()]
    answer = "".join([head, *(one.printed for one in typed if one.known)])
    return answer if answer.strip() else "".join([head, *(one.printed for one in typed)])


def _name(prompt: re.Match[str]) -> str:
    return prompt["host"] or prompt["vrp"] or prompt["cli"]


def _is_known(prompt: re.Match[str]) -> bool:
    return _KNOWN.fullmatch(prompt["typed"].strip()) is not None


def _same(typed: str, name: str) -> bool:
    """Whether what was typed, words cut short or not, is the command of a file's name."""
    words, wanted = _WORDS.findall(_AROUND.sub("", typed)), _WORDS.findall(name)
    return len(words) == len(wanted) > 0 and all(
        full.startswith(word) for word, full in zip(words, wanted, strict=True)
    )


def without_echo(command: str, text: str) -> str:
    """The output without the line on which the command was typed."""
    first, newline, rest = text.partition("\n")
    typed = first.strip()
    if newline and typed.endswith(command):
        before = typed.removesuffix(command).rstrip()
        if not before or before[-1] in "#>$%":
            return rest
    return text
