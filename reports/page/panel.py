"""What a figure on the page is: its words, and the numbers that it draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd
from markupsafe import Markup


@dataclass(frozen=True)
class Panel:
    """One figure. ``numbers`` is what it draws, ``table`` the file with all of it.

    ``rests_on`` is what the figure has in its corner.
    """

    id: str
    title: str
    figure: Markup
    rests_on: str
    numbers: pd.DataFrame
    note: str = ""
    wide: bool = False
    table: str = ""


@dataclass(frozen=True)
class Group:
    """Figures under one heading. ``missing`` maps what was not measured to its suite."""

    id: str
    title: str
    short: str
    says: str
    panels: tuple[Panel, ...]
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """A figure that a run may have: drawn where ``frame`` has rows."""

    id: str
    title: str
    suite: str
    frame: pd.DataFrame
    draw: Callable[[], str]
    numbers: Callable[[], pd.DataFrame]
    note: Callable[[], str]
    wide: bool = False
