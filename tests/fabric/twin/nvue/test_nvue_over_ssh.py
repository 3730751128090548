"""Changing a Cumulus switch over real SSH: it ends as intended or as it was."""

from __future__ import annotations

import pytest

from fabric.provisioning.plan import mismatches
from fabric.twin.nvue import EmulatedSwitch
from fabric.twin.shell.session import Answer
from tests.fabric.twin.shell.over_ssh import meddle, shell_site


@pytest.fixture
def net(tmp_path, monkeypatch):
    with shell_site(tmp_path, monkeypatch, "nvue", EmulatedSwitch) as net:
        yield net


def test_it_does_what_is_intended_saves_it_and_is_then_left_alone(net):
    order, leaf = net.order(), net.switches["leaf1"]
    assert str(net.apply(order, check=True)) == "would-change"
    assert str(net.apply(order)) == "done"
    state = net.read().states["leaf1"]
    assert mismatches(state, order.intended) == []
    assert state.saved
    assert leaf.awaiting is None
    assert str(net.apply(order)) == "unchanged"
    assert net.order().change.empty


def test_a_refused_line_leaves_nothing_applied_and_nothing_pending(net, monkeypatch):
    order, leaf = net.order(), net.switches["leaf1"]
    before = leaf.running_text()

    def older(line, execute):
        if "set" in line and "pfc-watchdog" in line:
            return Answer("Invalid Command: set qos pfc-watchdog\n", 1)
        return execute(line)

    meddle(monkeypatch, older)
    outcome = net.apply(order)
    assert outcome.state == "rolled-back"
    assert "Invalid Command" in outcome.detail
    assert leaf.running_text() == before
    assert leaf.pending.tree == leaf.config.tree


def test_a_configuration_that_is_not_applied_is_said(net, monkeypatch):
    order, leaf = net.order(), net.switches["leaf1"]
    before = leaf.running_text()

    def lossy(line, execute):
        return Answer() if "traffic-pool" in line else execute(line)

    meddle(monkeypatch, lossy)
    outcome = net.apply(order)
    assert outcome.state == "rolled-back"
    assert "no memory in a lossless traffic-pool" in outcome.detail
    assert leaf.running_text() == before


def test_a_line_that_does_nothing_is_seen_by_reading_back_and_the_timer_is_used(net, monkeypatch):
    leaf, typed = net.switches["leaf1"], []

    def deaf(line, execute):
        typed.append(line)
        return Answer() if line.endswith("swp1 link mtu 9216") else execute(line)

    leaf.config.put(("interface", "swp1", "link", "mtu"), "1500")
    leaf.configured()
    order, before = net.order(), leaf.running_text()
    meddle(monkeypatch, deaf)
    outcome = net.apply(order)
    assert outcome.state == "rolled-back"
    assert "mtu_bytes: 9216 -> 1500" in outcome.detail
    assert "nv config apply --confirm-no" in typed
    after = typed[typed.index("nv config apply --confirm-no") :]
    assert not any(line.startswith(("nv set", "nv unset")) for line in after)
    assert leaf.running_text() == before


def test_a_session_that_breaks_before_the_change_is_confirmed_is_rolled_back(net, monkeypatch):
    order, leaf = net.order(), net.switches["leaf1"]
    before, broken = leaf.running_text(), []

    def break_off(line, execute):
        answer = execute(line)
        if "--confirm 10m" in line and not broken:
            broken.append(line)
            net.servers.abort("leaf1")
        return answer

    meddle(monkeypatch, break_off)
    outcome = net.apply(order)
    assert (outcome.state, outcome.unreachable) == ("rolled-back", True)
    assert leaf.running_text() == before
    assert leaf.awaiting is None
