"""Parameter types of the Junos grammar: ports, code points, lists in brackets."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fabric.twin.cli.values import TYPES, Matcher, Taken, Token, Wrong, word

DSCP_ALIASES = {"be": 0, "ef": 46, "nc1": 48, "nc2": 56}
DSCP_ALIASES |= {f"af{x}{y}": 8 * x + 2 * y for x in range(1, 5) for y in range(1, 4)}
DSCP_ALIASES |= {f"cs{x}": 8 * x for x in range(1, 8)}

_INTERFACE = re.compile(r"(?:et|xe|ge)-\d+/\d+/\d+(?::\d+)?|lo0|em0|irb|ae\d+|(?:et|xe|ge)-\*|all")


def interface(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """A port, a logical interface, or a wildcard."""
    text = tokens[at].text
    return Taken(text, text) if _INTERFACE.fullmatch(text) else Wrong()


def unit(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """A unit's number, or ``*`` for all."""
    text = tokens[at].text
    good = text == "*" or (text.isdecimal() and int(text) <= 16385)
    return Taken(text, text) if good else Wrong()


def dscp(text: str) -> str | None:
    """Six bits; an alias is kept as it is."""
    return text if re.fullmatch(r"[01]{6}", text) or text in DSCP_ALIASES else None


def pcp(text: str) -> str | None:
    """Three bits."""
    return text if re.fullmatch(r"[01]{3}", text) else None


def percent(text: str) -> str | None:
    """0 to 100."""
    return text if text.isdecimal() and int(text) <= 100 else None


def members(member: Callable[[str], str | None]) -> Matcher:
    """One value, or several in brackets; the value is a tuple."""

    def match(tokens: Sequence[Token], at: int) -> Taken | Wrong:
        texts = [token.text for token in tokens[at:]]
        if texts[0] == "[":
            if "]" not in texts:
                return Wrong()
            found = texts[1 : texts.index("]")]
            count = len(found) + 2
        else:
            found, count = texts[:1], 1
        values = [member(text) for text in found]
        if not values or None in values:
            return Wrong()
        return Taken(tuple(values), " ".join(found), count)

    return match


def one(member: Callable[[str], str | None]) -> Matcher:
    """One value."""

    def match(tokens: Sequence[Token], at: int) -> Taken | Wrong:
        text = tokens[at].text
        return Wrong() if member(text) is None else Taken(text, text)

    return match


def quoted(tokens: Sequence[Token], at: int) -> Taken | Wrong:
    """One word, or a text in quotes; it is printed in quotes where it has blanks."""
    text = tokens[at].text
    if not text.startswith('"'):
        return word(tokens, at)
    parts = [text]
    while not (parts[-1].endswith('"') and (len(parts) > 1 or len(text) > 1)):
        if at + len(parts) == len(tokens):
            return Wrong()
        parts.append(tokens[at + len(parts)].text)
    inside = " ".join(parts)[1:-1]
    return Taken(inside, f'"{inside}"' if " " in inside else inside, len(parts))


JUNOS_TYPES: dict[str, Matcher] = {
    "word": word,
    "text": quoted,
    "line": TYPES["line"],
    "prefix": TYPES["prefix"],
    "address": TYPES["address"],
    "interface": interface,
    "unit": unit,
    "dscps": members(dscp),
    "dscp": one(dscp),
    "pcp": one(pcp),
    "pcps": members(pcp),
    "percents": members(percent),
}
