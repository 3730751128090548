"""Runs that broke off: what is left of them is taken away, and nobody runs beside them."""

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from fabric.devices.registry import module_of
from fabric.errors import AccessError, InputError
from fabric.provisioning.halfway import halfway_runs
from fabric.provisioning.outcome import Outcome
from fabric.provisioning.plan import make_plan, order_back, remains_of
from fabric.provisioning.planfile import save_plan, write_plan
from fabric.provisioning.provision import provision, rollback
from fabric.provisioning.runlock import run_lock
from fabric.provisioning.runs import RunResult, latest_run, load_result, run_folder, save_result
from fabric.provisioning.switchapply import apply_to_switch
from fabric.reach.switchssh import close_switches
from tests.fabric.switch_sites import deaf_to, meddle, refusing, switch_site

RUN = "20261201-0412-ab12"
CHECKPOINT = f"paisoar-{RUN}"


@pytest.fixture
def net(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        yield net


@pytest.fixture
def order(net):
    return make_plan(net.site, net.read()).devices["leaf1"]


def _break_off(net, order, lines):
    """Leave the switch as a program that was killed after so many lines does."""
    commands = order.change.commands[:lines]
    net.execute("leaf1", f"checkpoint {CHECKPOINT}", "configure terminal", *commands)


def _take_back(net, order):
    now = net.read().states["leaf1"]
    return apply_to_switch(
        order_back(order, now, broke_off=True),
        net.access("leaf1"),
        module_of(net.site, "leaf1"),
        "20261201-0500-cd34",
        broken_run=RUN,
    )


def _checkpoints(net):
    return net.execute("leaf1", "show checkpoint summary")


@pytest.mark.slow
def test_a_change_that_broke_off_anywhere_is_taken_back_to_the_last_line(net, order):
    before = net.running("leaf1")
    for lines in range(1, len(order.change.commands) + 1, 4):
        _break_off(net, order, lines)
        outcome = _take_back(net, order)
        assert outcome.state in ("done", "unchanged"), (lines, str(outcome))
        assert net.running("leaf1") == before, lines
        assert "paisoar-" not in _checkpoints(net)


def test_policies_that_no_port_uses_yet_are_seen_as_remains(net, order):
    first_use = next(
        number
        for number, line in enumerate(order.change.commands)
        if line.startswith(("system qos", "interface "))
    )
    _break_off(net, order, first_use)
    states = net.read()
    found = remains_of(
        module_of(net.site, "leaf1"), order, states.states["leaf1"], states.outputs["leaf1"]
    )
    assert found
    assert found[0].startswith("still as changed: +")


def test_what_others_have_added_meanwhile_stays(net, order):
    _break_off(net, order, len(order.change.commands) // 2)
    net.execute("leaf1", "configure terminal", "snmp-server location hall 4")
    assert _take_back(net, order).state == "done"
    assert "snmp-server location hall 4" in net.running("leaf1")


def test_a_checkpoint_alone_is_removed(net, order):
    _break_off(net, order, 0)
    assert CHECKPOINT in _checkpoints(net)
    assert str(_take_back(net, order)) == "unchanged: as it was before the run"
    assert "paisoar-" not in _checkpoints(net)


def test_a_line_that_stays_is_no_success(net, order, monkeypatch):
    _break_off(net, order, len(order.change.commands))
    meddle(monkeypatch, "leaf1", deaf_to("no policy-map type queuing"))
    outcome = _take_back(net, order)
    assert outcome.state in ("rolled-back", "failed")
    assert "still as changed: +policy-map type queuing" in outcome.detail


def test_a_rolled_back_change_leaves_no_checkpoint(net, order, monkeypatch):
    meddle(monkeypatch, "leaf1", refusing("watch-dog-interval on"))
    module = module_of(net.site, "leaf1")
    outcome = apply_to_switch(order, net.access("leaf1"), module, RUN)
    assert outcome.state == "rolled-back"
    assert "paisoar-" not in _checkpoints(net)


def test_devices_of_other_plans_targets_and_kinds_of_run_are_refused(net):
    plan = make_plan(net.site, net.read())
    order = plan.devices["leaf1"]
    ports = tuple(
        dataclasses.replace(port, pfc_priorities=(4,)) if number == 0 else port
        for number, port in enumerate(order.intended.ports)
    )
    forged = dataclasses.replace(order, intended=dataclasses.replace(order.intended, ports=ports))
    before = net.running("leaf1")
    with pytest.raises(InputError, match="holds other changes than these devices need: leaf1"):
        provision(net.site, dataclasses.replace(plan, devices={**plan.devices, "leaf1": forged}))
    with pytest.raises(InputError, match="says nothing of leaf9"):
        provision(net.site, plan, only=["leaf9"])
    assert net.running("leaf1") == before


@pytest.mark.slow
def test_a_check_changes_nothing_and_only_the_chosen_are_changed(net):
    plan = make_plan(net.site, net.read())
    before = {name: net.running(name) for name in net.names}
    checked = provision(net.site, plan, check=True)
    assert {out.state for out in checked.devices.values()} == {"would-change"}
    assert checked.error is None
    assert {name: net.running(name) for name in net.names} == before
    with pytest.raises(InputError, match="was a check: it changed nothing"):
        rollback(net.site, checked.run_id)

    run = provision(net.site, plan, only=["leaf1"])
    assert {name: out.state for name, out in run.devices.items()} == {"leaf1": "done"}
    assert run.error is None
    assert net.running("leaf2") == before["leaf2"]
    back = rollback(net.site, run.run_id)
    assert list(back.devices) == ["leaf1"]
    assert {name: net.running(name) for name in net.names} == before
    with pytest.raises(InputError, match="it cannot be taken back itself") as caught:
        rollback(net.site, back.run_id)
    assert "paisoar plan" in caught.value.advice


@pytest.mark.slow
def test_a_killed_run_takes_back_nothing_that_a_later_one_has_done(net):
    plan = make_plan(net.site, net.read())
    killed = provision(net.site, plan, only=["leaf1"])
    # What its folder holds once it was killed: the whole plan, and no outcomes.
    write_plan(run_folder(net.site, killed.run_id) / "plan.json", plan)
    os.utime(run_folder(net.site, killed.run_id) / "plan.json", (1, 1))
    save_result(net.site, dataclasses.replace(killed, devices={}, ended_at=""))
    later = provision(net.site, make_plan(net.site, net.read()))
    assert later.devices["leaf2"].state == "done"
    before = {name: net.running(name) for name in net.names}
    with pytest.raises(InputError, match=f"leaf2: run {later.run_id} has changed it since"):
        rollback(net.site, killed.run_id)
    assert {name: net.running(name) for name in net.names} == before
    back = rollback(net.site, killed.run_id, only=["leaf1"])
    assert {name: out.state for name, out in back.devices.items()} == {"leaf1": "done"}
    assert net.running("leaf2") == before["leaf2"]


def test_two_runs_at_once_are_refused(net):
    plan = make_plan(net.site, net.read())
    with run_lock(net.site.state_dir, RUN):
        with pytest.raises(AccessError, match=f"run {RUN} is changing this site now") as caught:
            provision(net.site, plan)
        assert "Nothing was touched" in caught.value.advice
        with pytest.raises(AccessError), run_lock(net.site.state_dir, "other"):
            pass
    with run_lock(net.site.state_dir, "other"):
        pass


def test_a_plan_that_others_may_have_written_is_no_source_of_commands(net):
    run = provision(net.site, make_plan(net.site, net.read()), only=["leaf1"])
    path = run_folder(net.site, run.run_id) / "plan.json"
    path.chmod(0o620)
    with pytest.raises(InputError, match="others may have written it"):
        rollback(net.site, run.run_id)


def test_a_result_that_cannot_be_kept_is_still_told(net, monkeypatch):
    kept = []

    def full(site, result):
        if kept:
            raise OSError(28, "No space left on device")
        kept.append(result)
        save_result(site, result)

    monkeypatch.setattr("fabric.provisioning.provision.save_result", full)
    run = provision(net.site, make_plan(net.site, net.read()), only=["leaf1"])
    assert run.devices["leaf1"].state == "done"
    assert run.error is not None
    assert "result could not be kept: No space left on device" in run.error.message

    def full_at_once(_site, _result):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fabric.provisioning.provision.save_result", full_at_once)
    with pytest.raises(InputError, match="nothing was touched"):
        provision(net.site, make_plan(net.site, net.read()))


_PROVISION = """
    import sys
    from pathlib import Path
    from fabric.provisioning.planfile import load_plan
    from fabric.provisioning.provision import provision
    from fabric.site import load_site

    site = load_site(Path(sys.argv[1]))
    def told(event):
        print("EVENT", event.device, event.step, event.state, flush=True)
    provision(site, load_plan(site), told)
"""


@pytest.mark.slow
def test_a_killed_run_ends_its_devices_in_flight_and_is_taken_back_whole(net, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    save_plan(net.site, make_plan(net.site, net.read()))
    before = {name: net.running(name) for name in net.names}
    plan = make_plan(net.site, net.read())

    def slow(_cli, line, execute):
        if "service-policy" in line:
            time.sleep(0.2)
        return execute(line)

    meddle(monkeypatch, "leaf1", slow)
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_PROVISION), str(net.site.path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    for line in program.stdout:
        if "leaf1 Configure and read back started" in line:
            time.sleep(1.5)
            program.send_signal(signal.SIGKILL)
    program.stdout.close()
    assert program.wait(30) == -signal.SIGKILL
    run_id = latest_run(net.site)
    assert load_result(net.site, run_id).ended_at == ""

    # Its worker goes on with the switch in its hands; nobody else begins meanwhile.
    with pytest.raises(AccessError, match=f"run {run_id} was killed, but is still at work"):
        rollback(net.site, run_id)
    deadline = time.monotonic() + 60
    while True:
        try:
            back = rollback(net.site, run_id)
            break
        except AccessError:
            assert time.monotonic() < deadline
            time.sleep(0.5)
    assert back.error is None, back
    close_switches()
    assert {name: net.running(name) for name in net.names} == before
    for name in net.names:
        assert "paisoar-" not in net.execute(name, "show checkpoint summary")
    assert make_plan(net.site, net.read()).changed == plan.changed


def _killed(net, run_id, kind="provision", of="20261201-0400-0000", devices=None):
    """What the folder of a run holds that was killed: the whole plan, and few outcomes."""
    folder = run_folder(net.site, run_id)
    folder.mkdir(parents=True)
    write_plan(folder / "plan.json", make_plan(net.site, net.read()))
    begun = "2026-12-01T04:12:00Z"
    result = RunResult(run_id, kind, net.site.name, of, begun, "", devices or {})
    save_result(net.site, result)
    return result


def test_a_run_that_was_killed_is_named_until_a_later_one_has_seen_to_its_devices(net):
    assert halfway_runs(net.site, net.names) == ()
    killed = _killed(net, RUN, devices={"leaf1": Outcome("unchanged")})
    (found,) = halfway_runs(net.site, net.names)
    assert found.devices == tuple(name for name in net.names if name != "leaf1")
    assert f"provision run {RUN} was killed half-way, and may have changed leaf2" in str(found)
    assert f"`paisoar rollback {RUN}` takes back" in str(found)
    with run_lock(net.site.state_dir, RUN):
        (working,) = halfway_runs(net.site, net.names)
        assert "is at work on leaf2" in str(working)
    assert halfway_runs(net.site, ["leaf1"]) == ()
    done = {name: Outcome("unchanged") for name in net.names}
    save_result(net.site, dataclasses.replace(killed, devices=done))
    assert halfway_runs(net.site, net.names) == ()


def test_of_a_roll_back_that_was_killed_the_run_that_it_was_taking_back_is_named(net):
    _killed(net, RUN, "rollback", of="20261201-0400-0000")
    (found,) = halfway_runs(net.site, net.names)
    assert "`paisoar rollback 20261201-0400-0000` takes back" in str(found)


def test_a_device_of_which_no_event_could_be_written_is_never_called_untouched(net, monkeypatch):
    # As on a full disk, once the run has begun.
    def full(_runner, event):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ansible_runner.Runner.event_callback", full)
        run = provision(net.site, make_plan(net.site, net.read()), only=["leaf1"])
    outcome = run.devices["leaf1"]
    assert outcome.state == "failed"
    assert "records could not be written (No space left on device)" in outcome.detail
    assert "Left: " in outcome.detail
    assert run.error is not None
    assert "No space left on device" in run.error.message
    deadline = time.monotonic() + 60
    while True:
        # A switch in flight comes to an end by itself, and holds the lock until then.
        try:
            back = rollback(net.site, run.run_id)
            break
        except AccessError:
            assert time.monotonic() < deadline
            time.sleep(0.5)
    assert back.error is None, back
