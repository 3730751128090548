"""The script of a host's change, run by a real shell over files of its own."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.devices.base import FileChange
from fabric.provisioning.hostscript import CHANGED, apply_script, rollback_script

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


@pytest.fixture
def run(tmp_path):
    log = tmp_path / "systemctl.log"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/systemctl").write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
    (tmp_path / "bin/systemctl").chmod(0o755)

    def run(script, shell="sh"):
        command = [shell, "sh"] if shell == "busybox" else [shell]
        return subprocess.run(
            [*command, "-s"],
            input=script,
            text=True,
            capture_output=True,
            check=False,
            env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        )

    run.log = log
    return run


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("mode", "after"), [(0o700, 0o700), (0o640, 0o755)])
def test_a_file_that_was_closed_to_others_stays_closed(run, tmp_path, shell, mode, after):
    path = tmp_path / "script"
    path.write_text("before\n")
    path.chmod(mode)
    files = (FileChange(str(path), "before\n", "after\n", "0755"),)
    assert run(apply_script(files, ()), shell).returncode == 0
    assert path.stat().st_mode & 0o777 == after
    assert run(rollback_script(files, ()), shell).returncode == 0
    assert path.stat().st_mode & 0o777 == after
    assert path.read_text() == "before\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_forth_and_back_leaves_what_was_there(run, tmp_path, shell):
    old, new = tmp_path / "old", tmp_path / "etc" / "new"
    old.write_text("before\n\n")
    files = (
        FileChange(str(old), "before\n\n", "after 'quoted' $HOME `x`\n", "0755"),
        FileChange(str(new), None, "no newline at the end", "0600"),
    )
    state = tmp_path / "state"
    done = run(apply_script(files, (f"echo 1 > {state}", f"cat >> {state}")), shell)
    assert done.returncode == 0, done.stderr
    assert CHANGED in done.stdout
    assert old.read_text() == "after 'quoted' $HOME `x`\n"
    assert old.stat().st_mode & 0o777 == 0o755
    assert new.read_text() == "no newline at the end"
    assert new.stat().st_mode & 0o777 == 0o600
    # A command that reads its input does not swallow the rest of the script.
    assert state.read_text() == "1\n"
    assert run.log.read_text() == "daemon-reload\n"
    back = run(rollback_script(files, (f"rm {state}",)), shell)
    assert back.returncode == 0, back.stderr
    assert old.read_text() == "before\n\n"
    assert not new.exists()
    assert not new.parent.exists()
    assert not state.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bin",
        "old",
        "systemctl.log",
    ]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("content", [b"before", b"before\r\n", b"caf\xe9\n", b""])
def test_a_file_comes_back_byte_for_byte(run, tmp_path, shell, content):
    path = tmp_path / "script"
    path.write_bytes(content)
    path.chmod(0o710)
    # As far as lines of text on a terminal tell of it.
    text = "".join(f"{line}\n" for line in content.decode(errors="replace").splitlines())
    files = (FileChange(str(path), text, "after\n", "0755"),)
    for _ in range(2):
        assert run(apply_script(files, ()), shell).returncode == 0
        assert path.read_text() == "after\n"
        back = run(rollback_script(files, ()), shell)
        assert (back.returncode, back.stdout) == (0, f"{CHANGED}\n")
        assert path.read_bytes() == content
        assert path.stat().st_mode & 0o777 == 0o710
        assert {name.name for name in tmp_path.iterdir()} == {"bin", "script", "systemctl.log"}


def test_what_an_earlier_run_kept_is_not_what_a_later_one_restores(run, tmp_path):
    path = tmp_path / "script"
    path.write_bytes(b"before")
    files = (FileChange(str(path), "before\n", "after\n", "0755"),)
    assert run(apply_script(files, ())).returncode == 0
    path.write_text("before\n")
    assert run(apply_script(files, ())).returncode == 0
    assert run(rollback_script(files, ())).returncode == 0
    assert path.read_bytes() == b"before\n"


def test_the_way_back_waits_for_a_change_whose_connection_broke(run, tmp_path):
    begun, state = tmp_path / "begun", tmp_path / "state"
    script = apply_script((), (f"touch {begun}; sleep 1; echo 1 > {state}",))
    with subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, text=True) as change:
        change.stdin.write(script)
        change.stdin.close()
        while not begun.exists():
            assert change.poll() is None
        assert run(rollback_script((), (f"rm -f {state}",))).returncode == 0
    assert not state.exists()


def test_files_that_are_so_already_change_nothing(run, tmp_path):
    path = tmp_path / "same"
    path.write_text("same\n")
    files = (FileChange(str(path), None, "same\n"),)
    done = run(apply_script(files, ()))
    assert (done.returncode, done.stdout) == (0, "")
    assert not run.log.exists()


def test_the_first_failure_stops_and_says_what_it_was(run, tmp_path):
    commands = ("echo fine", "echo what it said; exit 4", f"touch {tmp_path / 'never'}")
    done = run(apply_script((), commands))
    assert done.returncode == 1
    assert done.stderr == f"what it said\nThis command failed: {commands[1]}\n"
    assert not (tmp_path / "never").exists()


def test_on_the_way_back_a_failure_stops_nothing(run, tmp_path):
    commands = ("false # a comment", f"touch {tmp_path / 'still'}")
    done = run(rollback_script((), commands))
    assert done.returncode == 1
    assert "This command failed: false # a comment" in done.stderr
    assert (tmp_path / "still").exists()


def test_a_file_that_cannot_be_written_is_named(run, tmp_path):
    (tmp_path / "file.paisoar").mkdir()
    done = run(apply_script((FileChange(str(tmp_path / "file"), None, "x"),), ()))
    assert done.returncode == 1
    assert f"This command failed: write {tmp_path / 'file'}" in done.stderr


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=40))
def test_any_text_arrives_as_it_is(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("text") / "file"
    script = apply_script((FileChange(str(path), None, text),), ())
    script = script.replace("systemctl daemon-reload", "true")
    subprocess.run(["sh", "-s"], input=script.encode(), check=True)
    assert path.read_bytes() == text.encode()
