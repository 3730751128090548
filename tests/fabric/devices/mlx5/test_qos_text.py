"""Reading what mlnx_qos prints, old and new, whole and damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.devices.base import ReadError
from fabric.devices.mlx5.qos_text import parse_qos
from tests.fabric.devices.mlx5.samples import QOS_FACTORY, QOS_OLD, QOS_SET, dscp_lines

COMMAND = "mlnx_qos -i ens1f0"


def test_the_new_output_shows_everything():
    shown = parse_qos(COMMAND, QOS_SET)
    assert (shown.dcbx, shown.trust, shown.cable_m) == ("os", "dscp", 3)
    assert len(shown.dscp_to_priority) == 64
    assert {d: p for d, p in shown.dscp_to_priority.items() if p} == {26: 3, 48: 6}
    assert [p for p, on in shown.pfc.items() if on] == [3]
    assert shown.buffer_bytes == {0: 20736, 1: 155520, **dict.fromkeys(range(2, 8), 0)}
    assert shown.priority_to_buffer[3] == 1
    assert shown.tsa[3] == ("ets", 50)
    assert shown.tsa[6] == ("strict", 0)
    assert shown.priority_to_class == {p: p for p in range(8)}


def test_the_old_output_has_no_buffers_and_its_classes_in_another_order():
    shown = parse_qos(COMMAND, QOS_OLD)
    assert shown.buffer_bytes == {}
    assert shown.priority_to_buffer == {}
    assert shown.dscp_to_priority == {dscp: dscp // 8 for dscp in range(64)}
    assert shown.priority_to_class == {0: 1, 1: 0, 2: 2, 3: 2, 4: 2, 5: 2, 6: 7, 7: 7}
    assert shown.tsa == {
        1: ("vendor", 0),
        0: ("vendor", 0),
        2: ("strict", 0),
        7: ("ets", 100),
    }


def test_the_default_priority_is_not_a_line_of_the_dscp_map():
    text = QOS_SET.replace("default priority:\n", "default priority:\n\tprio:5\n")
    assert parse_qos(COMMAND, text) == parse_qos(COMMAND, QOS_SET)


def test_the_drivers_own_table_of_dscps_is_read_too():
    rows = "".join(f"{dscp}\t{dscp // 8}\n" for dscp in range(64))
    text = f"Priority trust state: dscp\ndscp2prio mapping:\nDSCP\tPriority\n{rows}Cable len: 7\n"
    shown = parse_qos(COMMAND, text)
    assert shown.dscp_to_priority == {dscp: dscp // 8 for dscp in range(64)}
    assert shown.cable_m == 7


def test_a_line_of_dscps_may_go_on_without_its_priority():
    text = "Priority trust state: dscp\ndscp2prio mapping:\n\tprio:3 dscp:24,25,\n\t26,27,\n"
    assert parse_qos(COMMAND, text).dscp_to_priority == dict.fromkeys((24, 25, 26, 27), 3)


def test_firmware_control_and_a_warning_about_lldpad_are_read():
    warning = "****** WARNING: lldpad service is running and may overwrite your settings ******\n\n"
    text = warning + QOS_FACTORY.replace("OS controlled", "Firmware controlled")
    shown = parse_qos(COMMAND, text)
    assert shown.dcbx == "firmware"
    assert shown.trust == "pcp"
    assert shown.dscp_to_priority == {}


def test_cells_that_are_no_number_and_missing_columns_are_unknown():
    text = (
        QOS_SET.replace("20736,155520,0,0", "N/A,155520,N/A,0")
        .replace("enabled     0   0   0   1   0   0   0   0", "enabled     0   N/A   0   1")
        .replace("Cable len: 3", "Cable len: N/A")
    )
    shown = parse_qos(COMMAND, text)
    assert shown.pfc == {0: False, 2: False, 3: True}
    assert 0 not in shown.buffer_bytes
    assert shown.buffer_bytes[1] == 155520
    assert shown.cable_m is None


def test_priorities_behind_a_class_without_a_name_belong_to_none():
    # mlnx_qos prints no "tc: N" where the rate limit cannot be read.
    text = QOS_SET.replace("tc: 6 ratelimit: unlimited, tsa: strict", "strict")
    shown = parse_qos(COMMAND, text)
    assert 6 not in shown.priority_to_class
    assert 6 not in shown.tsa
    assert shown.priority_to_class[7] == 7


@pytest.mark.parametrize("text", ["", "bash: mlnx_qos: command not found\n", "Traceback (most"])
def test_what_is_not_mlnx_qos_is_refused_with_its_command(text):
    with pytest.raises(ReadError, match="mlnx_qos -i ens1f0: this is not what mlnx_qos prints"):
        parse_qos(COMMAND, text)


@given(st.lists(st.integers(0, 7), min_size=64, max_size=64), st.booleans())
def test_any_dscp_map_is_read_as_it_was_printed(priorities, ascending):
    table: dict[int, list[int]] = {}
    for dscp in range(64) if ascending else reversed(range(64)):
        table.setdefault(priorities[dscp], []).append(dscp)
    text = "Priority trust state: dscp\ndscp2prio mapping:\n" + dscp_lines(table)
    shown = parse_qos(COMMAND, text + "default priority:\nCable len: 7\n")
    assert [shown.dscp_to_priority[dscp] for dscp in range(64)] == priorities


@given(st.data())
def test_a_damaged_output_is_read_or_refused_but_never_breaks(data):
    lines = QOS_SET.splitlines()
    kept = data.draw(st.lists(st.sampled_from(lines), max_size=40))
    cut = [line[: data.draw(st.integers(0, len(line)))] for line in kept]
    try:
        shown = parse_qos(COMMAND, "\n".join(cut))
    except ReadError:
        return
    assert all(0 <= p < 8 for p in shown.dscp_to_priority.values())
