"""Unmodified Ansible against an emulated host: default transfer, then piped and pipelined."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fabric.twin.host.server import Served, serve

UNIT = "[Service]\\nType=oneshot\\nRemainAfterExit=yes\\nExecStart=/bin/true\\n"
INSTALL = "[Install]\\nWantedBy=multi-user.target\\n"
PLAY = f"""\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.copy:
        dest: /etc/systemd/system/roce.service
        content: "{UNIT}{INSTALL}"
    - ansible.builtin.shell: mlnx_qos -i ens1f0 --trust dscp > ~/before
    - ansible.builtin.systemd_service: {{name: roce, enabled: true, state: started}}
      register: first
    - ansible.builtin.systemd_service: {{name: roce, enabled: true, state: started}}
      register: again
    - ansible.builtin.assert: {{that: [first.changed, not again.changed]}}
"""


def play(served: Served, folder: Path, **settings: str) -> dict[str, int]:
    """Run the play; the numbers of its recap."""
    common = f"-F none -o UserKnownHostsFile={served.known_hosts} -o IdentitiesOnly=yes"
    (folder / "inventory").write_text(
        f"host1 ansible_host=127.0.0.1 ansible_port={served.port} "
        f"ansible_user={served.host.user} ansible_ssh_private_key_file={served.key} "
        f"ansible_ssh_common_args='{common}'\n"
    )
    (folder / "play.yml").write_text(PLAY)
    done = subprocess.run(
        [
            Path(sys.executable).parent / "ansible-playbook",
            *("-i", folder / "inventory", folder / "play.yml"),
        ],
        env={
            **os.environ,
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PYTHON_INTERPRETER": "auto_silent",
            "ANSIBLE_SSH_ARGS": "-o ControlMaster=no",
            **settings,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    recap = done.stdout[done.stdout.index("PLAY RECAP") :]
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", recap)}


@pytest.mark.slow
def test_modules_files_and_services_work_by_default(host, tmp_path):
    with serve(host, tmp_path / "ssh") as served:
        stats = play(served, tmp_path)
        assert (stats["ok"], stats["failed"], stats["unreachable"]) == (5, 0, 0)
        assert served.out("systemctl is-enabled roce; systemctl is-active roce") == (
            "enabled\nactive\n"
        )
        assert "trust state: dscp" in served.out("mlnx_qos -i ens1f0")
        assert "trust state: dscp" in served.out("cat ~/before")


@pytest.mark.slow
def test_modules_work_without_sftp_when_piped(host, tmp_path):
    with serve(host, tmp_path / "ssh", sftp=False) as served:
        stats = play(
            served, tmp_path, ANSIBLE_SSH_TRANSFER_METHOD="piped", ANSIBLE_PIPELINING="true"
        )
        assert (stats["ok"], stats["failed"], stats["unreachable"]) == (5, 0, 0)
        assert served.out("systemctl is-enabled roce") == "enabled\n"
