"""The emulated host as the twin's daemon sees it: counters, faults, persistence."""

from pathlib import Path

import pytest

from fabric.counters import Counter
from fabric.errors import InputError
from fabric.site import Site
from fabric.twin.device import EmulatedDevice
from fabric.twin.host import EmulatedHost
from fabric.twin.host.namespace import Namespace
from fabric.twin.host.stand_ins.registers import settle

HW = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters"


def statistics(out):
    lines = out("ethtool -S ens1f0").splitlines()[1:]
    return {name.strip(): int(value) for name, value in (line.split(":") for line in lines)}


def test_it_is_an_emulated_device_that_demands_a_login(host):
    device: EmulatedDevice = host
    assert device.login_required
    assert device.name == "host1"


def test_traffic_moves_the_counters_that_the_tools_print(host, out):
    out("mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0")
    deltas = [
        Counter("host1", "ens1f0", "rx_packets", 100),
        Counter("host1", "ens1f0", "rx_bytes", 400_000),
        Counter("host1", "ens1f0", "rx_prio_packets", 75, priority=3),
        Counter("host1", "ens1f0", "rx_prio_packets", 25, priority=0),
        Counter("host1", "ens1f0", "rx_pause_frames", 7, priority=3),
        Counter("host1", "ens1f0", "rx_pause_us", 90, priority=3),
        Counter("host1", "ens1f0", "tx_pause_frames", 5, priority=3),
        Counter("host1", "ens1f0", "rx_discards", 2),
        Counter("host1", "ens1f0", "rx_prio_discards", 2, priority=3),
        Counter("host1", "ens1f0", "rx_mtu_drops", 4),
        Counter("host1", "ens1f0", "np_cnp_sent", 11),
        Counter("host1", "ens1f0", "ecn_marked_packets", 3, priority=3),  # a switch's
    ]

    host.add_counters(deltas)
    host.add_counters(deltas)

    shown = statistics(out)
    assert shown["rx_packets_phy"] == 200
    assert shown["rx_prio3_packets"] == 150
    assert (shown["rx_prio3_bytes"], shown["rx_prio0_bytes"]) == (600_000, 200_000)
    assert (shown["rx_prio3_pause"], shown["rx_prio3_pause_duration"]) == (14, 180)
    assert shown["tx_prio3_pause"] == 10
    assert (shown["rx_discards_phy"], shown["rx_prio3_discards"]) == (4, 4)
    assert shown["rx_oversize_pkts_phy"] == 8
    assert out(f"cat {HW}/np_cnp_sent") == "22\n"


def test_q_counters_wrap_at_32_bits_and_congestion_counters_do_not(host, out):
    for _ in range(2):
        host.add_counters(
            [
                Counter("host1", "ens1f0", "out_of_sequence", 2**31 + 5, bits=32),
                Counter("host1", "ens1f0", "rp_cnp_handled", 2**31 + 5),
            ]
        )

    assert out(f"cat {HW}/out_of_sequence") == "10\n"
    assert out(f"cat {HW}/rp_cnp_handled") == f"{2**32 + 10}\n"
    assert "10" not in out(f"ls {HW}")


def test_counters_of_a_port_that_it_does_not_have_are_an_error(host):
    with pytest.raises(ValueError, match="ens9f9"):
        host.add_counters([Counter("host1", "ens9f9", "rx_packets", 1)])


def test_nic_reset_loses_settings_counters_and_what_would_restore_them(host, out, shell):
    fresh = out("mlnx_qos -i ens1f0")
    out("mlnx_qos -i ens1f0 --trust dscp; ip link set ens1f0 mtu 9000")
    out("echo 0 > /sys/class/net/ens1f0/ecn/roce_rp/enable/3")
    out("mkdir /etc/paisoar; touch /etc/paisoar/roce.sh /usr/local/sbin/restore")
    host.add_counters([Counter("host1", "ens1f0", "rx_packets", 1)])

    said = host.break_("nic-reset", "")

    assert "host1" in said
    assert "ens1f0" in said
    assert out("mlnx_qos -i ens1f0") == fresh
    assert out("cat /sys/class/net/ens1f0/mtu") == "1500\n"
    assert out("cat /sys/class/net/ens1f0/ecn/roce_rp/enable/3") == "1\n"
    assert statistics(out)["rx_packets_phy"] == 0
    assert shell("ls /etc/paisoar /usr/local/sbin/restore").returncode == 2
    assert out("cat /etc/hostname") == "host1\n"


def test_a_wrong_map_puts_roce_into_priority_0(host, out):
    out("mlnx_qos -i ens1f0 --trust dscp")

    said = host.break_("dscp-map", "ens1f0")

    assert "DSCP 26" in said
    assert "\tprio:0 dscp:26,07," in out("mlnx_qos -i ens1f0")


@pytest.mark.parametrize(("kind", "port"), [("pfc-off", "ens1f0"), ("nic-reset", "Ethernet1/1")])
def test_other_faults_and_ports_are_refused(host, kind, port):
    with pytest.raises(ValueError, match="host1"):
        host.break_(kind, port)


def test_state_survives_the_daemon(tmp_path: Path, site: Site, host, out):
    out("mlnx_qos -i ens1f0 --trust dscp; echo 7 > /sys/class/net/ens1f0/ecn/roce_np/cnp_802p_prio")
    out("echo kept > /etc/motd")
    host.close()

    again = EmulatedHost("host1", tmp_path / "devices/host1", site)

    settle(again._host)
    namespace = Namespace("host1", again._binds)
    try:
        assert again._host.nic("ens1f0").state().apps
        assert (tmp_path / "devices/host1/etc/motd").read_text() == "kept\n"
        priority = tmp_path / "devices/host1/sys/class/net/ens1f0/ecn/roce_np/cnp_802p_prio"
        assert priority.read_text() == "7\n"
    finally:
        namespace.close()


def test_the_machine_itself_is_untouched(out):
    out("echo lossless > /etc/paisoar-test; echo x > /usr/local/sbin/paisoar-test; touch ~/here")

    assert not Path("/etc/paisoar-test").exists()
    assert not Path("/usr/local/sbin/paisoar-test").exists()
    assert not (Path.home() / "here").exists()
    assert "devices/host1" not in Path("/proc/self/mounts").read_text()


def test_a_name_that_linux_cannot_have_is_refused(tmp_path: Path):
    from fabric.site import load_site
    from tests.sites import write_site

    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("ens1f0", "enp59s0f0np0-roce"))

    with pytest.raises(InputError, match="enp59s0f0np0-roce"):
        EmulatedHost("host1", tmp_path / "devices/host1", load_site(path))
