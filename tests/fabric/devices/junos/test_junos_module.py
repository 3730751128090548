from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from fabric.devices.base import ReadError, TargetPort
from fabric.devices.junos import MODULE
from fabric.devices.junos.fit import queue_bytes
from fabric.devices.junos.shown import parse_serial, parse_version
from fabric.devices.registry import SWITCHES, load
from fabric.errors import DeviceError, InputError
from fabric.qos import Ecn, IngressBuffer, Neighbor, PortFacts, Scheduler, Watchdog
from fabric.unread import Fact, unseen
from tests.fabric.devices.intents import reached, roce_port, state, switches, target
from tests.fabric.devices.junos.listings import CONFIGURATION, PENDING, outputs

PORTS = ("et-0/0/0", "et-0/0/48")
SHOW = "show configuration | display set"
EMPTY = "set version 22.4R3\n"
WHERE = target("junos", *PORTS)


def read(**changed: str | None):
    return MODULE.read(target("junos", "et-0/0/0"), outputs(**changed))


def change_of(configuration: str, *ports):
    intended = state("junos", *(ports or (roce_port("et-0/0/0"),)))
    return MODULE.change(WHERE, {SHOW: configuration}, intended)


def test_the_entry_point_finds_the_module():
    assert load(SWITCHES, "junos") is MODULE
    assert (MODULE.os, MODULE.netmiko_type) == ("junos", "juniper_junos")


@settings(max_examples=40, deadline=None)
@given(switches("junos", PORTS))
def test_what_is_configured_reads_back_as_the_same_on_every_port(intended):
    assume(reached(intended))
    change = MODULE.change(WHERE, {SHOW: EMPTY}, intended)
    text = EMPTY + "\n".join(change.commands)
    held = {port.name: port for port in MODULE.read(WHERE, {SHOW: text}).ports}
    fitted = MODULE.fit(WHERE, intended)
    assert [held[port.name] for port in fitted.ports] == list(fitted.ports)
    assert MODULE.fit(WHERE, fitted) == fitted
    assert MODULE.change(WHERE, {SHOW: text}, intended).empty


def test_the_statements_of_an_intent():
    change = change_of(EMPTY, roce_port("et-0/0/0", kmin=1_000_000))
    lines = "\n".join(change.commands)
    for line in (
        "forwarding-classes class PAISOAR-Q3 queue-num 3 no-loss pfc-priority 3",
        "forwarding-classes class PAISOAR-Q6 queue-num 6\n",
        "buffer-partition lossless dynamic-threshold 4",
        "set interfaces et-0/0/0 mtu 9014",
        "interpolate fill-level 8\n",
        "interpolate fill-level 32\n",
        "interpolate drop-probability 20",
        "priority strict-high",
        "explicit-congestion-notification",
        "input cable-length 3",
        "input dscp code-point 011010 pfc mru ",
        "output ieee-802.1 code-point 011 flow-control-queue 3",
        "pfc-watchdog detection 2",
        "pfc-watchdog recovery 400",
    ):
        assert line in lines
    assert "delete interfaces et-0/0/0" in change.rollback
    assert max(map(len, change.commands)) < 300


@pytest.mark.parametrize(
    ("asked", "number"), [(None, 4), (0.5, 6), (0.3, 5), (100.0, 10), (0.001, 0), (1.0, 7)]
)
def test_the_threshold_is_the_nearest_share_that_junos_has(asked, number):
    (buffer,) = roce_port("et-0/0/0").ingress_buffers
    port = replace(roce_port("et-0/0/0"), ingress_buffers=(replace(buffer, alpha=asked),))
    line = f"lossless dynamic-threshold {number}"
    assert any(command.endswith(line) for command in change_of(EMPTY, port).commands)
    assert "dynamic-threshold" not in MODULE.render(state("junos", port))


def test_what_junos_makes_of_an_intent():
    port = replace(roce_port("et-0/0/0"), mtu_bytes=9216, watchdog=Watchdog(205, None, "shutdown"))
    (held,) = MODULE.fit(WHERE, state("junos", port)).ports
    assert (held.mtu_bytes, held.class_mtu_bytes) == (9202, (9202,) * 8)
    assert held.queue(7).scheduler == Scheduler("ets", 0)
    assert held.queue(3).ecn == Ecn(124_682, 374_046, 20)
    assert held.watchdog == Watchdog(300, 200, "drop")
    (buffer,) = held.ingress_buffers
    assert (buffer.priority, buffer.alpha) == (3, 0.125)
    (bare,) = MODULE.normalise(state("junos", port)).ports
    assert bare.ingress_buffers == ()
    (lossy,) = MODULE.fit(WHERE, state("junos", replace(port, pfc_priorities=()))).ports
    assert lossy.watchdog is None


def test_thresholds_depend_on_the_model():
    assert queue_bytes("QFX5120-48Y") == queue_bytes("") == 13698 * 1024 * 8 // 9
    assert queue_bytes("qfx5220-32cd") < queue_bytes("") < queue_bytes("QFX5130-32CD")


@pytest.mark.parametrize(("cable_m", "size"), [(3.0, 23_000), (100.0, 22_999), (3000.0, 100_322)])
def test_headroom_is_what_is_asked_for_or_what_the_cable_needs(cable_m, size):
    where = replace(WHERE, ports=(TargetPort("et-0/0/0", 25 * 10**9, cable_m),))
    (port,) = MODULE.fit(where, state("junos", roce_port("et-0/0/0"))).ports
    assert port.ingress_buffers == (IngressBuffer(3, size, 0, 0, 0.125),)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"trust": "pcp"}, "trust pcp"),
        ({"priority_to_class": (0, 1, 2, 4, 3, 5, 6, 7)}, "leaves by another queue"),
        ({"link_pause": True}, "pause the link and single priorities"),
        ({"pfc_priorities": (4,)}, "pause a priority that no DSCP is put into"),
    ],
)
def test_what_junos_cannot_express_is_an_error(change, says):
    with pytest.raises(InputError, match=says):
        MODULE.render(state("junos", replace(roce_port("et-0/0/0"), **change)))


def test_ports_that_pause_otherwise_are_an_error():
    other = replace(roce_port("et-0/0/1"), pfc_priorities=(6,))
    with pytest.raises(InputError, match="pause other priorities on other ports"):
        MODULE.render(state("junos", roce_port("et-0/0/0"), other))


def test_an_object_that_others_use_stays():
    first = change_of(EMPTY)
    held = "\n".join(first.commands)
    scheduling = next(line for line in first.commands if "et-0/0/0 scheduler-map" in line)
    other = scheduling.replace("et-0/0/0", "et-0/0/9")
    lossy = replace(roce_port("et-0/0/0"), queues=())
    name = scheduling.split()[-1]
    assert f"delete class-of-service scheduler-maps {name}" in change_of(held, lossy).commands
    kept = change_of(f"{held}\n{other}", lossy).commands
    assert not any(name in line for line in kept if "interfaces" not in line)


@pytest.mark.parametrize(
    "path",
    [
        "class-of-service",
        "class-of-service interfaces et-0/0/0",
        "class-of-service interfaces et-0/0/0 unit 0",
        "interfaces et-0/0/0 mtu",
    ],
)
def test_what_is_deactivated_is_not_built_upon(path):
    text = f"{EMPTY}set {path} 1500\ndeactivate {path}\n"
    with pytest.raises(DeviceError, match=f"{path} is deactivated"):
        change_of(text)


def test_other_deactivated_statements_do_not_matter():
    text = f"{EMPTY}set snmp location x\ndeactivate snmp location\n"
    assert change_of(text) == change_of(EMPTY)


def test_every_physical_port_is_read():
    names = ["et-0/0/0", "et-0/0/1", "et-0/0/4:1", "et-0/0/4:2", "et-0/0/5"]
    assert [port.name for port in read().ports] == names
    configured = [port.name for port in read(interfaces=None).ports]
    assert configured == [*names[:-1], "xe-0/0/9"]


def test_a_port_is_composed_from_what_is_attached_to_it():
    port = read().port("et-0/0/0")
    assert (port.mtu_bytes, port.trust, port.link_pause) == (9000, "dscp", False)
    assert [port.priority_of_dscp(d) for d in (0, 10, 26, 30, 48)] == [0, 0, 3, 3, 6]
    assert port.priority_to_class == (0, 1, 2, 4, 4, 5, 6, 7)
    assert port.pfc_priorities == (3,)
    assert port.queue(4).scheduler == Scheduler("ets", 60)
    assert port.queue(4).ecn == Ecn(1_246_822, 6_234_112, 80)
    assert port.queue(6).scheduler == Scheduler("strict")
    # A drop profile without explicit-congestion-notification drops.
    assert port.queue(0).ecn is None
    assert port.watchdog == Watchdog(300, 200, "forward")
    assert port.ingress_buffers == (IngressBuffer(3, 25_622, 0, 0, 0.5),)


def test_other_forms_are_read_or_named():
    held = read()
    by_pcp = held.port("et-0/0/1")
    assert (by_pcp.trust, by_pcp.mtu_bytes, by_pcp.pfc_priorities) == ("pcp", 1500, (5,))
    assert held.port("et-0/0/4:1").link_pause
    assert held.port("et-0/0/4:2").link_pause
    inactive = held.port("et-0/0/5")
    assert (inactive.mtu_bytes, inactive.trust) == (1500, "none")
    assert held.unread == (
        "et-0/0/0: traffic class of priorities: forwarding class OTHER has no queue",
        "et-0/0/1: ECN of queue 4: scheduler STEPS has drop profile STEPS",
        "et-0/0/4:1: priority of DSCPs: classifier MISSING is not shown",
        "et-0/0/4:1: scheduling of all queues: it has forwarding-class-sets",
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "apply-groups G\nset groups G class-of-service schedulers S priority low",
            "scheduling of all queues: group G has class-of-service",
        ),
        (
            "interfaces et-0/0/0 apply-groups G\nset groups G interfaces <et-*> mtu 9216",
            "MTU: group G has mtu",
        ),
        (
            "apply-groups G\nset groups G interfaces <*> ether-options flow-control",
            "link pause: group G has flow-control",
        ),
        (
            "apply-groups G\nset groups G class-of-service schedulers S shaping-rate 1g",
            "rate limit of all queues: group G has class-of-service",
        ),
        ("class-of-service shared-buffer egress buffer-partition lossless percent 5", "ECN of all"),
        ("class-of-service classifiers dscp GPU import default", "imports another one"),
        (
            "class-of-service classifiers dscp GPU forwarding-class CNP loss-priority low "
            "code-points mine",
            "code point mine",
        ),
    ],
)
def test_what_cannot_be_followed_is_said(line, says):
    assert any(says in fact for fact in read(configuration=f"{CONFIGURATION}set {line}\n").unread)


def test_groups_that_nothing_applies_are_of_no_account():
    line = "set groups G class-of-service schedulers S priority low\n"
    assert read(configuration=CONFIGURATION + line).unread == read().unread


@pytest.mark.parametrize(
    "member",
    [
        "member et-0/0/0",
        'member "et-0/0/[0-3]"',
        "member et-*",
        "member-range et-0/0/0 to et-0/0/9",
    ],
)
def test_a_member_of_an_interface_range_has_what_the_range_says(member):
    """Juniper, Interfaces User Guide, "Interface Ranges"."""
    ranged = EMPTY + (
        f"set interfaces interface-range GPU {member}\n"
        "set interfaces interface-range GPU mtu 9216\n"
        "set interfaces interface-range GPU ether-options flow-control\n"
        "set interfaces et-0/0/0 unit 0 family inet address 10.0.0.0/31\n"
        "set interfaces xe-0/0/1 unit 0 family inet address 10.0.0.2/31\n"
    )
    inside, outside = MODULE.read(WHERE, {SHOW: ranged}).ports
    assert (inside.mtu_bytes, inside.link_pause) == (9202, True)
    assert (outside.mtu_bytes, outside.link_pause) == (1500, False)
    own = ranged + "set interfaces et-0/0/0 mtu 4000\n"
    assert MODULE.read(WHERE, {SHOW: own}).ports[0].mtu_bytes == 3986


def test_a_number_that_is_none_is_no_default():
    with pytest.raises(ReadError, match="mtu is 'many', no number"):
        MODULE.read(WHERE, {SHOW: EMPTY + "set interfaces et-0/0/0 mtu many\n"})


def test_without_forwarding_classes_there_are_junos_own():
    port = MODULE.read(WHERE, {SHOW: EMPTY + "set interfaces et-0/0/0 mtu 9216\n"}).ports[0]
    assert (port.trust, port.mtu_bytes, port.pfc_priorities) == ("none", 9202, ())
    assert set(port.dscp_to_priority) == {0}


def test_identity_neighbours_links_and_what_is_confirmed():
    held = read()
    assert (held.model, held.firmware, held.serial) == (
        "QFX5120-48Y-8C",
        "21.4R3-S4.9",
        "XH3120370123",
    )
    assert held.neighbors == (
        Neighbor("et-0/0/0", "gpu-17", "ens1f0np0"),
        Neighbor("et-0/0/48", "spine-1.example", "et-0/0/3"),
        Neighbor("xe-0/0/9", "leaf-9", "to leaf 9"),
    )
    assert held.facts[:3] == (
        PortFacts(
            "et-0/0/0", up=True, admin_up=True, speed_bps=25 * 10**9, fec="rs", mac="80acac010203"
        ),
        PortFacts("et-0/0/1", up=False, admin_up=False, fec="none"),
        PortFacts("et-0/0/4:1", up=True, admin_up=True, speed_bps=25 * 10**9, fec="fc"),
    )
    assert held.saved is True
    assert read(commit=PENDING).saved is False
    assert read(commit=None).saved is None
    noisy = "{master:0}\n## Last commit: 2026-11-30\n" + CONFIGURATION
    assert read(configuration=noisy).config_sha256 == held.config_sha256


def test_other_layouts_of_identity():
    old = "Hostname: a\nModel: qfx5100-48s-6q\nJUNOS Base OS Software Suite [14.1X53-D40.8]\n"
    assert parse_version(old).model == "QFX5100-48S-6Q"
    assert parse_version(old).firmware == "14.1X53-D40.8"
    assert parse_version("") == parse_version("nothing")
    assert parse_serial("Chassis          REV 01   650-1   VF3715100123   QFX5100") == (
        "VF3715100123"
    )


def test_what_is_missing_or_nonsense_is_said_and_without_configuration_is_an_error():
    held = read(version=None, hardware=None, lldp=None)
    assert (held.model, held.serial, held.neighbors) == ("", "", None)
    assert [fact.partition(":")[0] for fact in held.unread[:4]] == [
        "model",
        "firmware",
        "serial",
        "neighbours",
    ]
    assert read(lldp="{master:0}\n").neighbors == ()
    odd = read(lldp="odd")
    assert odd.neighbors is None
    assert any("no table in 'odd'" in fact for fact in odd.unread)
    with pytest.raises(ReadError, match="showed no configuration"):
        read(configuration="")


@pytest.mark.parametrize(
    "answer",
    [
        "                   ^\nsyntax error.\n",
        "  ^\nunknown command.\n",
        "      ^\nmissing argument.\n",
        "error: configuration check-out failed\n",
        "[edit class-of-service]\n  'schedulers A'\n    bad\nerror: commit failed\n",
        "error: configuration database locked by:\n  root terminal p0 (pid 1)\n",
        "      ^\n'inter' is ambiguous.\n",
        "Value 99999 is not within range (256..9216)\n",
    ],
)
def test_refusals_are_seen(answer):
    assert MODULE.is_error(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "configuration check succeeds\ncommit complete\n",
        "commit confirmed will be automatically rolled back in 10 minutes unless confirmed\n",
        "warning: statement not found\n",
        "warning: uncommitted changes will be discarded on exit\nEntering configuration mode\n",
        "load complete\n",
        CONFIGURATION,
        'set system login message "\nerror: you should not be here"\n',
    ],
)
def test_other_answers_are_no_refusals(answer):
    assert not MODULE.is_error(answer)


def test_the_safety_net_is_a_commit_that_must_be_confirmed():
    net = MODULE.safety_net("2025-03-04 a/b")
    comment = 'comment "PAISoar 2025-03-04-a-b"'
    assert net.edit.enter == "configure exclusive"
    assert net.edit.apply == (f"commit confirmed 10 {comment}",)
    assert net.edit.discard == ("rollback 0",)
    assert net.undo == ()
    assert net.undo_edit.apply == (f"commit {comment}",)
    assert net.confirm == ("configure exclusive", f"commit {comment}", "exit configuration-mode")


def test_commands_only_show():
    for command in (*MODULE.read_commands(WHERE), *MODULE.counter_commands(WHERE)):
        assert command.startswith("show ")
    assert MODULE.capabilities(WHERE).max_lossless_classes == 6


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("transmit-rate 10g", Fact.SCHEDULING),
        ("shaping-rate 5g", Fact.RATE),
        ("transmit-rate percent 50 exact", Fact.RATE),
    ],
)
def test_rates_that_are_no_shares_are_said(line, fact):
    head = "set class-of-service"
    text = EMPTY + (
        f"{head} interfaces et-0/0/0 scheduler-map M\n"
        f"{head} scheduler-maps M forwarding-class best-effort scheduler S\n"
        f"{head} schedulers S {line}\n"
    )
    state = MODULE.read(WHERE, {SHOW: text})
    assert line in unseen(state.unread, "et-0/0/0", fact)
    plain = MODULE.read(WHERE, {SHOW: text.replace(line, "transmit-rate percent 50")})
    assert not unseen(plain.unread, "et-0/0/0", fact)


def test_a_shaper_of_a_port_is_said():
    text = EMPTY + "set class-of-service interfaces et-0/0/0 shaping-rate 10g\n"
    assert unseen(MODULE.read(WHERE, {SHOW: text}).unread, "et-0/0/0", Fact.RATE)
