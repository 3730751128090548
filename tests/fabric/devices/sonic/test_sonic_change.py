"""From CONFIG_DB to the intended one and back, command by command."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from fabric.devices.sonic import MODULE, database
from fabric.devices.sonic.normalise import normalise
from fabric.devices.sonic.render import dynamic_th, intended_tables
from fabric.devices.sonic.schema import NAMED, violations
from fabric.errors import DeviceError, InputError
from fabric.intended import intended_qos
from fabric.qos import Watchdog
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from tests.fabric.devices.sonic.samples import (
    PORTS,
    carried_out,
    outputs,
    roce_port,
    sample,
    switch,
    switches,
    target,
)

# Longer ones are wrapped by the terminal in the middle of their echo.
LONGEST = 460


def running(name="config_db.json"):
    return database.parse(sample(name), "sample")


def plan(tables, intended):
    return MODULE.change(target(), outputs(tables), intended)


def check(tables, intended):
    """Carry out, compare with what is intended, roll back, compare; what came of it."""
    change = plan(tables, intended)
    after = carried_out(tables, change.commands)
    state = MODULE.read(target(), outputs(after))
    for port in MODULE.normalise(intended).ports:
        assert state.port(port.name) == port
    assert plan(after, intended).empty
    assert database.sha256(carried_out(after, change.rollback)) == database.sha256(tables)
    assert change.empty == (not change.diff)
    assert all(len(command) < LONGEST for command in (*change.commands, *change.rollback))
    return after


@settings(max_examples=40, deadline=None)
@given(switches())
def test_a_switch_becomes_what_is_intended_and_back(state):
    check(running(), state)


@settings(max_examples=20, deadline=None)
@given(switches())
def test_a_switch_of_an_old_release_too(state):
    check(running("config_db-201911.json"), state)


@settings(max_examples=30, deadline=None)
@given(switches(), switches())
def test_any_intent_follows_any_other_and_leaves_nothing_of_it(first, second):
    once = carried_out(running(), plan(running(), first).commands)
    after = check(once, second)
    straight = carried_out(running(), plan(running(), second).commands)
    # What buffermgrd was kept off from, and the poll that was too long, stay so; a
    # lossy group that was lossless meanwhile has no profile left.
    for tables in (after, straight):
        del tables["CABLE_LENGTH"], tables["PFC_WD"]["GLOBAL"]
        groups = tables["BUFFER_PG"]
        tables["BUFFER_PG"] = {k: row for k, row in groups.items() if "lossy" not in row["profile"]}
    assert after == straight


@settings(max_examples=40, deadline=None)
@given(switches())
def test_render_read_is_normalise_and_yang_takes_it(state):
    read = MODULE.read(target(), outputs(MODULE.render(state)))
    assert read.ports == tuple(
        sorted(normalise(state).ports, key=lambda port: int(port.name.removeprefix("Ethernet")))
    )
    tables = database.parse(MODULE.render(state), "render")
    pools = {"BUFFER_POOL": {"ingress_lossless_pool": {}}}
    assert list(violations(tables, {**tables, **pools})) == []


def test_rows_that_are_not_ours_stay():
    before = running()
    after = check(before, switch(roce_port()))
    for name, table in before.items():
        for key, row in table.items():
            ours = "Ethernet0" in key or name in ("CABLE_LENGTH", "PFC_WD")
            if not ours or name in ("PORT", "INTERFACE"):
                now = dict(after[name][key])
                now.pop("mtu", None), row.pop("mtu", None)
                assert now == row, (name, key)
    # Multicast queues of our port are not the intent's, lossy groups neither.
    assert after["QUEUE"]["Ethernet0|8-9"] == {"scheduler": "scheduler.0"}
    assert after["BUFFER_PG"]["Ethernet0|0"] == {"profile": "ingress_lossy_profile"}
    assert "Ethernet0|3-4" not in after["BUFFER_PG"]
    assert set(after["SCHEDULER"]) > {"scheduler.0", "scheduler.1"}
    assert after["CABLE_LENGTH"]["AZURE"] == {
        "Ethernet0": "0m", "Ethernet1": "5m", "Ethernet48": "5m",
    }  # fmt: skip


def test_with_the_dynamic_buffer_model_cable_lengths_stay():
    tables = running()
    tables["DEVICE_METADATA"]["localhost"]["buffer_model"] = "dynamic"
    assert not any("CABLE_LENGTH" in line for line in plan(tables, switch(roce_port())).commands)


def test_rows_are_made_before_use_and_removed_after_it():
    first = carried_out(running(), plan(running(), switch(roce_port())).commands)
    commands = plan(first, switch(roce_port(kmin=5000))).commands
    verbs = [(line.split()[3], line.split()[4].strip("'").partition("|")[0]) for line in commands]
    assert verbs == [
        ("HSET", "WRED_PROFILE"), ("HSET", "QUEUE"), ("DEL", "WRED_PROFILE"),
    ]  # fmt: skip


def test_cable_length_pfc_buffers_come_in_this_order_and_split_keys_go_first():
    commands = plan(running(), switch(roce_port())).commands
    at = {
        what: next(i for i, line in enumerate(commands) if what in line)
        for what in (
            "DEL 'BUFFER_PG|Ethernet0|3-4'",
            "HSET 'CABLE_LENGTH|AZURE' Ethernet0 0m",
            "HSET 'PORT_QOS_MAP|Ethernet0'",
            "HSET 'BUFFER_PG|Ethernet0|3'",
        )
    }
    assert list(at.values()) == sorted(at.values())


def test_a_port_that_another_intent_left_keeps_the_rows_it_uses():
    both = switch(roce_port("Ethernet0"), roce_port("Ethernet48"))
    first = carried_out(running(), plan(running(), both).commands)
    change = plan(first, switch(roce_port("Ethernet0", kmin=5000)))
    assert not any(line.split()[3] == "DEL" for line in change.commands)
    assert "Ethernet48" not in change.diff


def test_a_poll_that_is_longer_than_the_shortest_time_is_shortened():
    port = replace(roce_port(), watchdog=Watchdog(150, 400, "forward"))
    after = check(running(), switch(port))
    assert after["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] == "150"
    slow = replace(roce_port(), watchdog=Watchdog(1000, 1000))
    assert check(running(), switch(slow))["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] == "200"


def test_the_diff_names_row_and_both_values():
    tables = carried_out(running(), plan(running(), switch(roce_port())).commands)
    tables["PORT"]["Ethernet0"]["mtu"] = "1500"
    change = plan(tables, switch(roce_port()))
    assert change.diff == " PORT|Ethernet0\n-  mtu: 1500\n+  mtu: 9216\n"
    assert change.commands == ("sudo sonic-db-cli CONFIG_DB HSET 'PORT|Ethernet0' mtu 9216",)
    assert change.rollback == ("sudo sonic-db-cli CONFIG_DB HSET 'PORT|Ethernet0' mtu 1500",)


def test_names_follow_from_content_alone():
    one, two = (intended_tables(switch(roce_port(port))) for port in PORTS)
    for name in NAMED:
        assert set(one[name]) == set(two[name])
    other = intended_tables(switch(roce_port(kmin=5)))
    assert set(one["WRED_PROFILE"]) != set(other["WRED_PROFILE"])


def test_a_port_or_a_pool_that_the_switch_lacks_is_named():
    with pytest.raises(DeviceError, match=r"tor-7: .*PORT\|Ethernet99"):
        plan(running(), switch(roce_port("Ethernet99")))
    tables = running()
    del tables["BUFFER_POOL"]
    with pytest.raises(DeviceError, match="no ingress pool"):
        plan(tables, switch(roce_port()))


def test_thresholds_must_be_of_the_pools_kind():
    static = replace(roce_port(), ingress_buffers=())
    assert not plan(running(), switch(static)).empty
    buffer = replace(roce_port().ingress_buffers[0], alpha=None)
    port = replace(roce_port(), ingress_buffers=(buffer,))
    with pytest.raises(DeviceError, match="dynamic thresholds, the intent static ones"):
        plan(running(), switch(port))
    tables = running()
    tables["BUFFER_POOL"]["ingress_lossless_pool"]["mode"] = "static"
    after = check(tables, switch(port))
    (profile,) = (row for name, row in after["BUFFER_PROFILE"].items() if "PAISOAR" in name)
    assert profile == {
        "pool": "ingress_lossless_pool", "size": "183000", "xoff": "33000", "xon": "140000",
        "static_th": "0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "row", "says"),
    [
        ("WRED_PROFILE", {"ecn": "ecn_on"}, "ecn: 'ecn_on'"),
        ("WRED_PROFILE", {"green_drop_probability": "101"}, "green_drop_probability"),
        (
            "WRED_PROFILE",
            {"green_min_threshold": "5", "green_max_threshold": "4"},
            "green_max_threshold is below",
        ),
        ("SCHEDULER", {"type": "ETS"}, "type: 'ETS'"),
        ("SCHEDULER", {"type": "DWRR", "weight": "0"}, "weight: '0'"),
        ("BUFFER_PROFILE", {"size": "1", "pool": "none"}, "there is no BUFFER_POOL|none"),
        ("BUFFER_PROFILE", {"pool": "p"}, "size is mandatory"),
        ("BUFFER_PROFILE", {"size": "1", "pool": "p", "dynamic_th": "8"}, "dynamic_th"),
        ("DSCP_TO_TC_MAP", {"64": "1"}, "out of range"),
        ("PORT_QOS_MAP", {"pfc_enable": "3-4"}, "pfc_enable: '3-4'"),
        ("PORT_QOS_MAP", {"tc_to_pgmap": "x"}, "no field of this table"),
        ("PFC_WD", {"action": "shutdown"}, "action: 'shutdown'"),
        ("PFC_WD", {"detection_time": "150"}, "below POLL_INTERVAL"),
    ],
)
def test_what_yang_would_refuse_is_found(table, row, says):
    held = {"BUFFER_POOL": {"p": {}}, "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}}}
    found = list(violations({table: {"x": row}}, held))
    assert any(says in line for line in found), found


def test_what_sonic_cannot_do_is_refused():
    with pytest.raises(InputError, match="trust pcp"):
        MODULE.render(switch(replace(roce_port(), trust="pcp")))
    buffer = roce_port().ingress_buffers[0]
    every = tuple(replace(buffer, priority=number) for number in range(8))
    with pytest.raises(InputError, match="no priority group"):
        MODULE.render(switch(replace(roce_port(), ingress_buffers=every)))


@pytest.mark.parametrize(("alpha", "exponent"), [(1 / 256, -8), (0.125, -3), (1, 0), (128, 7)])
def test_alpha_is_a_power_of_two(alpha, exponent):
    assert dynamic_th(alpha) == exponent


def test_the_starter_site_is_within_what_sonic_can_do(tmp_path):
    path = tmp_path / "fabric.yaml"
    shape = ClosShape(hosts=4, leaves=2, spines=2)
    path.write_text(starter_yaml(shape, site="s", environment="twin", switch_os=["sonic"]))
    site = load_site(path)
    for name in site.topology.switches:
        intended = intended_qos(site, name)
        read = MODULE.read(target(), outputs(MODULE.render(intended)))
        assert {p.name: p for p in read.ports} == {p.name: p for p in normalise(intended).ports}
        speeds = {port.name: port.ingress_buffers[0].alpha for port in read.ports}
        assert speeds["Ethernet0"] == (1 / 128 if name.startswith("leaf") else 1 / 32)


def test_nothing_intended_changes_and_renders_nothing():
    assert plan(running(), switch()).empty
    assert MODULE.render(switch()) == ""


def test_the_safety_net_names_the_run():
    net = MODULE.safety_net("20261201-0413/cd34")
    assert net.prepare == ("sudo config checkpoint paisoar-20261201-0413-cd34",)
    assert net.save[0] == "sudo config save -y"
    assert json.loads(sample("config_db.json"))["bgpraw"]
