"""What people type and devices print is shown as it stands, and faults of ours are said."""

import errno
import io
import json

import pytest
import typer
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from fabric.errors import InputError
from fabric.site import load_site
from paisoar.cli import app
from paisoar.console import Answer, console, run
from tests.sites import write_site

runner = CliRunner()
ODD = "a[/x] [red]b[/] :smile: [link=c"


def test_brackets_and_colons_of_names_are_no_markup(capsys):
    def show(out):
        out.print(ODD)
        table = Table(f"head {ODD}", title=f"title {ODD}")
        table.add_row(f"cell {ODD}")
        out.print(table)

    run(False, lambda ui: Answer({}, show))
    assert capsys.readouterr().out.count(ODD) == 4


def test_errors_and_their_advice_are_shown_as_they_stand(capsys):
    def fail(_ui):
        raise InputError(ODD, file=ODD, advice=ODD)

    with pytest.raises(typer.Exit):
        run(False, fail)
    assert capsys.readouterr().err.count(ODD) == 3


def test_a_class_of_brackets_in_a_folder_of_brackets_is_checked(tmp_path):
    folder = tmp_path / "[x] :smile:"
    folder.mkdir()
    path = write_site(folder)
    path.write_text(path.read_text().replace("    tcp:\n", "    '[/red]':\n"))
    done = runner.invoke(app, ["check", "-f", str(path)])
    assert done.exit_code == 0, done.output
    assert f"{path} is valid" in done.stdout
    assert "[/red]" in done.stdout


def test_a_fault_while_showing_is_said_as_one_of_ours(capsys):
    def show(_out):
        raise ZeroDivisionError

    with pytest.raises(typer.Exit) as caught:
        run(False, lambda ui: Answer({}, show))
    assert caught.value.exit_code == 70
    said = capsys.readouterr()
    assert "a fault in PAISoar" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "No space left"), (errno.EACCES, "Permission"), (errno.EROFS, "Read-only")],
)
def test_what_the_system_refuses_is_said_with_its_path(capsys, tmp_path, number, words):
    def fail(_ui):
        raise OSError(number, f"{words} ...", str(tmp_path / "kept"))

    with pytest.raises(typer.Exit) as caught:
        run(True, fail)
    assert caught.value.exit_code == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    message = json.loads(said.out)["error"]["message"]
    assert words in message
    assert str(tmp_path / "kept") in message


def test_other_refusals_of_the_system_stay_faults_of_ours(capsys):
    def fail(_ui):
        raise OSError(errno.EBADF, "Bad file descriptor")

    with pytest.raises(typer.Exit) as caught:
        run(True, fail)
    assert caught.value.exit_code == 70


def test_a_question_that_is_broken_off_is_an_interrupt(capsys):
    def fail(_ui):
        raise typer.Abort

    with pytest.raises(typer.Exit) as caught:
        run(True, fail)
    assert caught.value.exit_code == 130


def test_a_long_line_is_not_wrapped_in_a_file(tmp_path):
    with (tmp_path / "out").open("w") as file:
        console(file=file, width=40).print("word " * 40)
    assert (tmp_path / "out").read_text().count("\n") == 1


def test_a_saved_device_that_prints_brackets_is_shown(tmp_path):
    site = load_site(write_site(tmp_path, environment="site"))
    folder = tmp_path / "saved"
    name = next(iter(site.devices))
    (folder / name).mkdir(parents=True)
    (folder / name / "[red]odd[y]").touch()
    done = runner.invoke(app, ["audit", "--from", str(folder), "-f", str(site.path)])
    assert done.exit_code == 3, done.output
    assert "[red]odd[y]: does not end in .txt" in done.output


def test_what_a_device_prints_cannot_command_the_terminal(tmp_path):
    evil = "x\x1b]0;owned\x07\x1b[2J\x9b1A\ty"
    with (tmp_path / "out").open("w") as file:
        out = console(file=file, width=80)
        out.print(evil)
        out.print(Text(evil))
        table = Table("device")
        table.add_row(evil)
        out.print(table)
    text = (tmp_path / "out").read_text()
    assert not set(text) & set("\x1b\x07\x9b")
    assert text.count("]0;owned") == 3


def test_a_table_in_a_file_or_pipe_loses_no_figure(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table(*(f"column {number}" for number in range(12)))
    table.add_row(*(f"{number}2345.678" for number in range(12)))
    with io.StringIO() as file:
        console(file=file).print(table)
        assert "112345.678" in file.getvalue()
        assert "…" not in file.getvalue()
