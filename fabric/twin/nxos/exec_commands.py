"""Exec commands that change something: saving, checkpoints, roll-back, counters, modes.

Sources: Cisco Nexus 9000 NX-OS system management configuration guide, chapter
"Performing Configuration Rollbacks" (ten checkpoints, names unique, ``atomic``
the default), and the recorded sessions in its public walk-throughs.
"""

from __future__ import annotations

import time

from fabric.twin.cli.grammar import Match
from fabric.twin.cli.store import Checkpoint
from fabric.twin.nxos.cli import CONFIG, EXEC, Cli, CliError, command
from fabric.twin.nxos.running import running_config

MAX_CHECKPOINTS = 10
_ROLLBACK = "rollback running-config checkpoint <name:word>"


@command(EXEC, "configure [terminal]")
def configure(cli: Cli, _match: Match) -> str:
    """``configure terminal``."""
    cli.stack.clear()
    cli.enter(CONFIG)
    return "Enter configuration commands, one per line. End with CNTL/Z.\n"


@command(EXEC, "end")
def end(cli: Cli, _match: Match) -> None:
    """Back to exec mode."""
    cli.stack.clear()


@command(EXEC, "exit")
def leave(cli: Cli, _match: Match) -> None:
    """One mode up; out of exec mode the session ends."""
    if cli.stack:
        cli.stack.pop()
    else:
        cli.closed = True


@command(EXEC, "terminal length <lines:0-511>")
def terminal_length(cli: Cli, match: Match) -> None:
    """Lines a page; 0 never pauses."""
    cli.length = match.integer("lines")


@command(EXEC, "terminal width <columns:24-511>")
def terminal_width(cli: Cli, match: Match) -> None:
    """Columns of the terminal."""
    cli.width = match.integer("columns")


@command(EXEC, "[no] terminal dont-ask", "terminal [no] monitor", "terminal type <type:word>")
def terminal(cli: Cli, match: Match) -> None:
    """Settings without effect here: nothing is asked, nothing is logged to the terminal."""


@command(EXEC, "copy running-config startup-config")
def save(cli: Cli, _match: Match) -> str:
    """Make the running configuration the one that the switch boots with."""
    cli.switch.save_startup()
    return (
        f"[{'#' * 40}] 100%\nCopy complete, now saving to disk (please wait)...\nCopy complete.\n"
    )


@command(EXEC, "checkpoint [<name:word>] [description <text:line>]")
def checkpoint(cli: Cli, match: Match) -> str:
    """Take a snapshot of the running configuration under a name that is not used yet."""
    held = cli.switch.checkpoints
    name = str(match.values.get("name", "")) or next(
        candidate
        for number in range(1, MAX_CHECKPOINTS + 2)
        if (candidate := f"user-checkpoint-{number}") not in held
    )
    if "summary".startswith(name.lower()):
        raise CliError(f"{name} cannot be the name of a checkpoint")
    if name in held:
        raise CliError(f"Checkpoint {name} already exists")
    if len(held) >= MAX_CHECKPOINTS:
        raise CliError(f"Maximum number of checkpoints ({MAX_CHECKPOINTS}) reached")
    description = str(match.values.get("text", "None"))
    held[name] = Checkpoint(running_config(cli.config), time.time(), description)
    cli.switch.touch()
    return "...........Done\n"


@command(EXEC, "no checkpoint <name:word>")
def no_checkpoint(cli: Cli, match: Match) -> str:
    """Forget a snapshot."""
    if cli.switch.checkpoints.pop(match.string("name"), None) is None:
        raise CliError(f"Checkpoint {match.string('name')} does not exist")
    cli.switch.touch()
    return "Done\n"


@command(EXEC, "clear checkpoint database")
def clear_checkpoints(cli: Cli, _match: Match) -> str:
    """Forget all snapshots."""
    cli.switch.checkpoints.clear()
    cli.switch.touch()
    return "Done\n"


@command(EXEC, f"{_ROLLBACK} [(atomic | best-effort | stop-at-first-failure)] [verbose]")
def rollback(cli: Cli, match: Match) -> str:
    """Make a snapshot the running configuration again, as a whole."""
    held = cli.switch.checkpoints.get(match.string("name"))
    if held is None:
        raise CliError(f"Checkpoint {match.string('name')} does not exist")
    lines = [
        "Note: Applying config parallelly may fail Rollback verification",
        "Collecting Running-Config",
        "#Generating Rollback Patch",
    ]
    if running_config(cli.config) == held.text:
        return "\n".join([*lines, "Rollback Patch is Empty", ""])
    cli.switch.replace_config(held.text)
    lines += [
        "Executing Rollback Patch",
        "Generating Running-config for verification",
        "Generating Patch for verification",
        "Verification is Successful.",
        "",
        "Rollback completed successfully.",
    ]
    return "\n".join([*lines, ""])


@command(EXEC, "clear counters [interface (all | <names:interfaces>)]")
def clear_counters(cli: Cli, match: Match) -> None:
    """Start counting from zero."""
    names = match.names("names")
    cli.switch.clear_counters([cli.switch.known_interface(name) for name in names])
