"""Reading CONFIG_DB, ``show`` outputs and counters of several releases."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.counters import Counter
from fabric.devices.base import ReadError
from fabric.devices.sonic import MODULE
from fabric.devices.sonic.counters import COMMANDS
from fabric.devices.sonic.database import numbers, parse, spans
from fabric.devices.sonic.normalise import shares
from fabric.devices.sonic.read import LINKS, LLDP, RUNNING, SAVED, VERSION
from fabric.qos import Ecn, IngressBuffer, Neighbor, Scheduler, Watchdog
from tests.fabric.devices.sonic.samples import outputs, sample, target

COUNTERS = dict(
    zip(
        COMMANDS,
        ("interfaces", "queues", "marks", "pfc", "groups", "pfcwd", "boot_id"),
        strict=True,
    )
)


def everything():
    return {
        RUNNING: sample("config_db.json"),
        SAVED: sample("config_db.json"),
        VERSION: sample("version.txt"),
        LLDP: sample("lldp.txt"),
    }


def test_a_switch_with_sonics_own_qos_is_read():
    state = MODULE.read(target(), everything())
    assert (state.model, state.firmware, state.serial) == (
        "Accton-AS7326-56X",
        "SONiC.202311.2-b1c2d3e4f",
        "732656X2140077",
    )
    assert state.saved is True
    assert state.unread == ()
    port = state.port("Ethernet0")
    assert [p.name for p in state.ports] == ["Ethernet0", "Ethernet1", "Ethernet48"]
    assert port.mtu_bytes == 9100
    # SONiC's default: RoCE's DSCP 26 lands in a lossy class.
    assert (port.class_of_dscp(26), port.class_of_dscp(3), port.class_of_dscp(48)) == (1, 3, 6)
    assert port.pfc_priorities == (3, 4)
    assert port.queue(3).ecn == Ecn(1048576, 2097152, 5)
    assert port.queue(0).ecn is None
    assert [queue.scheduler.percent for queue in port.queues] == [14, 14, 14, 15, 15, 14, 14, 0]
    assert port.watchdog == Watchdog(200, 200, "drop")
    # size below xoff does not hold the headroom, size above it does
    assert port.ingress_buffer(3) == IngressBuffer(3, 1248 + 66560, 1248, 0, 0.125)
    assert state.port("Ethernet48").ingress_buffer(4) == IngressBuffer(4, 81920, 18432, 18432, 1.0)


def test_neighbours_are_front_ports_with_the_names_of_theirs():
    state = MODULE.read(target(), everything())
    assert state.neighbors == (
        Neighbor("Ethernet0", "gpu-01", "ens1f0np0"),
        Neighbor("Ethernet48", "spine-1", "Ethernet8"),
    )


def test_old_releases_keys_of_several_ports_and_bracketed_references_mean_the_same():
    new = MODULE.read(target(), everything())
    old = MODULE.read(target(), {**everything(), RUNNING: sample("config_db-201911.json")})
    assert old.ports == new.ports
    assert old.saved is False


def test_what_comes_before_the_json_and_after_it_does_not_matter():
    noisy = "\r\nadmin@tor-7:~$ \n" + sample("config_db.json") + "\nadmin@tor-7:~$ "
    assert MODULE.read(target(), {RUNNING: noisy}).ports == (
        MODULE.read(target(), everything()).ports
    )


@pytest.mark.parametrize("text", ["", "[]", '{"PORT": 5}', '{"PORT": {}}', "-bash: show: oops"])
def test_what_is_no_config_db_is_said(text):
    with pytest.raises(ReadError):
        MODULE.read(target(), {RUNNING: text})


def test_missing_outputs_are_named():
    state = MODULE.read(target(), outputs(sample("config_db.json")))
    assert state.saved is None
    assert state.neighbors is None
    assert {line.partition(":")[0] for line in state.unread} == {
        "model", "firmware", "serial", "saved configuration", "neighbours",
    }  # fmt: skip


def test_a_service_that_does_not_run_hides_nothing_but_what_it_shows():
    whole = everything()
    stopped = {LLDP: "lldp container is not running\n", SAVED: "cut off {"}
    state = MODULE.read(target(), whole | stopped)
    assert (state.neighbors, state.saved) == (None, None)
    assert state.ports == MODULE.read(target(), whole).ports
    assert any("lldp container is not running" in entry for entry in state.unread)


def changed(change):
    tables = json.loads(sample("config_db.json"))
    change(tables)
    return MODULE.read(target(), outputs(json.dumps(tables)))


def test_a_buffer_that_the_switch_computes_itself_is_unread():
    def dynamic(tables):
        tables["BUFFER_PG"]["Ethernet0|3-4"]["profile"] = "NULL"
        del tables["BUFFER_PG"]["Ethernet1|3-4"]

    state = changed(dynamic)
    assert state.port("Ethernet0").ingress_buffers == ()
    for port in ("Ethernet0", "Ethernet1"):
        assert any(
            line.startswith(f"{port}: receive buffer of priority 3: ") for line in state.unread
        )


def test_a_watchdog_that_only_logs_or_watches_another_priority_guards_nothing():
    def weak(tables):
        tables["PFC_WD"]["Ethernet0"]["action"] = "alert"
        tables["PORT_QOS_MAP"]["Ethernet48"]["pfcwd_sw_enable"] = "4"

    state = changed(weak)
    assert state.port("Ethernet0").watchdog is None
    assert state.port("Ethernet48").watchdog is None
    assert any("alert" in line for line in state.unread)


def test_marking_needs_ecn_and_wred_of_green_packets_but_for_thresholds_of_its_own():
    def without(tables):
        tables["WRED_PROFILE"]["AZURE_LOSSLESS"]["wred_green_enable"] = "false"

    assert changed(without).port("Ethernet0").queue(3).ecn is None

    def red(tables):
        tables["WRED_PROFILE"]["AZURE_LOSSLESS"]["ecn"] = "ecn_yellow_red"

    assert changed(red).port("Ethernet0").queue(3).ecn is None

    def own(tables):
        tables["WRED_PROFILE"]["AZURE_LOSSLESS"] |= {
            "wred_green_enable": "false",
            "ecn_green_min_threshold": "1000",
            "ecn_green_max_threshold": "2000",
            "ecn_green_mark_probability": "7",
        }

    assert changed(own).port("Ethernet0").queue(3).ecn == Ecn(1000, 2000, 7)


def test_a_port_without_maps_trusts_nothing_unless_the_switch_has_a_map():
    def bare(tables):
        del tables["PORT_QOS_MAP"]["Ethernet0"]

    state = changed(bare)
    assert state.port("Ethernet0").trust == "dscp"
    assert state.port("Ethernet0").pfc_priorities == ()

    def none(tables):
        del tables["PORT_QOS_MAP"]["Ethernet0"], tables["PORT_QOS_MAP"]["global"]
        tables["PORT_QOS_MAP"]["Ethernet1"] = {"dot1p_to_tc_map": "AZURE"}
        del tables["PORT"]["Ethernet0"]["mtu"]

    state = changed(none)
    assert state.port("Ethernet0").trust == "none"
    assert state.port("Ethernet1").trust == "pcp"
    assert state.port("Ethernet0").mtu_bytes == 9100


def test_subinterfaces_and_inner_ports_are_no_front_ports():
    def more(tables):
        tables["PORT"]["Ethernet-BP0"] = {"mtu": "9100"}
        tables["PORT"]["Ethernet0.100"] = {"mtu": "9100"}

    assert len(changed(more).ports) == 3


def shaped(**fields):
    return changed(lambda tables: tables["SCHEDULER"]["scheduler.0"].update(fields))


def test_a_queues_peak_rate_is_in_bytes_a_second():
    state = shaped(meter_type="bytes", pir="1250000000", pbs="8192")
    limits = [queue.max_rate_bps for queue in state.port("Ethernet0").queues]
    assert limits[0] == 10 * 10**9
    assert shaped(pir="1250000000").port("Ethernet0").queues[0].max_rate_bps == 10 * 10**9
    assert not any(": rate limit of queue 0: " in line for line in state.unread)


def test_a_peak_rate_of_the_ports_speed_limits_nothing():
    def at_speed(tables):
        tables["PORT"]["Ethernet0"]["speed"] = "100000"
        tables["SCHEDULER"]["scheduler.0"]["pir"] = "12500000000"

    assert changed(at_speed).port("Ethernet0").queues[0].max_rate_bps == 0


@pytest.mark.parametrize(
    "fields", [{"pir": "125000000", "meter_type": "packets"}, {"pir": "125000000", "cir": "1"}]
)
def test_a_queue_that_is_shaped_otherwise_is_said(fields):
    assert any(": rate limit of queue 0: " in line for line in shaped(**fields).unread)


def test_a_shaped_port_is_said():
    def port(tables):
        tables["SCHEDULER"]["slow"] = {"meter_type": "bytes", "pir": "125000000"}
        tables["PORT_QOS_MAP"]["Ethernet0"]["scheduler"] = "slow"

    assert any("Ethernet0: rate limit of the port: " in line for line in changed(port).unread)


def counters():
    answers = {command: sample(f"{name}.txt") for command, name in COUNTERS.items()}
    return MODULE.read_counters(target(), answers, 5.0)


def test_counters_are_in_the_common_schema():
    found = counters()
    values = {(c.port, c.name, c.priority): c.value for c in found.counters}
    expected = {
        ("Ethernet0", "rx_packets", None): 12_580_140,
        ("Ethernet0", "rx_discards", None): 3783,
        ("Ethernet0", "rx_crc_errors", None): 3,
        ("Ethernet0", "tx_discards", None): 7,
        ("Ethernet0", "tx_queue_packets", 3): 51_000_000,
        ("Ethernet0", "queue_drops", 3): 7,
        ("Ethernet0", "tx_bytes", None): 52_000_100_000,
        ("Ethernet0", "ecn_marked_packets", 3): 19_000,
        ("Ethernet0", "rx_pause_frames", 3): 1234,
        ("Ethernet0", "tx_pause_frames", 3): 56,
        ("Ethernet0", "rx_prio_discards", 3): 12,
        ("Ethernet0", "watchdog_storms", 3): 2,
        ("Ethernet48", "tx_queue_packets", 3): 10,
    }
    assert {key: values.get(key) for key in expected} == expected
    assert not any(port.startswith("PortChannel") for port, _, _ in values)
    assert ("Ethernet0", "tx_queue_packets", 6) not in values  # N/A
    assert ("Ethernet0", "tx_queue_packets", 10) not in values  # multicast


def test_what_is_not_counted_is_named():
    missing = counters().missing
    assert "rx_crc_errors: 'show interfaces counters' does not show it for Ethernet48" in missing
    assert "tx_pause_frames: 'show pfc counters' does not show it for Ethernet48" in missing
    assert any(line.startswith("rx_pause_us: ") for line in missing)
    none = MODULE.read_counters(target(), {}, 5.0)
    assert none.counters == ()
    assert "ecn_marked_packets: 'show queue wredcounters' was not answered" in none.missing


def test_an_output_without_a_table_is_no_zero():
    with pytest.raises(ReadError, match="show pfc counters"):
        MODULE.read_counters(target(), {"show pfc counters": "nothing here"}, 5.0)


def test_an_unnamed_counter_is_refused():
    with pytest.raises(ValueError, match="COUNTER_NAMES"):
        Counter("tor-7", "Ethernet0", "RX_OK", 1)


@pytest.mark.parametrize(
    "answer",
    [
        "-bash: nonsense: command not found",
        'Usage: config [OPTIONS] COMMAND [ARGS]...\n\nError: No such command "x".',
        "ERR wrong number of arguments for 'hset' command",
        "Root privileges are required for this operation",
        "Failed to rollback config\nUsage: config rollback ...",
        "sudo: a password is required",
        "cat: /etc/sonic/config_db.json: Permission denied",
    ],
)
def test_refusals_are_seen(answer):
    assert MODULE.is_error(answer)


@pytest.mark.parametrize(
    "answer", ["", "0", "11", "Checkpoint created successfully.", '{"a": "\nError: "}']
)
def test_answers_are_no_refusals(answer):
    assert not MODULE.is_error(answer)
    assert not any(MODULE.is_error(text) for text in everything().values())
    assert not any(MODULE.is_error(sample(f"{name}.txt")) for name in COUNTERS.values())


@given(st.sets(st.integers(0, 40)))
def test_spans_name_each_index_once(indices):
    found = [number for span in spans(indices) for number in numbers(span)]
    assert sorted(found) == sorted(indices)


@given(st.dictionaries(st.integers(0, 7), st.integers(0, 100)))
def test_shares_add_up_to_a_hundred_and_percents_stay(weights):
    found = shares(weights)
    total = sum(weights.values())
    assert sum(found.values()) == (100 if total else 0)
    if total == 100:
        assert found == weights


def test_scheduler_types():
    def wrr(tables):
        tables["SCHEDULER"]["scheduler.1"] = {"type": "STRICT"}
        tables["SCHEDULER"]["scheduler.0"] = {}

    port = changed(wrr).port("Ethernet0")
    assert port.queue(3).scheduler == Scheduler("strict")
    assert replace(port.queue(7), ecn=None).scheduler == Scheduler("ets", 0)


def test_lists_are_read_as_redis_holds_them():
    assert parse('{"VLAN": {"Vlan5": {"members": ["a", "b"]}}}', "x")["VLAN"]["Vlan5"] == {
        "members": "a,b"
    }


def test_links_show_speed_fec_and_pfc():
    status = """\
  Interface            Lanes    Speed    MTU    FEC    Alias    Vlan    Oper    Admin    Type
-----------  ---------------  -------  -----  -----  -------  ------  ------  -------  ------
  Ethernet0                3      25G   9100     rs     eth1  routed      up       up     N/A
  Ethernet1                2      25G   9100    N/A     eth2  routed    down       up     N/A
 Ethernet48      77,78,79,80     100G   9100   none    eth49  routed      up       up     N/A
PortChannel1              N/A     200G   9100    N/A      N/A  routed      up       up     N/A
"""
    facts = MODULE.read(target(), {**everything(), LINKS: status}).facts
    assert [(f.port, f.up, f.speed_bps, f.fec, f.pfc_mode) for f in facts] == [
        ("Ethernet0", True, 25 * 10**9, "rs", "on"),
        ("Ethernet1", False, None, None, "on"),
        ("Ethernet48", True, 100 * 10**9, "none", "on"),
    ]
    shown = {(f.up, f.speed_bps, f.fec) for f in MODULE.read(target(), everything()).facts}
    assert shown == {(None, None, None)}


def test_headroom_that_the_switch_has_chosen_is_for_cables_of_certain_lengths():
    def fits(text: str, profile: str = "pg_lossless_25000_5m_profile"):
        tables = json.loads(sample("config_db.json"))
        tables["CABLE_LENGTH"] = {"AZURE": {"Ethernet0": text}}
        tables["BUFFER_PG"] = {"Ethernet0|3-4": {"profile": profile}}
        state = MODULE.read(target(), {**everything(), RUNNING: json.dumps(tables)})
        return state.facts_of("Ethernet0").headroom_cable_m

    assert [fits(text) for text in ("5m", "30m", "300m")] == [(0, 5), (5, 30), (40, 300)]
    assert fits("0m") is None
    # Somebody's own profile has nothing to do with the cable.
    assert fits("300m", "egress_lossless_profile") is None


@pytest.mark.parametrize(
    ("table", "key", "field"),
    [
        ("PORT", "Ethernet0", "mtu"),
        ("DSCP_TO_TC_MAP", "AZURE", "26"),
        ("WRED_PROFILE", "AZURE_LOSSLESS", "green_max_threshold"),
        ("PFC_WD", "Ethernet0", "detection_time"),
    ],
)
def test_a_number_that_is_none_is_no_default(table, key, field):
    def spoil(tables):
        assert field in tables[table][key]
        tables[table][key][field] = "many"

    with pytest.raises(ReadError, match=f"{field} is 'many', no number"):
        changed(spoil)
