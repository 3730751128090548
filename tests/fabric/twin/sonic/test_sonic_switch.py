"""What the emulated SONiC takes, refuses and prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabric.counters import Counter
from fabric.devices.sonic import MODULE
from fabric.site import Site
from fabric.twin.sonic import EmulatedSwitch

SET = "sudo sonic-db-cli CONFIG_DB HSET"


def typed(leaf: EmulatedSwitch, *lines: str) -> str:
    shell = leaf.shell()
    for line in lines:
        answer = shell.execute(line)
        assert answer.accepted, answer.text
        assert not MODULE.is_error(answer.text), answer.text
    return answer.text


def test_redis_answers_in_counts_and_takes_whatever_it_is_given(leaf: EmulatedSwitch):
    assert typed(leaf, f"{SET} 'PORT|Ethernet0' mtu 1500 nonsense 5") == "1\n"
    assert typed(leaf, "sonic-db-cli CONFIG_DB HGET 'PORT|Ethernet0' mtu") == "1500\n"
    assert typed(leaf, "sonic-db-cli CONFIG_DB HDEL 'PORT|Ethernet0' nonsense none") == "1\n"
    assert typed(leaf, "sonic-db-cli CONFIG_DB DEL 'QUEUE|Ethernet0|3' 'QUEUE|x|3'") == "1\n"
    assert typed(leaf, "sonic-db-cli CONFIG_DB EXISTS 'QUEUE|Ethernet0|3'") == "0\n"
    keys = typed(leaf, "sonic-db-cli CONFIG_DB KEYS 'PFC_WD|*'").split()
    assert "PFC_WD|GLOBAL" in keys
    assert typed(leaf, "sonic-db-cli PING") == "PONG\n"


def test_a_row_without_fields_is_gone(leaf: EmulatedSwitch):
    typed(leaf, "sonic-db-cli CONFIG_DB HDEL 'QUEUE|Ethernet0|0' scheduler")
    assert "Ethernet0|0" not in leaf.config.table("QUEUE")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"{SET} 'PORT|Ethernet0' mtu", "ERR wrong number of arguments for 'hset' command"),
        ("sonic-db-cli CONFIG_DB HMOVE a b", "ERR unknown command `HMOVE`"),
        ("sonic-db-cli CFG_DB HGETALL a", "Invalid database name input : 'CFG_DB'"),
        ("config save -y", "Root privileges are required for this operation"),
        ("sudo config frobnicate", 'Error: No such command "frobnicate".'),
        ("sudo config checkpoint", 'Error: Missing argument "CHECKPOINT_NAME".'),
        ("sudo config rollback none", "Error: Checkpoint 'none' does not exist"),
        ("sudo config delete-checkpoint none", "Error: Checkpoint 'none' does not exist"),
        ("sudo config interface mtu Ethernet0 10000", "Error: Interface MTU is invalid"),
        ("sudo config interface mtu Ethernet999 9000", "Error: Interface name is invalid"),
        ("sudo config interface pfc priority Ethernet0 8 on", "invalid choice: 8"),
        ("show interfaces frobnicate", 'Error: No such command "frobnicate".'),
        ("show p counters", "Error: Too many matches: pfc, pfcwd, priority-group"),
        ("show version now", "Error: Got unexpected extra argument (now)"),
        ("show queue counters Ethernet999", "Error: Invalid interface name Ethernet999"),
        ("configure terminal", "-bash: configure: command not found"),
        ("sonic-cfggen -x", "unrecognized arguments: -x"),
    ],
)
def test_what_is_wrong_is_refused_in_the_vendors_words(leaf: EmulatedSwitch, line: str, says: str):
    before = leaf.running_text()
    answer = leaf.shell().execute(line)
    assert not answer.accepted
    assert says in answer.text
    assert MODULE.is_error(answer.text)
    assert leaf.running_text() == before


def test_commands_may_be_abbreviated(leaf: EmulatedSwitch):
    assert typed(leaf, "show int count") == typed(leaf, "show interfaces counters")


def test_buffermgrd_puts_its_own_profile_where_pfc_changes_unless_there_is_no_cable(
    leaf: EmulatedSwitch,
):
    groups = leaf.config.table("BUFFER_PG")
    assert groups["Ethernet0|3-4"] == {"profile": "pg_lossless_25000_5m_profile"}
    typed(leaf, f"{SET} 'BUFFER_PG|Ethernet0|3' profile MINE")
    typed(leaf, "sudo config interface pfc priority Ethernet0 4 off")
    assert leaf.config.table("BUFFER_PG")["Ethernet0|3"]["profile"].startswith("pg_lossless_")
    typed(
        leaf,
        f"{SET} 'CABLE_LENGTH|AZURE' Ethernet0 0m",
        f"{SET} 'BUFFER_PG|Ethernet0|3' profile MINE",
        "sudo config interface pfc priority Ethernet0 4 on",
    )
    assert leaf.config.table("BUFFER_PG")["Ethernet0|3"] == {"profile": "MINE"}


def test_saving_and_checkpoints_survive_a_restart(
    leaf: EmulatedSwitch, sonic_site: Site, tmp_path: Path
):
    typed(leaf, "sudo config checkpoint before", "sudo config interface mtu Ethernet0 9000")
    assert typed(leaf, "cat /etc/sonic/config_db.json") != typed(
        leaf, "show runningconfiguration all"
    )
    typed(leaf, "sudo config save -y")
    assert typed(leaf, "cat /etc/sonic/config_db.json") == typed(
        leaf, "sonic-cfggen -d --print-data"
    )
    leaf.close()
    again = EmulatedSwitch("leaf1", tmp_path / "leaf1", sonic_site)
    assert again.config.get("PORT", "Ethernet0", "mtu") == "9000"
    assert json.loads(typed(again, "sudo config list-checkpoints")) == ["before"]
    typed(again, "sudo config rollback before", "sudo config delete-checkpoint before")
    assert again.config.get("PORT", "Ethernet0", "mtu") == "9100"
    assert typed(again, "sudo config list-checkpoints") == "[]\n"


@pytest.mark.parametrize("row", ["WRED_PROFILE|MINE", "PFC_WD|Ethernet0", "BUFFER_PROFILE|MINE"])
def test_rollback_is_refused_where_the_generic_updater_does_not_know_the_asic(
    leaf: EmulatedSwitch, row: str
):
    typed(leaf, "sudo config checkpoint before", f"{SET} '{row}' action alert")
    answer = leaf.shell().execute("sudo config rollback before")
    table = row.partition("|")[0]
    assert f"Error: Modification of {table} table is illegal" in answer.text
    leaf.model = "Mellanox-SN4700-O32"
    typed(leaf, "sudo config rollback before")
    assert leaf.config.rows.get(row, {}).get("action") != "alert"


def test_show_tables_are_read_by_the_module(leaf: EmulatedSwitch):
    counters = [
        Counter("leaf1", "Ethernet0", "rx_packets", 1_234_567),
        Counter("leaf1", "Ethernet0", "rx_discards", 5),
        Counter("leaf1", "Ethernet0", "tx_queue_packets", 1000, 3),
        Counter("leaf1", "Ethernet0", "tx_queue_bytes", 4_000_000, 3),
        Counter("leaf1", "Ethernet0", "queue_drops", 7, 0),
        Counter("leaf1", "Ethernet0", "ecn_marked_packets", 9, 3),
        Counter("leaf1", "Ethernet0", "rx_pause_frames", 11, 3),
        Counter("leaf1", "Ethernet0", "tx_pause_frames", 12, 3),
        Counter("leaf1", "Ethernet0", "rx_prio_discards", 13, 3),
        Counter("leaf1", "Ethernet0", "watchdog_storms", 2, 3),
    ]
    leaf.add_counters(counters)
    from fabric.devices.registry import target_of

    target = target_of(leaf.site, "leaf1")
    answers = {command: typed(leaf, command) for command in MODULE.counter_commands(target)}
    found = MODULE.read_counters(target, answers, 1.0)
    values = {(c.port, c.name, c.priority): c.value for c in found.counters}
    for counter in counters:
        assert values[counter.port, counter.name, counter.priority] == counter.value
    assert values["Ethernet0", "tx_bytes", None] == 4_000_000
    assert not any("does not show" in line for line in found.missing)
    typed(leaf, "sonic-clear counters")
    assert leaf.counter("Ethernet0", "rx_packets") == 0


def test_counters_of_a_port_that_is_not_there_are_refused(leaf: EmulatedSwitch):
    with pytest.raises(KeyError, match="Ethernet999"):
        leaf.add_counters([Counter("leaf1", "Ethernet999", "rx_packets", 1)])


def test_a_port_that_is_shut_takes_the_link_down_at_both_ends(
    switches: dict[str, EmulatedSwitch],
):
    leaf, spine = switches["leaf1"], switches["spine1"]
    uplink = leaf.site.topology.peer(spine.site.topology.ports_of["spine1"][0])
    far = spine.site.topology.ports_of["spine1"][0].port
    assert uplink.port == "Ethernet48"
    typed(leaf, "sudo config interface shutdown Ethernet48")
    assert not leaf.link_up("Ethernet48")
    assert not spine.link_up(far)
    assert "Ethernet0 " not in typed(spine, "show lldp table")
    typed(leaf, "sudo config interface startup Ethernet48")
    assert spine.link_up(far)


def test_other_shows(leaf: EmulatedSwitch):
    assert "3,4" in typed(leaf, "show pfc priority Ethernet0")
    config = typed(leaf, "show pfcwd config")
    assert config.startswith("Changed polling interval to 200ms\n")
    assert "Ethernet0      drop               200                 200\n" in config
    status = typed(leaf, "show interfaces status Ethernet0 | tail -n 1").split()
    assert status[:4] == ["Ethernet0", "1", "25G", "9100"]
    assert "HwSKU: Accton-AS7326-56X\n" in typed(leaf, "show version")


@pytest.mark.parametrize("kind", ["pfc-off", "mtu", "ecn-off"])
def test_faults_change_just_their_field(leaf: EmulatedSwitch, kind: str):
    before = {key: dict(row) for key, row in leaf.config.rows.items()}
    port = "" if kind == "ecn-off" else "Ethernet0"
    assert leaf.break_(kind, port).startswith("leaf1: ")
    changed = {
        (key, field, value)
        for key, row in leaf.config.rows.items()
        for field, value in row.items()
        if before[key].get(field) != value
    }
    assert (
        changed
        == {
            "pfc-off": {("PORT_QOS_MAP|Ethernet0", "pfc_enable", "")},
            "mtu": {("PORT|Ethernet0", "mtu", "1500")},
            "ecn-off": {("WRED_PROFILE|AZURE_LOSSLESS", "ecn", "ecn_none")},
        }[kind]
    )
    if kind == "ecn-off":
        with pytest.raises(ValueError, match="nothing to switch off"):
            leaf.break_(kind, "")


def test_an_unknown_fault_or_port_is_refused(leaf: EmulatedSwitch):
    with pytest.raises(ValueError, match="pfc-off, mtu, ecn-off"):
        leaf.break_("dscp-map", "Ethernet0")
    with pytest.raises(ValueError, match="no cabled port"):
        leaf.break_("mtu", "Ethernet9")
