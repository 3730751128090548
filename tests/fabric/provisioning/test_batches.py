"""What has no result is never called done, and what had no turn is never called unchanged."""

from types import SimpleNamespace

from fabric.provisioning import batches
from fabric.provisioning.runner import PlaybookRun
from fabric.topology import ClosShape
from tests.sites import make_site


def run(tmp_path, monkeypatch, events):
    site = make_site(tmp_path, ClosShape(2, 2, 1), environment="site")
    stages = []

    def played(*_args, limit, on_event, **_options):
        stages.append(limit)
        for kind, device, res in events:
            on_event({"event": kind, "event_data": {"host": device, "task": "t", "res": res}})
        return PlaybookRun(2, cut_off=False, output="")

    monkeypatch.setattr(batches, "run_playbook", played)
    made = batches.Batches(
        site,
        tmp_path,
        "provision.yml",
        check=False,
        broken_run="",
        save_unsaved=False,
        lock=tmp_path / "lock",
        parallel=4,
        stop=SimpleNamespace(stopping=False),
        on_event=None,
    )
    made.run(("leaf1", "leaf2", "host1", "host2"))
    return made, stages


def test_a_canary_without_a_result_stops_the_run(tmp_path, monkeypatch):
    made, stages = run(tmp_path, monkeypatch, [("runner_on_start", "leaf1", {})])
    assert len(stages) == 1
    assert {name: outcome.state for name, outcome in made.outcomes.items()} == {
        "leaf1": "failed",
        "leaf2": "untouched",
        "host1": "untouched",
        "host2": "untouched",
    }
    assert "leaf1" in made.stopped


def test_canaries_that_ansible_left_out_are_untouched(tmp_path, monkeypatch):
    events = [
        ("runner_on_start", "leaf1", {}),
        ("runner_on_failed", "leaf1", {"msg": "ten checkpoints are there already"}),
    ]
    made, _ = run(tmp_path, monkeypatch, events)
    assert made.outcomes["host1"].state == "untouched"
    assert "ten checkpoints" in made.outcomes["leaf1"].detail
