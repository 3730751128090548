"""``paisoar lab``, as people and programs use it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.lab import down
from fabric.lab.starter import lab_yaml
from tests.fabric.lab.conftest import own_ports


def paisoar(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "paisoar", "lab", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def folder(tmp_path: Path):
    place = tmp_path / "place"
    place.mkdir()
    yield place
    down(place / "fabric.yaml")


def test_up_in_an_empty_folder_writes_a_site_and_says_what_comes_next(folder, stand_ins):
    done = paisoar(folder, "up", "--hosts", "3")
    assert done.returncode == 0, done.stderr
    assert "environment: lab" in (folder / "fabric.yaml").read_text()
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["switch1", "host1", "host2", "host3"]
    assert lines[1].endswith("ssh -F .paisoar/lab/ssh_config host1")
    assert "Next: paisoar plan" in lines[4]

    status = json.loads(paisoar(folder, "status", "--json").stdout)
    assert status["up"]
    assert {guest["state"] for guest in status["guests"]} == {"ready"}

    assert paisoar(folder, "down").stdout == "The lab is down.\n"
    shown = paisoar(folder, "status")
    assert (shown.stdout, shown.returncode) == (
        "The lab is down. Start it with: paisoar lab up\n",
        0,
    )


def test_a_guest_that_is_lost_makes_the_status_fail(folder, stand_ins):
    file = folder / "fabric.yaml"
    file.write_text(lab_yaml(2, ports=own_ports(3)))
    started = json.loads(paisoar(folder, "up", "--json").stdout)
    assert not started["wrote"]
    state = json.loads((folder / ".paisoar/lab/state.json").read_text())
    subprocess.run(["kill", "-9", str(state["guests"]["host2"]["pid"])], check=True)
    for _ in range(600):
        done = paisoar(folder, "status")
        if done.returncode:
            break
    assert done.returncode == 3
    assert "host2      host    ended: its QEMU ended (signal SIGKILL)" in done.stdout
    assert "host2.console.log" in done.stdout


def test_without_qemu_nothing_is_written(folder, tmp_path, cache, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = paisoar(folder, "up")
    assert done.returncode == 3
    assert "there is no qemu-system-x86_64 on this machine" in done.stderr
    assert "apt-get install -y qemu-system-x86" in done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("up", "--hosts", "5"), "--hosts"),
        (("up", "--hosts", "1"), "--hosts"),
        (("up", "--host-memory", "10"), "--host-memory"),
        (("down",), "no such file"),
        (("status",), "no such file"),
    ],
)
def test_bad_usage_is_exit_2(folder, stand_ins, words, said):
    done = paisoar(folder, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (folder / "fabric.yaml").exists()


def test_a_site_that_is_no_lab_is_refused_with_file_and_key(folder, stand_ins):
    text = lab_yaml(2, ports=own_ports(3)).replace("environment: lab", "environment: site")
    (folder / "fabric.yaml").write_text(text)
    for words in (("up",), ("status",)):
        done = paisoar(folder, *words)
        assert done.returncode == 2
        assert "fabric.yaml: environment: environment is site, which has no lab" in done.stderr


def test_other_hosts_than_the_site_has_are_refused(folder, stand_ins):
    (folder / "fabric.yaml").write_text(lab_yaml(2, ports=own_ports(3)))
    done = paisoar(folder, "up", "--hosts", "4")
    assert done.returncode == 2
    assert "the site has 2 hosts, not 4" in done.stderr
