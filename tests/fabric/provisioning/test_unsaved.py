"""A switch saves all or nothing: what others have not saved is not saved by us unasked."""

import json

import pytest
from typer.testing import CliRunner

from fabric.devices.entries import SWITCHES
from fabric.devices.registry import load, module_of
from fabric.errors import InputError
from fabric.provisioning.plan import make_plan, mismatches, order_back
from fabric.provisioning.planfile import write_plan
from fabric.provisioning.provision import _left, provision, rollback
from fabric.provisioning.runs import RunResult, run_folder, save_result
from fabric.provisioning.switchapply import apply_to_switch
from fabric.provisioning.unsaved import DIFFERENT, PENDING, unsaved_lines
from fabric.qos import DeviceQos
from fabric.reach.access import access_to
from fabric.reach.switchssh import close_switches, switch_session
from fabric.twin.eos import EmulatedSwitch as EosSwitch
from fabric.twin.junos import EmulatedSwitch as JunosSwitch
from fabric.twin.nvue import EmulatedSwitch as NvueSwitch
from fabric.twin.nxos import EmulatedSwitch as NxosSwitch
from fabric.twin.sonic import EmulatedSwitch as SonicSwitch
from paisoar.cli import app
from tests.fabric.switch_sites import switch_site
from tests.fabric.twin.shell.over_ssh import shell_site

RUN = "20261201-0412-ab12"
BY_HAND = ("configure terminal", "interface Ethernet1/30", "shutdown", "end")
LINE = "+ interface Ethernet1/30 / shutdown"


@pytest.fixture
def net(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        yield net


def started_with(net, name="leaf1"):
    return net.execute(name, "show startup-config")


def test_a_change_that_others_have_not_saved_is_shown_and_nothing_is_touched(net):
    net.execute("leaf1", *BY_HAND)
    states = net.read()
    plan = make_plan(net.site, states)
    module = module_of(net.site, "leaf1")
    assert unsaved_lines(module, states.states["leaf1"], states.outputs["leaf1"]) == [LINE]
    assert unsaved_lines(module, states.states["leaf2"], states.outputs["leaf2"]) == []
    before = {name: net.running(name) for name in net.names}
    for check in (True, False):
        with pytest.raises(InputError) as caught:
            provision(net.site, plan, check=check)
        assert f"leaf1: somebody has changed it and not saved that: {LINE}" in caught.value.message
        assert "leaf2" not in caught.value.message
        for way in ("copy running-config startup-config", "--device", "--save-unsaved"):
            assert way in caught.value.advice
    assert {name: net.running(name) for name in net.names} == before
    assert "  shutdown" not in started_with(net)


@pytest.mark.slow
def test_the_commands_show_it_and_say_what_can_be_done(net):
    net.execute("leaf1", *BY_HAND)
    file = ["-f", str(net.site.path), "--device", "leaf1"]
    runner = CliRunner()
    shown = runner.invoke(app, ["plan", *file])
    assert f"leaf1, changed and not saved\n  {LINE}\n" in shown.output
    assert "or with --save-unsaved taken along: leaf1." in shown.output
    told = json.loads(runner.invoke(app, ["plan", *file, "--json"]).stdout)
    assert (told["unsaved"], told["needs_save_unsaved"]) == ({"leaf1": [LINE]}, ["leaf1"])
    refused = runner.invoke(app, ["provision", *file, "--yes"])
    assert refused.exit_code == 2
    assert "--save-unsaved" in refused.output
    done = runner.invoke(app, ["provision", *file, "--yes", "--save-unsaved"])
    assert done.exit_code == 0, done.output
    assert "  shutdown" in started_with(net)
    net.execute("leaf1", "configure terminal", "interface Ethernet1/29", "shutdown", "end")
    after = runner.invoke(app, ["plan", *file]).output
    assert "only until it reboots; save it there: copy running-config startup-config" in after
    assert "The device that was read does what it should. Next: paisoar validate" in after


@pytest.mark.slow
def test_it_is_saved_where_that_is_asked_for_and_others_go_on_without_it(net):
    net.execute("leaf1", *BY_HAND)
    plan = make_plan(net.site, net.read())
    others = [name for name in net.names if name != "leaf1"]
    assert provision(net.site, plan, only=others).error is None
    run = provision(net.site, plan, save_unsaved=True)
    assert run.error is None
    assert run.devices["leaf1"].state == "done"
    assert "  shutdown" in started_with(net)
    net.execute("leaf1", "configure terminal", "interface Ethernet1/31", "shutdown", "end")
    before = net.running("leaf1")
    with pytest.raises(InputError, match="interface Ethernet1/31 / shutdown"):
        rollback(net.site, run.run_id)
    assert net.running("leaf1") == before
    back = rollback(net.site, run.run_id, save_unsaved=True)
    assert back.devices["leaf1"].state == "done"
    assert started_with(net).count("  shutdown") == 2


def test_what_our_own_change_settles_is_no_reason_to_stop(net):
    """Drift of our own lines, unsaved: after the change the switch boots as it runs."""
    assert provision(net.site, make_plan(net.site, net.read()), only=["leaf1"]).error is None
    net.execute(
        "leaf1", "configure terminal", "interface Ethernet1/1", "priority-flow-control mode off"
    )
    plan = make_plan(net.site, net.read())
    assert net.read().states["leaf1"].saved is False
    run = provision(net.site, plan, only=["leaf1"])
    assert run.devices["leaf1"].state == "done"
    assert net.read().states["leaf1"].saved


def test_the_run_that_broke_off_is_named(net):
    plan = make_plan(net.site, net.read())
    order = plan.devices["leaf1"]
    lines = order.change.commands
    half = next(number for number, line in enumerate(lines) if line.startswith("interface "))
    # A run that was killed has a plan and a result without an end.
    write_plan(run_folder(net.site, RUN) / "plan.json", plan)
    killed = RunResult(RUN, "provision", net.site.name, plan.id, "2026-12-01T04:12", "", {})
    save_result(net.site, killed)
    net.execute("leaf1", *BY_HAND, "configure terminal", *lines[:half], "end")
    with pytest.raises(InputError) as caught:
        provision(net.site, make_plan(net.site, net.read()))
    assert f"`paisoar rollback {RUN}`" in caught.value.advice


def test_half_a_change_is_taken_back_without_saving_what_is_not_ours(net):
    order = make_plan(net.site, net.read()).devices["leaf1"]
    boots = started_with(net)
    net.execute("leaf1", *BY_HAND)
    half = order.change.commands[: len(order.change.commands) // 2]
    net.execute("leaf1", f"checkpoint paisoar-{RUN}", "configure terminal", *half)

    def back():
        return apply_to_switch(
            order_back(order, net.read().states["leaf1"], broke_off=True),
            net.access("leaf1"),
            module_of(net.site, "leaf1"),
            "20261201-0500-cd34",
            broken_run=RUN,
        )

    outcome = back()
    assert outcome.state == "done"
    assert outcome.detail == f"not saved: somebody has changed it and not saved that: {LINE}"
    assert started_with(net).splitlines()[3:] == boots.splitlines()[3:]


def test_what_is_left_on_a_switch_is_told_with_whether_it_is_saved(net):
    order = make_plan(net.site, net.read()).devices["leaf1"]
    net.execute("leaf1", "configure terminal", *order.change.commands, "end")
    assert _left(net.site, order, net.read()) == "the whole change is on it, not saved"
    net.execute("leaf1", "copy running-config startup-config")
    assert _left(net.site, order, net.read()) == "the whole change is on it"


EDITS = {
    "nxos": (NxosSwitch, ("interface Ethernet1/9", "shutdown"), "interface Ethernet1/9 / shutdown"),
    "eos": (EosSwitch, ("interface Ethernet30", "shutdown"), "interface Ethernet30 / shutdown"),
    "sonic": (
        SonicSwitch,
        ("sudo config interface shutdown Ethernet0",),
        "PORT Ethernet0 admin_status down",
    ),
    "nvue": (
        NvueSwitch,
        ("nv set interface swp1 link state down", "nv config apply -y"),
        "interface swp1 link state down",
    ),
    "junos": (
        JunosSwitch,
        ("set interfaces et-0/0/30 disable", "commit confirmed 10"),
        PENDING,
    ),
}  # fmt: skip


@pytest.mark.parametrize("os_name", EDITS)
def test_every_system_tells_others_changes_and_is_left_alone(os_name, tmp_path, monkeypatch):
    switch, lines, told = EDITS[os_name]
    with shell_site(tmp_path, monkeypatch, os_name, switch) as net:
        module, access = module_of(net.site, "leaf1"), access_to(net.site, "leaf1")
        with switch_session("leaf1", access, module.netmiko_type) as session:
            session.configure(lines, module.is_error)
        close_switches()
        states = net.read()
        order, before = net.order(), net.switches["leaf1"].running_text()
        found = unsaved_lines(module, states.states["leaf1"], states.outputs["leaf1"])
        assert any(told in line for line in found)
        outcome = net.apply(order)
        assert outcome.state == "failed"
        assert outcome.detail.startswith("nothing was sent: somebody has changed it and not saved")
        assert told in outcome.detail
        assert net.switches["leaf1"].running_text() == before
        asked = apply_to_switch(order, access, module, RUN, save_unsaved=True)
        assert asked.state == "done"
        now = net.read().states["leaf1"]
        assert mismatches(now, order.intended) == []
        assert now.saved


SHOWN = {
    "os10": (
        {
            "show startup-configuration": "! Version 10.5\ninterface ethernet1/1/1\n no shutdown\n",
            "show running-configuration": "! Version 10.5\ninterface ethernet1/1/1\n shutdown\n",
        },
        ["+ interface ethernet1/1/1 / shutdown", "- interface ethernet1/1/1 / no shutdown"],
    ),
    "comware": (
        {
            "display saved-configuration": "#\nsysname leaf1\n#\ninterface HGE1/0/1\n#\nreturn\n",
            "display current-configuration": "#\nsysname leaf1\n#\ninterface HGE1/0/1\n shutdown\n"
            "#\nlocal-user bob\n password hash $h$6$abc\n#\nreturn\n",
        },
        [
            "+ interface HGE1/0/1 / shutdown",
            "+ local-user bob",
            "+ local-user bob / password ...",
        ],
    ),
    "cloudengine": (
        {
            "display saved-configuration": "#\nsysname leaf1\n#\nreturn\n",
            "display current-configuration": "#\nsysname leaf1\n#\nsnmp-agent community read %^%x\n"
            "#\nreturn\n",
        },
        ["+ snmp-agent community ..."],
    ),
    "eos": ({}, [DIFFERENT]),
}


@pytest.mark.parametrize("os_name", SHOWN)
def test_lines_come_with_what_they_stand_below_and_without_secrets(os_name):
    outputs, lines = SHOWN[os_name]
    now = DeviceQos("leaf1", "switch", os_name, ports=(), saved=False)
    assert unsaved_lines(load(SWITCHES, os_name), now, outputs) == lines
