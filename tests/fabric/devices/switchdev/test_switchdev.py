from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from fabric.devices.base import ReadError
from fabric.devices.registry import SWITCHES, load
from fabric.devices.switchdev import BRIDGE, MODULE
from fabric.devices.switchdev.read import LINKS, LLDP, QDISCS, SPEEDS, filter_command
from fabric.devices.switchdev.red import Red, ewma_of
from fabric.errors import DeviceError, InputError
from fabric.qos import Ecn, IngressBuffer, Neighbor, Queue, Scheduler
from tests.fabric.devices.intents import roce_port, state, switches, target
from tests.fabric.devices.switchdev.kernel import Kernel

PORTS = ("swp1", "swp2s0")
FIXTURES = Path(__file__).parent / "fixtures"
BOTH = pytest.mark.parametrize("module", [MODULE, BRIDGE], ids=lambda module: module.os)


def answers(module, kernel, *ports):
    return kernel.answers(module.read_commands(target(module.os, *(ports or PORTS))))


def change(module, kernel, intended):
    return module.change(target(module.os, *PORTS), answers(module, kernel), intended)


def test_the_entry_points_find_the_modules():
    assert load(SWITCHES, "switchdev") is MODULE
    assert load(SWITCHES, "bridge") is BRIDGE
    assert {MODULE.netmiko_type, BRIDGE.netmiko_type} == {"linux"}


@BOTH
@settings(max_examples=25, deadline=None)
@given(intended=switches("any", PORTS))
def test_what_is_rendered_reads_back_as_the_same_on_every_port(module, intended):
    kernel = Kernel(*PORTS)
    kernel.run(module.render(intended).splitlines())
    held = module.read(target(module.os, *PORTS), answers(module, kernel))
    assert held.ports == module.normalise(intended).ports
    assert module.normalise(module.normalise(intended)) == module.normalise(intended)
    assert change(module, kernel, intended).empty


@BOTH
@pytest.mark.parametrize("shaped", [False, True])
@settings(max_examples=15, deadline=None)
@given(first=switches("any", PORTS), second=switches("any", PORTS))
def test_a_change_is_taken_back_exactly(module, shaped, first, second):
    kernel = Kernel(*PORTS, shaped=shaped)
    untouched = kernel.state()
    there = change(module, kernel, first)
    kernel.run(there.commands)
    reached = kernel.state()
    again = change(module, kernel, second)
    kernel.run(again.commands)
    held = module.read(target(module.os, *PORTS), answers(module, kernel))
    assert held.ports == module.normalise(second).ports
    kernel.run(again.rollback)
    assert kernel.state() == reached
    kernel.run(there.rollback)
    if shaped:  # the shaper's own queue was invisible before; it is an explicit one now
        rows = untouched["qdiscs"]
        fifo = {"kind": "bfifo", "handle": "8001:", "parent": "9:1", "options": {"limit": 1000000}}
        untouched["qdiscs"] = {port: sorted([*rows[port], fifo], key=repr) for port in PORTS}
    assert kernel.state() == untouched


def test_what_is_not_ours_stays():
    kernel = Kernel(*PORTS, shaped=True)
    kernel.run(["tc qdisc add dev swp1 clsact"])
    theirs = {"protocol": "all", "pref": 7, "kind": "matchall", "chain": 0, "options": {}}
    kernel.filters["swp1"][7] = theirs
    made = change(BRIDGE, kernel, state("bridge", roce_port("swp1")))
    kernel.run(made.commands)
    assert kernel.filters["swp1"][7] == theirs
    assert kernel.qdiscs["swp1"][0]["kind"] == "tbf"
    assert {row["kind"] for row in kernel.qdiscs["swp2s0"]} == {"tbf"}
    read = BRIDGE.read(target("bridge", *PORTS), answers(BRIDGE, kernel))
    assert "swp1: priority of DSCPs: filter 7 is of another kind" in read.unread
    kernel.run(made.rollback)
    assert kernel.filters["swp1"] == {7: theirs}
    assert any(row["kind"] == "clsact" for row in kernel.qdiscs["swp1"])


def test_somebody_elses_ets_and_red_are_put_back():
    kernel = Kernel("swp1")
    kernel.run(
        [
            "tc qdisc replace dev swp1 root handle 1: ets bands 3 strict 1 quanta 3000 2000 "
            "priomap 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 2",
            "tc qdisc replace dev swp1 parent 1:3 handle 30: red limit 90000 min 3000 max 9000 "
            "avpkt 1000 burst 3 probability 0.02 harddrop",
        ]
    )
    before = kernel.state()
    held = BRIDGE.read(target("bridge", "swp1"), answers(BRIDGE, kernel, "swp1")).ports[0]
    assert held.queue(7).scheduler == Scheduler("strict")
    assert held.queue(6).scheduler == Scheduler("ets", 60)
    assert held.queue(5) == Queue(5, Scheduler("ets", 40), None)
    assert held.priority_to_class == (5, 6, 7, 5, 5, 5, 5, 5)
    made = BRIDGE.change(
        target("bridge", "swp1"),
        answers(BRIDGE, kernel, "swp1"),
        state("bridge", roce_port("swp1")),
    )
    assert "tc qdisc change dev swp1 root handle 1: ets bands 8 strict 2" in made.commands[1]
    kernel.run(made.commands)
    kernel.run(made.rollback)
    assert kernel.state() == before


@pytest.mark.parametrize(
    "row",
    [
        {"kind": "htb", "handle": "1:", "root": True},
        {"kind": "fq_codel", "handle": "8001:", "root": True},
    ],
)
def test_queueing_that_could_not_be_put_back_is_refused(row):
    kernel = Kernel(*PORTS)
    kernel.qdiscs["swp1"] = [{**row, "options": {}}]
    with pytest.raises(DeviceError, match=f"swp1 is queued by {row['kind']}"):
        change(BRIDGE, kernel, state("bridge", roce_port("swp1")))


def test_a_leaf_that_could_not_be_put_back_is_refused_only_where_red_goes():
    kernel = Kernel(*PORTS)
    kernel.run(change(BRIDGE, kernel, state("bridge", roce_port("swp1"))).commands)
    kernel.qdiscs["swp1"].append({"kind": "tbf", "handle": "7:", "parent": "e75:8", "options": {}})
    assert change(BRIDGE, kernel, state("bridge", roce_port("swp1"))).empty
    kernel.qdiscs["swp1"][-1]["parent"] = "e75:5"
    with pytest.raises(DeviceError, match="swp1 is queued by tbf"):
        change(BRIDGE, kernel, state("bridge", roce_port("swp1")))


def test_a_port_that_is_not_there():
    kernel = Kernel(*PORTS)
    with pytest.raises(DeviceError, match="no interface swp9"):
        change(MODULE, kernel, state("switchdev", roce_port("swp9")))
    read = MODULE.read(target("switchdev", "swp9"), answers(MODULE, kernel))
    assert f"swp9: '{LINKS}' shows no such interface" in read.unread


def test_what_hardware_makes_of_an_intent():
    (held,) = MODULE.normalise(state("switchdev", roce_port("swp1"))).ports
    # 23,000 bytes of headroom in cells of every Spectrum; a share of 1/8.
    assert held.ingress_buffers == (IngressBuffer(3, 23_040, 0, 0, 0.125),)
    assert held.watchdog is None
    assert held.queue(7).scheduler == Scheduler("strict")
    (bridged,) = BRIDGE.normalise(state("bridge", roce_port("swp1"))).ports
    assert (bridged.pfc_priorities, bridged.ingress_buffers) == ((), ())


def test_hardware_commands():
    text = MODULE.render(state("switchdev", roce_port("swp1")))
    for line in (
        "ip link set dev swp1 mtu 9000",
        "tc qdisc replace dev swp1 root handle e75: ets bands 8 strict 2 "
        "quanta 256 256 51050 256 256 51050 priomap 7 6 5 4 3 2 1 0 7 7 7 7 7 7 7 7",
        "tc qdisc replace dev swp1 parent e75:5 handle e755: red limit 1600000 min 100000 "
        "max 400000 avpkt 1000 burst 100 probability 0.2 ecn",
        "dcb buffer set dev swp1 buffer-size 3:23040",
        "devlink sb tc bind set swp1 tc 3 type ingress pool 0 th 7",
        "dcb pfc set dev swp1 prio-pfc all:off 3:on",
    ):
        assert line in text
    assert text.index("ets bands") < text.index("dcb buffer") < text.index("dcb pfc")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"trust": "pcp"}, "classifies by DSCP"),
        ({"link_pause": True}, "pause the link"),
        (
            {"queues": (Queue(2, Scheduler("strict")), Queue(5, Scheduler("ets", 50)))},
            "strict queue before a shared one",
        ),
    ],
)
def test_what_linux_cannot_do_is_refused(changed, said):
    with pytest.raises(InputError, match=said):
        MODULE.render(state("switchdev", replace(roce_port("swp1"), **changed)))


def recorded(name: str) -> str:
    return (FIXTURES / name).read_text()


def test_recorded_output_of_a_bridge():
    """Iproute2 6.1 on Linux 6.1: tbf above ets above red, flower filters."""
    outputs = {
        LINKS: recorded("ip-link.json"),
        QDISCS: recorded("tc-qdisc.json"),
        SPEEDS: "/sys/class/net/swp1/speed:10000\n/sys/class/net/swp2/speed:-1\n",
        filter_command("swp1"): recorded("tc-filter-ingress.json"),
        filter_command("swp2"): "[]\n",
    }
    read = BRIDGE.read(target("bridge", "swp1", "swp2"), outputs)
    first, second = read.ports
    assert (first.mtu_bytes, second.mtu_bytes) == (4200, 4200)
    assert first.dscp_to_priority == tuple(3 * (d in (26, 27)) for d in range(64))
    assert first.queues == (Queue(0, Scheduler("ets", 100), None),)
    assert second.queue(3) == Queue(3, Scheduler("ets", 14), Ecn(30_000, 90_000, 20))
    assert second.queue(2).ecn == Ecn(3_000_000, 9_000_000, 100)
    assert second.queue(5) == Queue(5, Scheduler("ets", 29), None)
    assert second.queue(7).scheduler == Scheduler("strict")
    assert read.facts_of("swp1").speed_bps == 10**10
    assert read.facts_of("swp2").speed_bps is None
    assert read.facts_of("swp2").up is True
    assert read.facts_of("swp2").mac == "3e6941e7d20a"
    assert any("survive a reboot" in reason for reason in read.unread)


def test_recorded_counters():
    commands = BRIDGE.counter_commands(target("bridge", "swp2"))
    texts = ("ip-link-stats.json", "tc-qdisc-stats.json", "carrier-down.txt", "tc-class.txt")
    texts += ("tc-filter-ingress-stats.json", "boot-id.txt")
    outputs = dict(zip(commands, map(recorded, texts), strict=True))
    shown = BRIDGE.read_counters(target("bridge", "swp2"), outputs, 1.5)
    values = {(c.name, c.priority): c.value for c in shown.counters}
    assert values["rx_packets", None] == 6
    assert values["tx_bytes", None] == 1412
    assert values["rx_crc_errors", None] == 0
    assert values["link_down_events", None] == 1
    assert values["tx_queue_packets", 7] == 2
    assert values["tx_queue_bytes", 0] == 176
    assert values["ecn_marked_packets", 3] == 17
    assert values["queue_drops", 3] == 0
    # What filters put into a priority; IPv4 and IPv6 of a DSCP together.
    assert (values["rx_prio_packets", 3], values["rx_prio_packets", 6]) == (34181, 0)
    assert not any("does not show" in reason for reason in shown.missing)
    assert any(reason.startswith("watchdog_storms: ") for reason in shown.missing)


def test_hardware_counters():
    """Names of mlxsw's spectrum_ethtool.c; numbers of our own."""
    text = (
        "NIC statistics:\n     rx_frames_prio_3: 12\n     rx_pause_prio_3: 7\n"
        "     tx_pause_duration_prio_3: 90\n     tx_pause_prio_3: 8\n     ecn_marked: 4\n"
    )
    outputs = {"ethtool -S swp1": text}
    shown = MODULE.read_counters(target("switchdev", "swp1"), outputs, 1.5)
    assert {(c.name, c.priority): c.value for c in shown.counters} == {
        ("rx_prio_packets", 3): 12,
        ("rx_pause_frames", 3): 7,
        ("tx_pause_frames", 3): 8,
        ("tx_pause_us", 3): 90,
    }
    assert "rx_bytes: 'ip -j -s -s link show' does not show it for swp1" in shown.missing


def test_banners_and_cut_off_answers():
    links = "Last login: Tue\nroot@sw1:~# ip -j -d link show\n" + json.dumps(
        [{"ifname": "swp1", "mtu": 1500}, {}]
    )
    read = BRIDGE.read(target("bridge", "swp1"), {LINKS: links, QDISCS: "[]\nroot@sw1:~# "})
    assert read.port("swp1").mtu_bytes == 1500
    assert any("swp1: priority of DSCPs" in reason for reason in read.unread)
    with pytest.raises(ReadError, match="no complete JSON"):
        BRIDGE.read(target("bridge", "swp1"), {LINKS: links[:-9], QDISCS: "[]"})
    with pytest.raises(ReadError, match="was not answered"):
        BRIDGE.read(target("bridge", "swp1"), {LINKS: links})


@pytest.mark.parametrize(
    ("shown", "priority"),
    [
        ({"ip_tos": 104, "ip_tos_mask": "fc"}, 3),
        ({"ip_tos": "0x68/0xfc"}, 3),
        ({"ip_tos": "0x68"}, 0),
        ({"ip_tos": 104, "ip_tos_mask": "fc", "dst_port": 4791}, 0),
    ],
)
def test_forms_of_a_filter(shown, priority):
    kernel = Kernel("swp1")
    action = {"kind": "skbedit", "priority": ":3"}
    kernel.filters["swp1"][5] = {
        "protocol": "ip",
        "pref": 5,
        "kind": "flower",
        "options": {"keys": {"eth_type": "ipv4", **shown}, "actions": [action]},
    }
    read = BRIDGE.read(target("bridge", "swp1"), answers(BRIDGE, kernel, "swp1"))
    assert read.ports[0].dscp_to_priority[26] == priority
    assert any("filter 5" in reason for reason in read.unread) == (priority == 0)


def test_a_u32_filter_on_the_tos_byte():
    """As recorded: value and mask are hexadecimal words at offset 0."""
    kernel = Kernel("swp1")
    match = {"value": "680000", "mask": "fc0000", "offmask": "", "off": 0}
    action = {"order": 1, "kind": "skbedit", "priority": ":3"}
    kernel.filters["swp1"][10] = {
        "protocol": "ip",
        "pref": 10,
        "kind": "u32",
        "options": {"fh": "800::801", "match": match, "actions": [action]},
    }
    read = BRIDGE.read(target("bridge", "swp1"), answers(BRIDGE, kernel, "swp1"))
    assert read.ports[0].dscp_to_priority[26] == 3


def test_neighbours_of_one_and_of_several_ports():
    one = {"swp1": {"chassis": {"leaf-2": {}}, "port": {"id": {"value": "swp7"}}}}
    other = {"swp2": {"chassis": {"id": {}}, "port": {"id": {"value": "x"}}}}
    for listed in (one, [one, other]):
        kernel = Kernel(*PORTS)
        outputs = answers(BRIDGE, kernel) | {LLDP: json.dumps({"lldp": {"interface": listed}})}
        read = BRIDGE.read(target("bridge", *PORTS), outputs)
        assert read.neighbors == (Neighbor("swp1", "leaf-2", "swp7"),)


@pytest.mark.parametrize(
    "answer",
    [
        "Error: Specified qdisc kind is unknown.",
        "RTNETLINK answers: Operation not permitted",
        "Attribute read: Operation not supported",
        'Cannot find device "swp9"',
        'Device "swp7" does not exist.',
        'What is "bogus"?\nUsage: ... flower [ MATCH-LIST ]',
        'Command "foo" is unknown, try "tc qdisc help".',
        "Not enough total bands to cover all the strict bands and quanta",
        "RED: failed to calculate EWMA constant.",
        "-bash: dcb: command not found",
        "Failed to connect to devlink Netlink",
    ],
)
def test_refusals(answer):
    assert MODULE.is_error(answer)


@pytest.mark.parametrize("answer", ["", "[]", "RED: set bandwidth to 10Mbit", '{"tc_bind":{}}'])
def test_what_is_no_refusal(answer):
    assert not MODULE.is_error(answer)


def test_the_weight_of_a_foreign_red_is_asked_for_again():
    red = Red("1", 10**6, 30_000, 90_000, 10, ("ecn",), ewma=5)
    words = red.arguments.split()
    burst = int(words[words.index("burst") + 1])
    assert ewma_of(30_000, burst, 1000) == 5
    assert ewma_of(30_000, 29, 1000) is None
