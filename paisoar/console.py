"""What people and programs see: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.text import Text

from fabric.errors import GateRefusedError, InputError, PaisoarError
from fabric.events import Event

FileOption = Annotated[
    Path, typer.Option("--file", "-f", help="The site's file.", show_default=True)
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")
]
DEFAULT_FILE = Path("fabric.yaml")

# No table of ours has more columns of text.
_WIDE_COLUMNS = 200

EXIT_INTERRUPTED = 130
EXIT_FAULT = 70

# What the system refuses because of the file or folder that was named, or of the disk it is on.
_REFUSALS = frozenset(
    (
        errno.EACCES,
        errno.EDQUOT,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
    )
)


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


def command_line(command: str, file: Path = DEFAULT_FILE) -> str:
    """``paisoar COMMAND`` for the site of this file, to be copied into a shell."""
    site = "" if file == DEFAULT_FILE else f" -f {shlex.quote(str(file))}"
    return f"paisoar {command}{site}"


def count_of(count: int, one: str, many: str = "") -> str:
    """``1 switch``, ``3 switches``; the plural takes an s unless it is given."""
    return f"{count} {one if count == 1 else many or one + 's'}"


class Ui:
    """Progress on stderr: bars on a terminal, silence elsewhere and with ``--json``."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.err = console(stderr=True)
        self._quiet = as_json or not self.err.is_terminal

    def say(self, text: str | Text) -> None:
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
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[word]}", style="dim", markup=False),
        console=console,
        transient=True,
    )


# Characters that a terminal obeys instead of showing, and the sign that stands for each.
_OBEYED = dict.fromkeys((*range(32), *range(127, 160)), "�")
for _kept in "\n\t":
    del _OBEYED[ord(_kept)]


class _PlainConsole(Console):
    """A console to which no text can send commands: neither markup nor escape sequences."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(segment.text.translate(_OBEYED), segment.style)


def console(
    *, stderr: bool = False, file: TextIO | None = None, width: int | None = None
) -> Console:
    """A console on stdout, stderr or this file; lines are wrapped for a terminal only.

    Elsewhere nobody sees an edge, and a table is as wide as its figures, unless
    ``COLUMNS`` says how wide.

    What it prints is text as it stands: brackets and colons of names, paths and device
    outputs are no markup, and escape sequences in them show as replacement characters.
    Styles are given beside the text.
    """
    terminal = file is None and (sys.stderr if stderr else sys.stdout).isatty()
    return _PlainConsole(
        stderr=stderr,
        file=file,
        width=width if terminal or "COLUMNS" in os.environ else width or _WIDE_COLUMNS,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=not terminal,
    )


def run(as_json: bool, work: Callable[[Ui], Answer]) -> None:
    """Do the work of one command, print its answer, and exit as the design says.

    0 good, 1 judged bad, 2 bad input, 3 a device, peer or tool did not answer,
    130 interrupted, 70 a fault of our own. A KeyboardInterrupt says by its arguments
    what was left running, if anything was.
    """
    ui = Ui(as_json=as_json)
    try:
        answer = work(ui)
        text = _shown(answer, as_json=as_json)
    except PaisoarError as error:
        raise _ended(ui, error) from error
    except (KeyboardInterrupt, typer.Abort) as error:
        left = " ".join(map(str, error.args)) or "Nothing was left running."
        stopped = PaisoarError("interrupted", advice=left)
        stopped.exit_code = EXIT_INTERRUPTED
        raise _ended(ui, stopped) from error
    except OSError as error:
        if (refused := _refusal(error)) is None:
            raise _ended(ui, _fault(ui, error)) from error
        raise _ended(ui, refused) from error
    except Exception as error:
        raise _ended(ui, _fault(ui, error)) from error
    sys.stdout.write(text)
    if not answer.good:
        raise typer.Exit(answer.exit_code)


def _shown(answer: Answer, *, as_json: bool) -> str:
    """All that goes to stdout, made before any of it is written."""
    if as_json:
        return json_text(answer.document)
    out = console()
    with out.capture() as capture:
        answer.show(out)
    return capture.get()


def _refusal(error: OSError) -> PaisoarError | None:
    """What the system refused, where it names a file or the disk is full; else None."""
    if error.errno not in _REFUSALS or (not error.filename and error.errno != errno.ENOSPC):
        return None
    return InputError(
        error.strerror or str(error),
        file=str(error.filename) if error.filename else None,
        advice="Look at the permissions of the file and its folder, and at the room on the disk.",
    )


def _fault(ui: Ui, error: Exception) -> PaisoarError:
    # A crash is no judgement: exit 1 would say that something was judged bad.
    ui.err.print_exception()
    bug = PaisoarError(
        f"this is a fault in PAISoar: {type(error).__name__}: {error}",
        advice="Please report it with the lines above.",
    )
    bug.exit_code = EXIT_FAULT
    return bug


def _ended(ui: Ui, error: PaisoarError) -> typer.Exit:
    report_error(error, as_json=ui.as_json, err=ui.err)
    return typer.Exit(error.exit_code)


def json_text(document: dict[str, Any]) -> str:
    """One JSON document, as it goes to stdout."""
    return json.dumps(document, indent=2, default=str) + "\n"


def report_error(error: PaisoarError, *, as_json: bool, err: Console) -> None:
    """Say an error on stderr; with ``as_json`` also as the one document on stdout."""
    if as_json:
        sys.stdout.write(json_text({"error": _facts(error)}))
    err.print(Text.assemble(("error", "bold red"), ": ", error.message))
    if error.advice:
        err.print(error.advice, style="cyan")


def _facts(error: PaisoarError) -> dict[str, Any]:
    facts = {
        "kind": type(error).__name__,
        "message": error.message,
        "advice": error.advice,
        "exit_code": error.exit_code,
    }
    if isinstance(error, GateRefusedError):
        facts["reason"] = error.reason
    if isinstance(error, InputError):
        facts["faults"] = [
            {
                "file": None if fault.file is None else str(fault.file),
                "line": fault.line,
                "key": fault.key,
                "message": fault.reason,
            }
            for fault in error.faults
        ]
    return facts
