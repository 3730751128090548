"""Reading devices over real SSH: one failure hides nothing, host keys are checked."""

import asyncio
import concurrent.futures
import dataclasses
import gc
import logging
import re
import socket
import time
from pathlib import Path

import asyncssh
import pytest

from fabric.devices.registry import module_of, target_of
from fabric.errors import DeviceError, DevicesError, UnreachableError
from fabric.reach import collect
from fabric.reach.access import Access
from fabric.reach.collect import (
    Reading,
    collect_device,
    parse_states,
    read_at,
    read_counters,
    read_states,
)
from fabric.reach.hostssh import Answer, close_hosts, run_on_host
from fabric.reach.switchssh import SwitchSession, close_switches, switch_session
from tests.fabric.devices.mlx5.samples import factory
from tests.fabric.ssh_servers import shell, ssh_servers
from tests.fabric.switch_sites import switch_site
from tests.sites import make_site


@pytest.fixture
def host(tmp_path):
    """A shell behind SSH: its servers, and how to reach it."""
    with ssh_servers(tmp_path) as servers:
        port = servers.add("host1", shell)
        yield servers, Access("127.0.0.1", port, "root", servers.known_hosts, servers.key_file)
        close_hosts()


def test_a_host_answers_each_command_and_keeps_failures_apart(host):
    _, access = host
    answers = run_on_host("host1", access, ("echo one; echo noise >&2", "echo no >&2; exit 3"))
    good, bad = answers.result().values()
    assert (good.stdout, good.stderr, good.exit_status) == ("one\n", "noise\n", 0)
    assert bad.complaint == "exit status 3: no"


def test_sudo_runs_the_command_as_root_through_sudo(host, tmp_path, monkeypatch):
    _, access = host
    (tmp_path / "bin").mkdir()
    sudo = tmp_path / "bin" / "sudo"
    sudo.write_text('#!/bin/sh\necho "sudo $1 $2"\nshift 2\nexec "$@"\n')
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    command = "echo 'it is' done"
    answers = run_on_host("host1", access, (command,), sudo=True).result()
    assert answers[command].stdout == "sudo -n --\nit is done\n"


def test_a_host_that_refuses_every_command_is_not_read_and_says_why(tmp_path, monkeypatch):
    site = make_site(tmp_path, environment="site")
    said = Answer("", "sudo: a password is required", 1)
    monkeypatch.setattr(
        collect, "access_to", lambda _site, _name: Access("h", 22, "root", tmp_path)
    )
    done = concurrent.futures.Future()
    commands = module_of(site, "host1").read_commands(target_of(site, "host1"))
    done.set_result(dict.fromkeys(commands, said))
    monkeypatch.setattr(collect, "run_on_host", lambda *_args, **_options: done)
    states = read_states(site, ["host1"])
    assert not states.states
    assert "sudo: a password is required" in states.failed["host1"].message


def test_why_a_command_was_refused_stands_beside_what_is_not_known(tmp_path, monkeypatch):
    site = make_site(tmp_path, environment="site")
    outputs = dict(factory())
    refused = {c: "exit status 127: not found" for c in outputs if "mlnx" in c}
    for command in refused:
        del outputs[command]
    states = parse_states(site, {"host1": Reading(outputs, refused)})
    assert any("not found" in fact for fact in states.states["host1"].unread)


def test_reading_again_uses_the_same_connection_and_survives_its_loss(host):
    servers, access = host
    where = "echo $SSH_CONNECTION; true"
    for _ in range(2):
        assert run_on_host("host1", access, (where,)).result()[where].exit_status == 0
    assert len(servers._connections["host1"]) == 1
    servers.drop("host1")
    assert run_on_host("host1", access, (where,)).result()[where].exit_status == 0
    assert len(servers._connections["host1"]) == 1


def test_a_command_that_does_not_end_is_named(host, monkeypatch):
    _, access = host
    monkeypatch.setattr("fabric.reach.hostssh.COMMAND_TIMEOUT_S", 0.3)
    with pytest.raises(DeviceError, match=r"host1: run 'sleep 2'.*has not ended after 0.3 s"):
        run_on_host("host1", access, ("sleep 2",)).result()


def test_an_emulated_processor_gets_more_time(host, monkeypatch):
    _, access = host
    monkeypatch.setattr("fabric.reach.hostssh.COMMAND_TIMEOUT_S", 0.3)
    with pytest.raises(DeviceError, match=r"has not ended after 1.8 s"):
        run_on_host("host1", dataclasses.replace(access, slow=True), ("sleep 9",)).result()


def test_what_still_runs_when_connections_are_closed_ends_quietly(host, tmp_path, caplog):
    servers, access = host
    begun = tmp_path / "begun"
    commands = tuple(f"touch {begun}{number}; sleep 9; true {number}" for number in range(3))
    running = run_on_host("host1", access, commands)
    read = collect._then(running, collect._reading)
    while not Path(f"{begun}2").exists():
        time.sleep(0.01)
    close_hosts()
    gc.collect()
    assert running.cancelled()
    assert read.cancelled()
    assert len(servers._connections["host1"]) == 1
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def _closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _log_in(kind, access):
    if kind == "host":
        run_on_host("dev1", access, ("true",)).result()
    else:
        SwitchSession("dev1", access, "cisco_nxos").close()


@pytest.mark.parametrize("kind", ["host", "switch"])
class TestLoginFailure:
    def test_nobody_listens(self, host, kind):
        _, access = host
        port = _closed_port()
        with pytest.raises(UnreachableError) as caught:
            _log_in(kind, dataclasses.replace(access, port=port))
        assert f"127.0.0.1:{port}" in caught.value.message
        assert "Connection refused" in caught.value.message
        assert caught.value.device == "dev1"

    def test_another_host_key_is_not_accepted(self, host, kind):
        servers, access = host
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
        servers.known_hosts.write_text(f"[127.0.0.1]:{access.port} {other}")
        with pytest.raises(UnreachableError, match="host key is not the one in"):
            _log_in(kind, access)

    def test_an_unknown_host_key_is_not_accepted(self, host, kind):
        servers, access = host
        servers.known_hosts.write_text("# nobody yet\n")
        with pytest.raises(UnreachableError, match="host key is not in") as caught:
            _log_in(kind, access)
        assert caught.value.advice.startswith("Put dev1's key there")

    @pytest.mark.parametrize("line", ["nonsense", "[127.0.0.1]:{port} ssh-rsa AAAAB"])
    def test_a_known_key_that_is_damaged_is_named_with_its_line(self, host, kind, line):
        servers, access = host
        servers.known_hosts.write_text(f"# checked\n{line.format(port=access.port)}\n")
        with pytest.raises(UnreachableError, match="line 2: what stands there is no host key"):
            _log_in(kind, access)

    def test_no_file_of_host_keys(self, host, kind, tmp_path):
        _, access = host
        with pytest.raises(UnreachableError, match="no file of known host keys"):
            _log_in(kind, dataclasses.replace(access, known_hosts=tmp_path / "none"))

    def test_a_key_that_the_device_does_not_know(self, host, kind, tmp_path):
        _, access = host
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(tmp_path / "other"))
        with pytest.raises(UnreachableError, match="refused") as caught:
            _log_in(kind, dataclasses.replace(access, key_file=tmp_path / "other"))
        assert "PAISOAR_" in caught.value.advice

    @pytest.mark.parametrize(
        ("kept", "why"),
        [
            ("nothing", "No such file"),
            ("nonsense", "Invalid private key"),
            ("locked", "Passphrase"),
        ],
    )
    def test_a_key_that_cannot_be_used_is_named_with_the_reason(
        self, host, kind, tmp_path, kept, why
    ):
        _, access = host
        file = tmp_path / "mine"
        if kept == "nonsense":
            file.write_text("not a key\n")
        if kept == "locked":
            key = asyncssh.generate_private_key("ssh-ed25519")
            key.write_private_key(str(file), passphrase="a secret")
        with pytest.raises(UnreachableError, match=why) as caught:
            _log_in(kind, dataclasses.replace(access, key_file=file))
        assert f"the private key {file} cannot be used" in caught.value.message
        assert "agent" in caught.value.advice


def test_passwords_log_in_and_show_nowhere(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch, password="s3cret-4711", hosts=True) as net:
        access = net.access("host1")
        assert run_on_host("host1", access, ("echo in",)).result()["echo in"].stdout == "in\n"
        assert net.read().failed == {}
        assert "s3cret" not in repr(access)
        close_hosts()
        close_switches()
        wrong = dataclasses.replace(access, password="wrong-4711")
        with pytest.raises(UnreachableError, match="refused") as caught:
            run_on_host("host1", wrong, ("true",)).result()
        assert "4711" not in str(caught.value)


def test_one_unreachable_switch_hides_no_other(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        net.servers.kill("leaf2")
        done = []
        states = read_states(net.site, net.names, done.append)
        assert sorted(done) == ["leaf1", "leaf2", "spine1"]
        assert list(states.states) == ["leaf1", "spine1"]
        assert states.states["leaf1"].os == "nxos"
        port = net.access("leaf2").port
        assert f"leaf2: log in over SSH to 127.0.0.1:{port}" in states.failed["leaf2"].message
        with pytest.raises(DevicesError, match="leaf2") as caught:
            states.raise_failed()
        assert caught.value.exit_code == 3
        assert list(caught.value.failed) == ["leaf2"]


def test_a_switch_that_breaks_off_while_reading_is_read_again_next_time(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        commands = ("show version",)
        assert "NXOS" in collect_device(net.site, "leaf1", commands)["show version"]
        net.servers.drop("leaf1")
        assert "NXOS" in collect_device(net.site, "leaf1", commands)["show version"]


def test_a_refused_command_is_absent_and_recorded(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        module = module_of(net.site, "leaf1")
        commands = ("show version", "show nonsense")
        reading = read_at("leaf1", net.access("leaf1"), module, commands)
        assert list(reading.outputs) == ["show version"]
        assert "Invalid" in reading.refused["show nonsense"]
        assert list(collect_device(net.site, "leaf1", commands)) == ["show version"]


def test_outputs_are_what_the_switch_printed_without_echo_and_prompt(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        shown = collect_device(net.site, "leaf1", ("show running-config",))
        typed = net.execute("leaf1", "show running-config")
        lines = [line for line in typed.splitlines() if not line.startswith("!Time")]
        read = shown["show running-config"].splitlines()
        assert [line for line in read if not line.startswith("!Time")] == lines


def test_a_session_that_failed_is_not_used_again(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        access = net.access("leaf1")
        with switch_session("leaf1", access, "cisco_nxos") as first:
            first.show("show version")
        with switch_session("leaf1", access, "cisco_nxos") as second:
            assert second is first
        with pytest.raises(RuntimeError), switch_session("leaf1", access, "cisco_nxos"):
            raise RuntimeError
        with switch_session("leaf1", access, "cisco_nxos") as third:
            assert third is not first


def test_a_silent_switch_is_unreachable_and_named(tmp_path, monkeypatch):
    async def silent(process):
        process.stdout.write("leaf1# ")
        async for line in process.stdin:
            if "show version" in line:
                process.stdout.write("Cisco Nexus\r\n")
            process.stdout.write("leaf1# " if "hang" not in line else "")

    with ssh_servers(tmp_path) as servers:
        port = servers.add("leaf1", silent)
        access = Access("127.0.0.1", port, "admin", servers.known_hosts, servers.key_file)
        session = SwitchSession("leaf1", access, "cisco_nxos")
        with pytest.raises(UnreachableError, match="show hang: no prompt came back within 0.5 s"):
            session.show("show hang", timeout_s=0.5)
        session.close()


def test_prompts_that_come_late_end_no_answer(tmp_path):
    async def late(process):
        typed = asyncio.Queue()

        async def answer():
            process.stdout.write("leaf1# ")
            while True:
                line = await typed.get()
                await asyncio.sleep(0.15)
                process.stdout.write(f"about {line}\r\n" if line.startswith("show") else "")
                process.stdout.write("leaf1# ")

        answering = asyncio.create_task(answer())
        async for line in process.stdin:
            typed.put_nowait(line.strip())
        answering.cancel()

    with ssh_servers(tmp_path) as servers:
        port = servers.add("leaf1", late)
        access = Access("127.0.0.1", port, "admin", servers.known_hosts, servers.key_file)
        session = SwitchSession("leaf1", access, "cisco_nxos")
        for command in ("show running-config", "show interface"):
            assert session.show(command) == f"about {command}"
        session.close()


def test_counters_of_every_switch_carry_their_own_time(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        counters = read_counters(net.site, net.names)
        assert counters.failed == {}
        assert set(counters.snapshots) == {"leaf1", "leaf2", "spine1"}
        for name, snapshot in counters.snapshots.items():
            assert snapshot.device == name
            assert snapshot.taken_at_s > 0
            assert snapshot.counters


def test_no_devices_asked_for_are_no_devices_read(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        assert read_states(net.site, []).states == {}


@pytest.mark.parametrize("text", ["\n", "interface Ethernet1/1\n  mtu many\n"])
def test_an_output_in_another_form_fails_that_device_alone(text, tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        commands = module_of(net.site, "leaf1").read_commands(target_of(net.site, "leaf1"))
        good = Reading(collect_device(net.site, "leaf1", commands))
        bad = Reading(dict.fromkeys(good.outputs, text))
        states = parse_states(net.site, {"leaf1": good, "leaf2": bad})
        assert list(states.states) == ["leaf1"]
        assert "leaf2: understand what it printed" in states.failed["leaf2"].message


def test_a_configuration_that_came_only_in_part_is_a_failed_read(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        commands = module_of(net.site, "leaf1").read_commands(target_of(net.site, "leaf1"))
        outputs = collect_device(net.site, "leaf1", commands)
        running = outputs["show running-config"]
        ports = list(re.finditer(r"^interface Ethernet", running, re.MULTILINE))
        cut = Reading({**outputs, "show running-config": running[: ports[-1].start()]})
        states = parse_states(net.site, {"leaf1": cut, "leaf2": Reading(outputs)})
        assert list(states.states) == ["leaf2"]
        assert "the running configuration seems cut off" in states.failed["leaf1"].message
