"""What may be removed, and that it is removed whole."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fabric.errors import InputError
from fabric.site import load_site
from validation.certificates import certificate
from validation.certificates.certify import certify
from validation.results.prune import plan_pruning, prune
from validation.results.store import Store, list_runs, run_dir
from validation.run import run_suites
from validation.times import utc_now

OLD = timedelta(days=30)


def preflight(fabric, days_ago=0.0):
    """A run that began so many days ago."""
    at = utc_now() - timedelta(days=days_ago)
    return run_suites(
        fabric.site,
        ["preflight"],
        readers=fabric.readers(),
        probe=fabric.probe,
        clock=lambda: at,
    )


def planned(site, **limits):
    return {going.run_id for going in plan_pruning(site, **limits).going}


def test_by_age_by_count_and_by_both(fabric):
    oldest, old, young = (preflight(fabric, days).id for days in (90, 40, 1))
    site = fabric.site
    assert planned(site, older_than=OLD) == {oldest, old}
    assert planned(site, keep=1) == {oldest, old}
    assert planned(site, keep=0) == {oldest, old, young}
    assert planned(site, older_than=OLD, keep=2) == {oldest}
    assert planned(site, older_than=timedelta(days=365)) == set()
    with pytest.raises(InputError, match="nothing says which runs are old"):
        plan_pruning(site)


def test_rows_and_evidence_are_gone_and_the_rest_is_whole(fabric):
    old, young = preflight(fabric, 40), preflight(fabric, 1)
    pruning = plan_pruning(fabric.site, older_than=OLD)
    assert pruning.size_bytes > 1000
    assert pruning.kept == 1
    assert prune(fabric.site, pruning) == (old.id,)
    assert not old.folder.exists()
    (left,) = list_runs(fabric.site)
    assert left.to_json() == young.to_json()
    assert planned(fabric.site, older_than=OLD) == set()


def test_what_a_valid_certificate_stands_on_stays_until_it_is_revoked(fabric, signed):
    run_id = signed.predicate.run.id
    pruning = plan_pruning(fabric.site, keep=0)
    assert pruning.going == ()
    assert pruning.held == {run_id: f"certificate {signed.id} stands on it"}
    later = plan_pruning(fabric.site, keep=0, clock=lambda: signed.not_after)
    assert [going.run_id for going in later.going] == [run_id]
    certificate.revoke(fabric.site, signed.id, "replaced")
    assert planned(fabric.site, keep=0) == {run_id}


def test_a_certificate_that_came_after_the_plan_still_protects(fabric, measured):
    pruning = plan_pruning(fabric.site, keep=0)
    assert [going.run_id for going in pruning.going] == [measured.id]
    certify(fabric.site, measured, reader=fabric.read_states)
    assert prune(fabric.site, pruning) == ()
    assert measured.folder.exists()


def test_a_certificate_that_only_does_not_fit_now_still_protects(fabric, signed):
    path = fabric.site.path
    path.write_text(path.read_text().replace("kmin: 100KB", "kmin: 90KB", 1))
    changed = load_site(path)
    assert certificate.show(changed).reason == "intent-changed"
    assert plan_pruning(changed, keep=0).going == ()


def test_a_run_that_may_be_at_work_stays(fabric):
    made = preflight(fabric)
    with Store(fabric.site) as store:
        store.save(replace(made, status="running"))
    assert plan_pruning(fabric.site, keep=0).held == {made.id: "it may be at work"}
    later = utc_now() + timedelta(days=8)
    pruning = plan_pruning(fabric.site, keep=0, clock=lambda: later)
    assert [going.run_id for going in pruning.going] == [made.id]


def test_folders_that_no_run_names_are_not_ours_to_remove(fabric):
    preflight(fabric)
    other = run_dir(fabric.site, "val-20200101T000000Z-abcdef")
    other.mkdir()
    plan = plan_pruning(fabric.site, keep=0)
    assert other.name not in {going.run_id for going in plan.going}
    prune(fabric.site, plan)
    assert other.exists()
