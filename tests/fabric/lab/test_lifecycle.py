"""Guests are started, found, and ended together, however the one who started them ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fabric.daemons import daemon_pid
from fabric.errors import InputError, ToolError
from fabric.lab import Sizes, down, running, status, up
from fabric.lab.lifecycle import MARKER
from fabric.reach.access import access_to, lab_dir_of
from fabric.reach.hostssh import close_hosts, run_on_host
from fabric.site import Site, load_site

PATIENCE_S = 60.0


def processes_of(site: Site) -> list[psutil.Process]:
    """Everything that came from this lab's keeper."""
    folder = str(lab_dir_of(site.path))
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            zombie = process.status() == psutil.STATUS_ZOMBIE
            if not zombie and process.environ().get(MARKER) == folder:
                found.append(process)
    return found


def wait_for(what, patience_s: float = PATIENCE_S):
    """The first true answer; the last one at the end of all patience."""
    deadline = time.monotonic() + patience_s
    while not (answer := what()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer


def behave(site: Site, **guests: str) -> None:
    (lab_dir_of(site.path).parent).mkdir(exist_ok=True)
    (lab_dir_of(site.path).parent / "standin.json").write_text(json.dumps(guests))


def start_up(site: Site) -> subprocess.Popen[str]:
    """``paisoar lab up`` as a process of its own."""
    command = [sys.executable, "-m", "paisoar", "lab", "up", "-f", str(site.path)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_up_waits_for_every_guest_and_says_how_far_it_is(site: Site, stand_ins: Path):
    told: list[tuple[int, int, str]] = []
    state = up(site, lambda *step: told.append(step))
    assert state.healthy
    assert [(guest.name, guest.kind) for guest in state.guests] == [
        ("switch1", "switch"),
        ("host1", "host"),
        ("host2", "host"),
    ]
    assert state.accelerator == "tcg"
    done, total, _ = told[-1]
    assert done == total
    assert {what for _, _, what in told} >= {"switch1 is up", "host1 is up", "host2 is up"}
    assert status(site).healthy
    assert state.to_json()["guests"][1]["port"] == site.devices["host1"].mgmt.port


def test_hosts_are_reached_as_those_of_any_site(site: Site, stand_ins: Path):
    with running(site):
        access = access_to(site, "host2")
        answer = run_on_host("host2", access, ["hostname"]).result()
        close_hosts()
    assert answer["hostname"].stdout == "host2\n"


def test_ssh_itself_needs_only_the_file_that_is_named(site: Site, stand_ins: Path):
    with running(site) as state:
        done = subprocess.run(
            ["ssh", "-F", str(state.ssh_config), "host1", "hostname"],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    assert (done.stdout, done.returncode) == ("host1\n", 0), done.stderr


def test_up_again_leaves_running_guests_alone(site: Site, stand_ins: Path):
    up(site)
    before = {process.pid for process in processes_of(site)}
    assert up(site).already_up
    assert {process.pid for process in processes_of(site)} == before


def test_a_lab_that_is_up_with_other_memory_is_not_ended_unasked(site: Site, stand_ins: Path):
    up(site)
    before = {process.pid for process in processes_of(site)}
    for sizes in (Sizes(host_memory_mib=1024), Sizes(host_memory_mib=10**6)):
        with pytest.raises(ToolError, match="the lab is up with other sizes"):
            up(site, sizes=sizes)
    assert {process.pid for process in processes_of(site)} == before
    down(site.path)
    assert not up(site, sizes=Sizes(host_memory_mib=1024)).already_up


def test_down_leaves_nothing_but_keys_and_logs(site: Site, stand_ins: Path):
    up(site)
    assert len(processes_of(site)) == 4
    down(site.path)
    assert processes_of(site) == []
    assert not status(site).up
    left = {path.name for path in lab_dir_of(site.path).iterdir()}
    assert {"id_ed25519", "host_keys", "known_hosts", "host1.console.log"} <= left
    assert not any(name.endswith((".sock", ".initrd", ".json")) for name in left)
    down(site.path)  # quiet where nothing is up


@pytest.mark.parametrize(
    "text", ["garbage", "[]", "{}", '{"signature": 1, "guests": {"host1": {}}}']
)
def test_a_lab_whose_state_is_damaged_is_not_called_down(site: Site, stand_ins: Path, text: str):
    up(site)
    (lab_dir_of(site.path) / "state.json").write_text(text)
    for act in (status, up):
        with pytest.raises(ToolError, match=r"a keeper runs, but .*state\.json"):
            act(site)
    down(site.path)
    assert processes_of(site) == []
    assert up(site).healthy


def test_a_lock_never_names_all_processes(site: Site, stand_ins: Path):
    up(site)
    (lab_dir_of(site.path) / "lock").write_text("-1")
    assert daemon_pid(lab_dir_of(site.path)) is None
    down(site.path)
    assert processes_of(site) == []


def test_a_key_that_is_none_is_named(site: Site, stand_ins: Path):
    down(site.path)
    key = lab_dir_of(site.path) / "id_ed25519"
    key.parent.mkdir(parents=True, exist_ok=True)
    key.write_text("garbage")
    with pytest.raises(InputError, match="is no private key") as refused:
        up(site)
    assert refused.value.file == str(key)


def test_a_program_that_guests_start_by_is_named(
    site: Site, stand_ins: Path, monkeypatch: pytest.MonkeyPatch
):
    for folder in os.get_exec_path():
        for program in Path(folder).glob("*"):
            link = stand_ins / program.name
            if program.name != "setpriv" and not link.exists():
                link.symlink_to(program)
    monkeypatch.setenv("PATH", str(stand_ins))
    with pytest.raises(ToolError, match=r"setpriv \(util-linux\) cannot be run"):
        up(site)
    assert processes_of(site) == []


def test_a_block_that_fails_takes_its_guests_down(site: Site, stand_ins: Path):
    def work() -> None:
        with running(site):
            assert processes_of(site)
            raise RuntimeError("of the test")

    with pytest.raises(RuntimeError, match="of the test"):
        work()
    assert processes_of(site) == []


def test_guests_end_with_a_killed_keeper(site: Site, stand_ins: Path):
    up(site)
    keeper = daemon_pid(lab_dir_of(site.path))
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    assert wait_for(lambda: not processes_of(site))
    assert not status(site).up


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_while_guests_start_leaves_none(
    site: Site, stand_ins: Path, number: signal.Signals
):
    behave(site, host2="hangs")
    command = start_up(site)
    console = lab_dir_of(site.path) / "host2.console.log"
    assert wait_for(lambda: console.exists() and console.read_text())
    assert len(processes_of(site)) == 4
    command.send_signal(number)
    command.communicate()
    assert wait_for(lambda: not processes_of(site))
    assert not status(site).up


def test_down_does_not_wait_for_an_up_that_waits(site: Site, stand_ins: Path):
    behave(site, host2="hangs")
    command = start_up(site)
    console = lab_dir_of(site.path) / "host2.console.log"
    assert wait_for(lambda: console.exists() and console.read_text())
    down(site.path)
    assert processes_of(site) == []
    _, said = command.communicate()
    assert command.returncode == 3
    assert "the lab did not start: its keeper was ended" in said


def test_a_guest_that_gives_up_is_named_with_its_reason_and_its_log(site: Site, stand_ins: Path):
    behave(site, host1="fails")
    with pytest.raises(ToolError) as caught:
        up(site)
    assert caught.value.exit_code == 3
    assert "host1 did not come up: rdma link add rxe0: error: No such file" in str(caught.value)
    console = lab_dir_of(site.path) / "host1.console.log"
    assert str(console) in caught.value.advice
    assert "failed to add ens1f0" in caught.value.advice
    assert console.exists()
    assert processes_of(site) == []


def test_a_kernel_that_panics_is_quoted(site: Site, stand_ins: Path):
    behave(site, host2="panics")
    with pytest.raises(ToolError, match="host2 did not come up: Kernel panic - not syncing: IO"):
        up(site)


def test_a_guest_whose_qemu_refuses_is_named_with_what_it_said(site: Site, stand_ins: Path):
    behave(site, host2="refuses")
    with pytest.raises(ToolError) as caught:
        up(site)
    assert "host2 did not come up: its QEMU ended (exit code 1)" in caught.value.message
    assert "no such thing" in caught.value.advice


def test_a_guest_that_hangs_is_not_waited_for_for_ever(site: Site, stand_ins, monkeypatch):
    monkeypatch.setattr("fabric.lab.lifecycle.BOOT_TIMEOUT_S", 3.0)
    behave(site, host2="hangs", host1="hangs", switch1="hangs")
    with pytest.raises(ToolError) as caught:
        up(site)
    assert "is not up after 3 s" in caught.value.message
    assert processes_of(site) == []


def test_a_guest_that_is_lost_later_shows_in_the_status_and_comes_back(site, stand_ins):
    up(site)
    lost = next(p for p in processes_of(site) if "host1" in p.cmdline())
    lost.kill()
    assert wait_for(lambda: not status(site).healthy)
    host1 = next(guest for guest in status(site).guests if guest.name == "host1")
    assert (host1.state, host1.reason) == ("ended", "its QEMU ended (signal SIGKILL)")
    assert up(site).healthy


def test_a_port_that_somebody_has_is_named(site: Site, stand_ins: Path):
    port = site.devices["host2"].mgmt.port
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ToolError) as caught:
        up(site)
    assert f"host2: port {port} on loopback cannot be had" in caught.value.message
    assert "devices.host2.mgmt.port" in caught.value.advice


def test_too_little_memory_is_said_before_anything_starts(site, stand_ins, monkeypatch):
    class Memory:
        available = 1024 * 2**20

    monkeypatch.setattr(psutil, "virtual_memory", Memory)
    with pytest.raises(ToolError) as caught:
        up(site)
    assert "3 guests need 5530 MiB of memory, 1024 MiB are available" in caught.value.message
    assert not lab_dir_of(site.path).joinpath("keeper.json").exists()


def test_a_site_of_another_environment_is_refused(site: Site, stand_ins: Path):
    text = site.path.read_text().replace("environment: lab", "environment: site")
    site.path.write_text(text)
    with pytest.raises(InputError, match="environment is site, not lab"):
        up(load_site(site.path))
