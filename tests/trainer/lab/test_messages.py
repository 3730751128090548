"""What goes wrong with a real device is said with what and where."""

import sys
import time

import pytest

from tests.trainer.lab.guests import (
    DEVICE,
    HERE,
    active_mtu,
    compiled,
    end,
    index,
    need_guests,
    ranks,
    results,
    running,
    said,
)

pytestmark = need_guests

NIC = "ens1f0"
# A root without the right to lock what it likes.
LIMITED = "ulimit -l 64; setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock"


def opened(host, *, how="", network="{}"):
    """What opening the device there, and registering memory, says."""
    environment = f"{compiled()} PAISOAR_NETWORK='{network}'"
    return said(host, f"{how} env {environment} {sys.executable} {HERE / 'device.py'}")


def test_memory_beyond_the_limit_is_refused_with_the_limit():
    shown = opened("host1", how=LIMITED)
    assert f"{DEVICE}: cannot register 1048576 bytes" in shown
    assert "locked memory of this process is limited to: 65536 bytes" in shown
    assert "ulimit -l unlimited" in shown
    assert opened("host1") == "registered\n"


def test_a_gid_index_without_an_address_is_named():
    shown = opened("host1", network='{"gid_index": 200}')
    assert f"{DEVICE} port 1 has no GID 200" in shown
    assert "show_gids" in shown


def test_gid_indices_of_different_kinds_are_refused_on_both_sides():
    kinds = ("IPv4", "IPv6")
    chosen = [index(f"host{rank + 1}", kind) for rank, kind in enumerate(kinds)]
    networks = [{"gid_index": number} for number in chosen]
    for found in results(ranks("correct", 21301, networks=networks)):
        for rank, (number, kind) in enumerate(zip(chosen, kinds, strict=True)):
            assert (
                f"{DEVICE} GID index {number} is RoCEv2 over {kind} on rank {rank}"
                in (found["error"])
            )
        assert "gid_index=N" in found["advice"]


@pytest.fixture
def port_down():
    said("host1", f"ip link set dev {NIC} down")
    yield
    up = f"ip link set dev {NIC} up; ibv_devinfo -d {DEVICE}"
    said("host1", f"until {up} | grep -q PORT_ACTIVE; do sleep 0.5; done")


@pytest.mark.usefixtures("port_down")
def test_a_port_that_is_down_is_named_with_its_interface():
    shown = opened("host1")
    assert f"{DEVICE} port 1 ({NIC}) is DOWN, not ACTIVE" in shown
    assert f"ip link show {NIC}" in shown


@pytest.fixture
def narrowed():
    """Makes the switch's port towards host2 drop full packets, silently; what is small passes."""
    mtu = said("switch1", "cat /sys/class/net/swp2/mtu").strip()
    yield lambda: said("switch1", "ip link set dev swp2 mtu 700")
    said("switch1", f"ip link set dev swp2 mtu {mtu}")


def test_retries_that_run_out_name_the_neighbour_the_device_and_the_settings(narrowed):
    impatient = {"timeout": 18, "retry_count": 3}
    processes = ranks("endless", 21401, networks=(impatient, impatient))
    running(processes)
    time.sleep(2)
    narrowed()
    for found in results(processes):
        assert "rank 1" in found["error"]
        assert "host2" in found["error"]
        assert "cannot be reached by RDMA: IBV_WC_RETRY_EXC_ERR" in found["error"]
        assert f"{DEVICE} port 1, GID index {index('host1', 'IPv4')}" in found["error"]
        assert f"MTU {active_mtu()}, 3 retries of timeout 18" in found["error"]
    end(processes)
