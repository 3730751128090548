"""Counters of an mlx5 port under the names of fabric.counters."""

from fabric.devices.linux import MODULE
from tests.fabric.devices.mlx5.samples import ETHTOOL_S, HW_COUNTERS, TARGET

ETHTOOL, GREP, BOOT_ID = MODULE.counter_commands(TARGET)
BOOTED = "3f0a61cc-6f0b-4f0f-9c53-0f6f3a4d2b11"


def snapshot(ethtool=ETHTOOL_S, rdma=HW_COUNTERS, booted=f"{BOOTED}\n"):
    outputs = {ETHTOOL: ethtool, GREP: rdma, BOOT_ID: booted}
    return MODULE.read_counters(TARGET, {k: v for k, v in outputs.items() if v is not None}, 12.5)


def value(shot, name, priority=None):
    (found,) = [c for c in shot.counters if (c.name, c.priority) == (name, priority)]
    return found


def test_the_host_says_which_boot_it_is():
    assert snapshot().boot_id == BOOTED
    assert f"uptime: '{BOOT_ID}' was not answered" in snapshot(booted=None).missing


def test_a_port_needs_two_commands_for_all_its_counters():
    assert (ETHTOOL, GREP) == (
        "ethtool -S ens1f0",
        "grep -rH . /sys/class/infiniband/mlx5_0/ports/1/hw_counters 2>&1 || true",
    )


def test_port_counters_are_the_physical_ones_since_rdma_passes_no_kernel():
    shot = snapshot()
    assert shot.taken_at_s == 12.5
    assert value(shot, "rx_packets").value == 84102
    assert value(shot, "tx_bytes").value == 840000456
    assert value(shot, "rx_discards").value == 5
    assert value(shot, "rx_mtu_drops").value == 2
    assert value(shot, "rx_crc_errors").value == 3
    assert value(shot, "link_down_events").value == 4
    assert value(shot, "tx_pause_storm_errors").value == 7


def test_counters_of_priorities_carry_their_priority():
    shot = snapshot()
    assert [value(shot, "rx_prio_packets", p).value for p in range(8)] == [
        int(f"{p}1") for p in range(8)
    ]
    assert value(shot, "rx_prio_discards", 3).value == 32
    assert value(shot, "rx_pause_frames", 3).value == 41927
    assert value(shot, "tx_pause_us", 3).value == 2914772


def test_q_counters_wrap_at_32_bits_and_congestion_counters_at_64():
    shot = snapshot()
    wraps = {c.name: c.bits for c in shot.counters}
    assert wraps["out_of_sequence"] == wraps["packet_seq_err"] == 32
    assert wraps["np_cnp_sent"] == wraps["rp_cnp_handled"] == wraps["rx_packets"] == 64
    assert value(shot, "out_of_sequence").value == 2**32 - 1
    assert value(shot, "np_ecn_marked_packets").value == 5


def test_lifespan_is_no_counter():
    assert all(
        counter.value != 10 or counter.name == "rnr_nak_retry_err"
        for counter in snapshot().counters
    )


def test_pause_counters_that_pfc_off_hides_are_missing_with_that_reason():
    missing = snapshot().missing
    assert len(missing) == 7
    assert missing[0] == (
        "ens1f0: rx_pause_frames, tx_pause_frames, rx_pause_us, tx_pause_us of priority 0: "
        "not counted, because PFC is off on priority 0"
    )
    assert not any("priority 3" in entry for entry in missing)


def test_a_driver_without_a_counter_says_so():
    shot = snapshot(
        ETHTOOL_S.replace("rx_oversize_pkts_phy", "something_else"),
        HW_COUNTERS.replace("rx_icrc_encapsulated", "unheard_of"),
    )
    assert "ens1f0: rx_mtu_drops: ethtool has no rx_oversize_pkts_phy" in shot.missing
    assert "ens1f0: rx_icrc_errors: hw_counters has no rx_icrc_encapsulated" in shot.missing


def test_outputs_that_are_not_there_are_missing_and_never_zero():
    shot = snapshot(
        None, "grep: /sys/class/infiniband/mlx5_0/ports/1/hw_counters: No such file or directory\n"
    )
    assert shot.counters == ()
    assert "ens1f0: every port counter: `ethtool -S ens1f0` shows none" in shot.missing
    assert any("every RDMA counter of mlx5_0: No such file" in entry for entry in shot.missing)


def test_a_counter_that_may_not_be_read_keeps_greps_reason():
    path = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent"
    shot = snapshot(rdma=HW_COUNTERS.replace(f"{path}:4", f"grep: {path}: Permission denied"))
    assert "ens1f0: np_cnp_sent: Permission denied" in shot.missing
