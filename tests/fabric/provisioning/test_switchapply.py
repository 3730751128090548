"""Changing one switch over real SSH: it ends as intended or as it was."""

import pytest

from fabric.devices.registry import module_of
from fabric.provisioning.plan import make_plan, mismatches
from fabric.provisioning.switchapply import apply_to_switch
from fabric.twin.nxos.cli import Answer
from tests.fabric.switch_sites import deaf_to, meddle, refusing, switch_site

RUN = "20261201-0412-ab12"


@pytest.fixture
def net(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        yield net


@pytest.fixture
def order(net):
    return make_plan(net.site, net.read()).devices["leaf1"]


def _apply(net, order, *, check=False):
    return apply_to_switch(
        order, net.access("leaf1"), module_of(net.site, "leaf1"), RUN, check=check
    )


def _started_with(net):
    shown = net.execute("leaf1", "show startup-config").splitlines()
    return [line for line in shown if not line.startswith("!")]


def test_it_does_what_is_intended_and_boots_with_it(net, order):
    assert str(_apply(net, order)) == "done"
    state = net.read().states["leaf1"]
    assert mismatches(state, order.intended) == []
    assert state.saved
    assert f"paisoar-{RUN}" not in net.execute("leaf1", "show checkpoint summary")


def test_a_second_time_nothing_is_sent(net, order, monkeypatch):
    _apply(net, order)
    typed = []

    def record(_cli, line, execute):
        typed.append(line)
        return execute(line)

    meddle(monkeypatch, "leaf1", record)
    assert str(_apply(net, order)) == "unchanged"
    assert [line for line in typed if line.strip()][-1].startswith("show")
    assert not any("configure" in line for line in typed)


def test_check_mode_sends_nothing(net, order):
    before = net.running("leaf1")
    assert str(_apply(net, order, check=True)) == "would-change"
    assert net.running("leaf1") == before


def test_a_switch_that_has_changed_since_is_left_alone(net, order):
    net.execute("leaf1", "configure terminal", "interface Ethernet1/1", "mtu 1600")
    before = net.running("leaf1")
    outcome = _apply(net, order)
    assert outcome.state == "failed"
    assert "changed since it was planned: Ethernet1/1: mtu_bytes: 1500 -> 1600" in outcome.detail
    assert net.running("leaf1") == before


def test_a_refused_line_puts_everything_back(net, order, monkeypatch):
    before, boot = net.running("leaf1"), _started_with(net)
    meddle(monkeypatch, "leaf1", refusing("watch-dog-interval on"))
    outcome = _apply(net, order)
    assert outcome.state == "rolled-back"
    assert "priority-flow-control watch-dog-interval on" in outcome.detail
    assert "Invalid" in outcome.detail
    assert "after" in outcome.detail
    assert net.running("leaf1") == before
    assert _started_with(net) == boot


def test_without_a_checkpoint_the_lines_are_taken_back_one_by_one(net, order, monkeypatch):
    before = net.read().states["leaf1"]

    def change(cli, line, execute):
        if line.startswith("rollback"):
            return execute("nonsense")
        return refusing("service-policy type queuing output")(cli, line, execute)

    meddle(monkeypatch, "leaf1", change)
    outcome = _apply(net, order)
    assert outcome.state == "rolled-back"
    assert mismatches(net.read().states["leaf1"], before) == []


def test_a_line_that_did_nothing_is_found_by_reading_back(net, order, monkeypatch):
    before, boot = net.running("leaf1"), _started_with(net)
    meddle(monkeypatch, "leaf1", deaf_to("priority-flow-control mode on"))
    outcome = _apply(net, order)
    assert outcome.state == "rolled-back"
    assert "read back what was configured: Ethernet1/1: pfc_priorities" in outcome.detail
    assert net.running("leaf1") == before
    assert _started_with(net) == boot


def test_a_session_that_breaks_half_way_is_taken_up_again_and_rolled_back(net, order, monkeypatch):
    before = net.running("leaf1")
    left = iter(range(40))

    def change(cli, line, execute):
        if next(left, None) == 30:
            net.servers.loop.call_soon(net.servers.abort, "leaf1")
            return Answer()
        return execute(line)

    meddle(monkeypatch, "leaf1", change)
    outcome = _apply(net, order)
    assert outcome.state == "rolled-back"
    assert outcome.unreachable
    assert "closed the connection" in outcome.detail
    assert net.running("leaf1") == before


def test_a_switch_that_dies_half_way_is_named_with_the_way_back_by_hand(net, order, monkeypatch):
    monkeypatch.setattr("fabric.provisioning.switchapply.RECONNECT_WAIT_S", 0.1)
    left = iter(range(40))

    def change(cli, line, execute):
        if next(left, None) == 30:
            net.servers.loop.call_soon(net.servers.abort, "leaf1", True)
            return Answer()
        return execute(line)

    meddle(monkeypatch, "leaf1", change)
    outcome = _apply(net, order)
    assert outcome.state == "failed"
    assert outcome.unreachable
    assert "may hold a part of the change" in outcome.detail
    assert f"rollback running-config checkpoint paisoar-{RUN}" in outcome.detail


def test_a_refused_checkpoint_stops_before_anything_is_sent(net, order, monkeypatch):
    before = net.running("leaf1")
    meddle(monkeypatch, "leaf1", refusing("checkpoint paisoar"))
    outcome = _apply(net, order)
    assert outcome.state == "failed"
    assert outcome.detail.startswith("nothing was sent: leaf1: checkpoint paisoar-")
    assert net.running("leaf1") == before


def test_a_change_that_cannot_be_saved_is_taken_back(net, order, monkeypatch):
    before, boot = net.running("leaf1"), _started_with(net)
    meddle(monkeypatch, "leaf1", refusing("copy running-config"))
    outcome = _apply(net, order)
    assert outcome.state == "rolled-back"
    assert "copy running-config startup-config" in outcome.detail
    assert net.running("leaf1") == before
    assert _started_with(net) == boot


def test_an_unreachable_switch_has_nothing_sent(net, order):
    net.servers.kill("leaf1")
    outcome = _apply(net, order)
    assert (outcome.state, outcome.unreachable) == ("failed", True)
    assert outcome.detail.startswith("nothing was sent: leaf1: log in over SSH")
