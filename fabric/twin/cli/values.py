"""Parameter types of the NX-OS grammar: numbers, names, interfaces, DSCP lists.

A type looks at the tokens from one position on and says how many it takes and
what they mean, or with which of NX-OS's own texts it refuses them. Those texts
(``Invalid range``, ``Invalid interface format``, each ``at '^' marker.``) are
quoted in the annet project's NX-OS tests and in recorded sessions.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

INVALID = "% Invalid command at '^' marker."
INCOMPLETE = "% Incomplete command at '^' marker."
AMBIGUOUS = "% Ambiguous command at '^' marker."
INVALID_RANGE = "Invalid range at '^' marker."
INVALID_INTERFACE = "Invalid interface format at '^' marker."

NAME_LENGTH = 63
DSCP_NAMES = {
    "default": 0,
    "ef": 46,
    **{f"cs{n}": 8 * n for n in range(1, 8)},
    **{f"af{c}{d}": 8 * c + 2 * d for c in range(1, 5) for d in range(1, 4)},
}
_KINDS = {
    "ethernet": "Ethernet",
    "port-channel": "port-channel",
    "mgmt": "mgmt",
    "loopback": "loopback",
    "vlan": "Vlan",
}
_INTERFACE = re.compile(r"([A-Za-z]+(?:-[A-Za-z]+)?)(\d[\d/]*)(?:-(\d+))?")
# A port, a port that was broken out, or the number of an interface of another kind.
_NUMBERS = re.compile(r"\d{1,4}|\d{1,2}/\d{1,3}(?:/\d)?")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a command line and the column at which it begins."""

    text: str
    column: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A type accepts ``count`` tokens; ``text`` is how NX-OS would print them."""

    value: object
    text: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Wrong:
    """A type refuses: the text that NX-OS prints under the caret."""

    message: str = INVALID


Matcher = Callable[[Sequence[Token], int], Taken | Wrong]


def tokenize(line: str) -> list[Token]:
    """The words of a line with their columns."""
    return [Token(match[0], match.start()) for match in re.finditer(r"\S+", line)]


def number(low: int, high: int) -> Matcher:
    """An integer from ``low`` to ``high``."""

    def match(tokens: Sequence[Token], at: int) -> Taken | Wrong:
        text = tokens[at].text
        if not re.fullmatch(r"\d{1,12}", text):
            return Wrong()
        if not low <= int(text) <= high:
            return Wrong(INVALID_RANGE)
        return Taken(int(text), str(int(text)))

    return match


def word(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """A name without blanks."""
    text = tokens[at].text
    if len(text) > NAME_LENGTH or "|" in text:
        return Wrong()
    return Taken(text, text)


def rest(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """Everything up to the end of the line."""
    text = " ".join(token.text for token in tokens[at:])
    return Taken(text, text, len(tokens) - at)


def prefix(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """An IPv4 address with its prefix length."""
    try:
        value = ipaddress.IPv4Interface(tokens[at].text)
    except ValueError:
        return Wrong()
    if "/" not in tokens[at].text:
        return Wrong()
    return Taken(value, str(value))


def address(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """An IPv4 address."""
    try:
        value = ipaddress.IPv4Address(tokens[at].text)
    except ValueError:
        return Wrong()
    return Taken(value, str(value))


def dscps(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """A DSCP list: ``24-31``, ``26,48``, ``af31``; the value is a sorted tuple."""
    return _number_list(tokens, at, 63, DSCP_NAMES)


def priorities(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """A list of CoS or precedence values, 0 to 7."""
    return _number_list(tokens, at, 7, {})


def vlans(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """A VLAN list such as ``1,10-12``, 1 to 4094."""
    taken = _number_list(tokens, at, 4094, {})
    if isinstance(taken, Taken) and isinstance(taken.value, tuple) and 0 in taken.value:
        return Wrong(INVALID_RANGE)
    return taken


def _number_list(
    tokens: Sequence[Token], at: int, high: int, names: dict[str, int]
) -> Taken | Wrong:
    found: set[int] = set()
    for part in tokens[at].text.split(","):
        low_text, dash, high_text = part.partition("-")
        ends = []
        for text in (low_text, high_text) if dash else (low_text,):
            if text.lower() in names:
                ends.append(names[text.lower()])
            elif re.fullmatch(r"\d{1,6}", text):
                ends.append(int(text))
            else:
                return Wrong()
        if ends[-1] > high or ends[0] > ends[-1]:
            return Wrong(INVALID_RANGE)
        found.update(range(ends[0], ends[-1] + 1))
    return Taken(tuple(sorted(found)), compact(found))


def compact(numbers: set[int] | tuple[int, ...]) -> str:
    """``24-31,48`` for the numbers in it, as NX-OS prints lists."""
    parts: list[str] = []
    ordered = sorted(numbers)
    start = 0
    for index, value in enumerate(ordered):
        if index + 1 == len(ordered) or ordered[index + 1] != value + 1:
            first = ordered[start]
            parts.append(str(first) if first == value else f"{first}-{value}")
            start = index + 1
    return ",".join(parts)


def interface(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """One interface, ``Ethernet1/1`` or abbreviated or with a blank; the value is its name."""
    taken = interfaces(tokens, at)
    if isinstance(taken, Taken) and isinstance(taken.value, tuple):
        if len(taken.value) != 1:
            return Wrong(INVALID_INTERFACE)
        return Taken(taken.value[0], str(taken.value[0]), taken.count)
    return taken


def interfaces(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """Interfaces with ranges, ``e1/1-4, e1/7``; the value is a tuple of names."""
    text, count = tokens[at].text, 1
    while at + count < len(tokens) and (
        re.search(r"(^|,)[A-Za-z-]+$|,$", text) or tokens[at + count].text.startswith(",")
    ):
        text += tokens[at + count].text
        count += 1
    if re.fullmatch(r"[A-Za-z-]+", text) and _kind(text):
        return Wrong(INCOMPLETE)
    names: list[str] = []
    for part in text.split(","):
        match = _INTERFACE.fullmatch(part)
        kind = _kind(match[1]) if match else None
        if not match or not kind:
            return Wrong(INVALID_INTERFACE if names or (match and kind) else INVALID)
        if (kind == "Ethernet") != ("/" in match[2]) or not _NUMBERS.fullmatch(match[2]):
            return Wrong(INVALID_INTERFACE)
        slot, slash, port = match[2].rpartition("/")
        last = int(match[3]) if match[3] else int(port)
        if last < int(port):
            return Wrong(INVALID_RANGE)
        names += [f"{kind}{slot}{slash}{n}" for n in range(int(port), last + 1)]
    return Taken(tuple(names), ", ".join(names), count)


def _kind(text: str) -> str | None:
    for name, kind in _KINDS.items():
        if name.startswith(text.lower()):
            return kind
    return None


TYPES: dict[str, Matcher] = {
    "word": word,
    "line": rest,
    "prefix": prefix,
    "address": address,
    "dscps": dscps,
    "priorities": priorities,
    "vlans": vlans,
    "interface": interface,
    "interfaces": interfaces,
}


def matcher_of(name: str, types: Mapping[str, Matcher] = TYPES) -> Matcher:
    """The type of this name, or the integer range ``A-B``."""
    bounds = re.fullmatch(r"(\d+)-(\d+)", name)
    return number(int(bounds[1]), int(bounds[2])) if bounds else types[name]
