"""The role roce_host, run by Ansible on this machine over a folder of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playbooks.plugins.action.paisoar_host import _ended

ROLES = Path(__file__).parents[2] / "playbooks" / "roles"
PLAY = """\
- hosts: localhost
  connection: local
  gather_facts: false
  vars_files: [{variables}]
  tasks:
    - ansible.builtin.include_role:
        name: roce_host
        tasks_from: {tasks}
"""
# One that exists with other content, one that does not exist. Contents come from
# hosts, so that braces in them must stay what they are.
OLD, NEW = "#!/bin/sh\necho old {{ braces }}\n", "#!/bin/sh\n\necho 'new'\n"


class Host:
    """A folder with the files of a host; ``run`` applies the role to it."""

    def __init__(self, folder):
        self.folder = folder
        self.script = folder / "etc/paisoar/roce-ens1f0.sh"
        self.unit = folder / "etc/paisoar/paisoar-roce@.service"
        self.state = folder / "state"
        self.systemctl = folder / "systemctl.log"
        self.script.parent.mkdir(parents=True)
        self.script.write_text(OLD)
        (folder / "bin").mkdir()
        tool = folder / "bin/systemctl"
        tool.write_text(f'#!/bin/sh\necho "$@" >> {self.systemctl}\n')
        tool.chmod(0o755)
        self.commands = [f"echo one > {self.state}", f"echo two >> {self.state}"]
        self.rollback = [f"rm -f {self.state}"]

    def run(self, *options, tasks="main"):
        files = [
            {"path": str(self.script), "before": OLD, "after": NEW, "mode": "0755"},
            {"path": str(self.unit), "before": None, "after": "[Unit]\n", "mode": "0644"},
        ]
        variables = self.folder / "variables.yml"
        variables.write_text(
            "".join(
                f"{name}: {_unsafe(value)}\n"
                for name, value in (
                    ("roce_host_files", files),
                    ("roce_host_commands", self.commands),
                    ("roce_host_rollback", self.rollback),
                )
            )
        )
        play = self.folder / "play.yml"
        play.write_text(PLAY.format(variables=variables, tasks=tasks))
        return subprocess.run(
            [
                Path(sys.executable).with_name("ansible-playbook"),
                "-i",
                "localhost,",
                "-e",
                f"ansible_python_interpreter={sys.executable}",
                *options,
                play,
            ],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ
            | {
                "ANSIBLE_ROLES_PATH": str(ROLES),
                "ANSIBLE_ACTION_PLUGINS": str(ROLES.parent / "plugins" / "action"),
                "ANSIBLE_LOCAL_TEMP": str(self.folder / "tmp"),
                "ANSIBLE_REMOTE_TEMP": str(self.folder / "tmp"),
                "ANSIBLE_NOCOLOR": "1",
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            },
        )


def _unsafe(value):
    if isinstance(value, list):
        return "[" + ", ".join(_unsafe(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_unsafe(item)}" for key, item in value.items()) + "}"
    return f"!unsafe {json.dumps(value)}" if isinstance(value, str) else json.dumps(value)


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_files_are_written_systemd_reloaded_and_commands_run_in_order(host):
    result = host.run()
    assert result.returncode == 0, result.stdout + result.stderr
    assert host.script.read_text() == NEW
    assert host.script.stat().st_mode & 0o777 == 0o755
    assert host.unit.read_text() == "[Unit]\n"
    assert host.state.read_text() == "one\ntwo\n"
    assert host.systemctl.read_text() == "daemon-reload\n"


def test_check_mode_shows_everything_and_does_nothing(host):
    result = host.run("--check", "--diff")
    assert result.returncode == 0, result.stdout + result.stderr
    assert host.script.read_text() == OLD
    assert not host.unit.exists()
    assert not host.state.exists()
    assert not host.systemctl.exists()
    assert "+echo 'new'" in result.stdout
    assert f"echo two >> {host.state}" in result.stdout


def test_a_command_that_fails_is_named_and_everything_is_put_back(host):
    # mlnx_qos complains on its standard output.
    host.commands[1:] = ["{ echo told on stdout; false; }", f"echo three >> {host.state}"]
    result = host.run()
    assert result.returncode == 2
    words = " ".join(result.stdout.split()).replace("\\n", " ")
    assert "told on stdout This command failed: { echo told on stdout; false; }" in words
    assert "Everything was put back." in words
    assert host.script.read_text() == OLD
    assert not host.unit.exists()
    assert not host.state.exists()


def test_a_connection_that_is_cut_off_here_is_told_from_a_script_that_failed():
    assert _ended(-9) == "the connection was cut off here, by signal 9"
    assert _ended(3) == "it said nothing; exit status 3"


@pytest.mark.slow
def test_a_way_back_that_fails_is_told_and_the_rest_is_still_undone(host):
    host.commands.append("false")
    host.rollback.insert(0, "{ echo cannot undo >&2; false; }")
    result = host.run()
    assert result.returncode == 2
    assert "In putting it back this failed as well: cannot undo" in result.stdout.replace(
        "\\n", " "
    )
    assert not host.state.exists()
    assert host.script.read_text() == OLD


@pytest.mark.slow
def test_rollback_alone_puts_back_what_was_there(host):
    assert host.run().returncode == 0
    result = host.run(tasks="rollback")
    assert result.returncode == 0, result.stdout + result.stderr
    assert host.script.read_text() == OLD
    assert not host.unit.exists()
    assert not host.state.exists()


def test_rollback_alone_fails_where_something_cannot_be_put_back(host):
    host.rollback = ["{ echo cannot undo >&2; false; }"]
    result = host.run(tasks="rollback")
    assert result.returncode == 2
    assert "Not everything was put back: cannot undo" in result.stdout
