"""The twin's daemon, started and stopped for real."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from fabric.errors import InputError, ToolError
from fabric.reach.access import access_to, twin_dir, twin_inventory_path
from fabric.site import Site, load_site
from fabric.topology import ClosShape
from fabric.twin.lifecycle import MARKER, down, status, up
from tests.fabric.twin.clients import ssh
from tests.sites import make_site


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Site]:
    """A site of our own, whose twin is down afterwards however the test ends."""
    site = make_site(tmp_path, ClosShape(hosts=2, leaves=2, spines=1))
    yield site
    down(site.path)


def processes_of(site: Site) -> list[psutil.Process]:
    """Everything that came from this twin's daemon."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARKER) == str(twin_dir(site)):
                found.append(process)
    return found


def wait_until_none(site: Site, seconds: float = 5.0) -> list[psutil.Process]:
    deadline = time.monotonic() + seconds
    while (left := processes_of(site)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def test_up_waits_until_every_device_listens_and_tells_how_far_it_is(own: Site):
    told: list[tuple[int, int, str]] = []
    state = up(own, lambda *step: told.append(step))
    assert told == [(n, 5, name) for n, name in enumerate(own.devices, start=1)]
    assert state.up
    assert not state.already_up
    assert set(state.new) == set(own.devices)
    assert {device.name: device.kind for device in state.devices} == {
        name: spec.kind for name, spec in own.devices.items()
    }
    for device in state.devices:
        with socket.create_connection(("127.0.0.1", device.port), timeout=5) as connection:
            assert connection.recv(4) == b"SSH-"
    assert status(own).pid == state.pid
    assert state.to_json()["devices"][0]["name"] == "leaf1"


def test_a_killed_daemon_leaves_no_zombie_behind(own: Site):
    state = up(own)
    assert state.pid is not None
    os.kill(state.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(state.pid)], timeout=0.2)
    down(own.path)
    assert not psutil.pid_exists(state.pid)


def test_a_machine_that_lets_no_host_run_fails_up_with_the_reason(own: Site, tmp_path, monkeypatch):
    unshare = tmp_path / "bin" / "unshare"
    unshare.parent.mkdir()
    unshare.write_text("#!/bin/sh\necho 'unshare: not here' >&2; exit 1\n")
    unshare.chmod(0o755)
    monkeypatch.setenv("PATH", f"{unshare.parent}:{os.environ['PATH']}")
    with pytest.raises(ToolError, match="unshare: not here"):
        up(own)
    assert not processes_of(own)


def test_secrets_are_for_their_owner_only(own: Site):
    up(own)
    folder = twin_dir(own)
    assert folder.stat().st_mode & 0o077 == 0
    for path in [twin_inventory_path(own), folder / "id_ed25519", *folder.glob("host_keys/*")]:
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_a_second_up_leaves_the_twin_alone_and_says_so(own: Site):
    first = up(own)
    told: list[str] = []
    second = up(own, lambda _done, _total, what: told.append(what))
    assert second.already_up
    assert second.pid == first.pid
    assert told == ["already up"]


def test_down_leaves_no_process_and_no_temporary_folder(own: Site):
    state = up(own)
    assert state.pid is not None
    assert ssh(own, "host1", "echo in").stdout == "in\n"
    assert processes_of(own)
    down(own.path)
    assert not processes_of(own)
    assert not status(own).up
    assert not twin_inventory_path(own).exists()
    assert not (twin_dir(own) / "tmp").exists()
    assert str(twin_dir(own)) not in Path("/proc/self/mountinfo").read_text()
    with pytest.raises(ToolError, match="is not up"):
        access_to(own, "leaf1")
    down(own.path)  # and once more is no error


def test_down_ends_a_twin_whose_file_is_no_longer_valid(own: Site):
    assert up(own).pid is not None
    own.path.write_text("site: [\n")
    down(own.path)
    assert not processes_of(own)


def test_a_restarted_twin_keeps_ports_keys_and_what_devices_hold(own: Site):
    before = up(own)
    ssh(own, "leaf1", "conf t ; interface e1/1 ; mtu 9216")
    known = (twin_dir(own) / "known_hosts").read_text()
    down(own.path)
    after = up(own)
    assert after.devices == before.devices
    assert after.new == ()
    assert (twin_dir(own) / "known_hosts").read_text() == known
    assert "mtu 9216" in ssh(own, "leaf1", "show running-config interface e1/1").stdout


def test_a_port_taken_meanwhile_is_replaced(own: Site):
    taken = up(own).devices[0]
    down(own.path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", taken.port))
        other.listen()
        again = up(own)
        assert again.devices[0].port != taken.port
        assert again.devices[1:] == status(own).devices[1:]
        assert "leaf1" in ssh(own, "leaf1", "show hostname").stdout


def test_a_killed_daemon_leaves_no_session_behind_and_up_cleans_what_is_stale(own: Site):
    state = up(own)
    assert state.pid is not None
    session = ssh(own, "host1", "setsid sleep 600 & sleep 600", wait=False)
    deadline = time.monotonic() + 10
    while len(processes_of(own)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(state.pid, signal.SIGKILL)
    session.wait(timeout=60)
    # The daemon is our child: it stays visible as a zombie, without an environment.
    assert not wait_until_none(own)
    assert twin_inventory_path(own).exists()
    assert not status(own).up
    again = up(own)
    assert again.up
    assert again.pid != state.pid
    assert again.devices == state.devices


def test_down_cleans_up_after_a_killed_daemon(own: Site):
    state = up(own)
    assert state.pid is not None
    os.kill(state.pid, signal.SIGKILL)
    down(own.path)
    assert not processes_of(own)
    assert not twin_inventory_path(own).exists()
    assert not (twin_dir(own) / "tmp").exists()


def test_an_interrupted_up_leaves_nothing_behind(own: Site):
    def interrupt(done: int, _total: int, _what: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        up(own, interrupt)
    assert not processes_of(own)
    assert not twin_inventory_path(own).exists()
    assert not (twin_dir(own) / "tmp").exists()


def test_two_twins_run_side_by_side(own: Site, tmp_path_factory: pytest.TempPathFactory):
    other = make_site(tmp_path_factory.mktemp("other"), ClosShape(hosts=1, leaves=1, spines=0))
    up(own)
    try:
        up(other)
        ports = [device.port for site in (own, other) for device in status(site).devices]
        assert len(set(ports)) == len(ports)
        down(other.path)
        assert status(own).up
    finally:
        down(other.path)


def test_changed_devices_start_fresh_and_the_others_stay_as_they_are(own: Site):
    first = up(own)
    ssh(own, "leaf1", "conf t ; interface e1/1 ; mtu 9216")
    ssh(own, "leaf2", "conf t ; interface e1/1 ; mtu 9216")
    text = own.path.read_text()
    own.path.write_text(
        text.replace(
            "leaf2: {kind: switch, role: leaf, os: nxos, model: N9K-C93",
            "leaf2: {kind: switch, role: leaf, os: nxos, model: N9K-D93",
        )
    )
    changed = load_site(own.path)
    told: list[str] = []
    second = up(changed, lambda _done, _total, what: told.append(what))
    assert second.pid != first.pid
    assert second.new == ("leaf2",)
    assert told[:2] == [
        "devices or cables have changed: restarting",
        "leaf2 is new and starts fresh",
    ]
    assert "mtu 9216" in ssh(changed, "leaf1", "show running-config interface e1/1").stdout
    assert "mtu" not in ssh(changed, "leaf2", "show running-config interface e1/1").stdout


def test_a_daemon_that_cannot_start_says_why(own: Site):
    up(own)
    down(own.path)
    kept = twin_dir(own) / "devices/leaf1/running-config"
    kept.write_text("hostname leaf1\nfeature nonsense\n")
    with pytest.raises(ToolError, match="feature nonsense") as caught:
        up(own)
    assert "twin.log" in caught.value.advice
    assert not processes_of(own)


def test_a_site_of_real_devices_has_no_twin(own: Site):
    document = own.document.model_copy(update={"environment": "site"})
    with pytest.raises(InputError, match="environment is site"):
        up(replace(own, document=document))


def test_the_daemon_also_runs_in_the_foreground(own: Site):
    daemon = subprocess.Popen(
        [sys.executable, "-m", "fabric.twin.server", str(own.path)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert daemon.stderr is not None
    assert "up: 5 devices" in daemon.stderr.readline()
    assert status(own).pid == daemon.pid
    daemon.send_signal(signal.SIGTERM)
    assert "down" in daemon.stderr.read()
    assert daemon.wait(timeout=60) == 0
    daemon.stderr.close()
    assert not status(own).up


def test_the_articles_fabric_is_up_in_less_than_a_gigabyte(tmp_path: Path):
    site = make_site(tmp_path, ClosShape(hosts=16, leaves=4, spines=2))
    try:
        state = up(site)
        assert len(state.devices) == 22
        for host in ("host1", "host16"):
            assert ssh(site, host, "true").returncode == 0
        assert status(site).rss_bytes < 10**9
    finally:
        down(site.path)
