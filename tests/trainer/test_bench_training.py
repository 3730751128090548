import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from fabric.errors import InputError, ToolError
from paisoar.cli import app
from tests.trainer.leftovers import ranks_left
from trainer.bench import training, ways
from trainer.bench.training import BenchRow, bench_train
from trainer.spec import MODELS
from trainer.supervise import run_ranks

ONE_GIB = SimpleNamespace(rss=1 << 30)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"models": ["lenet"]}, "models"),
        ({"syncs": ["gossip"]}, "sync"),
        ({"against": ["horovod"]}, "against"),
    ],
)
def test_unknown_names_are_refused_before_anything_starts(options, key):
    with pytest.raises(InputError) as caught:
        bench_train(**{"models": ["greennet"], "ranks": [1], **options})
    assert caught.value.key == key
    assert not ranks_left()


def _way(name, rates, **more):
    way = ways.Way(name, 2, images_per_s=rates, **more)
    way.step_s, way.waited_s, way.cpu_s = [0.5], [0.01], [0.4]
    return way


def test_ratios_are_of_the_same_round_and_medians_over_the_rounds():
    # The machine slows down in the third round: ratios do not notice.
    alive = {
        "single": _way("single", [100.0, 100.0, 10.0]),
        "ring": _way("ring", [98.0, 96.0, 9.7]),
        "tf-ring": _way("tf-ring", [50.0, 48.0, 4.85]),
        "tf-ps": _way("tf-ps", [], failure="ended with 1: no luck"),
    }
    setup = ways.Setup("greennet", 2, 8, 4, "auto")
    row = training._row(setup, alive["ring"], alive, "shm")
    assert row.efficiency == pytest.approx(0.97)
    assert row.ratio == {"tf-ring": pytest.approx(2.0)}
    assert row.absent == {"tf-ps": "ended with 1: no luck"}
    assert (row.images_per_s, row.step_ms) == (96.0, 500.0)
    assert (row.exposed_comm_ms, row.cpu_ms) == (10.0, 400.0)
    lost = training._row(setup, alive["tf-ps"], alive, "")
    assert lost.absent == {"tf-ps": "ended with 1: no luck"}


class _Answering:
    """A process of a way that took these seconds for its steps."""

    def __init__(self, *seconds):
        self.seconds = list(seconds)

    def write(self, _question):
        pass

    def flush(self):
        pass

    def readline(self):
        spent = sum(self.seconds)
        return json.dumps({"seconds": self.seconds, "spent_s": spent, "waited_s": 0.0, "loss": 1.0})


def test_what_waiting_for_the_slowest_costs_is_told_of_the_independent_processes():
    setup = ways.Setup("greennet", 2, 8, 4, "auto")
    single = ways.Way("single", 2, streams=[_Answering(1.0, 3.0), _Answering(3.0, 1.0)])
    ways.take_turn(setup, single, 2)
    # Each does two steps of four images in 4 s; waiting for each other, in 6 s.
    assert single.images_per_s == [4.0]
    ring = ways.Way("ring", 2, streams=[_Answering(3.0, 3.0), _Answering(3.0, 3.0)])
    ways.take_turn(setup, ring, 2)
    alive = {"single": single, "ring": ring}
    row = training._row(setup, single, alive, "none")
    assert row.lockstep == pytest.approx(2 / 3)
    assert training._row(setup, ring, alive, "shm").lockstep is None
    assert training._row(setup, ring, alive, "shm").efficiency == pytest.approx(2 / 3)


def test_the_command_prints_lines_and_a_table_or_one_document(monkeypatch):
    row = BenchRow(
        *("greennet", 2, "ring", "shm", 123.4, 17.0, 16.0, 0.5, 0.98, 1.0, 2.0, 2.3),
        ratio={"tf-ring": 1.5},
        absent={"tf-ps": "gone"},
    )
    lost = BenchRow("greennet", 2, "tf-ps", "grpc", *[0.0] * 3, None, None, *[0.0] * 3)
    lost.absent["tf-ps"] = "gone"
    asked = {}

    def measure(models, ranks, *, on_line, on_step, **options):
        asked.update(options, models=models, ranks=ranks)
        on_line("10\timages/sec: 123.4 +/- 1.0 (jitter = 2.0)\t2.300")
        return [row, lost]

    monkeypatch.setattr(training, "bench_train", measure)
    words = ["bench", "train", "--models", "greennet", "--ranks", "1,2", "--against", "tf-ps"]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert "images/sec: 123.4 +/- 1.0 (jitter = 2.0)" in shown.stdout
    assert "0.980" in shown.stdout
    assert "tf-ps is absent: gone" in shown.stdout
    assert (asked["models"], asked["ranks"]) == (["greennet"], [1, 2])
    assert (asked["syncs"], asked["against"]) == (["ring", "ps"], ["tf-ps"])
    document = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert document["rows"][0]["ratio"] == {"tf-ring": 1.5}
    assert {"model", "ranks", "sync", "transport", "images_per_s", "step_ms"} <= set(
        document["rows"][0]
    )
    assert CliRunner().invoke(app, ["bench", "train", "--models", "all"]).exit_code == 0
    assert asked["models"] == list(MODELS)
    assert CliRunner().invoke(app, ["bench", "train", "--ranks", "two"]).exit_code == 2


@pytest.mark.parametrize(("name", "processes"), [("tf-ring", 2), ("tf-ps", 4)])
def test_a_peer_for_which_there_is_no_memory_is_absent_and_says_how_much(
    name, processes, monkeypatch
):
    single = ways.Way("single", 2, processes=[SimpleNamespace(memory_info=lambda: ONE_GIB)])
    setup = ways.Setup("greennet", 2, 8, 4, "auto")
    free = processes << 30
    memory = lambda: SimpleNamespace(available=free)  # noqa: E731
    monkeypatch.setattr(ways.psutil, "virtual_memory", memory)
    ways.find_room(setup, ways.Way(name, 2), single)
    free -= 1 << 20
    with pytest.raises(ToolError, match=rf"{name} needs about {processes << 10} MiB"):
        ways.find_room(setup, ways.Way(name, 2), single)


def test_an_interrupt_does_not_wait_for_ranks_that_still_start(monkeypatch, tmp_path):
    def start(_program, task, **options):
        root = Path(__file__).parents[2]
        run_ranks("tests.trainer.programs:outlast", task, path=[root], **options)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ways, "run_ranks", start)
    monkeypatch.setattr(training, "gather", interrupt)
    ended = tmp_path / "ended"
    setup = ways.Setup(str(ended), 2, 8, 4, "shm")
    with pytest.raises(KeyboardInterrupt):
        training._measure(setup, ["ring"], 1, 1, print, lambda _: None)
    assert not ranks_left()
    assert not ended.exists()


@pytest.mark.slow
def test_an_interrupted_benchmark_leaves_no_process(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "take_turn", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bench_train(["greennet"], [1], syncs=["ring"], batch_size=4, image_size=8)
    assert not ranks_left()


@pytest.mark.slow
def test_ways_of_training_take_turns_in_one_run(tmp_path):
    lines, steps = [], []
    rows = bench_train(
        ["greennet"],
        [2],
        syncs=["ring", "ps"],
        against=["tf-ring"],
        rounds=2,
        steps=20,
        batch_size=4,
        image_size=8,
        on_line=lines.append,
        on_step=lambda words, done, total: steps.append(words),
    )
    assert steps[0] == "greennet, 2 ranks: starting single"
    assert steps[-1] == "greennet, 2 ranks: round 2 of 2"
    assert [row.sync for row in rows] == ["single", "ring", "ps", "tf-ring"]
    assert [row.transport for row in rows] == ["none", "shm", "shm", "grpc"]
    assert all(row.images_per_s > 0 and row.cpu_ms >= 0 for row in rows)
    assert rows[1].ratio["tf-ring"] > 0
    assert rows[0].efficiency == 1.0
    # The same gradients whether by ring or by parameter server.
    assert rows[1].loss == pytest.approx(rows[2].loss, abs=1e-6)
    assert sum(line.startswith("total images/sec: ") for line in lines) == 4
    assert not ranks_left()
