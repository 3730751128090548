"""What grep, ethtool, ip and systemctl print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.devices.base import ReadError
from fabric.devices.linux.dump import parse_dump
from fabric.devices.linux.tools import (
    driver_info,
    enabled_units,
    link_mtu,
    link_pause,
    statistics,
)


def test_a_pci_address_in_a_path_does_not_end_the_path():
    dump = parse_dump("/sys/kernel/debug/mlx5/0000:3b:00.0/cc_params/rp_ai_rate:5\n")
    assert dump.number("/sys/kernel/debug/mlx5/0000:3b:00.0/cc_params/rp_ai_rate") == 5


def test_complaints_are_kept_by_path_and_found_from_below():
    dump = parse_dump(
        "grep: /sys/class/net/ens1f0/ecn: No such file or directory\n"
        "grep: /sys/kernel/debug/mlx5/0000:3b:00.0/cc_params/rp_gd: Permission denied\n"
    )
    assert dump.complaint("/sys/class/net/ens1f0/ecn/roce_np/cnp_dscp") == (
        "No such file or directory"
    )
    assert dump.complaint("/sys/kernel/debug/mlx5/0000:3b:00.0/cc_params/rp_gd") == (
        "Permission denied"
    )
    assert dump.complaint("/sys/class/net/ens1f1/ecn") is None
    assert dump.files == {}


def test_numbers_may_be_hexadecimal_and_words_are_no_numbers():
    dump = parse_dump("/a:0x10\n/b:N/A\n/c:-1\n")
    assert [dump.number(path) for path in ("/a", "/b", "/c", "/d")] == [16, None, -1, None]


@given(
    st.lists(
        st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))), min_size=1, max_size=8
    )
)
def test_a_whole_file_comes_back_with_its_empty_lines_and_colons(lines):
    text = "".join(f"/etc/paisoar/roce-ens1f0.sh:{line}\n" for line in lines)
    content = parse_dump(text).content("/etc/paisoar/roce-ens1f0.sh")
    assert content == "".join(f"{line}\n" for line in lines)


def test_driver_info_keeps_the_pci_address_whole():
    info = driver_info("driver: mlx5_core\nexpansion-rom-version: \nbus-info: 0000:3b:00.0\n")
    assert info["bus-info"] == "0000:3b:00.0"
    assert info["expansion-rom-version"] == ""


def test_link_pause_is_known_only_where_both_directions_are_shown():
    assert link_pause("Pause parameters for x:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n") == (
        True,
        False,
    )
    assert link_pause("netlink error: Operation not supported\n") is None
    assert link_pause("RX:\t\ton\n") is None


def test_statistics_leave_out_what_is_no_number():
    assert statistics("NIC statistics:\n     rx_packets_phy: 12\n     odd: N/A\nno stats\n") == {
        "rx_packets_phy": 12
    }


def test_the_mtu_is_that_of_the_interface_asked_for():
    text = '[{"ifname":"lo","mtu":65536},{"ifname":"ens1f0","mtu":9000}]'
    assert link_mtu("ip", text, "ens1f0") == 9000
    assert link_mtu("ip", text, "ens1f1") is None


@pytest.mark.parametrize("text", ['Device "ens1f0" does not exist.\n', "", '{"mtu": 1}'])
def test_what_is_no_list_of_links_is_refused_with_its_command(text):
    with pytest.raises(ReadError, match="ip -j link show dev ens1f0: expected"):
        link_mtu("ip -j link show dev ens1f0", text, "ens1f0")


UNITS = ["paisoar-roce@a.service", "paisoar-roce@b.service", "paisoar-roce@c.service"]


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("enabled\ndisabled\nenabled\n", [True, False, True]),
        ("not-found\nnot-found\nnot-found\n", [False, False, False]),
        # systemd before 253 complains on the other stream, which may come first.
        (
            f"Failed to get unit file state for {UNITS[1]}: No such file or directory\n"
            "enabled\ndisabled\n",
            [True, False, False],
        ),
    ],
)
def test_enabled_units_are_told_apart(text, enabled):
    assert enabled_units(text, UNITS) == dict(zip(UNITS, enabled, strict=True))


def test_units_that_cannot_be_told_are_left_out():
    assert enabled_units("enabled\n", UNITS) == {}
    assert enabled_units("Failed to connect to bus: No such file or directory\n", UNITS) == {}
