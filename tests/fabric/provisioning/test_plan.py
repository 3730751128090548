"""Plans: what they say, and that their files are not trusted."""

import dataclasses
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.devices.base import Change, FileChange
from fabric.devices.registry import expected_qos, module_of, target_of
from fabric.errors import InputError, UnreachableError
from fabric.provisioning.plan import make_plan, mismatches, undo
from fabric.provisioning.planfile import (
    _sha256,
    load_plan,
    plans_dir,
    read_order,
    read_plan,
    save_plan,
    write_orders,
    write_plan,
)
from fabric.qos import canonical_sha256
from fabric.reach.collect import States
from fabric.twin.nxos.cli import Cli
from fabric.twin.nxos.switch import EmulatedSwitch
from tests.sites import make_site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return make_site(tmp_path_factory.mktemp("site"))


def _switch_states(site, folder, names=("leaf1", "spine1"), *, configured=()):
    """States of switches in factory state, or with what is intended typed in."""
    states, outputs = {}, {}
    for name in names:
        switch = EmulatedSwitch(name, folder / name, site)
        module, target = module_of(site, name), target_of(site, name)
        if name in configured:
            cli = Cli(switch)
            cli.execute("configure terminal")
            shown = _show(switch, module, target)
            for line in module.change(target, shown, expected_qos(site, name)).commands:
                assert not module.is_error(cli.execute(line).text), line
            cli.execute("end")
        outputs[name] = _show(switch, module, target)
        states[name] = module.read(target, outputs[name])
    return States(states, outputs, {})


def _show(switch, module, target):
    cli = Cli(switch)
    return {command: cli.execute(command).text for command in module.read_commands(target)}


@pytest.fixture(scope="module")
def states(site, tmp_path_factory):
    return _switch_states(site, tmp_path_factory.mktemp("factory"))


@pytest.fixture(scope="module")
def plan(site, states):
    return make_plan(site, states, now=datetime(2026, 12, 1, 4, 12, tzinfo=UTC))


def test_a_plan_says_what_changes_on_a_factory_switch(site, plan, states):
    assert plan.id.startswith("20261201-0412-")
    assert (plan.site, plan.site_sha256) == (site.name, site.sha256)
    assert plan.created_at == "2026-12-01T04:12:00+00:00"
    assert plan.changed == ("leaf1", "spine1")
    assert not plan.empty
    order = plan.devices["leaf1"]
    assert order.kind == "switch"
    assert order.before == states.states["leaf1"]
    assert order.intended == expected_qos(site, "leaf1")
    assert order.read_sha256 == canonical_sha256((order.before,))
    assert any("priority-flow-control mode on" in line for line in order.change.commands)
    assert "+" in plan.diff("leaf1")


def test_a_plan_without_changes_says_so(site, tmp_path):
    states = _switch_states(site, tmp_path, ("leaf1",), configured=("leaf1",))
    plan = make_plan(site, states)
    assert plan.empty
    assert plan.changed == ()
    assert plan.diff("leaf1") == ""
    assert mismatches(states.states["leaf1"], plan.devices["leaf1"].intended) == []


def test_mismatches_name_port_and_field(site, states):
    found = mismatches(states.states["leaf1"], expected_qos(site, "leaf1"))
    assert any(line.startswith("Ethernet1/1: pfc_priorities: 3 -> none") for line in found)
    nothing = dataclasses.replace(states.states["leaf1"], ports=())
    assert "Ethernet1/1: the device does not show it" in mismatches(
        nothing, expected_qos(site, "leaf1")
    )


def test_unreadable_devices_are_named_with_the_reason(site, states):
    failed = {"leaf2": UnreachableError("leaf2", "log in", "refused")}
    plan = make_plan(site, dataclasses.replace(states, failed=failed))
    assert plan.unreadable == {"leaf2": "leaf2: log in: refused"}
    assert "leaf2" not in plan.devices


def test_an_output_that_makes_no_change_possible_is_that_devices_alone(site, states):
    broken = dict(states.outputs, leaf1={"show running-config": "interface Ethernet1/1\n  mtu x\n"})
    plan = make_plan(site, dataclasses.replace(states, outputs=broken))
    assert "leaf1" in plan.unreadable
    assert plan.changed == ("spine1",)


def test_saved_plans_come_back_equal_and_the_latest_is_found(site, plan):
    path = save_plan(site, plan)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_plan(site, plan.id) == plan
    assert read_order(path, "leaf1") == plan.devices["leaf1"]
    later = dataclasses.replace(plan, id="20261201-0500-aaaa")
    save_plan(site, later)
    assert load_plan(site) == later


def test_files_and_floats_survive(site, plan, tmp_path):
    change = Change("+x", ("a",), ("b",), (FileChange("/etc/x", None, "é\n", "0600"),))
    order = dataclasses.replace(plan.devices["leaf1"], change=change)
    other = dataclasses.replace(plan, devices={"leaf1": order})
    write_plan(tmp_path / "p.json", other)
    assert read_plan(tmp_path / "p.json") == other


def test_each_change_is_kept_as_a_plan_of_its_own(plan, tmp_path):
    write_orders(tmp_path, plan)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.json" for name in plan.changed}
    for name in plan.changed:
        path = tmp_path / f"{name}.json"
        assert path.stat().st_mode & 0o777 == 0o600
        assert read_order(path, name) == plan.devices[name]
        assert read_plan(path).devices.keys() == {name}


@pytest.mark.parametrize("plan_id", ["../../etc/passwd", "x", "20261201-0412-ABCD", "/tmp/a.json"])
def test_only_ids_of_plans_are_looked_up(site, plan_id):
    with pytest.raises(InputError, match="is not the ID of a plan"):
        load_plan(site, plan_id)


def test_no_plan_is_said(tmp_path):
    fresh = make_site(tmp_path)
    with pytest.raises(InputError, match="there is no plan") as caught:
        load_plan(fresh)
    assert "paisoar plan" in caught.value.advice
    with pytest.raises(InputError, match="there is no such plan"):
        load_plan(fresh, "20261201-0412-ab12")


@pytest.fixture
def saved(plan, tmp_path):
    path = tmp_path / "plan.json"
    write_plan(path, plan)
    return path


def _rewrite(path, change, *, rehash):
    document = json.loads(path.read_text())
    change(document["plan"])
    if rehash:
        document["sha256"] = _sha256(document["plan"])
    path.write_text(json.dumps(document))


def test_a_changed_command_is_noticed(saved):
    def spoil(plan):
        plan["devices"]["leaf1"]["change"]["commands"][0] = "reload"

    _rewrite(saved, spoil, rehash=False)
    for read in (read_plan, lambda path: read_order(path, "spine1")):
        with pytest.raises(InputError, match="has been changed since it was written"):
            read(saved)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: p["devices"]["leaf1"].update(extra=1), "keys or values that no plan has"),
        (lambda p: p.pop("site"), "plan.site.*required"),
        (lambda p: p["devices"]["leaf1"].update(kind="router"), "plan.devices.leaf1.kind"),
        (lambda p: p["devices"]["leaf1"]["before"].update(ports="x"), "before.ports"),
        (lambda p: p["devices"].update(leaf1=p["devices"]["spine1"]), "names another device"),
        (lambda p: p.update(devices=[]), "plan.devices"),
        (lambda p: p["devices"]["leaf1"]["change"].update(commands=[1]), "change.commands.0"),
    ],
)
def test_a_malformed_plan_is_refused_with_the_place(saved, spoil, message):
    _rewrite(saved, spoil, rehash=True)
    with pytest.raises(InputError, match=message) as caught:
        read_plan(saved)
    assert str(saved) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[1]", "is not a plan"),
        ('{"schema": 1}', "is not a plan"),
        ('{"schema": "paisoar/plan/v9", "sha256": "", "plan": {}}', "paisoar/plan/v9"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path, text, message):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_plan(tmp_path / "p.json")


def test_a_device_that_the_plan_does_not_have_is_said(saved):
    with pytest.raises(InputError, match="says nothing of leaf9"):
        read_order(saved, "leaf9")


@pytest.fixture(scope="module")
def small(plan, tmp_path_factory):
    """A plan of one switch: the plan, its bytes, and a path for spoilt copies."""
    one = dataclasses.replace(plan, devices={"spine1": plan.devices["spine1"]})
    path = tmp_path_factory.mktemp("small") / "plan.json"
    write_plan(path, one)
    return one, path.read_bytes(), path


@settings(max_examples=60, deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_whatever_a_plan_file_holds_it_is_read_equal_or_refused(small, where, byte):
    plan, good, path = small
    spoilt = bytearray(good)
    spoilt[int(where * len(good))] = byte
    path.write_bytes(bytes(spoilt))
    try:
        read = read_plan(path)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017 - either end is right
    else:
        assert read == plan


_texts = st.text(alphabet="ab -+", max_size=5)
_files = st.builds(FileChange, _texts, st.none() | _texts, st.none() | _texts)
_changes = st.builds(
    Change,
    st.lists(_texts.filter(lambda line: "\n" not in line)).map("\n".join),
    st.lists(_texts).map(tuple),
    st.lists(_texts).map(tuple),
    st.lists(_files).map(tuple),
)


@given(_changes)
def test_undoing_twice_is_the_change_itself(change):
    twice = undo(undo(change))
    assert (twice.commands, twice.rollback, twice.files) == (
        change.commands,
        change.rollback,
        change.files,
    )
    assert undo(change).empty == (not change.rollback and not change.files)


def test_plans_lie_beside_the_site(site):
    assert plans_dir(site) == site.path.parent / ".paisoar" / "plans"


def test_a_diff_the_other_way_round_keeps_lines_below_what_they_belong_to():
    diff = (
        " interface Ethernet1/1\n-  mode off\n+  mode on\n+  mtu 9216\n"
        "+policy-map A\n+  class x\n-policy-map B\n-  class y\n"
        "-h: mtu 1500\n+h: mtu 4200\n"
    )
    assert undo(Change(diff=diff)).diff.splitlines() == [
        " interface Ethernet1/1", "-  mode on", "-  mtu 9216", "+  mode off",
        "-policy-map A", "-  class x", "+policy-map B", "+  class y",
        "-h: mtu 4200", "+h: mtu 1500",
    ]  # fmt: skip
