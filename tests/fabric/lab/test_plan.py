"""A site becomes guests: names, wires, addresses, and what each boots from."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import pytest

from fabric.errors import InputError, ToolError
from fabric.lab import starter
from fabric.lab.cpio import Entry, archive
from fabric.lab.plan import Guest, Sizes, boot_archive, guest_file, guests_of, signature
from fabric.lab.starter import free_ports, lab_yaml
from fabric.site import Site, load_site
from tests.fabric.lab.conftest import own_ports

PORTS = (22200, 22201, 22202, 22203, 22204)


def unpacked(data: bytes) -> dict[str, bytes]:
    """Names and contents of an archive as the kernel's description has it."""
    found, at = {}, 0
    while at < len(data):
        header = data[at : at + 110].decode()
        assert header.startswith("070701")
        numbers = [int(header[i : i + 8], 16) for i in range(6, 110, 8)]
        size, length = numbers[6], numbers[11]
        name = data[at + 110 : at + 110 + length - 1].decode()
        at = -(-(at + 110 + length) // 4) * 4
        found[name] = data[at : at + size]
        at = -(-(at + size) // 4) * 4
    return found


@pytest.fixture
def lab_of(tmp_path: Path):
    def make(hosts: int, old: str = "", new: str = "") -> Site:
        text = lab_yaml(hosts, ports=PORTS[: hosts + 1])
        assert old in text
        file = tmp_path / "fabric.yaml"
        file.write_text(text.replace(old, new, 1) if old else text)
        return load_site(file)

    return make


def by_name(site: Site, sizes: Sizes | None = None) -> dict[str, Guest]:
    return {guest.name: guest for guest in guests_of(site, sizes or Sizes())}


@pytest.mark.parametrize("hosts", [2, 3, 4])
def test_the_site_that_is_written_is_valid_and_a_lab(lab_of, hosts):
    site = lab_of(hosts)
    assert site.environment == "lab"
    assert site.evidence_class == "soft-roce"
    assert len(site.topology.hosts) == hosts
    assert site.topology.switches == ("switch1",)
    assert not site.intent.roce.lossless
    assert [d.mgmt.port for d in site.devices.values()] == list(PORTS[: hosts + 1])


def test_every_cable_has_one_end_that_listens_and_one_that_connects(lab_of):
    guests = guests_of(lab_of(4), Sizes())
    assert guests[0].kind == "switch"  # hosts connect to it, so it is first
    ends = [(nic.wire, nic.listens) for guest in guests for nic in guest.nics]
    assert len(ends) == len(set(ends)) == 8
    assert {wire for wire, listens in ends if listens} == {
        wire for wire, listens in ends if not listens
    }


def test_no_two_nics_have_one_address(lab_of):
    guests = guests_of(lab_of(4), Sizes())
    macs = [mac for guest in guests for mac in (guest.mac, *(nic.mac for nic in guest.nics))]
    assert len(macs) == len(set(macs)) == 13


def test_a_guest_boots_from_its_own_part_of_the_site(lab_of):
    host = by_name(lab_of(2))["host2"]
    keys = {"host_key": b"secret", "authorized_keys": b"public"}
    files = unpacked(boot_archive(host, {"host1": "10.0.0.1", "host2": "10.0.0.2"}, keys))
    assert files["guest/name"] == b"host2\n"
    assert files["guest/kind"] == b"host\n"
    assert files["guest/host_key"] == b"secret"
    assert b"10.0.0.1 host1\n" in files["guest/hosts"]
    assert b"rdma_rxe" in files["guest/modules"]
    assert files["guest/boot"] == guest_file("boot")
    management, nic = files["guest/nics"].decode().splitlines()
    assert management.split()[:2] == [host.mac, "mgmt0"]
    # A host sends at nine tenths of its cable's speed; the MTU is provisioning's.
    assert nic == f"{host.nics[0].mac} ens1f0 10.0.0.2/16 rxe0 90000000 1500"


def test_a_switch_has_ports_without_addresses_at_the_cables_speed(lab_of):
    switch = by_name(lab_of(2))["switch1"]
    files = unpacked(boot_archive(switch, {}, {}))
    lines = files["guest/nics"].decode().splitlines()[1:]
    assert [line.split()[1:] for line in lines] == [
        ["swp1", "-", "-", "100000000", "1500"],
        ["swp2", "-", "-", "100000000", "1500"],
    ]
    assert {"sch_ets", "sch_red", "act_skbedit"} <= set(files["guest/modules"].decode().split())


def test_sizes_are_the_askers(lab_of):
    guests = by_name(lab_of(2), Sizes(host_memory_mib=1024, switch_memory_mib=256, host_cpus=2))
    assert (guests["host1"].memory_mib, guests["host1"].cpus) == (1024, 2)
    assert (guests["switch1"].memory_mib, guests["switch1"].cpus) == (256, 1)


def test_another_site_has_another_signature(lab_of):
    first = signature(guests_of(lab_of(2), Sizes()))
    assert first == signature(guests_of(lab_of(2), Sizes()))
    assert first != signature(guests_of(lab_of(2, "10.0.0.2", "10.0.0.9"), Sizes()))
    assert first != signature(guests_of(lab_of(3), Sizes()))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("family: rxe", "family: mlx5", "devices.host1.nics.ens1f0.family"),
        ("switch1:swp2", "switch1:mgmt0", "cables: switch1:mgmt0: guests have an interface"),
        ("os: bridge", "os: switchdev", "devices.switch1.os"),
        ("address: 127.0.0.1, port: 22201", "address: 192.0.2.1, port: 22201", "host1.mgmt"),
        ("port: 22201, user: root", "port: 22201, user: ops", "devices.host1.mgmt.user"),
        ("environment: lab", "environment: twin", "environment is twin, not lab"),
    ],
)
def test_what_guests_cannot_be_is_refused_with_its_key(lab_of, old, new, said):
    with pytest.raises(InputError) as caught:
        guests_of(lab_of(2, old, new), Sizes())
    assert said in caught.value.message
    assert "fabric.yaml" in caught.value.message


def test_ports_that_somebody_listens_at_are_not_written(monkeypatch):

    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(starter, "FIRST_PORT", taken)
        monkeypatch.setattr(starter, "LAST_PORT", taken)
        with pytest.raises(ToolError, match="fewer than 1 ports"):
            free_ports(1)
    monkeypatch.setattr(starter, "FIRST_PORT", own_ports(1)[0])
    monkeypatch.setattr(starter, "LAST_PORT", 65535)
    assert len(set(free_ports(3))) == 3


def test_archives_can_stand_one_behind_the_other():
    first = archive([Entry("a", mode=0o700), Entry("a/b", b"12345", 0o600)])
    second = archive([Entry("c", b"")])
    assert len(first) % 4 == len(second) % 4 == 0
    assert unpacked(first + second) == {"a": b"", "a/b": b"12345", "TRAILER!!!": b"", "c": b""}
    assert re.match(rb"070701.{8}000041C0", first)  # a folder, 0700


@pytest.mark.parametrize("name", ["boot", "init"])
def test_shell_scripts_of_guests_are_sound(name):
    done = subprocess.run(["bash", "-n"], input=guest_file(name), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
