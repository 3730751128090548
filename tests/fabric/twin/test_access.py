"""Getting into the twin's devices with OpenSSH, netmiko and a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncssh
import pytest
from netmiko import ConnectHandler
from netmiko.exceptions import ConfigInvalidException, NetmikoBaseException
from paramiko.ssh_exception import SSHException

from fabric.errors import ToolError
from fabric.reach.access import access_to, check_twin_is_up, twin_inventory_path
from fabric.site import Site
from fabric.topology import ClosShape
from fabric.twin.lifecycle import down, up
from tests.fabric.twin.clients import ssh, words
from tests.sites import make_site


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = make_site(tmp_path_factory.mktemp("twin"), ClosShape(hosts=2, leaves=2, spines=1))
    up(site)
    yield site
    down(site.path)


def test_anybody_on_loopback_gets_into_a_switch_without_credentials(twin: Site):
    line = [*words(twin, "leaf1", user="admin", with_key=False), "show hostname"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, "leaf1\n")


def test_a_host_lets_in_only_with_the_twins_key(twin: Site):
    line = [*words(twin, "host1", with_key=False), "true"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 255
    assert "Permission denied (publickey)" in done.stderr
    assert ssh(twin, "host1", "hostname").stdout == "host1\n"


def test_each_device_has_its_own_host_key(twin: Site):
    access = access_to(twin, "leaf1")
    lines = access.known_hosts.read_text().splitlines()
    keys = {line.split()[2] for line in lines}
    assert len(keys) == len(twin.devices)
    # With leaf1's key under leaf2's name, leaf2 is an impostor.
    other = access_to(twin, "leaf2")
    stolen = lines[0].replace(f":{access.port} ", f":{other.port} ") + "\n"
    fake = access.known_hosts.with_name("stolen_known_hosts")
    fake.write_text(stolen)
    line = [word.replace("known_hosts", "stolen_known_hosts") for word in words(twin, "leaf2")]
    done = subprocess.run([*line, "show hostname"], capture_output=True, text=True, check=False)
    fake.unlink()
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


def test_commands_over_ssh_part_by_semicolon_and_fail_by_status(twin: Site):
    done = ssh(twin, "leaf1", "show hostname ; show feature | include lldp")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["leaf1", "lldp                  1         enabled"]
    bad = ssh(twin, "leaf1", "show nonsense")
    assert bad.returncode != 0
    assert "% Invalid command at '^' marker." in bad.stdout


def test_commands_may_come_from_a_pipe(twin: Site):
    done = subprocess.run(
        words(twin, "leaf1"),
        input="conf t\nshow hostname\nend\nexit\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "leaf1\n" in done.stdout


def netmiko(site: Site, device: str, **more: object) -> ConnectHandler:
    access = access_to(site, device)
    settings = {
        "device_type": "cisco_nxos",
        "host": access.host,
        "port": access.port,
        "username": access.user,
        "use_keys": True,
        "key_file": str(access.key_file),
        "ssh_strict": True,
        "system_host_keys": False,
        "alt_host_keys": True,
        "alt_key_file": str(access.known_hosts),
    }
    return ConnectHandler(**{**settings, **more})


def test_netmiko_works_unmodified(twin: Site):
    with netmiko(twin, "leaf1") as session:
        assert session.find_prompt() == "leaf1#"
        assert "NXOS: version" in session.send_command("show version")
        whole = session.send_command("show running-config")
        assert "--More--" not in whole
        assert whole.rstrip().endswith("router-id 10.254.0.1")
        wide = (
            "random-detect minimum-threshold 100 kbytes maximum-threshold 400 kbytes "
            "drop-probability 20 weight 0 ecn"
        )
        session.send_config_set(
            ["policy-map type queuing Q", "class type queuing c-out-8q-q3", wide],
            error_pattern=r"(\^|ERROR|%)",
        )
        assert wide in session.send_command("show running-config ipqos")
        with pytest.raises(ConfigInvalidException):
            session.send_config_set(["feature qos"], error_pattern=r"% Invalid")
        assert "Copy complete" in session.save_config()
        assert wide in session.send_command("show startup-config | section queuing")


def test_netmiko_refuses_a_wrong_host_key(twin: Site, tmp_path):
    empty = tmp_path / "known_hosts"
    empty.write_text("")
    with pytest.raises((NetmikoBaseException, SSHException), match=r"not found in known_hosts"):
        netmiko(twin, "leaf1", alt_key_file=str(empty))


@asynccontextmanager
async def terminal(site: Site, *, rows: int = 24) -> AsyncIterator[asyncssh.SSHClientProcess[str]]:
    access = access_to(site, "leaf1")
    async with (
        asyncssh.connect(
            access.host,
            access.port,
            username="admin",
            known_hosts=str(access.known_hosts),
            client_keys=None,
            config=None,
        ) as connection,
        connection.create_process(term_type="vt100", term_size=(80, rows)) as process,
    ):
        await expect(process, "leaf1# ")
        yield process


async def expect(process: asyncssh.SSHClientProcess[str], end: str) -> str:
    """Everything up to this text, which must come within seconds."""
    text = await asyncio.wait_for(process.stdout.readuntil(end), 10)
    return text.replace("\r\n", "\n")


def test_a_terminal_pages_long_output(twin: Site):
    async def talk() -> None:
        async with terminal(twin) as process:
            process.stdin.write("show running-config\r")
            first = await expect(process, "--More--")
            assert first.count("\n") == 24  # the echoed command and a page but one line
            process.stdin.write("\r")
            assert (await expect(process, "--More--")).count("\n") == 1
            process.stdin.write(" ")
            assert (await expect(process, "--More--")).count("\n") == 23
            process.stdin.write("q")
            assert "\n" not in await expect(process, "leaf1# ")
            process.stdin.write("terminal length 0\r")
            await expect(process, "leaf1# ")
            process.stdin.write("show running-config\r")
            whole = await expect(process, "router-id 10.254.0.1\nleaf1# ".replace("\n", "\r\n"))
            assert "--More--" not in whole

    asyncio.run(talk())


def test_a_terminal_edits_completes_and_helps(twin: Site):
    async def talk() -> None:
        async with terminal(twin) as process:
            process.stdin.write("show hostnamx\x7fe\r")
            assert "\nleaf1\n" in await expect(process, "leaf1# ")
            process.stdin.write("sho\thostn\t\r")
            await expect(process, "hostname ")
            assert "\nleaf1\n" in await expect(process, "leaf1# ")
            process.stdin.write("\x1b[A\r")
            assert "\nleaf1\n" in await expect(process, "leaf1# ")
            process.stdin.write("conf t\r")
            await expect(process, "(config)# ")
            process.stdin.write("interface e1/1\r")
            await expect(process, "(config-if)# ")
            process.stdin.write("priority-flow-control mode ?")
            assert "  auto\n  off\n  on\n" in await expect(process, "(config-if)# ")
            process.stdin.write("bad\r")
            answer = await expect(process, "(config-if)# ")
            column = len("leaf1(config-if)# priority-flow-control mode ")
            assert f"\n{' ' * column}^\n% Invalid command at '^' marker.\n" in answer
            process.stdin.write("half\x1a")
            await expect(process, "leaf1# ")
            process.stdin.write("half\x03")
            await expect(process, "leaf1# ")
            process.stdin.write("exit\r")
            assert (await asyncio.wait_for(process.wait(), 10)).exit_status == 0

    asyncio.run(talk())


def test_two_sessions_see_the_same_configuration(twin: Site):
    async def talk() -> None:
        async with terminal(twin) as first:
            ssh_done = await asyncio.to_thread(
                ssh, twin, "leaf1", "conf t ; interface e1/2 ; description seen by both"
            )
            assert ssh_done.returncode == 0
            first.stdin.write("show running-config interface e1/2 | include desc\r")
            assert "  description seen by both\n" in await expect(first, "leaf1# ")

    asyncio.run(talk())


def test_a_twin_that_has_died_is_said_to_be_dead(tmp_path):
    site = make_site(tmp_path)
    with pytest.raises(ToolError, match="is not up"):
        check_twin_is_up(site)
    ended = subprocess.Popen(["true"])
    ended.wait()
    path = twin_inventory_path(site)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"pid": ended.pid, "devices": {}}))
    for reach in (lambda: check_twin_is_up(site), lambda: access_to(site, "leaf1")):
        with pytest.raises(ToolError, match="has died") as caught:
            reach()
        assert "paisoar twin up" in caught.value.advice
    path.write_text(json.dumps({"pid": os.getpid(), "devices": {}}))
    with pytest.raises(ToolError, match="has no leaf1"):
        access_to(site, "leaf1")
