"""Exec commands that change something: privilege, modes, configuration sessions, saving.

Sources: Arista EOS User Manual, "Configure Session"; public walk-throughs of
configuration sessions with commit timers.
"""

from __future__ import annotations

import difflib

from fabric.twin.cli.grammar import Match
from fabric.twin.eos.cli import CONFIG, EXEC, SESSION, USER, Cli, CliError, command
from fabric.twin.eos.config import running_config

_TIMER = "timer <time:word>"


@command(USER, "enable")
def enable(cli: Cli, _match: Match) -> None:
    """Commands that change something need it."""
    cli.enabled = True


@command(EXEC, "disable")
def disable(cli: Cli, _match: Match) -> None:
    """Give the privilege back."""
    cli.enabled = False


@command(EXEC, "configure [terminal]")
def configure(cli: Cli, _match: Match) -> None:
    """``configure terminal``: every line takes effect at once."""
    cli.end()
    cli.enter(CONFIG)


@command(EXEC, "configure session [<name:word>]")
def configure_session(cli: Cli, match: Match) -> None:
    """Work on a copy; a session that is already there is taken up again."""
    name = cli.switch.open_session(str(match.values.get("name", "")))
    cli.end()
    cli.session = name
    cli.enter(SESSION)


@command(EXEC, "configure session <name:word> abort")
def abort_session(cli: Cli, match: Match) -> None:
    """Forget a session, or take back what it committed with a timer."""
    cli.switch.abort(match.string("name"))


@command(EXEC, f"configure session <name:word> commit [{_TIMER}]")
def commit_session(cli: Cli, match: Match) -> None:
    """Commit a session, or confirm what it committed with a timer."""
    cli.switch.commit(match.string("name"), _timer_s(match))


@command(EXEC, "no configure session <name:word>")
def delete_session(cli: Cli, match: Match) -> None:
    """Forget a session that is not committed."""
    cli.switch.delete_session(match.string("name"))


@command(SESSION, f"commit [{_TIMER}]")
def commit(cli: Cli, match: Match) -> None:
    """Make the session's configuration the running one."""
    name, timer_s = cli.session, _timer_s(match)
    cli.end()
    cli.switch.commit(name, timer_s)


@command(SESSION, "abort")
def abort(cli: Cli, _match: Match) -> None:
    """Forget the session."""
    name = cli.session
    cli.end()
    cli.switch.abort(name)


def _timer_s(match: Match) -> int | None:
    if "time" not in match.values:
        return None
    parts = match.string("time").split(":")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise CliError("Invalid input")
    hours, minutes, seconds = map(int, parts)
    return 3600 * hours + 60 * minutes + seconds


@command(EXEC, "show session-config [diffs]")
def show_session(cli: Cli, match: Match) -> str:
    """The session's configuration, or what it changes."""
    if not cli.session:
        raise CliError("Not in a configuration session")
    text = running_config(cli.config)
    if not match.has("diffs"):
        return text
    lines = difflib.unified_diff(
        running_config(cli.switch.config).splitlines(keepends=True),
        text.splitlines(keepends=True),
        "system:/running-config",
        f"session:/{cli.session}-session-config",
    )
    return "".join(lines)


@command(EXEC, "show configuration sessions [detail]")
def show_sessions(cli: Cli, _match: Match) -> str:
    """Sessions and their states."""
    lines = [
        "Maximum number of completed sessions: 1",
        "Maximum number of pending sessions: 5",
        "",
        "  Name                 State         User       Terminal",
        "  -------------------- ------------- ---------- --------",
    ]
    for name, state in cli.switch.session_states():
        lines.append(f"  {name:<20} {state:<13} {cli.switch.user:<10}")
    return "\n".join([*lines, ""])


@command(EXEC, "end")
def end(cli: Cli, _match: Match) -> None:
    """Back to exec mode."""
    cli.end()


@command(USER, "exit")
def leave(cli: Cli, _match: Match) -> None:
    """One mode up; out of exec mode the session ends."""
    if not cli.stack:
        cli.closed = True
    else:
        cli.stack.pop()
        if not cli.stack:
            cli.end()


@command(USER, "terminal length <lines:0-32767>")
def terminal_length(cli: Cli, match: Match) -> str:
    """Lines a page; 0 never pauses."""
    cli.length = match.integer("lines")
    return f"Pagination {'disabled' if not cli.length else 'set'}.\n"


@command(USER, "terminal width <columns:10-32767>")
def terminal_width(cli: Cli, match: Match) -> str:
    """Columns of the terminal."""
    cli.width = match.integer("columns")
    return f"Width set to {cli.width} columns.\n"


@command(EXEC, "copy running-config startup-config", "write [memory]")
def save(cli: Cli, _match: Match) -> str:
    """Make the running configuration the one that the switch boots with."""
    cli.switch.save_startup()
    return "Copy completed successfully.\n"


@command(EXEC, "clear counters [<names:interfaces>]")
def clear_counters(cli: Cli, match: Match) -> None:
    """Start counting from zero."""
    cli.switch.clear_counters(match.names("names"))
