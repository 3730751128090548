"""Running a playbook: passwords that never lie on a disk, and no process left."""

import os

import psutil
import pytest

from fabric.errors import InputError, ToolError
from fabric.provisioning.runner import run_playbook
from fabric.reach.inventory import passwords, write_inventory
from fabric.topology import ClosShape
from tests.fabric.switch_sites import switch_site

SECRET = "pass-'4711\" $x"
PLAY = """\
- hosts: hosts
  gather_facts: false
  tasks:
    - name: touch
      paisoar_host:
        commands: ["{command}"]
"""


@pytest.fixture
def net(tmp_path, monkeypatch):
    shape = ClosShape(1, 1, 0)
    with switch_site(tmp_path, monkeypatch, shape, password=SECRET, hosts=True) as net:
        yield net


def _run(net, tmp_path, command, plays=None, **options):
    play = (plays or tmp_path) / "play.yml"
    play.write_text(PLAY.format(command=command))
    inventory = tmp_path / "inventory.json"
    write_inventory(inventory, net.site, net.site.topology.hosts)
    return run_playbook(
        str(play),
        tmp_path / "run",
        inventory,
        ident="01",
        extra_vars={"blank": "a b"},
        secrets=passwords(net.site, net.site.topology.hosts),
        **options,
    )


def test_a_host_is_reached_with_a_password_that_no_file_holds(net, tmp_path, monkeypatch):
    monkeypatch.setenv("OTHER_TOKEN", "t0ken-4712")
    events = []
    run = _run(net, tmp_path, f"echo hello > {tmp_path / 'touched'}", on_event=events.append)
    assert run.exit_code == 0, run.output
    assert (tmp_path / "touched").read_text() == "hello\n"
    assert any(event["event"] == "runner_on_ok" for event in events)
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert files
    for path in files:
        text = path.read_text(errors="replace")
        assert "4711" not in text, path
        assert "t0ken" not in text, path
    # Ansible's shared SSH connections end with the run.
    mine = psutil.Process().children(recursive=True)
    assert [p for p in mine if p.is_running() and p.name() in ("ssh", "ansible-playbook")] == []
    assert "PAISOAR_HOST_PASSWORD" in os.environ


def test_a_host_is_reached_from_a_folder_with_an_odd_name(tmp_path, monkeypatch):
    folder = tmp_path / """a "b' %h $HOME \\ ä"""
    folder.mkdir()
    monkeypatch.setenv("LC_ALL", "C")
    with switch_site(folder, monkeypatch, ClosShape(1, 1, 0), hosts=True) as net:
        events = []
        run = _run(net, folder, "true", plays=tmp_path, on_event=events.append)
    assert run.exit_code == 0, run.output
    assert any(event["event"] == "runner_on_ok" for event in events)


def test_a_folder_that_ssh_cannot_be_told_of_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "a${HOME}"
    folder.mkdir()
    with (
        switch_site(folder, monkeypatch, ClosShape(1, 1, 0), hosts=True) as net,
        pytest.raises(InputError, match="ssh or Ansible would not take"),
    ):
        write_inventory(tmp_path / "inventory.json", net.site, net.site.topology.hosts)


def test_an_error_in_the_callers_events_ends_the_playbook(net, tmp_path):
    def fail(event):
        if event["event"] == "runner_on_start":
            raise RuntimeError("the caller's own")

    with pytest.raises(RuntimeError, match="the caller's own"):
        _run(net, tmp_path, "sleep 20", on_event=fail)
    assert [p for p in psutil.Process().children(recursive=True) if "ansible" in p.name()] == []


def test_a_missing_ansible_is_said(net, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "fabric.provisioning.runner.sys.executable", str(tmp_path / "bin" / "python")
    )
    with pytest.raises(ToolError, match="ansible-playbook is missing"):
        _run(net, tmp_path, "true")
