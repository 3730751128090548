"""Full disks and read-only ones: the path is named, and what was there stays."""

import json
import shutil
import subprocess
import sys

import pytest

PAISOAR = f"{sys.executable} -m paisoar"
INIT = f"{PAISOAR} init --hosts 2 --leaves 1 --spines 0"
FILL = "cat /dev/zero > fill 2>/dev/null;"

pytestmark = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0,
    reason="needs user namespaces for a disk of its own",
)


def on_a_small_disk(tmp_path, script):
    """Run the script in a folder on a file system of 200 KB."""
    line = f"mount -t tmpfs -o size=200k tmpfs {tmp_path} && cd {tmp_path} && {script}"
    return subprocess.run(
        ["unshare", "-rm", "bash", "-c", line],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_init_on_a_full_disk_leaves_no_file(tmp_path):
    done = on_a_small_disk(tmp_path, f"{FILL} {INIT}; echo rc=$?; ls -A")
    assert done.stdout == "rc=2\nfill\n"
    assert done.stderr == "error: fabric.yaml: cannot be written: No space left on device\n"


def test_init_that_cannot_overwrite_leaves_the_file_as_it_was(tmp_path):
    overwrite = f"{INIT} --force --site other; echo rc=$?; cmp fabric.yaml was"
    done = on_a_small_disk(tmp_path, f"{INIT} >/dev/null; cp fabric.yaml was; {FILL} {overwrite}")
    assert (done.stdout, done.returncode) == ("rc=2\n", 0)
    assert "fabric.yaml: cannot be written: No space left" in done.stderr


def test_a_read_only_folder_is_named(tmp_path):
    read_only = f"{INIT} >/dev/null; mount -o remount,ro {tmp_path};"
    for command, where in (
        (f"{INIT} --force", "fabric.yaml"),
        (f"{PAISOAR} twin up", f"{tmp_path}/.paisoar"),
        (f"{PAISOAR} demo --folder d", "d"),
        (f"{PAISOAR} explain > /dev/null; {PAISOAR} demo --folder d/e", "d"),
    ):
        done = on_a_small_disk(tmp_path, f"{read_only} {command} --json; exit $?")
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        message = json.loads(done.stdout)["error"]["message"]
        assert message.startswith(where)
        assert "Read-only file system" in message


def test_a_twin_on_a_full_disk_says_which_file_could_not_be_written(tmp_path):
    done = on_a_small_disk(tmp_path, f"{INIT} >/dev/null; {FILL} {PAISOAR} twin up; exit $?")
    assert done.returncode == 3
    assert f"{tmp_path}/.paisoar/twin/" in done.stderr.splitlines()[0]
    assert "No space left on device" in done.stderr


def test_a_demo_that_breaks_off_leaves_nothing_unless_asked_to(tmp_path):
    options = "--hosts 2 --leaves 1 --spines 0 --folder walked"
    done = on_a_small_disk(tmp_path, f"{FILL} {PAISOAR} demo {options}; echo rc=$?; ls -A")
    assert done.stdout.endswith("rc=2\nfill\n")
    assert "walked/fabric.yaml: cannot be written" in done.stderr
    assert "walked was removed; --keep keeps it" in done.stderr
    done = on_a_small_disk(tmp_path, f"{FILL} {PAISOAR} demo --keep {options}; echo rc=$?; ls -A")
    assert done.stdout.endswith("rc=2\nfill\nwalked\n")


def test_a_report_of_the_audit_on_a_full_disk_is_named(tmp_path):
    saved = f"mkdir -p s/leaf1 && echo x > s/leaf1/a.txt; {FILL}"
    done = on_a_small_disk(tmp_path, f"{saved} {PAISOAR} audit --from s --out r.txt; exit $?")
    assert done.returncode == 2
    assert "r.txt: cannot be written: No space left on device" in done.stderr


def test_a_link_stays_a_link_and_its_file_keeps_its_mode(tmp_path):
    from fabric.textfile import write_text

    (tmp_path / "kept.yaml").write_text("old")
    (tmp_path / "kept.yaml").chmod(0o640)
    (tmp_path / "fabric.yaml").symlink_to("kept.yaml")
    write_text(tmp_path / "fabric.yaml", "new")
    assert (tmp_path / "fabric.yaml").is_symlink()
    assert (tmp_path / "kept.yaml").read_text() == "new"
    assert (tmp_path / "kept.yaml").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fabric.yaml", "kept.yaml"]
