import pytest

from fabric.errors import InputError
from fabric.topology import ClosShape
from tests.sites import make_site
from validation.run import plans
from validation.suites import SUITES, select
from validation.suites.bandwidth import bisection
from validation.suites.incast import plan as plan_incast
from validation.suites.pairs import PAIRS_AT_ONCE, pair_rounds


def test_every_plan_covers_every_device_and_every_pair(tmp_path):
    site = make_site(tmp_path, ClosShape(16, 4, 2))
    preflight, latency, bandwidth, incast = plans(site)
    for plan in (preflight, latency, bandwidth, incast):
        assert set(plan.snapshot) == set(site.devices)
    # 48 ports, 16 of them of hosts: packets and drops both ways; errors; what was sent again.
    whole, errors, again = 4 * 48, 4 * 16 + 2 * 32, 5 * 16
    assert preflight.expected == {
        "devices": 22,
        "links": 24,
        "directions": 240,
        "counters": whole + errors,
    }
    assert latency.expected == {"pairs": 120, "counters": 2 * 48 + again}
    assert bandwidth.expected == {
        "steps": 18,
        "directions": 240,
        "uplinks": 16,
        "counters": whole + again,
    }
    assert [step.id for step in bandwidth.steps[15:]] == ["one-way", "one-way-back", "bisection"]
    for plan in (preflight, latency, bandwidth):
        assert len(plan.steps) == (18 if plan is bandwidth else 15)
        for step in plan.steps[:15]:
            hosts = [s.device for s, t in step.pairs()] + [t.device for s, t in step.pairs()]
            most = 1 if plan is latency else 2
            assert max(map(hosts.count, hosts)) == most
    assert [step.id for step in incast.steps][:4] == ["2-to-1", "4-to-1", "8-to-1", "all-to-host1"]
    assert incast.expected == {
        "steps": 21,
        "receivers": 16,
        "pairs": 2 + 4 + 8 + 16 * 15 + 2 * 14 + 4 * 12,
        "counters": whole + again,
    }
    assert all(len(list(step.pairs())) == 15 for step in incast.steps[3:19])


def test_rails_of_dual_homed_hosts_run_side_by_side(tmp_path):
    site = make_site(tmp_path, ClosShape(4, 2, 1, nics_per_host=2))
    latency = SUITES["latency"].plan(site)
    assert latency.expected["pairs"] == 12
    assert len(latency.steps) == 3
    for step in latency.steps:
        for source, target in step.pairs():
            assert source.port == target.port
    assert plan_incast(site).expected["receivers"] == 8


def test_an_odd_number_of_hosts_still_meets_all_pairs(tmp_path):
    site = make_site(tmp_path, ClosShape(5, 1, 0))
    assert SUITES["latency"].plan(site).expected["pairs"] == 10


def test_big_sites_sample_the_receivers(tmp_path):
    site = make_site(tmp_path, ClosShape(64, 4, 2))
    receivers = [s.id for s in plan_incast(site).steps if s.id.startswith("all-to-")]
    assert len(receivers) == 32
    assert receivers[0] == "all-to-host1"
    assert receivers[-1] == "all-to-host63"


def test_what_cannot_be_tested_says_so_instead_of_passing(tmp_path):
    two = make_site(tmp_path, ClosShape(2, 1, 0))
    assert "three hosts" in plan_incast(two).impossible
    assert not SUITES["latency"].plan(two).impossible


def test_suites_run_in_their_own_order_and_unknown_ones_are_refused():
    assert [suite.name for suite in select(["incast", "preflight"])] == ["preflight", "incast"]
    assert [suite.name for suite in select()] == ["preflight", "latency", "bandwidth", "incast"]
    with pytest.raises(InputError, match="no suite is called 'soaking'.*preflight"):
        select(["soaking"])


def test_pairs_cross_rails_where_a_path_leads_over(tmp_path):
    plan = SUITES["bandwidth"].plan(make_site(tmp_path, ClosShape(4, 2, 1, nics_per_host=2)))
    (crossing,) = [step for step in plan.steps if step.id == "cross-rail"]
    rails = [(source.port, target.port) for source, target in crossing.pairs()]
    assert set(rails) == {("ens1f0", "ens1f1"), ("ens1f1", "ens1f0")}
    assert all(source.device != target.device for source, target in crossing.pairs())


def test_the_bisection_is_all_hosts_across_the_middle(tmp_path):
    site = make_site(tmp_path, ClosShape(16, 4, 2))
    pairs = bisection(site)
    assert len(pairs) == 8
    leaf = {port: site.topology.peer(port).device for port in site.topology.endpoints}
    assert {leaf[source] for source, _ in pairs} == {"leaf1", "leaf2"}
    assert {leaf[target] for _, target in pairs} == {"leaf3", "leaf4"}
    assert bisection(make_site(tmp_path, ClosShape(4, 1, 0))) == ()


@pytest.mark.parametrize(
    "shape", [ClosShape(130, 13, 2), ClosShape(105, 7, 2), ClosShape(70, 1, 0)]
)
def test_big_sites_visit_a_sample_in_which_every_two_leaves_meet(tmp_path, shape):
    site = make_site(tmp_path, shape)
    leaf = {port: site.topology.peer(port).device for port in site.topology.endpoints}
    met, seen = set(), set()
    for pairs in pair_rounds(site):
        ends = [end.device for pair in pairs for end in pair]
        assert len(set(ends)) == len(ends)  # nobody is in two pairs of a round
        assert len(pairs) <= PAIRS_AT_ONCE
        met |= {frozenset((leaf[a], leaf[b])) for a, b in pairs}
        seen |= {frozenset(pair) for pair in pairs}
    leaves = set(leaf.values())
    assert met == {frozenset((a, b)) for a in leaves for b in leaves}
    everyone = {end for pair in seen for end in pair}
    assert everyone == set(site.topology.endpoints)
    plan = SUITES["latency"].plan(site)
    assert plan.note.startswith(f"a sample of {plan.expected['pairs']:,} of ")
    assert len(seen) == plan.expected["pairs"]  # no pair twice
    assert not SUITES["latency"].plan(make_site(tmp_path, ClosShape(64, 4, 2))).note


def test_a_thousand_hosts_are_planned_without_their_full_matrix(tmp_path):
    site = make_site(tmp_path, ClosShape(1024, 32, 16))
    planned = plans(site, list(SUITES))
    flows = sum(len(stream.pairs) for p in planned for s in p.steps for stream in s.streams)
    assert flows < 250_000  # of the half million pairs, each way, in three suites
    assert all(plan.steps for plan in planned)


def test_all_others_send_to_few_receivers_of_different_leaves(tmp_path):
    site = make_site(tmp_path, ClosShape(16, 4, 2))
    few = {s.id: list(s.pairs()) for s in plan_incast(site).steps if s.id.startswith("many-to-")}
    assert set(few) == {"many-to-2", "many-to-4"}
    for step, count in (("many-to-2", 2), ("many-to-4", 4)):
        targets = {target for _, target in few[step]}
        senders = {source for source, _ in few[step]}
        assert (len(targets), len(senders)) == (count, 16 - count)
        assert not targets & senders
        assert len({site.topology.peer(target).device for target in targets}) == count
        assert len(few[step]) == count * (16 - count)  # each sender to every receiver
    # Senders are more than receivers, or there is no incast.
    assert not [s for s in plan_incast(make_site(tmp_path)).steps if s.id.startswith("many")]


@pytest.mark.parametrize("hosts", [4, 5])
def test_every_port_sends_alone_and_receives_alone(tmp_path, hosts):
    site = make_site(tmp_path, ClosShape(hosts, 1, 0))
    steps = {step.id: list(step.pairs()) for step in SUITES["bandwidth"].plan(site).steps}
    assert {end for pair in steps["one-way"] for end in pair} == set(site.topology.endpoints)
    assert steps["one-way-back"] == [(b, a) for a, b in steps["one-way"]]
    senders = [source for source, _ in steps["one-way"]]
    assert len(set(senders)) == len(senders) == (hosts + 1) // 2


def test_repetitions_are_whole_rounds_of_all_steps_and_are_expected(tmp_path):
    site = make_site(tmp_path)
    once, thrice = (SUITES["incast"].again(site, times) for times in (1, 3))
    ids = [step.id for step in once.steps]
    assert [step.id for step in thrice.steps] == [
        *ids,
        *(f"{step}#2" for step in ids),
        *(f"{step}#3" for step in ids),
    ]
    assert thrice.expected["steps"] == 3 * once.expected["steps"]
    assert thrice.expected["pairs"] == 3 * once.expected["pairs"]
    assert thrice.expected["receivers"] == once.expected["receivers"]
    assert thrice.expected["repetitions"] == 3
    assert "repetitions" not in once.expected
    # A ping-pong has its repetitions already.
    assert SUITES["latency"].again(site, 3) == SUITES["latency"].plan(site)


@pytest.mark.parametrize(
    "shape", [ClosShape(32, 4, 2), ClosShape(96, 2, 2), ClosShape(8, 2, 1, nics_per_host=2)]
)
def test_bursts_meet_at_a_receiver_of_the_senders_own_leaf(tmp_path, shape):
    site = make_site(tmp_path, shape)
    leaf = {port: site.topology.peer(port).device for port in site.topology.endpoints}
    plan = SUITES["burst"].plan(site)
    pressed = {
        source
        for step in plan.steps
        if step.id.startswith("large-")
        for source, target in step.pairs()
        if leaf[source] == leaf[target] and len(list(step.pairs())) > 2
    }
    assert pressed == set(site.topology.endpoints)
    ids = [step.id for step in plan.steps]
    assert len(set(ids)) == len(ids)
    assert len(ids) <= 4 * 2 * 5 * shape.nics_per_host + 2 * len(set(leaf.values()))
