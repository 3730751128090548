"""Commands of both modes that change something: candidate, commit, roll-back.

Source: Juniper, CLI User Guide, "Commit a Configuration", "Roll Back a
Configuration" (50 configurations are kept), "configure exclusive".
"""

from __future__ import annotations

from fabric.twin.cli.grammar import Match
from fabric.twin.cli.values import tokenize
from fabric.twin.junos import schema
from fabric.twin.junos.cli import CONFIGURE, OPERATIONAL, Cli, CliError, command
from fabric.twin.junos.config import check

_COMMENT = "[comment <comment:text>]"


@command(OPERATIONAL, "configure [(exclusive | private)]")
def configure(cli: Cli, match: Match) -> str:
    """Enter configuration mode."""
    cli.switch.open_candidate(cli, exclusive=match.has("exclusive"))
    cli.enter(CONFIGURE)
    lines = ["Entering configuration mode"]
    if match.has("exclusive"):
        lines.insert(0, "warning: uncommitted changes will be discarded on exit")
    if cli.switch.waits_for_confirmation:
        lines.append("warning: a commit is waiting to be confirmed")
    return "\n".join([*lines, ""])


@command(OPERATIONAL, "exit", "quit")
def leave(cli: Cli, _match: Match) -> None:
    """The session ends."""
    cli.closed = True


@command(CONFIGURE, "exit [configuration-mode]", "quit [configuration-mode]")
def leave_configuration(cli: Cli, _match: Match) -> str:
    """Back to operational mode; a candidate of one's own is thrown away."""
    cli.switch.close_candidate(cli)
    cli.end()
    return "Exiting configuration mode\n"


@command(CONFIGURE, "top", "up")
def top(cli: Cli, match: Match) -> None:
    """Already there: the emulator is always at the top."""


@command(CONFIGURE, "set <statement:line>")
def set_statement(cli: Cli, match: Match) -> None:
    """Put a statement into the candidate."""
    cli.switch.may_change(cli)
    cli.config.set(match.string("statement"))


@command(CONFIGURE, "delete <path:line>")
def delete(cli: Cli, match: Match) -> str:
    """Take everything below a path out of the candidate."""
    cli.switch.may_change(cli)
    text = match.string("path")
    tokens = tokenize(text)
    if not schema.is_path(tokens, len(text)):
        raise CliError("syntax error: " + text)
    return "" if cli.config.delete(schema.split(text)) else "warning: statement not found\n"


@command(CONFIGURE, "show")
def show_candidate(cli: Cli, _match: Match) -> str:
    """The candidate, as set lines."""
    if not cli.display_set:
        raise CliError("the emulator prints a configuration with | display set only")
    return cli.config.text()


@command(CONFIGURE, "rollback [<number:0-49>]")
def rollback(cli: Cli, match: Match) -> str:
    """Make an earlier configuration the candidate; 0 is the active one."""
    cli.switch.may_change(cli)
    number = match.integer("number") if "number" in match.values else 0
    cli.switch.load_candidate(number)
    return "load complete\n"


@command(CONFIGURE, "commit check")
def commit_check(cli: Cli, _match: Match) -> str:
    """Whether the candidate could be committed."""
    _checked(cli)
    return "configuration check succeeds\n"


@command(CONFIGURE, f"commit [confirmed [<minutes:1-65535>]] {_COMMENT} [and-quit]")
def commit(cli: Cli, match: Match) -> str:
    """Make the candidate the active configuration, or confirm the last one."""
    cli.switch.may_change(cli)
    _checked(cli)
    lines = ["configuration check succeeds"]
    minutes = None
    if match.has("confirmed"):
        minutes = match.integer("minutes") if "minutes" in match.values else 10
        lines.append(
            f"commit confirmed will be automatically rolled back in {minutes} minutes "
            "unless confirmed"
        )
    cli.switch.commit(str(match.values.get("comment", "")), minutes)
    lines.append("commit complete")
    if match.has("and-quit"):
        lines.append(leave_configuration(cli, match).strip())
    return "\n".join([*lines, ""])


def _checked(cli: Cli) -> None:
    problems = check(cli.config)
    if problems:
        raise CliError("\n".join([*problems, "error: configuration check-out failed"]))


@command(OPERATIONAL, "set cli screen-length <lines:0-100000>")
def screen_length(cli: Cli, match: Match) -> str:
    """Lines a page; 0 never pauses."""
    cli.length = match.integer("lines")
    return f"Screen length set to {cli.length}\n"


@command(OPERATIONAL, "set cli screen-width <columns:0-1024>")
def screen_width(cli: Cli, match: Match) -> str:
    """Columns of the terminal."""
    cli.width = match.integer("columns")
    return f"Screen width set to {cli.width}\n"


@command(OPERATIONAL, "set cli complete-on-space (on | off)")
def complete_on_space(_cli: Cli, match: Match) -> str:
    """The emulator never completes on a space."""
    return f"{'Enabling' if match.has('on') else 'Disabling'} complete-on-space\n"


@command(OPERATIONAL, "clear interfaces statistics (all | <port:interface>)")
def clear_statistics(cli: Cli, match: Match) -> None:
    """Start counting from zero."""
    port = match.values.get("port")
    cli.switch.clear_counters([str(port)] if port else ())
