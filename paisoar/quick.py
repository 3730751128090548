"""``paisoar gate`` without the other commands: a scheduler waits for its answer.

Importing every command takes longer than the gate does.
"""

from __future__ import annotations

import typer

from paisoar.commands.gate import gate
from paisoar.running import main_of

app = typer.Typer(
    name="paisoar",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)


@app.callback()
def _app() -> None:
    """Make the command one of a group, as it is among the others."""


app.command()(gate)


def main() -> None:
    """Run the command line, and exit."""
    main_of(app)
