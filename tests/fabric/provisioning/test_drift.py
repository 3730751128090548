"""What others change after a run shows as a diff against what the run left."""

import dataclasses

import pytest

from fabric.provisioning.drift import applied_orders, drifts
from fabric.provisioning.outcome import Outcome
from fabric.provisioning.plan import make_plan
from fabric.provisioning.provision import provision, rollback
from fabric.provisioning.runs import run_folder, run_ids, save_result
from tests.fabric.switch_sites import switch_site


@pytest.fixture
def net(tmp_path, monkeypatch):
    with switch_site(tmp_path, monkeypatch) as net:
        yield net


def _drifts(net):
    return drifts(net.site, net.read(), applied_orders(net.site))


@pytest.mark.slow
def test_an_edit_of_our_lines_is_a_diff_and_one_of_others_is_none(net):
    assert _drifts(net) == ()
    run = provision(net.site, make_plan(net.site, net.read()))
    assert run.error is None
    assert _drifts(net) == ()
    net.execute("leaf1", "configure terminal", "snmp-server location hall 4")
    assert _drifts(net) == ()
    net.execute(
        "leaf1", "configure terminal", "interface Ethernet1/1", "priority-flow-control mode off"
    )
    (drift,) = _drifts(net)
    assert (drift.device, drift.run_id) == ("leaf1", run.run_id)
    lines = [line.split() for line in drift.diff.splitlines()]
    assert ["-", "priority-flow-control", "mode", "on"] in lines
    assert ["+", "priority-flow-control", "mode", "off"] in lines

    # Going forward again is a run of one device; the others are still the first run's.
    again = provision(net.site, make_plan(net.site, net.read()), save_unsaved=True)
    assert {name for name, out in again.devices.items() if out.state == "done"} == {"leaf1"}
    assert _drifts(net) == ()
    assert {name: run_id for name, (run_id, _) in applied_orders(net.site).items()} == {
        "leaf1": again.run_id,
        "leaf2": run.run_id,
        "spine1": run.run_id,
    }

    # What was taken back, or went wrong, is nothing to be measured by.
    back = rollback(net.site, again.run_id)
    assert back.error is None
    assert "leaf1" not in applied_orders(net.site)
    failed = dataclasses.replace(run, devices={**run.devices, "leaf2": Outcome("failed", "x")})
    save_result(net.site, failed)
    assert list(applied_orders(net.site)) == ["spine1"]
    (run_folder(net.site, run.run_id) / "result.json").write_text("{")
    assert applied_orders(net.site) == {}
    assert run_ids(net.site) == (run.run_id, again.run_id, back.run_id)
