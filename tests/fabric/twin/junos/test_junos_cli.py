"""What the emulated Junos takes, refuses and prints. Sources: the modules under test."""

from __future__ import annotations

import time

import pytest

from fabric.counters import Counter
from fabric.devices.junos import MODULE
from fabric.site import Site
from fabric.twin.junos import EmulatedSwitch
from fabric.twin.junos.switch import KEPT
from tests.fabric.devices.intents import target
from tests.fabric.twin.junos.conftest import Console

COS = "class-of-service"


def test_modes_and_prompts(console: Console):
    assert console.cli.prompt == "{master:0}\nadmin@leaf1> "
    assert console.type("configure") == "Entering configuration mode\n"
    assert console.cli.prompt == "[edit]\nadmin@leaf1# "
    assert console.refused("show version").lstrip() == "^\nsyntax error."
    assert console.type("exit") == "Exiting configuration mode\n"
    assert console.type("set cli screen-width 511") == "Screen width set to 511\n"
    assert console.refused("frobnicate").lstrip() == "^\nunknown command."
    console.type("exit")
    assert console.cli.closed


@pytest.mark.parametrize(
    "line",
    [
        "set class-of-service forwarding-classes class A explicit-congestion-notification",
        "set class-of-service forwarding-classes class A queue-num 12",
        "set class-of-service classifiers dscp A forwarding-class B code-points 011010",
        f"set {COS} classifiers dscp A forwarding-class B loss-priority low code-points 64",
        "set class-of-service congestion-notification-profile A input dscp code-point 011010",
        "set class-of-service congestion-notification-profile A input cable-length",
        "set class-of-service drop-profiles A interpolate fill-level 101",
        "set class-of-service drop-profiles A interpolate fill-level [ 1 2",
        "set class-of-service schedulers A transmit-rate 10",
        "set class-of-service shared-buffer ingress buffer-partition lossless dynamic-threshold 11",
        "set interfaces et-0/0/0 mtu 9217",
        "set interfaces Ethernet1 mtu 9000",
        "set priority-flow-control on",
        "delete class-of-service profiles A",
    ],
)
def test_what_junos_does_not_have_is_refused(console: Console, line: str):
    before = console.running()
    console.type("configure")
    assert MODULE.is_error(console.refused(line))
    assert console.switch.candidate.text() == before


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            [f"set {COS} interfaces et-0/0/0 scheduler-map A"],
            f"[edit {COS} interfaces et-0/0/0]\n  'scheduler-map A'\n    A is not defined",
        ),
        ([f"set {COS} interfaces et-0/0/0 unit 0 classifiers dscp A"], "A is not defined"),
        ([f"set {COS} interfaces et-0/0/0 congestion-notification-profile A"], "A is not defined"),
        ([f"set {COS} scheduler-maps A forwarding-class best-effort scheduler B"], "scheduler B"),
        (
            [
                f"set {COS} schedulers A drop-profile-map loss-priority any protocol any "
                "drop-profile B"
            ],
            "drop-profile B is not defined",
        ),
        (
            [
                f"set {COS} classifiers dscp A forwarding-class GOLD loss-priority low "
                "code-points ef"
            ],
            "forwarding-class is not defined",
        ),
        ([f"set {COS} forwarding-classes class A"], "Missing mandatory statement: 'queue-num'"),
        (
            [
                f"set {COS} forwarding-classes class A queue-num 3 no-loss",
                f"set {COS} forwarding-classes class B queue-num 3",
            ],
            "must all be lossless or lossy",
        ),
        (
            [f"set {COS} forwarding-classes class A{n} queue-num {n} no-loss" for n in range(7)],
            "more than 6 lossless queues",
        ),
        (
            [
                f"set {COS} schedulers A transmit-rate percent 60",
                f"set {COS} scheduler-maps M forwarding-class best-effort scheduler A",
                f"set {COS} scheduler-maps M forwarding-class no-loss scheduler A",
            ],
            "exceeds 100 percent (120)",
        ),
        (
            [
                f"set {COS} congestion-notification-profile A input dscp code-point ef pfc",
                f"set {COS} congestion-notification-profile A input ieee-802.1 code-point 011 pfc",
            ],
            "cannot be configured together",
        ),
    ],
)
def test_what_a_commit_refuses(console: Console, lines: list[str], says: str):
    before = console.running()
    console.type("configure", *lines)
    for commit in ("commit check", "commit", "commit confirmed 5"):
        answer = console.refused(commit)
        assert says in answer
        assert answer.endswith("error: configuration check-out failed")
        assert MODULE.is_error(answer)
    assert console.running() == before


def test_statements_replace_join_and_vanish(console: Console):
    def held() -> list[str]:
        lines = console.type("show | display set").splitlines()
        return [line.removeprefix(f"set {COS} ") for line in lines if COS in line]

    drop = f"{COS} drop-profiles D"
    console.type("configure", f"set {drop} interpolate fill-level [ 10 20 ]")
    console.type(f"set {drop} interpolate fill-level 15")
    assert held() == [f"drop-profiles D interpolate fill-level {n}" for n in (10, 15, 20)]
    console.type(f"delete {drop} interpolate fill-level 10", f"delete {drop} interpolate")
    assert held() == ["drop-profiles D"]
    assert "statement not found" in console.type(f"delete {drop} interpolate")
    console.type(f"delete {drop}")
    console.type(f"set {COS} schedulers S transmit-rate percent 10")
    console.type(f"set {COS} schedulers S transmit-rate percent 20")
    assert held() == ["schedulers S transmit-rate percent 20"]
    console.type(f"set {COS} forwarding-classes class A queue-num 3 no-loss pfc-priority 3")
    console.type(f"set {COS} forwarding-classes class A queue-num 4", f"delete {COS} schedulers")
    assert held() == ["forwarding-classes class A queue-num 4"]
    console.type('set interfaces et-0/0/0 description "a b"', "delete interfaces et-0/0/1")
    text = console.type("show | display set")
    assert 'set interfaces et-0/0/0 description "a b"\n' in text
    assert "et-0/0/1 unit" not in text


def test_a_candidate_takes_effect_by_a_commit_and_can_be_thrown_away(console: Console):
    before = console.running()
    console.type("configure", "set interfaces et-0/0/0 mtu 9000")
    assert console.running() == before
    console.type("rollback 0", "commit")
    assert console.running() == before
    console.type("set interfaces et-0/0/0 mtu 9000", 'commit comment "for tests"')
    assert "set interfaces et-0/0/0 mtu 9000\n" in console.running()
    console.back()
    assert "    for tests\n" in console.type("show system commit")
    console.type("configure", "rollback 2", "commit and-quit")
    assert console.running() == before
    assert console.cli.prompt.endswith("> ")
    console.type("configure")
    assert "Could not open" in console.refused("rollback 40")


def test_only_so_many_configurations_are_kept(console: Console, leaf: EmulatedSwitch):
    console.type("configure")
    for number in range(KEPT + 5):
        console.type(f"set interfaces et-0/0/0 mtu {2000 + number}", "commit")
    assert len(leaf.checkpoints) == KEPT - 1
    console.type(f"rollback {KEPT - 1}")
    assert console.switch.candidate.value("interfaces", "et-0/0/0", "mtu") == "2005"


def test_an_exclusive_session_keeps_others_out(console: Console, leaf: EmulatedSwitch):
    other = Console(leaf)
    console.type("configure exclusive", "set interfaces et-0/0/0 mtu 9000")
    assert "configuration database locked" in other.refused("configure")
    console.back()
    assert leaf.candidate.text() == leaf.running_text()
    other.type("configure", "set interfaces et-0/0/0 mtu 9000")
    assert "configuration database modified" in console.refused("configure exclusive")
    other.type("rollback 0")
    console.type("configure exclusive")
    assert "locked" in other.refused("set interfaces et-0/0/0 mtu 9000")


def test_an_unconfirmed_commit_comes_back_by_itself(
    console: Console, leaf: EmulatedSwitch, monkeypatch
):
    before, now = console.running(), time.time()
    where = target("junos")
    console.type("configure", "set interfaces et-0/0/0 mtu 9000", "commit confirmed 10")
    console.back()
    assert "rollback in 10mins" in console.type("show system commit")
    assert console.running() != before
    assert MODULE.read(where, console.outputs(MODULE.read_commands(where))).saved is False
    monkeypatch.setattr(time, "time", lambda: now + 601)
    console.type("show version")
    assert console.running() == before
    assert "rollback in" not in console.type("show system commit")
    assert MODULE.read(where, console.outputs(MODULE.read_commands(where))).saved is True


def test_a_commit_is_confirmed_by_another(console: Console, leaf: EmulatedSwitch, monkeypatch):
    console.type("configure", "set interfaces et-0/0/0 mtu 9000", "commit confirmed 10")
    held = console.running()
    console.type("commit")
    monkeypatch.setattr(time, "time", lambda: 10**10)
    console.back()
    console.type("show version")
    assert console.running() == held


def test_a_restart_keeps_configuration_and_pending_commits(
    console: Console, site: Site, leaf: EmulatedSwitch, monkeypatch
):
    before = console.running()
    console.type("configure", "set interfaces et-0/0/0 mtu 9000", "commit confirmed 10")
    again = Console(EmulatedSwitch("leaf1", leaf.folder, site))
    assert again.running() == console.running() != before
    monkeypatch.setattr(time, "time", lambda: 10**10)
    again.type("show version")
    assert again.running() == before


def test_neighbours_and_links_follow_the_other_end(
    console: Console, switches: dict[str, EmulatedSwitch]
):
    assert "spine1 " in console.type("show lldp neighbors")
    spine = Console(switches["spine1"])
    spine.type("configure", "set interfaces et-0/0/0 disable", "commit")
    assert "spine1 " not in console.type("show lldp neighbors")
    assert "Physical link is Down" in console.type("show interfaces et-0/0/48")
    spine.type("rollback 1", "delete protocols lldp", "commit")
    assert "Physical link is Up" in console.type("show interfaces et-0/0/48")
    assert "spine1 " not in console.type("show lldp neighbors")


def test_counters_move_what_is_shown(console: Console, leaf: EmulatedSwitch):
    leaf.add_counters(
        [
            Counter("leaf1", "et-0/0/0", "rx_packets", 7),
            Counter("leaf1", "et-0/0/0", "rx_discards", 6),
            Counter("leaf1", "et-0/0/0", "tx_pause_frames", 5, 3),
            Counter("leaf1", "et-0/0/0", "ecn_marked_packets", 4, 3),
            Counter("leaf1", "et-0/0/0", "queue_drops", 2, 0),
            Counter("leaf1", "et-0/0/0", "link_down_events", 3),
        ]
    )
    where = target("junos", "et-0/0/0")
    shown = MODULE.read_counters(where, console.outputs(MODULE.counter_commands(where)), 0.0)
    found = {
        (c.name, c.priority): c.value for c in shown.counters if c.port == "et-0/0/0" and c.value
    }
    assert found == {
        ("rx_packets", None): 7,
        ("rx_discards", None): 6,
        ("tx_pause_frames", 3): 5,
        ("ecn_marked_packets", 3): 4,
        ("queue_drops", 0): 2,
        ("link_down_events", None): 3,
    }
    assert not any("does not show it" in reason for reason in shown.missing)
    console.type("clear interfaces statistics all")
    assert leaf.counter_sum("et-0/0/0", "rx_packets") == 0


def test_filters_and_forms(console: Console):
    lines = console.type("show configuration | display set | match host-name")
    assert lines == "set system host-name leaf1\n"
    assert "display set only" in console.refused("show configuration")
    assert "leaf1" in console.type("show version | match Hostname")
    assert "et-0/0/0.0" in console.type("show interfaces terse et-0/0/0")
    assert "configure" in console.cli.help("conf")
