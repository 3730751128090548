"""In what drivers differ that are all set with ``dcb``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Traits:
    """What holds for every NIC of one driver.

    ``driver`` is what ``ethtool -i`` calls it, empty for any. ``unmapped`` is the
    priority of a DSCP without an entry, None where the driver does not fix it: then
    every DSCP gets an entry. ``compact`` gives only used priorities a class of their
    own, ``fixed_classes`` says that priority N always is class N, ``positive_shares``
    that an ETS class with a share of 0 % is refused. ``unseen`` completes "PORT: ..."
    for facts that no such NIC ever shows. ``models`` names PCI devices (``0x159b``).
    """

    name: str
    driver: str = ""
    max_lossless: int | None = None
    unmapped: int | None = None
    compact: bool = False
    fixed_classes: bool = False
    positive_shares: bool = False
    unseen: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
