"""Provisioning by the playbooks: real Ansible, real SSH, emulated switches."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from fabric.errors import DevicesError, InputError
from fabric.provisioning.plan import make_plan, mismatches
from fabric.provisioning.provision import changed_by, provision, rollback
from fabric.provisioning.runs import load_result, run_folder, save_result
from fabric.reach.playread import read_states_by_playbook
from fabric.reach.switchssh import close_switches
from fabric.topology import ClosShape
from tests.fabric.switch_sites import deaf_to, meddle, refusing, switch_site

SECRET = "s3cret-4711"


def _states(result):
    return {name: outcome.state for name, outcome in result.devices.items()}


def _ansible_processes(folder):
    """Processes of a playbook of this folder; other sites' runs are none of ours."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in process.environ().get("AWX_ISOLATED_DATA_DIR", ""):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def net(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch, ClosShape(2, 2, 1)) as net:
        yield net


@pytest.mark.slow
def test_a_whole_run_its_repetition_and_its_rollback_with_passwords(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch, password=SECRET) as net:
        monkeypatch.setenv("SOME_OTHER_TOKEN", "t0ken-4712")
        before = {name: net.running(name) for name in net.names}
        plan = make_plan(net.site, net.read())
        events = []
        run = provision(net.site, plan, events.append)
        assert _states(run) == dict.fromkeys(net.names, "done")
        assert run.error is None
        assert run.good
        for name, state in net.read().states.items():
            assert mismatches(state, plan.devices[name].intended) == []
            assert state.saved

        # Canaries first: one leaf and the spine, verified before the other leaf starts.
        told = [(e.device, e.state) for e in events if e.step == "Configure and read back"]
        assert told.index(("leaf2", "started")) > told.index(("leaf1", "changed"))
        assert told.index(("leaf2", "started")) > told.index(("spine1", "changed"))

        again = provision(net.site, plan)
        assert _states(again) == dict.fromkeys(net.names, "unchanged")
        assert not (run_folder(net.site, again.run_id) / "artifacts").exists()

        assert load_result(net.site, run.run_id) == run
        back = rollback(net.site, run.run_id)
        assert _states(back) == dict.fromkeys(net.names, "done")
        assert {name: net.running(name) for name in net.names} == before
        twice = rollback(net.site, run.run_id)
        assert _states(twice) == dict.fromkeys(net.names, "unchanged")

        # Nothing that was written anywhere holds a secret; every file is the user's alone.
        for path in (tmp_path / ".paisoar").rglob("*"):
            if path.is_file():
                text = path.read_text(errors="replace")
                assert SECRET not in text, path
                assert "t0ken-4712" not in text, path
        assert _ansible_processes(net.site.state_dir) == []


def test_reading_by_the_playbook_is_the_same_reading(net, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    direct = net.read()
    events = []
    by_playbook = read_states_by_playbook(net.site, net.names, events.append)
    assert by_playbook.states == direct.states
    assert by_playbook.failed == {}
    assert {(e.device, e.state) for e in events if e.state == "ok"} == {
        (name, "ok") for name in net.names
    }


def test_reading_by_the_playbook_names_who_does_not_answer(net):
    net.servers.kill("leaf2")
    states = read_states_by_playbook(net.site, net.names)
    assert sorted(states.states) == ["leaf1", "spine1"]
    assert states.failed["leaf2"].message.count("leaf2") == 1
    assert "log in over SSH" in states.failed["leaf2"].message
    assert read_states_by_playbook(net.site, []).states == {}


def test_a_device_that_is_gone_fails_alone(net):
    plan = make_plan(net.site, net.read())
    net.servers.kill("leaf2")
    run = provision(net.site, plan)
    assert _states(run) == {"leaf1": "done", "spine1": "done", "leaf2": "failed"}
    assert run.devices["leaf2"].unreachable
    assert "nothing was sent" in run.devices["leaf2"].detail
    assert "Left" not in run.devices["leaf2"].detail
    assert isinstance(run.error, DevicesError)
    assert run.error.exit_code == 3
    assert list(run.error.failed) == ["leaf2"]


@pytest.mark.slow
@pytest.mark.slow
def test_nothing_is_left_on_a_device_that_was_gone_before_its_turn(net, monkeypatch):
    """It is read when the run begins, and does not answer when it should be changed."""
    plan = make_plan(net.site, net.read())

    def dies(cli, line, execute):
        if line.startswith("checkpoint"):
            net.servers.loop.call_soon(net.servers.abort, "leaf2", True)
        return execute(line)

    meddle(monkeypatch, "leaf1", dies)
    run = provision(net.site, plan)
    assert _states(run) == {"leaf1": "done", "spine1": "done", "leaf2": "failed"}
    assert run.devices["leaf2"].detail.startswith("nothing was sent")
    assert "Left" not in run.devices["leaf2"].detail
    # Nor is there anything to be taken back on it.
    assert changed_by(run, plan) == ("leaf1", "spine1")


def test_a_canary_that_dies_is_replaced_by_the_next_of_its_kind(net, monkeypatch):
    monkeypatch.setattr("fabric.provisioning.switchapply.RECONNECT_WAIT_S", 0.1)
    plan = make_plan(net.site, net.read())

    def dies(_cli, line, execute):
        if "watch-dog" in line:
            net.servers.loop.call_soon(net.servers.abort, "leaf1", True)
        return execute(line)

    meddle(monkeypatch, "leaf1", dies)
    run = provision(net.site, plan)
    assert _states(run) == {"leaf1": "failed", "leaf2": "done", "spine1": "done"}
    assert "rollback running-config checkpoint" in run.devices["leaf1"].detail
    assert "cannot be reached now and may hold a part" in run.devices["leaf1"].detail
    assert run.error.exit_code == 3


@pytest.mark.slow
def test_a_failed_canary_is_rolled_back_and_stops_the_run(net, monkeypatch):
    before = {name: net.running(name) for name in net.names}
    plan = make_plan(net.site, net.read())
    meddle(monkeypatch, "leaf1", deaf_to("priority-flow-control mode on"))
    run = provision(net.site, plan)
    assert run.devices["leaf1"].state == "rolled-back"
    assert run.devices["leaf2"].state == "untouched"
    assert "leaf1" in run.devices["leaf2"].detail
    assert "read back what was configured" in run.devices["leaf1"].detail
    assert net.running("leaf1") == before["leaf1"]
    assert net.running("leaf2") == before["leaf2"]
    assert list(run.error.failed) == ["leaf1"]
    # What was done before the stop can be taken back, the rest is left alone.
    back = rollback(net.site, run.run_id)
    assert {name: net.running(name) for name in net.names} == before
    assert back.good


def test_a_changed_device_is_named_and_nothing_is_touched(net):
    plan = make_plan(net.site, net.read())
    net.execute("spine1", "configure terminal", "interface Ethernet1/1", "mtu 1600")
    before = {name: net.running(name) for name in net.names}
    with pytest.raises(InputError, match=r"spine1: Ethernet1/1: mtu_bytes: 1500 -> 1600"):
        provision(net.site, plan)
    assert {name: net.running(name) for name in net.names} == before
    assert not (net.site.state_dir / "runs").exists()


def test_a_plan_of_another_site_or_file_is_refused(net):
    plan = make_plan(net.site, net.read())
    with pytest.raises(InputError, match="is of site 'other'"):
        provision(net.site, dataclasses.replace(plan, site="other"))
    with pytest.raises(InputError, match="another content of this file"):
        provision(net.site, dataclasses.replace(plan, site_sha256="0" * 64))


def test_a_plan_with_other_commands_than_needed_is_refused(net):
    plan = make_plan(net.site, net.read())
    order = plan.devices["leaf1"]
    change = dataclasses.replace(order.change, commands=(*order.change.commands, "reload"))
    forged = dataclasses.replace(order, change=change)
    with pytest.raises(InputError, match="holds other changes than these devices need: leaf1"):
        provision(net.site, dataclasses.replace(plan, devices={**plan.devices, "leaf1": forged}))


@pytest.mark.slow
def test_unreadable_devices_of_a_plan_end_the_run_with_exit_3(net):
    net.servers.kill("leaf2")
    plan = make_plan(net.site, net.read())
    plan = dataclasses.replace(plan, devices={"spine1": plan.devices["spine1"]})
    run = provision(net.site, plan)
    assert _states(run) == {"spine1": "done", "leaf2": "failed"}
    assert "could not be read then" in run.devices["leaf2"].detail
    assert run.error.exit_code == 3


@pytest.mark.slow
def test_rollback_refuses_what_has_been_changed_since(net):
    plan = make_plan(net.site, net.read())
    run = provision(net.site, plan)
    net.execute(
        "leaf1", "configure terminal", "interface Ethernet1/1", "no priority-flow-control mode on"
    )
    before = {name: net.running(name) for name in net.names}
    with pytest.raises(InputError, match=r"leaf1: Ethernet1/1: pfc_priorities") as caught:
        rollback(net.site, run.run_id)
    assert "Nothing was touched" in caught.value.advice
    assert {name: net.running(name) for name in net.names} == before


@pytest.mark.slow
def test_a_run_that_was_killed_can_still_be_taken_back(net):
    before = {name: net.running(name) for name in net.names}
    run = provision(net.site, make_plan(net.site, net.read()))
    save_result(net.site, dataclasses.replace(run, devices={}, ended_at=""))
    back = rollback(net.site, run.run_id)
    assert _states(back) == dict.fromkeys(net.names, "done")
    assert {name: net.running(name) for name in net.names} == before


@pytest.mark.parametrize("run_id", ["../..", "20261201-0412-ab12", "x"])
def test_rollback_of_no_run_is_refused(net, run_id):
    with pytest.raises(InputError, match="run"):
        rollback(net.site, run_id)


def test_a_damaged_result_is_refused(net):
    folder = run_folder(net.site, "20261201-0412-ab12")
    folder.mkdir(parents=True)
    for text in ("", "[]", "{}", '{"schema": "paisoar/run/v1", "kind": "x"}'):
        (folder / "result.json").write_text(text)
        with pytest.raises(InputError, match=r"result\.json"):
            load_result(net.site, "20261201-0412-ab12")


# A process of its own, since the signal has to reach a main thread.
_PROVISION = """
    import json, sys
    from pathlib import Path
    from fabric.provisioning.planfile import load_plan
    from fabric.provisioning.provision import provision
    from fabric.site import load_site

    site = load_site(Path(sys.argv[1]))
    def told(event):
        print("EVENT", event.device, event.step, event.state, flush=True)
    run = provision(site, load_plan(site), told)
    print("RESULT", json.dumps(run.to_json()), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_devices_in_flight_finish_and_leaves_no_process(net, number):
    from fabric.provisioning.planfile import save_plan

    save_plan(net.site, make_plan(net.site, net.read()))
    close_switches()
    before = net.running("leaf2")
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_PROVISION), str(net.site.path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    sent = False
    result = None
    for line in program.stdout:
        if "leaf1 Configure and read back started" in line and not sent:
            program.send_signal(number)
            sent = True
        if line.startswith("RESULT "):
            result = json.loads(line.removeprefix("RESULT "))
    program.stdout.close()
    assert program.wait(30) == 0
    assert sent
    assert result["interrupted"]
    assert result["devices"]["leaf1"]["state"] in ("done", "untouched")
    assert result["devices"]["leaf2"]["state"] == "untouched"
    assert net.running("leaf2") == before
    assert result["ended_at"]
    assert _ansible_processes(net.site.state_dir) == []


@pytest.mark.slow
def test_a_second_signal_cuts_off_and_says_what_is_left(net, monkeypatch):
    from fabric.provisioning.planfile import save_plan

    save_plan(net.site, make_plan(net.site, net.read()))

    def slow(_cli, line, execute):
        if not line.startswith("show"):
            time.sleep(0.1)
        return execute(line)

    meddle(monkeypatch, "leaf1", slow)
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_PROVISION), str(net.site.path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    result = None
    for line in program.stdout:
        if "leaf1 Configure and read back started" in line:
            time.sleep(1.5)
            program.send_signal(signal.SIGINT)
            time.sleep(0.3)
            program.send_signal(signal.SIGINT)
        if line.startswith("RESULT "):
            result = json.loads(line.removeprefix("RESULT "))
    program.stdout.close()
    assert program.wait(30) == 0
    assert result["devices"]["leaf1"]["state"] == "failed"
    assert "cut off" in result["devices"]["leaf1"]["detail"]
    assert "Left: " in result["devices"]["leaf1"]["detail"]
    assert _ansible_processes(net.site.state_dir) == []


@pytest.mark.slow
def test_a_refused_line_in_the_batch_leaves_the_others_done_or_untouched(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch, ClosShape(3, 3, 1)) as net:
        plan = make_plan(net.site, net.read())
        meddle(monkeypatch, "leaf2", refusing("watch-dog-interval on"))
        run = provision(net.site, plan, parallel=1)
        assert _states(run) == {
            "leaf1": "done",
            "spine1": "done",
            "leaf2": "rolled-back",
            "leaf3": "untouched",
        }
        assert run.stopped.startswith("stopped since leaf2 failed")
