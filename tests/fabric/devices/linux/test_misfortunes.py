"""Whatever befalls a host at whatever step of its change: the way back leads back.

The script of a change runs as Ansible sends it, in an emulated host, and breaks off
at one of its steps; then the way back runs as `paisoar rollback` sends it.
"""

import dataclasses
import subprocess

import pytest

from fabric.provisioning.hostscript import apply_script, rollback_script
from fabric.provisioning.plan import DevicePlan, remains_of
from fabric.qos import canonical_sha256
from tests.fabric.devices.linux.shells import Shell
from tests.fabric.devices.linux.test_on_an_emulated_host import PATH

REBOOT = "systemctl reboot"


@pytest.fixture(scope="module", params=["mlx5", "bnxt", "irdma"])
def host(request, tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("host"), request.param)
    yield shell
    shell.namespace.close()


def _script(host, script):
    return subprocess.run(
        [*host.namespace.command, "/bin/sh", "-s"],
        check=False,
        input=script,
        capture_output=True,
        text=True,
        env={"PATH": PATH, "HOME": "/"},
    )


def _remains(host, order):
    outputs = host.outputs()
    return remains_of(host.module, order, host.module.read(host.target, outputs), outputs)


@pytest.fixture(scope="module")
def order(host):
    outputs = host.outputs()
    before = host.module.read(host.target, outputs)
    return DevicePlan(
        target=host.target,
        kind="host",
        before=before,
        intended=host.intended,
        change=host.module.change(host.target, outputs, host.intended),
        read_sha256=canonical_sha256((before,)),
    )


def _strike(commands, step, misfortune):
    """The commands, of which one meets with a misfortune."""
    struck = {
        # A driver that refuses it, and says so.
        "rejects": "echo 'Operation not supported' >&2; false",
        # The session breaks, and the shell that runs the script ends.
        "breaks_before": "kill -9 $$",
        "breaks_after": f"{commands[step]}; kill -9 $$",
        "reboots": f"{REBOOT}; kill -9 $$",
    }[misfortune]
    return (*commands[:step], struck, *commands[step + 1 :])


@pytest.mark.slow
@pytest.mark.parametrize("misfortune", ["rejects", "breaks_before", "breaks_after", "reboots"])
def test_a_change_that_broke_off_anywhere_is_taken_back(host, order, misfortune):
    commands = order.change.commands
    for step in range(0, len(commands), max(1, len(commands) // 5)):
        done = _script(host, apply_script(order.change.files, _strike(commands, step, misfortune)))
        assert done.returncode != 0, (step, done.stdout)
        if misfortune == "rejects":
            assert "This command failed" in done.stderr
        assert _remains(host, order), (step, commands[step])
        back = _script(host, rollback_script(order.change.files, order.change.rollback))
        assert back.returncode == 0, (step, commands[step], back.stderr)
        assert _remains(host, order) == [], (step, commands[step])


def test_files_that_no_port_shows_are_seen_as_remains(host, order):
    only_files = dataclasses.replace(order.change, commands=())
    assert _script(host, apply_script(only_files.files, ())).returncode == 0
    assert _remains(host, order)
    assert _script(host, rollback_script(only_files.files, ())).returncode == 0
    assert _remains(host, order) == []
