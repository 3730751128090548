"""Changing a SONiC switch over real SSH: it ends as intended or as it was."""

from __future__ import annotations

import pytest

from fabric.provisioning.plan import mismatches
from fabric.twin.shell.session import Answer
from fabric.twin.sonic import EmulatedSwitch
from tests.fabric.twin.shell.over_ssh import meddle, shell_site


@pytest.fixture
def net(tmp_path, monkeypatch):
    with shell_site(tmp_path, monkeypatch, "sonic", EmulatedSwitch) as net:
        yield net


def test_it_does_what_is_intended_saves_it_and_is_then_left_alone(net):
    order, leaf = net.order(), net.switches["leaf1"]
    assert str(net.apply(order, check=True)) == "would-change"
    assert leaf.config.get("PORT", "Ethernet0", "mtu") == "9100"
    assert str(net.apply(order)) == "done"
    state = net.read().states["leaf1"]
    assert mismatches(state, order.intended) == []
    assert state.saved
    assert leaf.checkpoints == {}
    assert str(net.apply(order)) == "unchanged"
    assert net.order().change.empty


def test_a_refused_command_puts_everything_back_line_by_line(net, monkeypatch):
    order, leaf = net.order(), net.switches["leaf1"]
    before, boot = leaf.running_text(), leaf.startup

    def refuse(line, execute):
        if "HSET 'PFC_WD|Ethernet0'" in line and "restoration_time 400" in line:
            return Answer("ERR max number of clients reached\n", 1)
        return execute(line)

    meddle(monkeypatch, refuse)
    outcome = net.apply(order)
    assert outcome.state == "rolled-back"
    assert "PFC_WD|Ethernet0" in outcome.detail
    assert "ERR max number of clients" in outcome.detail
    # All is back: nobody needs the checkpoint any more.
    assert leaf.checkpoints == {}
    assert leaf.running_text() == before
    assert leaf.startup == boot


def test_a_command_that_does_nothing_is_seen_by_reading_back(net, monkeypatch):
    order, leaf = net.order(), net.switches["leaf1"]
    before = leaf.running_text()

    def deaf(line, execute):
        return Answer("1\n") if "HSET 'PORT|Ethernet0' mtu" in line else execute(line)

    meddle(monkeypatch, deaf)
    outcome = net.apply(order)
    assert outcome.state == "rolled-back"
    assert "mtu_bytes: 9216 -> 9100" in outcome.detail
    assert leaf.running_text() == before


def test_a_switch_without_room_for_a_checkpoint_is_left_alone(net, monkeypatch):
    order, leaf = net.order(), net.switches["leaf1"]
    before = leaf.running_text()

    def no_room(line, execute):
        if "config checkpoint" in line:
            return Answer("Failed to create a config checkpoint\nError: No space left\n", 1)
        return execute(line)

    meddle(monkeypatch, no_room)
    outcome = net.apply(order)
    assert outcome.state == "failed"
    assert "nothing was sent" in outcome.detail
    assert leaf.running_text() == before


def test_a_session_that_breaks_in_the_middle_is_rolled_back_by_another(net, monkeypatch):
    order, leaf = net.order(), net.switches["leaf1"]
    before = leaf.running_text()
    broken = []

    def break_off(line, execute):
        if "HSET 'QUEUE|Ethernet0|3'" in line and not broken:
            broken.append(line)
            net.servers.abort("leaf1")
        return execute(line)

    meddle(monkeypatch, break_off)
    outcome = net.apply(order)
    assert (outcome.state, outcome.unreachable) == ("rolled-back", True)
    assert leaf.running_text() == before
