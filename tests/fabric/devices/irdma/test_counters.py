"""Counters of an E810: ``ethtool -S`` of ice (Linux 6.8 ice_ethtool.c, shortened) and
hw_counters of irdma (drivers/infiniband/hw/irdma/verbs.c)."""

from pathlib import Path

from fabric.devices.base import TargetPort
from fabric.devices.irdma import FAMILY

PORT = TargetPort("ens1f0", 100 * 10**9, 3.0, "irdma", "rdmap59s0f0")
ETHTOOL, PFC, HW = FAMILY.counter_commands(PORT)
TEXT = (Path(__file__).parent / "fixtures" / "ethtool_S.txt").read_text()
FOLDER = "/sys/class/infiniband/rdmap59s0f0/ports/1/hw_counters"
E810 = {"cnpHandled": 5, "cnpIgnored": 1, "cnpSent": 6, "RxECNMrkd": 7, "lifespan": 10}
E830 = {"Nak Sequence Error": 8, "Rcvd Out of order packets": 9, "RTO": 10, "CRC errors": 11}


def read(verbs):
    text = "".join(f"{FOLDER}/{name}:{value}\n" for name, value in verbs.items())
    counters, missing = FAMILY.read_counters("h", PORT, {ETHTOOL: TEXT, HW: text})
    return {(c.name, c.priority): c.value for c in counters}, missing


def test_packets_are_the_sum_of_their_kinds():
    seen, _ = read(E810)
    assert seen["rx_packets", None] == 91_000
    assert seen["tx_packets", None] == 88_082
    assert (seen["rx_pause_frames", 3], seen["tx_pause_frames", 3]) == (40, 7)
    assert (seen["rp_cnp_ignored", None], seen["np_cnp_sent", None]) == (1, 6)


def test_an_e810_counts_no_sequence_errors_and_says_so():
    seen, missing = read(E810)
    assert ("out_of_sequence", None) not in seen
    assert any(
        reason.startswith("ens1f0: out_of_sequence: hw_counters has no") for reason in missing
    )
    later, _ = read(E810 | E830)
    assert later["out_of_sequence", None] == 9
    assert later["rx_icrc_errors", None] == 11
