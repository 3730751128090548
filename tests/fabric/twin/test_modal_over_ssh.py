"""Changing EOS and Junos switches over real SSH: each ends as intended or as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fabric.devices.registry import module_of
from fabric.provisioning.plan import mismatches
from fabric.reach.access import access_to
from fabric.reach.switchssh import close_switches, switch_session
from fabric.twin.cli.modal import Answer, ModalCli
from fabric.twin.eos import EmulatedSwitch as EosSwitch
from fabric.twin.junos import EmulatedSwitch as JunosSwitch
from tests.fabric.twin.shell.over_ssh import shell_site

SWITCHES = {"eos": EosSwitch, "junos": JunosSwitch}


@pytest.fixture(params=SWITCHES)
def net(request, tmp_path, monkeypatch):
    with shell_site(tmp_path, monkeypatch, request.param, SWITCHES[request.param]) as net:
        yield net


def meddle(monkeypatch, change: Callable[[str, Callable[[str], Answer]], Answer]) -> None:
    """Let ``change(line, execute)`` answer the lines typed over SSH."""
    original = ModalCli.execute

    def execute(self: ModalCli, line: str, *, interactive: bool = False) -> Answer:
        return change(line, lambda text: original(self, text, interactive=interactive))

    monkeypatch.setattr(ModalCli, "execute", execute)
    close_switches()


def running(net) -> str:
    return net.switches["leaf1"].running_text()


def test_it_does_what_is_intended_once(net):
    order = net.order()
    assert str(net.apply(order)) == "done"
    state = net.read().states["leaf1"]
    assert mismatches(state, order.intended) == []
    assert state.saved
    assert str(net.apply(net.order())) == "unchanged"


def test_a_refused_line_leaves_everything_as_it_was(net, monkeypatch):
    order, before = net.order(), running(net)

    def refuse(line, execute):
        return execute("nonsense" if "mtu 9" in line else line)

    meddle(monkeypatch, refuse)
    outcome = net.apply(order)
    assert outcome.state == "rolled-back"
    assert "mtu 9" in outcome.detail
    assert running(net) == before


def test_a_line_that_did_nothing_is_found_and_all_is_put_back(net, monkeypatch):
    order, before = net.order(), running(net)

    def deaf(line, execute):
        return Answer() if "mtu 9" in line else execute(line)

    meddle(monkeypatch, deaf)
    outcome = net.apply(order)
    assert outcome.state == "rolled-back"
    assert "read back what was configured" in outcome.detail
    assert running(net) == before
    assert net.read().states["leaf1"].saved


def test_a_session_that_breaks_half_way_leaves_everything_as_it_was(net, monkeypatch):
    order, before = net.order(), running(net)
    left = iter(range(40))

    def break_off(line, execute):
        if next(left, None) == 30:
            net.servers.loop.call_soon(net.servers.abort, "leaf1")
            return Answer()
        return execute(line)

    meddle(monkeypatch, break_off)
    outcome = net.apply(order)
    assert (outcome.state, outcome.unreachable) == ("rolled-back", True)
    assert running(net) == before


def test_a_session_that_breaks_after_the_commit_is_put_back(net, monkeypatch):
    order, before = net.order(), running(net)
    broken = []

    def break_off(line, execute):
        if line.startswith("show") and not broken and running(net) != before:
            broken.append(line)
            net.servers.loop.call_soon(net.servers.abort, "leaf1")
            return Answer()
        return execute(line)

    meddle(monkeypatch, break_off)
    outcome = net.apply(order)
    assert broken
    assert (outcome.state, outcome.unreachable) == ("rolled-back", True)
    assert running(net) == before
    assert net.read().states["leaf1"].saved


def test_uncommitted_changes_of_others_are_said_and_nothing_is_sent(tmp_path, monkeypatch):
    with shell_site(tmp_path, monkeypatch, "junos", JunosSwitch) as net:
        order, before = net.order(), running(net)
        module, access = module_of(net.site, "leaf1"), access_to(net.site, "leaf1")
        with switch_session("leaf1", access, module.netmiko_type, fresh=True) as other:
            other.show("configure")
            other.show("set interfaces et-0/0/30 disable")
            outcome = net.apply(order)
        assert outcome.state == "failed"
        assert outcome.detail.startswith("nothing was sent: leaf1: configure exclusive: error")
        assert "somebody else may be configuring it" in outcome.detail
        assert running(net) == before
