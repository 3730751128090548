"""A session on a QFX switch: operational and configuration mode.

``set`` and ``delete`` change a candidate configuration, which a commit makes the
active one. With ``configure exclusive`` it belongs to one session and is thrown
away when that leaves; with ``configure`` all share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabric.twin.cli import filters
from fabric.twin.cli.grammar import RefusedError
from fabric.twin.cli.modal import Answer, CliError, Commands, ModalCli
from fabric.twin.cli.values import AMBIGUOUS, INCOMPLETE, Token
from fabric.twin.junos.config import Config
from fabric.twin.junos.values import JUNOS_TYPES

if TYPE_CHECKING:
    from fabric.twin.junos.switch import EmulatedSwitch

__all__ = ["Answer", "Cli", "CliError", "command"]

OPERATIONAL = "operational"
CONFIGURE = "configure"

command = Commands(JUNOS_TYPES)


class Cli(ModalCli):
    """A command-line session."""

    commands = command
    more = "---(more)---"

    def __init__(self, switch: EmulatedSwitch) -> None:
        super().__init__()
        self.switch = switch
        self.display_set = False

    @property
    def config(self) -> Config:
        """The candidate in configuration mode, else the active configuration."""
        return self.switch.candidate if self.stack else self.switch.config

    @property
    def prompt(self) -> str:
        """Two lines: the chassis or the place in the hierarchy, then who and where."""
        who = f"{self.switch.user}@{self.switch.config.hostname}"
        return f"[edit]\n{who}# " if self.stack else f"{{master:0}}\n{who}> "

    @property
    def everywhere(self) -> tuple[str, ...]:
        """Operational commands work in operational mode only."""
        return () if self.stack else (OPERATIONAL,)

    def refusal(self, error: RefusedError, tokens: Sequence[Token], offset: int) -> str:  # noqa: ARG002
        """A caret under the offending word, and what is wrong with it."""
        caret = " " * (len(self.prompt.rpartition("\n")[2]) + error.column) + "^"
        if error.message == AMBIGUOUS:
            text = next((t.text for t in tokens if t.column == error.column), "")
            return f"{caret}\n'{text}' is ambiguous."
        if error.message == INCOMPLETE:
            return f"{caret}\nmissing argument."
        first = bool(tokens) and error.column == tokens[0].column
        return f"{caret}\n{'unknown command.' if first else 'syntax error.'}"

    def complaint(self, error: CliError) -> str:
        """``error: ...``, or what a commit had to say."""
        text = str(error)
        return text if text.startswith("[edit") else f"error: {text}"

    def piped(self, line: str) -> tuple[str, tuple[filters.Filter, ...]]:
        """``| display set`` is a form of the answer, not a filter of its text."""
        head, *pipes = line.split("|")
        kept = [pipe for pipe in pipes if pipe.split()[:1] != ["display"]]
        asked = [pipe.split() for pipe in pipes if pipe.split()[:1] == ["display"]]
        self.display_set = ["display", "set"] in asked
        words = (("match ", "include "), ("except ", "exclude "))
        for theirs, ours in words:
            kept = [pipe.replace(theirs, ours) for pipe in kept]
        return super().piped("|".join([head, *kept]))

    def before(self) -> None:
        """A commit that nobody has confirmed in time is taken back."""
        self.switch.tick()
