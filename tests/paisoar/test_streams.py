"""What stdout, stderr and Ctrl-C do to a command; each in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.sites import write_site

PROGRAM = [sys.executable, "-m", "paisoar"]


def shell(line, cwd, **environment):
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line.replace("paisoar", " ".join(PROGRAM))],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_full_stdout_is_one_line_on_stderr(tmp_path):
    write_site(tmp_path)
    for arguments in ("check", "check --json", "--help", "--version"):
        done = shell(f"paisoar {arguments} >/dev/full", tmp_path)
        assert done.returncode == 70, arguments
        assert done.stderr == "error: stdout cannot be written: No space left on device\n"


def test_a_closed_stdout_is_said_and_no_file_takes_its_place(tmp_path):
    done = shell("paisoar init --hosts 2 --leaves 1 --spines 0 <&- >&-", tmp_path)
    assert done.returncode == 70
    assert done.stderr == "error: stdout cannot be written: Bad file descriptor\n"
    assert (tmp_path / "fabric.yaml").read_text().startswith("# One RoCEv2 site")


def test_a_reader_that_goes_away_is_no_fault(tmp_path):
    for arguments in ("explain", "explain --json", "--help"):
        done = shell(f"(sleep 1; paisoar {arguments}) | true", tmp_path)
        assert done.returncode == 141, arguments
        assert done.stderr == ""


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2>/dev/full >/dev/null <&-"])
def test_a_lost_stderr_changes_nothing(tmp_path, stderr):
    assert shell(f"paisoar check {stderr}", tmp_path).returncode == 2
    assert shell(f"paisoar check --nosuch {stderr}", tmp_path).returncode == 2
    write_site(tmp_path)
    assert shell(f"paisoar check {stderr}", tmp_path).returncode == 0


def test_text_that_the_encoding_lacks_is_written_with_escapes(tmp_path):
    folder = tmp_path / "größe"
    folder.mkdir()
    write_site(folder)
    done = shell("paisoar check -f größe/fabric.yaml", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "gr\\xf6\\xdfe/fabric.yaml is valid" in done.stdout


def test_errors_are_not_wrapped_where_no_terminal_is(tmp_path):
    name = f"{'long' * 40}.yaml"
    done = shell(f"paisoar check -f {name}", tmp_path, COLUMNS="20")
    assert done.stderr.splitlines()[0] == f"error: {name}: no such file"


def test_ctrl_c_amid_the_imports_ends_with_130(tmp_path):
    slow = tmp_path / "typer.py"
    slow.write_text("import time\nopen('loading', 'w').close()\ntime.sleep(30)\n")
    process = subprocess.Popen(
        PROGRAM,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(200):
        if (tmp_path / "loading").exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == "Interrupted; nothing was changed.\n"
    assert process.returncode == 130


def test_ctrl_c_while_source_text_is_run_ends_with_130_all_the_same(tmp_path):
    """As in the midst of making a dataclass: Python itself would end by the signal then."""
    program = tmp_path / "program.py"
    program.write_text(
        "import paisoar.running\n"
        "from paisoar.__main__ import main\n"
        "def carry_out(*_):\n"
        "    try:\n"
        "        exec('import os, signal; os.kill(os.getpid(), signal.SIGINT); 0')\n"
        "    except KeyboardInterrupt:\n"
        "        return 130\n"
        "paisoar.running.carry_out = carry_out\n"
        "main()\n"
    )
    started = [sys.executable, "-m", "program", "check"]
    done = subprocess.run(started, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 130


def test_ctrl_c_before_a_command_has_begun_ends_with_130(capsys):
    from paisoar.running import carry_out

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    assert carry_out(interrupted, ["check"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nosuch"],
        ["nosuch"],
        ["init", "--hosts", "many"],
        ["check", "--nosuch"],
        ["demo", "more"],
        ["plan", "more"],
        ["provision", "a", "b"],
        ["rollback"],
        ["audit", "--format", "json", "--nosuch"],
        ["explain", "a", "b"],
        ["validate", "--nosuch"],
        ["certify", "--nosuch"],
        ["certificate", "revoke"],
        ["twin", "break"],
        ["twin", "nosuch"],
        ["sim", "run", "--nosuch"],
        ["tune", "--nosuch"],
        ["train", "--ranks", "many"],
        ["report", "--nosuch"],
        ["bench", "sim", "--nosuch"],
    ],
)
def test_a_wrong_command_line_is_one_json_document_too(tmp_path, monkeypatch, capsys, arguments):
    from paisoar.cli import app
    from paisoar.running import carry_out

    monkeypatch.chdir(tmp_path)
    wanted = arguments if "--format" in arguments else [*arguments, "--json"]
    assert carry_out(app, wanted) == 2
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert error["exit_code"] == 2
    assert error["advice"].endswith("--help`.")
    assert error["message"] in said.err


def test_without_json_a_wrong_command_line_says_nothing_on_stdout(capsys):
    from paisoar.cli import app
    from paisoar.running import carry_out

    assert carry_out(app, ["check", "--", "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "paisoar check --help" in said.err


@pytest.mark.slow
def test_a_demo_that_nobody_reads_takes_its_twin_down(tmp_path):
    options = "--hosts 2 --leaves 1 --spines 0 --folder walked"
    done = shell(f"paisoar demo {options} | head -4", tmp_path)
    assert done.returncode == 141
    assert done.stderr == ""
    assert not (tmp_path / "walked").exists()
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in running.stdout
