"""Carrying out a command line: exit codes, lost streams, usage errors as our own errors."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from typing import Any

import typer

from fabric.errors import InputError
from paisoar.console import EXIT_FAULT, EXIT_INTERRUPTED, console, report_error
from paisoar.streams import StdoutLostError, guard_streams

# What a command line is refused with; Typer names its kinds, such as this one, not itself.
_UsageError: Any = typer.BadParameter.__base__

# As a shell reports a program that the signal SIGPIPE has ended.
EXIT_READER_GONE = 141


def main_of(app: typer.Typer) -> None:
    """Run the command line of this process, and exit."""
    # TensorFlow's start-up messages are no result of ours.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    guard_streams()
    try:
        code = carry_out(app, sys.argv[1:])
        sys.stdout.flush()
    except StdoutLostError as lost:
        code = EXIT_READER_GONE if lost.reader_gone else EXIT_FAULT
        if not lost.reader_gone:
            console(stderr=True).print(f"error: stdout cannot be written: {lost.reason}")
    sys.exit(code)


def carry_out(app: typer.Typer, arguments: list[str]) -> int:
    """Carry out one command; returns its exit code."""
    try:
        return int(app(arguments, prog_name="paisoar", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except _UsageError as error:
        wrong = InputError(
            error.format_message() or "no command was named",
            advice=f"Try `{error.ctx.command_path if error.ctx else 'paisoar'} --help`.",
        )
        report_error(wrong, as_json=_wants_json(arguments), err=console(stderr=True))
        return wrong.exit_code


def _wants_json(arguments: list[str]) -> bool:
    """Whether one JSON document is due, of a command line that could not be understood."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    pairs = pairwise(options)
    return "--json" in options or ("--format", "json") in pairs or "--format=json" in options
