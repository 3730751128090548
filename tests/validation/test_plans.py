import pytest

from fabric.errors import InputError
from fabric.topology import ClosShape
from tests.sites import make_site
from validation.run import plans
from validation.suites import SUITES, select
from validation.suites.incast import plan as plan_incast


def test_every_plan_covers_every_device_and_every_pair(tmp_path):
    site = make_site(tmp_path, ClosShape(16, 4, 2))
    preflight, latency, bandwidth, incast = plans(site)
    for plan in (preflight, latency, bandwidth, incast):
        assert set(plan.snapshot) == set(site.devices)
    assert preflight.expected == {"devices": 22, "links": 24, "directions": 240}
    assert latency.expected == {"pairs": 120}
    assert bandwidth.expected == {"directions": 240}
    for plan in (preflight, latency, bandwidth):
        assert len(plan.steps) == 15
        for step in plan.steps:
            hosts = [s.device for s, t in step.pairs()] + [t.device for s, t in step.pairs()]
            most = 1 if plan is latency else 2
            assert max(map(hosts.count, hosts)) == most
    assert [step.id for step in incast.steps][:4] == ["2-to-1", "4-to-1", "8-to-1", "all-to-host1"]
    assert incast.expected == {"steps": 19, "receivers": 16}
    assert all(len(list(step.pairs())) == 15 for step in incast.steps[3:])


def test_rails_of_dual_homed_hosts_run_side_by_side(tmp_path):
    site = make_site(tmp_path, ClosShape(4, 2, 1, nics_per_host=2))
    latency = SUITES["latency"].plan(site)
    assert latency.expected == {"pairs": 12}
    assert len(latency.steps) == 3
    for step in latency.steps:
        for source, target in step.pairs():
            assert source.port == target.port
    assert plan_incast(site).expected["receivers"] == 8


def test_an_odd_number_of_hosts_still_meets_all_pairs(tmp_path):
    site = make_site(tmp_path, ClosShape(5, 1, 0))
    assert SUITES["latency"].plan(site).expected == {"pairs": 10}


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
