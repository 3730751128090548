"""Which statements there are, and which of them can be held once.

Sources: Juniper, Traffic Management User Guide (QFX Series) and CLI reference;
Apstra configlets for GPU fabrics; JVD for AI data centers. Statements that the
emulator does not act on are kept as they would be printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabric.twin.cli.grammar import Grammar, Match, RefusedError
from fabric.twin.cli.values import INCOMPLETE, Token
from fabric.twin.junos.values import JUNOS_TYPES

Statement = tuple[str, ...]


@dataclass(frozen=True)
class Leaf:
    """A statement: how many of its last words are a value that replaces the old one.

    ``members`` names the parameter that is a list, each member of which is a
    statement of its own.
    """

    values: int = 0
    members: str = ""


GRAMMAR: Grammar[Leaf] = Grammar(JUNOS_TYPES)


def _add(*syntaxes: str, values: int = 0, members: str = "") -> None:
    for syntax in syntaxes:
        GRAMMAR.add(syntax, Leaf(values, members))


_add("version <release:word>", values=1)
_add("system host-name <name:word>", "system time-zone <zone:word>", values=1)
_add("system name-server <server:address>", "system ntp server <server:address>")
_add("system services ssh", "system services netconf ssh")
_add("system login user <user:word> class <class:word>", values=1)
_add("system login user <user:word> uid <uid:100-64000>", values=1)
_add("system root-authentication encrypted-password <hash:text>", values=1)
_add("system syslog host <host:address> any (notice | any | error)", values=1)
_add("snmp location <where:text>", values=1)
_add("chassis fpc <slot:0-9> pic <pic:0-9> port <port:0-63> speed (10g | 25g | 100g)", values=1)
_add("routing-options router-id <id:address>", values=1)
_add("routing-options static route <to:prefix> next-hop <via:address>", values=1)
_add("protocols lldp interface <of:interface>")
_add("protocols ospf area <area:address> interface <of:word> [interface-type p2p]")
_add("protocols ospf area <area:address> interface <of:word> passive")
_add("vlans <name:word> vlan-id <vlan:1-4094>", values=1)

_IF = "interfaces <if:interface>"
_add(_IF, f"{_IF} disable")
_add(f"{_IF} description <text:text>", values=1)
_add(f"{_IF} mtu <mtu:256-9216>", values=1)
_add(f"{_IF} ether-options flow-control", f"{_IF} ether-options no-flow-control")
for _side in ("rx-buffers", "tx-buffers"):
    _add(f"{_IF} ether-options configured-flow-control {_side} (on | off)", values=1)
_add(f"{_IF} ether-options 802.3ad <ae:interface>", values=1)
_UNIT = f"{_IF} unit <unit:unit>"
_add(_UNIT, f"{_UNIT} family inet", f"{_UNIT} family inet6")
_add(f"{_UNIT} description <text:text>", f"{_UNIT} vlan-id <vlan:1-4094>", values=1)
_add(f"{_UNIT} family inet mtu <mtu:256-9192>", values=1)
_add(f"{_UNIT} family inet address <address:prefix>")
_add(f"{_UNIT} family inet unnumbered-address <of:word>", values=1)
_add(f"{_UNIT} family ethernet-switching interface-mode (access | trunk)", values=1)
_add(f"{_UNIT} family ethernet-switching vlan members <vlan:word>")

_COS = "class-of-service"
_DSCP = f"{_COS} classifiers dscp <name:word>"
_add(_DSCP, f"{_COS} classifiers ieee-802.1 <name:word>")
_add(f"{_DSCP} import <other:word>", values=1)
_LOSS = "forwarding-class <class:word> loss-priority (low | medium-high | high) code-points"
_add(f"{_DSCP} {_LOSS} <points:dscps>", members="points")
_add(f"{_COS} classifiers ieee-802.1 <name:word> {_LOSS} <points:pcps>", members="points")
_DROP = f"{_COS} drop-profiles <name:word>"
_add(_DROP)
_add(f"{_DROP} interpolate fill-level <levels:percents>", members="levels")
_add(f"{_DROP} interpolate drop-probability <levels:percents>", members="levels")
_CLASS = f"{_COS} forwarding-classes class <name:word>"
_add(_CLASS)
_add(f"{_CLASS} queue-num <queue:0-11> [no-loss] [pfc-priority <priority:0-7>]")
_SCHEDULER = f"{_COS} schedulers <name:word>"
_add(_SCHEDULER)
_add(f"{_SCHEDULER} priority (low | strict-high)", values=1)
_add(f"{_SCHEDULER} transmit-rate percent <share:1-100>", values=1)
_add(f"{_SCHEDULER} shaping-rate percent <share:1-100>", values=1)
_add(f"{_SCHEDULER} buffer-size percent <share:0-100>", values=1)
_add(f"{_SCHEDULER} buffer-dynamic-threshold <alpha:0-10>", values=1)
_add(
    f"{_SCHEDULER} drop-profile-map loss-priority (any | low | medium-high | high) protocol any "
    "drop-profile <profile:word>",
    values=1,
)
_add(f"{_SCHEDULER} explicit-congestion-notification")
_MAP = f"{_COS} scheduler-maps <name:word>"
_add(_MAP)
_add(f"{_MAP} forwarding-class <class:word> scheduler <scheduler:word>", values=1)
_CNP = f"{_COS} congestion-notification-profile <name:word>"
_add(_CNP, f"{_CNP} pfc-watchdog")
_add(f"{_CNP} input cable-length <metres:1-10000>", values=1)
for _point in ("dscp code-point <point:dscp>", "ieee-802.1 code-point <point:pcp>"):
    _add(f"{_CNP} input {_point} pfc")
    _add(f"{_CNP} input {_point} pfc mru <mru:64-9216>", values=1)
_add(f"{_CNP} output ieee-802.1 code-point <point:pcp> flow-control-queue <queue:0-7>")
for _setting in ("poll-interval <ms:100-1000>", "detection <polls:1-100>"):
    _add(f"{_CNP} pfc-watchdog {_setting}", values=1)
_add(f"{_CNP} pfc-watchdog recovery <ms:100-60000>", values=1)
_add(f"{_CNP} pfc-watchdog watchdog-action (drop | forward)", values=1)
_BUFFER = f"{_COS} shared-buffer (ingress | egress)"
_PARTITION = f"{_BUFFER} buffer-partition (lossless | lossless-headroom | lossy | multicast)"
_add(_PARTITION)
_add(f"{_BUFFER} percent <share:0-100>", f"{_PARTITION} percent <share:0-100>", values=1)
_add(f"{_PARTITION} dynamic-threshold <alpha:0-10>", values=1)
_PORT = f"{_COS} interfaces <if:interface>"
_add(_PORT, f"{_PORT} unit <unit:unit>")
_add(f"{_PORT} scheduler-map <name:word>", values=1)
_add(f"{_PORT} congestion-notification-profile <name:word>", values=1)
for _place in (_PORT, f"{_PORT} unit <unit:unit>"):
    _add(f"{_place} classifiers (dscp | ieee-802.1) <name:word>", values=1)
    _add(f"{_place} rewrite-rules (dscp | ieee-802.1) <name:word>", values=1)

# Entries of lists, by their first words and how many words make an entry: one stays,
# empty, when the last statement below it is deleted.
ENTRIES: tuple[tuple[Statement, int], ...] = (
    ((_COS, "interfaces"), 3),
    ((_COS, "drop-profiles"), 3),
    ((_COS, "schedulers"), 3),
    ((_COS, "scheduler-maps"), 3),
    ((_COS, "congestion-notification-profile"), 3),
    ((_COS, "classifiers", "dscp"), 4),
    ((_COS, "classifiers", "ieee-802.1"), 4),
    ((_COS, "forwarding-classes", "class"), 4),
    ((_COS, "shared-buffer", "ingress", "buffer-partition"), 5),
    ((_COS, "shared-buffer", "egress", "buffer-partition"), 5),
    (("interfaces",), 2),
)


def parse(tokens: Sequence[Token], end: int) -> tuple[Leaf, Match]:
    """The statement of these words; RefusedError where there is none such."""
    return GRAMMAR.parse(tokens, end)


def is_path(tokens: Sequence[Token], end: int) -> bool:
    """Whether statements can begin with these words."""
    try:
        GRAMMAR.parse(tokens, end)
    except RefusedError as error:
        return error.message == INCOMPLETE
    return True


def statements(leaf: Leaf, match: Match) -> Iterator[Statement]:
    """The statements that a parsed line makes, one for each member of its list."""
    words = split(match.text)
    if not leaf.members:
        yield words
        return
    values = match.values[leaf.members]
    assert isinstance(values, tuple)
    for value in values:
        yield (*words[: len(words) - len(values)], str(value))


def split(text: str) -> Statement:
    """The words of a printed statement; quoted text is one word."""
    words: list[str] = []
    for part in text.split(" "):
        if words and words[-1].startswith('"') and not _closed(words[-1]):
            words[-1] += f" {part}"
        else:
            words.append(part)
    return tuple(words)


def _closed(text: str) -> bool:
    return len(text) > 1 and text.endswith('"')
