"""Host lists as Slurm writes them: ``node[01-03,7],gpu[0-1]n[00-02]``.

Expanded by ClusterShell's NodeSet, as far as its syntax is Slurm's ("hostlist
expression", slurm.schedmd.com/scontrol.html, ``show hostnames``): no groups, set
operators, wildcards or steps, which mean something to ClusterShell alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from fabric.errors import InputError
from fabric.site import Site

# Far more than any job has; a range is written in a few characters.
MAX_HOSTS = 100_000
_FORM = re.compile(r"[A-Za-z0-9._\-\[\],]*")
_PART = re.compile(r"(?:[^,\[]|\[[^\]]*\]?)+")
_RANGES = re.compile(r"\[([^\]]*)\]")
ADVICE = "Write it as `scontrol show hostlist` does: node[01-03,7],other1."


def expand(text: str) -> tuple[str, ...]:
    """Every host of a list once, sorted; InputError where it is none or far too long."""
    written = text.strip()
    if not _FORM.fullmatch(written):
        raise InputError(f"{text!r} is no host list", key="hosts", advice=ADVICE)
    if sum(map(_count, _PART.findall(written))) > MAX_HOSTS:
        raise InputError(
            f"{text!r} names more than {MAX_HOSTS:,} hosts", key="hosts", advice=ADVICE
        )
    try:
        return tuple(map(str, NodeSet(written, resolver=RESOLVER_NOGROUP)))
    except NodeSetException as error:
        raise InputError(f"{text!r} is no host list: {error}", key="hosts", advice=ADVICE) from None


def _count(part: str) -> int:
    return prod(
        sum(_span(piece) for piece in ranges.split(",")) for ranges in _RANGES.findall(part)
    )


def _span(piece: str) -> int:
    first, _, last = piece.partition("-")
    if first.isdecimal() and last.isdecimal():
        return max(1, int(last) - int(first) + 1)
    return 1


def hosts_of(site: Site, expressions: Iterable[str]) -> tuple[str, ...]:
    """Hosts of these lists as the site calls them.

    Schedulers may know hosts by their whole names: ``node1.example.org`` is ``node1``
    where the site has only that one. A name that it does not have stays as it is;
    the gate then says that no certificate covers it.
    """
    named = [name for text in expressions for name in expand(text)]
    return tuple(dict.fromkeys(_known_as(site, name) for name in named))


def _known_as(site: Site, name: str) -> str:
    short = name.partition(".")[0]
    return short if name not in site.devices and short in site.devices else name
