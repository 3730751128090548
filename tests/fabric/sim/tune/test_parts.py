"""The parts of a search: the small site, the space, the traffic, the front, the copy."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fabric.errors import InputError
from fabric.intent import Certify
from fabric.sim.api import SimOptions
from fabric.sim.run import prepare
from fabric.sim.tune.front import costs, pareto, spread
from fabric.sim.tune.representative import represent
from fabric.sim.tune.space import Space, todays_settings
from fabric.sim.tune.traffic import check_traffic, scenes_of
from fabric.sim.tune.trial import Measures, Trial, broken, combine, run_trial, with_intent
from fabric.sim.tune.write import copied_text, write_copy
from fabric.sim.variants import Variants
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from tests.fabric.sim.scenario import site_of, star, states_of
from tests.sites import make_site

LARGE = ClosShape(hosts=192, leaves=8, spines=4)
GOOD = Measures(0.99, 1.2, 30.0, 0.98, 0.97, 0.0, 500.0, 0, 1000)


def test_a_large_site_is_represented_by_few_of_its_devices():
    site = site_of(LARGE)
    small = represent(site)
    topology = small.site.topology
    assert len(topology.hosts) == 16
    assert [name for name in topology.switches if name.startswith("leaf")] == [
        f"leaf{n}" for n in (1, 2, 3, 4)
    ]
    assert [name for name in topology.switches if name.startswith("spine")] == ["spine1", "spine2"]
    assert small.words.startswith("16 of 192 hosts on 6 of 12 switches")
    for leaf in ("leaf1", "leaf4"):
        assert topology.oversubscription(leaf) <= site.topology.oversubscription(leaf)
        whole, part = (s.topology.ports_of[leaf] for s in (site, small.site))
        per_port = small.site.switch(leaf).buffer / len(part)
        assert per_port == pytest.approx(site.switch(leaf).buffer / len(whole), rel=1e-6)
    flows = scenes_of(small.site, ["ring"], 8, 10_000)[0].flows
    prepare(small.site, states_of(small.site), flows, SimOptions(100))


def test_oversubscription_is_kept():
    replace = ("max_oversubscription: 1.0", "max_oversubscription: 4.0")
    text = site_of(LARGE, replace)
    fewer = [
        k
        for k in text.topology.links
        if not (k.a.device[:4] == "leaf" and "spine" in k.b.device and k.b.device != "spine1")
    ]
    assert len(fewer) < len(text.topology.links)
    topology = type(text.topology)(text.topology.hosts, text.topology.switches, tuple(fewer))
    site = type(text)(text.path, text.document, topology)
    assert topology.oversubscription("leaf1") > 2
    small = represent(site).site.topology
    assert small.oversubscription("leaf1") == 1  # 4 hosts of 25G need one cable at least
    assert len([p for p in small.ports_of["leaf1"] if "spine" in small.peer(p).device]) == 1


@pytest.mark.parametrize("shape", [ClosShape(3, 1, 0), ClosShape(8, 4, 2, nics_per_host=2)])
def test_stars_and_dual_homed_sites_are_represented(shape):
    site = site_of(shape)
    small = represent(site).site
    assert all(len(small.host(host).nics) == 1 for host in small.topology.hosts)
    for a, b in itertools.permutations(small.topology.endpoints, 2):
        assert small.topology.paths(a, b)
    if shape.leaves == 1:
        assert represent(site).words.startswith("the whole site")


def test_one_host_cannot_be_tuned():
    with pytest.raises(InputError, match="between two hosts"):
        represent(star(1))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make_site(tmp_path_factory.mktemp("site"), ClosShape(16, 4, 2))


SIZE = len(Space(star(2)).dimensions)


@settings(deadline=None, max_examples=60)
@given(point=arrays(float, SIZE, elements=st.floats(0, 1)))
def test_every_point_is_a_valid_site(whole, point):
    found = Space(whole).settings(point)
    site = Variants(whole).with_settings(found)
    for text, profile in site.intent.profiles.items():
        assert profile.xoff <= whole.intent.profiles[text].xoff


def test_todays_point_is_close_to_the_intent(whole):
    space = Space(whole)
    found = space.settings(space.today())
    todays = todays_settings(whole.intent, list(found))
    assert found.pop("intent.profiles.100G.kmax") == todays.pop("intent.profiles.100G.kmax")
    assert found["intent.profiles.25G.kmin"] == "100KB"
    assert found == todays


def test_a_dynamic_threshold_is_searched_where_switches_have_one(tmp_path):
    nxos, sonic = (_with_alpha(tmp_path / os, os) for os in ("nxos", "sonic"))
    assert "alpha" not in {d.name for d in Space(nxos).dimensions}
    space = Space(sonic)
    assert space.dynamic
    found = space.settings(np.full(len(space.dimensions), 0.5))
    assert np.log2(float(found["intent.profiles.25G.alpha"])) % 1 == 0
    assert "intent.profiles.25G.xoff" not in found


def _with_alpha(folder, switch_os):
    folder.mkdir()
    text = starter_yaml(ClosShape(4, 2, 1), site="t", environment="twin", switch_os=(switch_os,))
    if "alpha:" not in text:
        text = text.replace("xon: 140KB", "xon: 140KB, alpha: 0.125")
        text = text.replace("590KB", "590KB, alpha: 0.125")
    path = folder / "fabric.yaml"
    path.write_text(text)
    return load_site(path)


def test_queue_pairs_make_up_for_hosts_that_are_missing():
    site = star(5)
    incast, ring, mix = scenes_of(site, ["incast", "ring", "mix"], 10, 20_000)
    assert [flow.qps for flow in incast.flows] == [3, 3, 2, 2]
    assert sum(incast.fair_bps) == pytest.approx(25e9)
    assert incast.fair_bps[0] == pytest.approx(1.5 * incast.fair_bps[2])
    assert ring.fair_bps == (25e9,) * 5
    assert (ring.incast, mix.incast) == (0, 4)
    receiver = site.topology.endpoints[-1]
    assert all(receiver not in (f.source, f.target) for f in mix.flows[4:])
    assert sum(mix.fair_bps[:4]) == pytest.approx(25e9)
    # A ring of four NICs, each of which also sends to the receiver.
    assert mix.fair_bps[4] == pytest.approx(25e9 - mix.fair_bps[0])


def test_messages_are_short_enough_to_end_several_times():
    site = star(5)
    few, many = (scenes_of(site, ["incast"], degree, 20_000)[0] for degree in (4, 64))
    assert {flow.message_bytes for flow in few.flows} == {1_000_000}
    assert {flow.message_bytes for flow in many.flows} == {122_000}
    result = run_trial(Trial(site, (many,), 20_000, 1))
    assert result.tail > 1


@pytest.mark.parametrize(
    ("kinds", "degree", "words"), [(["storm"], 8, "storm"), (["ring"], 1, "two senders")]
)
def test_unknown_traffic_is_refused(kinds, degree, words):
    with pytest.raises(InputError, match=words):
        check_traffic(kinds, degree)


def test_a_trial_measures_what_its_settings_do():
    site = star(9)
    scenes = scenes_of(site, ["incast"], 8, 10_000)
    today = run_trial(Trial(site, scenes, 10_000, 1))
    assert today.drops == 0
    assert 0.9 < today.incast <= 1.0001
    assert 0.9 < today.jain <= 1
    assert 1 < today.tail < 5
    assert today == run_trial(Trial(site, scenes, 10_000, 1))
    profile = site.intent.profiles["25G"]
    late = profile.model_copy(update={"kmin": 149_000, "kmax": 4_000_000, "pmax_percent": 1})
    intent = site.intent.model_copy(update={"profiles": {**site.intent.profiles, "25G": late}})
    worse = run_trial(Trial(with_intent(site, intent), scenes, 10_000, 1))
    assert worse.pause > 0.3
    assert worse.queue_us > 3 * today.queue_us
    assert set(broken(worse, Certify())) >= {"pause"}


def test_constraints_that_do_not_hold_are_named_with_how_far_off():
    assert broken(GOOD, Certify()) == {}
    bad = Measures(0.5, 9.0, 300.0, 0.5, 0.6, 0.45, 500.0, 7, 1000)
    off = broken(bad, Certify())
    assert off == pytest.approx({"drops": 7, "pause": 0.4, "fairness": 0.4, "incast goodput": 0.3})
    both = combine([GOOD, bad])
    assert (both.goodput, both.queue_us, both.jain, both.drops) == (0.745, 300.0, 0.5, 7)


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=12))
def test_the_front_is_what_no_other_betters(rows):
    cost = np.array(rows, float)
    front = pareto(cost)
    assert front
    for k in range(len(rows)):
        beaten = any(
            all(a <= b for a, b in zip(other, rows[k], strict=True)) and other != rows[k]
            for other in rows
        )
        first = rows.index(rows[k]) == k
        assert (k in front) == (not beaten and first)


def test_the_shown_few_hold_the_best_in_each_objective():
    measures = [
        Measures(0.9 + k / 1000, 3 - k / 50, 10.0 + 3 * k, 1, 1, 0, 0, 0, 1) for k in range(40)
    ]
    cost = costs(measures)
    chosen = spread(cost, 5)
    assert len(chosen) == len(set(chosen)) == 5
    assert {0, 39} <= set(chosen)
    assert spread(cost[:3], 5) == [0, 1, 2]


CHOSEN = {
    "intent.profiles.25G.kmin": "42KB",
    "intent.dcqcn.ai_rate_mbps": "38",
    "intent.dcqcn.initial_alpha_of_1024": "512",
}


def test_a_copy_differs_in_the_chosen_lines_alone(whole):
    before = whole.path.read_text()
    after = copied_text(before, CHOSEN)
    old, new = before.splitlines(), after.splitlines()
    added = [line for line in new if line not in old]
    gone = [line for line in old if line not in new]
    assert len(added) == 3
    assert len(gone) == 2
    assert any("kmin: 42KB, kmax: 400KB" in line for line in added)
    assert "    initial_alpha_of_1024: 512" in added
    assert [line for line in old if line.strip().startswith("#")] == [
        line for line in new if line.strip().startswith("#")
    ]
    # Spaces that line up columns within a line are not kept.
    assert copied_text(before, {}).split() == before.split()


def test_a_copy_is_valid_and_overwrites_nothing(whole, tmp_path):
    before = whole.path.read_bytes()
    copy = tmp_path / "tuned.yaml"
    assert write_copy(whole.path, copy, CHOSEN).intent.dcqcn.ai_rate_mbps == 38
    assert whole.path.read_bytes() == before
    for there in (copy, whole.path):
        with pytest.raises(InputError, match="overwrites nothing"):
            write_copy(whole.path, there, CHOSEN)
    wrong = tmp_path / "wrong.yaml"
    with pytest.raises(InputError, match="kmin"):
        write_copy(whole.path, wrong, {"intent.profiles.25G.kmin": "9MB"})
    assert not wrong.exists()
