"""What people and programs see: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fabric.errors import GateRefusedError, PaisoarError
from fabric.events import Event

FileOption = Annotated[
    Path, typer.Option("--file", "-f", help="The site's file.", show_default=True)
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")
]
DEFAULT_FILE = Path("fabric.yaml")

EXIT_INTERRUPTED = 130
EXIT_FAULT = 70


@dataclass(frozen=True)
class Answer:
    """What a command found: the document for ``--json``, the words for people.

    ``show`` prints to a console on stdout. ``good`` False ends with exit 1,
    unless ``exit_code`` says otherwise.
    """

    document: dict[str, Any]
    show: Callable[[Console], None]
    good: bool = True
    exit_code: int = 1


def count_of(count: int, one: str, many: str = "") -> str:
    """``1 switch``, ``3 switches``; the plural takes an s unless it is given."""
    return f"{count} {one if count == 1 else many or one + 's'}"


class Ui:
    """Progress on stderr: bars on a terminal, silence elsewhere and with ``--json``."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.err = Console(stderr=True, highlight=False)
        self._quiet = as_json or not self.err.is_terminal

    def say(self, text: str) -> None:
        """One line about what happens now; nothing where progress is quiet."""
        if not self._quiet:
            self.err.print(text, style="dim")

    @contextlib.contextmanager
    def progress(self, title: str, total: int | None) -> Iterator[Callable[[str], None]]:
        """A bar over ``total`` steps; call the result with a word for each step done."""
        if self._quiet:
            yield lambda _word: None
            return
        with _bar(self.err) as bar:
            task = bar.add_task(title, total=total, word="")
            yield lambda word: bar.update(task, advance=1, word=word)

    @contextlib.contextmanager
    def events(self, title: str, total: int) -> Iterator[Callable[[Event], None]]:
        """A bar that advances whenever another device has ended its last step."""
        ended: set[str] = set()
        with self.progress(title, total) as advance:

            def tell(event: Event) -> None:
                if event.state in ("failed", "unreachable"):
                    self.say(f"{event.device}: {event.step}: {event.state} {event.text}".rstrip())
                if event.state != "started" and event.device not in ended:
                    ended.add(event.device)
                    advance(f"{event.device}: {event.step}")

            yield tell

    @contextlib.contextmanager
    def steps(self, title: str) -> Iterator[Callable[[str, int, int], None]]:
        """A bar whose position and length are told with every step."""
        if self._quiet:
            yield lambda _word, _done, _total: None
            return
        with _bar(self.err) as bar:
            task = bar.add_task(title, total=None, word="")
            yield lambda word, done, total: bar.update(
                task, completed=done, total=total or None, word=word
            )


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[word]}", style="dim"),
        console=console,
        transient=True,
    )


def run(as_json: bool, work: Callable[[Ui], Answer]) -> None:
    """Do the work of one command, print its answer, and exit as the design says.

    0 good, 1 judged bad, 2 bad input, 3 a device, peer or tool did not answer,
    130 interrupted, 70 a fault of our own.
    """
    ui = Ui(as_json=as_json)
    try:
        answer = work(ui)
    except PaisoarError as error:
        _report(ui, error)
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt as error:
        _report(ui, PaisoarError("interrupted", advice="Nothing was left running."))
        raise typer.Exit(EXIT_INTERRUPTED) from error
    except Exception as error:
        # A crash is no judgement: exit 1 would say that something was judged bad.
        ui.err.print_exception()
        bug = PaisoarError(
            f"this is a fault in PAISoar: {type(error).__name__}: {error}",
            advice="Please report it with the lines above.",
        )
        bug.exit_code = EXIT_FAULT
        _report(ui, bug)
        raise typer.Exit(EXIT_FAULT) from error
    if as_json:
        print_json(answer.document)
    else:
        answer.show(Console(highlight=False, soft_wrap=not sys.stdout.isatty()))
    if not answer.good:
        raise typer.Exit(answer.exit_code)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, default=str) + "\n")


def _report(ui: Ui, error: PaisoarError) -> None:
    if ui.as_json:
        facts = {
            "kind": type(error).__name__,
            "message": error.args[0],
            "advice": error.advice,
            "exit_code": error.exit_code,
        }
        if isinstance(error, GateRefusedError):
            facts["reason"] = error.reason
        print_json({"error": facts})
    ui.err.print("[bold red]error[/]: ", end="")
    ui.err.print(error.args[0], markup=False)
    if error.advice:
        ui.err.print(error.advice, markup=False, style="cyan")
