"""Parameter types of the EOS grammar: interfaces, lists of numbers, times, fractions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fabric.twin.cli.values import (
    INCOMPLETE,
    TYPES,
    Matcher,
    Taken,
    Token,
    Wrong,
    prefix,
    rest,
    word,
)

_KINDS = {
    "ethernet": "Ethernet",
    "management": "Management",
    "loopback": "Loopback",
    "vlan": "Vlan",
    "port-channel": "Port-Channel",
}
_SHORT = {
    "et": "ethernet",
    "ma": "management",
    "lo": "loopback",
    "vl": "vlan",
    "po": "port-channel",
}
_PART = re.compile(r"([A-Za-z-]*)((?:\d+/)*)(\d+)(?:-(\d+))?")

# Shares of the free buffer that a queue or priority group may take: avd,
# platform schema, ``threshold``.
FRACTIONS = ("1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8")


def _kind(text: str) -> str | None:
    text = _SHORT.get(text.lower(), text.lower())
    found = [kind for name, kind in _KINDS.items() if text and name.startswith(text)]
    return found[0] if len(found) == 1 else None


def interfaces(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """Interfaces with ranges, ``Et1-4,7/1``; the value is a tuple of long names."""
    text, count = tokens[at].text, 1
    if re.fullmatch(r"[A-Za-z-]+", text) and _kind(text):
        if at + 1 == len(tokens):
            return Wrong(INCOMPLETE)
        text, count = text + tokens[at + 1].text, 2
    names: list[str] = []
    kind: str | None = None
    for part in text.split(","):
        match = _PART.fullmatch(part)
        kind = kind if match and not match[1] else match and _kind(match[1])
        if match is None or kind is None:
            return Wrong()
        first, last = int(match[3]), int(match[4] or match[3])
        if last < first:
            return Wrong()
        names += [f"{kind}{match[2]}{number}" for number in range(first, last + 1)]
    return Taken(tuple(names), ",".join(names), count)


def interface(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """One interface; the value is its long name."""
    taken = interfaces(tokens, at)
    if isinstance(taken, Wrong) or not isinstance(taken.value, tuple) or len(taken.value) != 1:
        return taken if isinstance(taken, Wrong) else Wrong()
    return Taken(taken.value[0], str(taken.value[0]), taken.count)


def number_list(high: int) -> Matcher:
    """Numbers from 0 to ``high`` as ``8 9 10`` or ``8-10``, up to the next word."""

    def match(tokens: Sequence[Token], at: int) -> Taken | Wrong:
        found: list[int] = []
        count = 0
        for token in tokens[at:]:
            if not re.fullmatch(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*", token.text):
                break
            count += 1
            for part in token.text.split(","):
                low, _, last = part.partition("-")
                if int(last or low) > high or int(low) > int(last or low):
                    return Wrong()
                found += range(int(low), int(last or low) + 1)
        if not found:
            return Wrong()
        values = tuple(sorted(set(found)))
        return Taken(values, " ".join(map(str, values)), count)

    return match


def seconds(decimals: int, low: float, high: float) -> Matcher:
    """A time in seconds with so many decimals at most."""

    def match(tokens: Sequence[Token], at: int) -> Taken | Wrong:
        text = tokens[at].text
        if not re.fullmatch(rf"\d+(?:\.\d{{1,{decimals}}})?", text):
            return Wrong()
        if not low <= float(text) <= high:
            return Wrong()
        return Taken(float(text), f"{float(text):g}")

    return match


def fraction(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """A share of the free buffer."""
    text = tokens[at].text
    return Taken(text, text) if text in FRACTIONS else Wrong()


EOS_TYPES: dict[str, Matcher] = {
    "word": word,
    "line": rest,
    "prefix": prefix,
    "address": TYPES["address"],
    "interface": interface,
    "interfaces": interfaces,
    "dscps": number_list(63),
    "classes": number_list(7),
    "vlans": TYPES["vlans"],
    # Timeout and recovery time 0.01 to 60 s, polling 0.005 to 30 s: EOS User
    # Manual, "DCBX and Flow Control"; zero turns the watchdog off.
    "timeout": seconds(2, 0.0, 60.0),
    "polling": seconds(3, 0.005, 30.0),
    "fraction": fraction,
}
