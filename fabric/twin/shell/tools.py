"""Programs that every Linux has and that people pipe ``show`` through."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fabric.twin.shell.session import FAILED, USAGE, Answer, Call, Program

BOOT_ID = "/proc/sys/kernel/random/boot_id"

Files = Callable[[], Mapping[str, str]]


def tools(hostname: Callable[[], str], files: Files, user: str) -> dict[str, Program]:
    """The programs; ``files`` are what ``cat`` finds, by absolute path."""
    return {
        "cat": lambda call: _cat(call, files()),
        "echo": lambda call: Answer(" ".join(call.arguments) + "\n"),
        "false": lambda _call: Answer(status=FAILED),
        "grep": _grep,
        "head": lambda call: _cut(call, lambda lines, count: lines[:count]),
        "hostname": lambda _call: Answer(f"{hostname()}\n"),
        "tail": lambda call: _cut(call, lambda lines, count: lines[-count:] if count else []),
        "true": lambda _call: Answer(),
        "uname": lambda call: _uname(call, hostname()),
        "wc": _wc,
        "whoami": lambda call: Answer("root\n" if call.root else f"{user}\n"),
    }


def _uname(call: Call, hostname: str) -> Answer:
    if call.arguments == ("-n",):
        return Answer(f"{hostname}\n")
    if call.arguments:
        return Answer(f"uname: extra operand '{call.arguments[0]}'\n", FAILED)
    return Answer("Linux\n")


def _cat(call: Call, files: Mapping[str, str]) -> Answer:
    if not call.arguments:
        return Answer(call.stdin or "")
    texts, status = [], 0
    for path in call.arguments:
        if path in files:
            texts.append(files[path])
        else:
            texts.append(f"cat: {path}: No such file or directory\n")
            status = FAILED
    return Answer("".join(texts), status)


def _grep(call: Call) -> Answer:
    options = "".join(word[1:] for word in call.arguments if word.startswith("-"))
    patterns = [word for word in call.arguments if not word.startswith("-")]
    if len(patterns) != 1 or set(options) - set("ivcEwF"):
        return Answer("Usage: grep [OPTION]... PATTERNS [FILE]...\n", USAGE)
    pattern = re.escape(patterns[0]) if "F" in options else patterns[0]
    try:
        wanted = re.compile(
            rf"\b(?:{pattern})\b" if "w" in options else pattern,
            re.IGNORECASE if "i" in options else 0,
        )
    except re.error:
        return Answer(f"grep: Invalid regular expression: {pattern}\n", USAGE)
    lines = (call.stdin or "").splitlines()
    found = [line for line in lines if bool(wanted.search(line)) != ("v" in options)]
    if "c" in options:
        return Answer(f"{len(found)}\n", 0 if found else FAILED)
    return Answer("".join(f"{line}\n" for line in found), 0 if found else FAILED)


def _cut(call: Call, cut: Callable[[list[str], int], list[str]]) -> Answer:
    words = "".join(call.arguments)
    match = re.fullmatch(r"(?:-n)?-?(\d+)", words) if words else None
    if words and match is None:
        return Answer(f"{call.words[0]}: invalid option -- '{words}'\n", FAILED)
    lines = (call.stdin or "").splitlines()
    return Answer("".join(f"{line}\n" for line in cut(lines, int(match[1]) if match else 10)))


def _wc(call: Call) -> Answer:
    text = call.stdin or ""
    if call.arguments == ("-l",):
        return Answer(f"{text.count(chr(10))}\n")
    if call.arguments:
        return Answer(f"wc: invalid option -- '{call.arguments[0]}'\n", FAILED)
    return Answer(f"{text.count(chr(10)):>7} {len(text.split()):>7} {len(text):>7}\n")
