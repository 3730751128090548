"""Counters of bnxt under the names of three generations of its driver.

``ethtool -S``: Linux 6.8 bnxt_ethtool.c, shortened. hw_counters: Linux 6.8, and 6.16 with its
mlx5-like names (drivers/infiniband/hw/bnxt_re/hw_counters.c).
"""

from pathlib import Path

import pytest

from fabric.devices.base import TargetPort
from fabric.devices.bnxt import FAMILY

PORT = TargetPort("ens2f0np0", 100 * 10**9, 3.0, "bnxt", "bnxt_re0")
ETHTOOL, PFC, HW = FAMILY.counter_commands(PORT)
TEXT = (Path(__file__).parent / "fixtures" / "ethtool_S.txt").read_text()
FOLDER = "/sys/class/infiniband/bnxt_re0/ports/1/hw_counters"
OLD = {"rx_cnp_pkts": 5, "tx_cnp_pkts": 6, "rx_ecn_marked_pkts": 7, "rx_out_of_buffer": 8}
NEW = {"rp_cnp_handled": 5, "np_cnp_pkts": 6, "np_ecn_marked_roce_packets": 7, "out_of_buffer": 8}
BOTH = {"oos_drop_count": 9, "seq_err_naks_rcvd": 10, "to_retransmits": 11, "dup_req": 12}


def read(verbs):
    text = "".join(f"{FOLDER}/{name}:{value}\n" for name, value in (verbs | BOTH).items())
    counters, missing = FAMILY.read_counters("h", PORT, {ETHTOOL: TEXT, HW: text})
    return {(c.name, c.priority): c.value for c in counters}, missing


@pytest.mark.parametrize("verbs", [OLD, NEW], ids=["6.8", "6.16"])
def test_every_generations_names_are_known(verbs):
    seen, _ = read(verbs)
    for name, value in {
        "rp_cnp_handled": 5,
        "np_cnp_sent": 6,
        "np_ecn_marked_packets": 7,
        "out_of_buffer": 8,
        "out_of_sequence": 9,
        "packet_seq_err": 10,
        "local_ack_timeout_err": 11,
        "duplicate_request": 12,
    }.items():
        assert seen[name, None] == value, name


def test_port_and_priority_counters_and_what_is_not_there():
    seen, missing = read(OLD)
    assert seen["rx_packets", None] == 91_000
    assert seen["rx_discards", None] == 3
    assert seen["rx_pause_frames", 3] == 40
    assert seen["rx_pause_us", 3] == 812
    assert seen["tx_pause_frames", 3] == 7
    assert ("tx_pause_frames", 0) not in seen
    assert any("tx_pause_frames of priority 0: ethtool has no" in reason for reason in missing)


def test_a_host_that_shows_nothing_misses_everything_with_reasons():
    counters, missing = FAMILY.read_counters("h", PORT, {})
    assert counters == ()
    assert any("every RDMA counter of bnxt_re0" in reason for reason in missing)
