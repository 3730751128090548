"""What a Junos port gets from elsewhere: interface-ranges, which are followed, and groups.

Sources: Juniper, Interfaces User Guide, "Interface Ranges" (``member``, whose numbers may
be ``*`` or ``[0-3]``, and ``member-range ... to ...``); CLI User Guide, "Use Configuration
Groups" (``display set`` shows what groups hold under ``groups`` only).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from fabric.devices.junos.statements import COS, Config
from fabric.unread import Fact

_PLACE = re.compile(r"([a-z]+)-(\d+)/(\d+)/(\d+)(?::(\d+))?")


def ranges_of(config: Config, port: str) -> tuple[str, ...]:
    """Names of the interface-ranges that this port is a member of."""
    rows = config.under("interfaces", "interface-range")
    return tuple(dict.fromkeys(name for name, *rest in rows if _names(port, rest)))


def _names(port: str, words: Sequence[str]) -> bool:
    """Whether this line of an interface-range names the port."""
    if words[:1] == ["member"]:
        return fnmatchcase(port, words[1].strip('"'))
    return words[:1] == ["member-range"] and words[2:3] == ["to"] and _between(port, *words[1::2])


def _between(port: str, first: str, last: str) -> bool:
    places = [_PLACE.fullmatch(name) for name in (first, port, last)]
    if any(place is None for place in places):
        return False
    kinds = {place[1] for place in places if place}
    numbers = [tuple(int(part or 0) for part in place.groups()[1:]) for place in places if place]
    return len(kinds) == 1 and numbers == sorted(numbers)


def unfollowed_groups(config: Config) -> Iterator[str]:
    """Entries for what groups that are applied set of ports: they are not followed."""
    applied = {s[at + 1] for s in config.statements for at in _places(s, "apply-groups")}
    for name, *rest in config.under("groups"):
        if name not in applied:
            continue
        if COS in rest:
            yield from (
                f"{fact}: group {name} has {COS}, which is not followed" for fact in _OF_COS
            )
        elif rest[:1] == ["interfaces"]:
            yield from (
                f"{fact}: group {name} has {word}, which is not followed"
                for word, fact in _OF_INTERFACES.items()
                if word in rest
            )


_OF_COS = (
    Fact.TRUST,
    Fact.DSCPS,
    Fact.CLASSES,
    f"{Fact.PFC} all priorities",
    f"{Fact.ECN} all queues",
    f"{Fact.SCHEDULING} all queues",
    f"{Fact.BUFFER} of all priorities",
    f"{Fact.RATE} all queues",
    Fact.WATCHDOG,
)
_OF_INTERFACES = {
    "mtu": Fact.MTU,
    "flow-control": Fact.LINK_PAUSE,
    "configured-flow-control": Fact.LINK_PAUSE,
}


def _places(statement: tuple[str, ...], word: str) -> Iterator[int]:
    return (at for at, one in enumerate(statement[:-1]) if one == word)
