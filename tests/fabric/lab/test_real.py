"""Two hosts and their switch are really booted, with the kernel's own RDMA and queues."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabric.errors import ToolError
from fabric.lab import LabStatus, running
from fabric.lab.image import prepare
from fabric.lab.qemu import require_qemu
from fabric.lab.starter import lab_yaml
from fabric.reach.access import lab_dir_of
from fabric.site import load_site
from tests.fabric.lab.conftest import own_ports

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabStatus]:
    try:
        require_qemu()
        prepare(lambda _what: None)
    except ToolError as missing:
        pytest.skip(f"NO LAB IS TRIED HERE: {missing}")
    file = tmp_path_factory.mktemp("lab") / "fabric.yaml"
    file.write_text(lab_yaml(2, ports=own_ports(3)))
    with running(load_site(file)) as state:
        yield state
    assert not list(lab_dir_of(file).glob("*.sock"))


def on(lab: LabStatus, guest: str, command: str) -> str:
    done = subprocess.run(
        ["ssh", "-F", str(lab.ssh_config), guest, command],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_hosts_have_what_the_site_says_and_nothing_of_qos(lab: LabStatus):
    assert lab.healthy
    shown = on(
        lab, "host1", "hostname; ip -br address show dev ens1f0; cat /sys/class/net/ens1f0/mtu"
    )
    name, addresses, mtu = shown.splitlines()
    assert name == "host1"
    assert "10.0.0.1/16" in addresses
    assert mtu == "1500"
    assert on(lab, "host1", "cat /sys/class/infiniband/rxe0/parent").strip() == "ens1f0"
    assert "ACTIVE" in on(lab, "host2", "cat /sys/class/infiniband/rxe0/ports/1/state")
    assert on(lab, "host1", "cat /sys/class/net/ens1f0/speed").strip() == "100"


def test_guests_write_to_memory_only(lab: LabStatus, tmp_path: Path):
    seen = tmp_path / "seen"
    seen.write_text("of the machine")
    told = on(lab, "host1", f"cat {seen}; echo of the guest > {seen}; cat {seen}")
    assert told == "of the machineof the guest\n"
    assert seen.read_text() == "of the machine"


def test_guests_reach_each_other_by_name_and_nothing_else(lab: LabStatus):
    assert "1 received" in on(lab, "host1", "ping -c 1 -W 20 host2")
    # QEMU's own address of the way in: behind it would be the machine's network.
    tried = on(lab, "host1", "timeout 5 bash -c '</dev/tcp/192.168.253.2/22' 2>&1; echo $?")
    assert not tried.endswith("\n0\n")
    assert tried.strip() != "0"


def test_verbs_cross_the_switch_with_jumbo_frames(lab: LabStatus):
    on(lab, "switch1", "ip link set swp1 mtu 9216; ip link set swp2 mtu 9216")
    for host in ("host1", "host2"):
        on(lab, host, "ip link set ens1f0 mtu 9000")
        assert "4096" in on(lab, host, "ibv_devinfo | grep active_mtu")
    before = int(on(lab, "switch1", "cat /sys/class/net/swp2/statistics/tx_bytes"))
    words = "ib_write_bw -d rxe0 -x 1 -s 65536 -n 50 -F"
    server = subprocess.Popen(
        ["ssh", "-F", str(lab.ssh_config), "host2", f"timeout 200 {words}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    on(lab, "host2", "until grep -q ':4853 00000000:0000 0A' /proc/net/tcp*; do sleep 0.2; done")
    shown = on(lab, "host1", f"timeout 200 {words} host2")
    assert server.wait() == 0
    assert "65536" in shown
    after = int(on(lab, "switch1", "cat /sys/class/net/swp2/statistics/tx_bytes"))
    assert after - before >= 50 * 65536


def test_the_switch_takes_the_queues_that_provisioning_makes(lab: LabStatus):
    assert on(lab, "switch1", "cat /sys/class/net/swp1/brport/state").strip() == "3"
    told = on(
        lab,
        "switch1",
        "tc qdisc show dev swp1; "
        "tc qdisc replace dev swp1 parent 1:1 handle e75: ets bands 8 strict 8 && "
        "tc qdisc add dev swp1 parent e75:5 handle e755: red limit 4000000 min 400000 "
        "max 800000 avpkt 1000 burst 400 probability 0.2 ecn && tc qdisc add dev swp1 clsact && "
        "tc filter add dev swp1 ingress pref 49026 protocol ip flower ip_tos 0x68/0xfc "
        "action skbedit priority 3 && tc qdisc show dev swp1",
    )
    before, _, after = told.partition("qdisc ets")
    assert "tbf" in before
    assert "rate 100Mbit" in before
    assert "red" in after


def test_services_can_be_enabled_on_guests(lab: LabStatus):
    unit = "/etc/systemd/system/mine.service"
    text = "[Service]\\nExecStart=/bin/true\\n[Install]\\nWantedBy=multi-user.target\\n"
    told = on(
        lab,
        "host1",
        f"printf '{text}' > {unit} && systemctl daemon-reload && systemctl -q enable mine && "
        "systemctl is-enabled mine",
    )
    assert told == "enabled\n"
