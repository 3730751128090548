"""What NVUE's object model takes: paths and the values of their leaves.

Source: CumulusNetworks/docs, Cumulus Linux 5.14, "Quality of Service", "Switch Port
Attributes", nvue-reference "Set and Unset Commands". NVUE's exact wording of a value
that it does not take was not found in a public source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SPAN = re.compile(r"([a-z]*(?:\d+s)?)(\d+)(?:-(\d+))?")


class RefusedError(Exception):
    """A path or a value that is not in the model."""


@dataclass(frozen=True)
class Number:
    """A whole number within bounds."""

    low: int
    high: int


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """Any text of this form."""

    pattern: str = r"\S+"


@dataclass(frozen=True)
class Many:
    """Members with names of a form, or numbers within bounds; lists of them are taken."""

    key: Number | Text
    below: Branch


Leaf = Number | Choice | Text
Branch = dict[str, "Leaf | Branch | Many"]
Node = Leaf | Branch | Many
Path = tuple[str, ...]

SWITCH = Choice(("enable", "disable"))
BYTES = Number(0, 2**32 - 1)
NAME = Text(r"[A-Za-z][\w-]{0,63}")
TRAFFIC_CLASS, PRIORITY = Number(0, 7), Number(0, 7)

_INTERFACE_QOS: Branch = {
    **{
        kind: {"profile": NAME}
        for kind in (
            "mapping", "remark", "egress-scheduler", "congestion-control", "pfc", "link-pause",
            "egress-shaper",
        )
    },
    "pfc-watchdog": {"state": SWITCH},
}  # fmt: skip
_INTERFACE: Branch = {
    "acl": Many(Text(), {"inbound": {}, "outbound": {}}),
    "description": Text(r".+"),
    "ip": {"address": Many(Text(r"[\d.:a-f]+/\d+"), {}), "vrf": NAME},
    "link": {
        "auto-negotiate": Choice(("on", "off")),
        "fec": Choice(("auto", "baser", "off", "rs")),
        "mtu": Number(552, 9216),
        "speed": Text(r"(?:auto|\d+[GM])"),
        "state": Choice(("up", "down")),
    },
    "qos": _INTERFACE_QOS,
    "type": Choice(("swp", "eth", "loopback", "bond", "svi")),
}
_QOS: Branch = {
    "congestion-control": Many(
        NAME,
        {
            "traffic-class": Many(
                TRAFFIC_CLASS,
                {
                    "ecn": SWITCH,
                    "max-threshold": BYTES,
                    "min-threshold": BYTES,
                    "probability": Number(0, 100),
                    "red": SWITCH,
                },
            )
        },
    ),
    "egress-queue-mapping": {
        "default-global": {"switch-priority": Many(PRIORITY, {"traffic-class": TRAFFIC_CLASS})}
    },
    "egress-scheduler": Many(
        NAME,
        {
            "traffic-class": Many(
                TRAFFIC_CLASS,
                {"bw-percent": Number(1, 100), "mode": Choice(("dwrr", "strict"))},
            )
        },
    ),
    "link-pause": Many(NAME, {"cable-length": Number(1, 100_000), "rx": SWITCH, "tx": SWITCH}),
    "mapping": Many(
        NAME,
        {
            "dscp": Many(Number(0, 63), {"switch-priority": PRIORITY}),
            "pcp": Many(Number(0, 7), {"switch-priority": PRIORITY}),
            "port-default-sp": PRIORITY,
            "trust": Choice(("l2", "l3", "both", "port")),
        },
    ),
    "pfc": Many(
        NAME,
        {
            "cable-length": Number(1, 100_000),
            "port-buffer": BYTES,
            "rx": SWITCH,
            "switch-priority": Many(PRIORITY, {}),
            "tx": SWITCH,
            "xoff-threshold": BYTES,
            "xon-threshold": BYTES,
        },
    ),
    "pfc-watchdog": {"polling-interval": Number(100, 5000), "robustness": Number(1, 1000)},
    "roce": {"mode": Choice(("lossless", "lossy"))},
    "traffic-pool": Many(
        Text("default-lossy|default-lossless|mc-lossy|roce-lossy|roce-lossless"),
        {"memory-percent": Number(0, 100), "switch-priority": Many(PRIORITY, {})},
    ),
}
MODEL: Branch = {
    "interface": Many(Text(r"[a-z][\w.-]*"), _INTERFACE),
    "qos": _QOS,
    "router": {
        "bgp": {"autonomous-system": Number(1, 2**32 - 1), "router-id": Text(), "state": Choice(
            ("enabled", "disabled")
        )}
    },
    "service": {"ntp": Many(NAME, {"server": Many(Text(), {})})},
    "system": {
        "config": {"auto-save": {"state": Choice(("enabled", "disabled"))}},
        "hostname": Text(r"[\w-]+"),
        "timezone": Text(),
    },
    "vrf": Many(
        NAME,
        {
            "router": {
                "bgp": {
                    "neighbor": Many(Text(), {"remote-as": Text(), "type": Text()}),
                    "state": Choice(("enabled", "disabled")),
                }
            }
        },
    ),
}  # fmt: skip


def resolve(words: Sequence[str], *, value: bool) -> Iterator[tuple[Path, str | None]]:
    """Paths and values that these words name; a list names several.

    Without ``value`` (unset) the words may end at any place of the model.
    """
    yield from _resolve(MODEL, list(words), (), value)


def _resolve(
    node: Node, words: list[str], above: Path, value: bool
) -> Iterator[tuple[Path, str | None]]:
    if not words:
        if value and not isinstance(node, dict | Many):
            raise RefusedError(f"{above[-1]}: a value is required")
        if isinstance(node, Many) and value:
            raise RefusedError(f"{above[-1]}: a name is required")
        yield above, None
        return
    word, *rest = words
    if isinstance(node, Many):
        for name in _members(node.key, word):
            yield from _resolve(node.below, rest, (*above, name), value)
    elif isinstance(node, dict):
        if word not in node:
            raise RefusedError(f"{word!r} is not one of {sorted(node)}")
        yield from _resolve(node[word], rest, (*above, word), value)
    else:
        if not value or (rest and not _is_sentence(node)):
            raise RefusedError(f"{' '.join(words)!r} is not expected behind {above[-1]}")
        yield above, _checked(node, above[-1], " ".join(words))


def _is_sentence(node: Leaf) -> bool:
    return isinstance(node, Text) and node.pattern == ".+"


def _checked(node: Leaf, name: str, text: str) -> str:
    if isinstance(node, Choice):
        if text not in node.words:
            raise RefusedError(f"{text!r} is not one of {list(node.words)}")
    elif isinstance(node, Number):
        if not text.isdecimal() or not node.low <= int(text) <= node.high:
            raise RefusedError(f"{name}: {text!r} is not an integer of {node.low}..{node.high}")
    elif not re.fullmatch(node.pattern, text):
        raise RefusedError(f"{name}: {text!r} does not match '{node.pattern}'")
    return text


def _members(key: Number | Text, word: str) -> list[str]:
    names: list[str] = []
    for part in word.split(","):
        match = _SPAN.fullmatch(part)
        if match is None or (isinstance(key, Text) and match[3] is None):
            names.append(part)
            continue
        last = int(match[3] or match[2])
        names += [f"{match[1]}{number}" for number in range(int(match[2]), last + 1)]
    for name in names:
        _checked(key, "name", name)
    return names
