"""The article's figures: from our own runs and predictions, and never invented."""

import json
import re
import shutil

import pandas as pd
import pytest
from typer.testing import CliRunner

from fabric.site import load_site
from fabric.topology import ClosShape
from paisoar.cli import app
from reports.content.article import HOSTS, PUBLISHED, article
from reports.page.article import render_article
from tests.reports.svgread import points
from tests.sites import write_site
from tests.validation.fake import FakeFabric
from trainer.predict.frames import article_frames
from validation.results.frames import soak_frame
from validation.run import run_suites


def figures(page):
    """Each figure's id, and all of it."""
    return dict(re.findall(r'(?s)<figure class="[^"]*" id="([^"]*)">(.*?)</figure>', page))


def svg(figure):
    return re.search(r"(?s)<svg.*?</svg>", figure)[0]


@pytest.fixture(scope="module")
def predicted():
    return article_frames()


@pytest.fixture(autouse=True)
def _predicted_once(predicted, monkeypatch):
    """It takes seconds, and is the same every time."""
    monkeypatch.setattr("reports.content.article.article_frames", lambda: predicted)


def report(site, *options):
    command = ["report", "--article", "-f", str(site.path), *options, "--json"]
    result = CliRunner().invoke(app, command)
    return result.exit_code, json.loads(result.stdout)


def test_every_figure_says_what_it_rests_on(twice, runs):
    found = figures(render_article(article(twice, runs[0])))
    assert set(found) == {"speedup", "images", "soak"}
    for name, word in (("speedup", "predicted"), ("images", "predicted"), ("soak", "simulated")):
        assert word in svg(found[name])
        caption = re.search(r"(?s)<figcaption>.*?</figcaption>", found[name])[0]
        assert f"<b>{word.capitalize()}" in caption


@pytest.mark.parametrize(
    ("evidence_class", "said"),
    [("hardware", "measured on hardware"), ("soft-roce", "measured over software RoCE")],
)
def test_a_measured_soak_is_called_measured(twice, runs, evidence_class, said):
    from dataclasses import replace

    measured = replace(runs[0], evidence_class=evidence_class)
    assert said in svg(figures(render_article(article(twice, measured)))["soak"])


def test_the_predicted_are_those_of_the_predictor(twice, predicted):
    found = figures(render_article(article(twice, None)))
    drawn = points(svg(found["speedup"]), "speedup")
    wanted = predicted["speedup"]
    assert [x for x, _ in drawn] == pytest.approx(list(wanted["gpus"]), rel=5e-3, abs=0.05)
    assert [y for _, y in drawn] == pytest.approx(list(wanted["speedup"]), rel=5e-3, abs=0.05)
    (point,) = points(svg(found["speedup"]), "published")
    assert point == pytest.approx(PUBLISHED, rel=5e-3)
    rows = predicted["images"].query("model == 'vgg16' and mode == 'horovod'")
    drawn = points(svg(found["images"]), "vgg16 Horovod over TCP", panel=3, log=("x",))
    assert [y for _, y in drawn] == pytest.approx(list(rows["images_per_s"]), rel=5e-3, abs=10)


def test_the_soak_is_that_of_the_run(twice, runs):
    found = figures(render_article(article(twice, runs[0])))
    stored = soak_frame(runs[0]).query("host == 'host1:ens1f0' and pattern == 'ring'")
    drawn = points(svg(found["soak"]), "ring host1:ens1f0")
    assert [x for x, _ in drawn] == pytest.approx(list(stored["cycle"]), rel=5e-3)
    assert [y for _, y in drawn] == pytest.approx(list(stored["goodput_gbps"]), rel=5e-3)


def test_a_soak_of_32_hosts_is_the_articles_last_figure(tmp_path):
    path = write_site(tmp_path, ClosShape(HOSTS, 4, 2))
    path.write_text(path.read_text().replace("soak_cycles: 60", "soak_cycles: 4"))
    fabric = FakeFabric(load_site(path))
    done = run_suites(fabric.site, ["soak"], readers=fabric.readers(), probe=fabric.probe)
    page = render_article(article(fabric.site, done))
    assert "The article has" not in page
    drawn = svg(figures(page)["soak"])
    stored = soak_frame(done)
    assert stored["host"].nunique() == HOSTS == 32
    for host in ("host1:ens1f0", "host32:ens1f0"):
        wanted = stored.query("host == @host and pattern == 'ring'")
        assert len(points(drawn, f"ring {host}")) == len(wanted) > 0


def test_a_site_of_another_size_is_said(twice, runs):
    page = render_article(article(twice, runs[0]))
    assert f"The article has {HOSTS} hosts here, this site 4." in page


def test_without_a_soak_nothing_is_drawn_and_the_way_to_one_is_said(twice, runs):
    page = render_article(article(twice, runs[1]))
    assert set(figures(page)) == {"speedup", "images"}
    assert "site test has no run with the suite <code>soak</code>" in page
    assert "<code>paisoar validate soak</code>" in page
    assert "paisoar init --site article --hosts 32" in page


def test_the_command_takes_the_newest_run_with_a_soak(twice, runs):
    code, said = report(twice)
    assert (code, said["run"]) == (0, runs[0].id)
    assert said["evidence"] == {"speedup": "predicted", "images": "predicted", "soak": "simulated"}
    folder = twice.state_dir / "report" / "article"
    soak = pd.read_csv(folder / "soak.csv")
    assert set(soak["evidence_class"]) == {"simulated"}
    assert set(pd.read_csv(folder / "speedup.csv")["evidence"]) == {"predicted"}


def test_the_command_without_any_run(twice):
    shutil.rmtree(twice.state_dir)
    code, said = report(twice)
    assert (code, said["run"]) == (0, None)
    assert "soak" not in said["evidence"]
    result = CliRunner().invoke(app, ["report", "--article", "-f", str(twice.path)])
    assert "no run here has the suite soak" in " ".join(result.stdout.split())


def test_a_named_run_without_a_soak_is_bad_input(twice, runs):
    code, said = report(twice, "--run", runs[1].id)
    assert code == 2
    assert "has no soak" in said["error"]["message"]


def test_an_altered_soak_is_not_drawn(twice, runs):
    (runs[0].folder / "soak.series.parquet").write_bytes(b"flat")
    code, said = report(twice)
    assert code == 1
    assert "cannot be believed" in said["error"]["message"]


def test_it_is_not_mixed_with_a_comparison(twice, runs):
    code, said = report(twice, "--against", runs[0].id)
    assert code == 2
    assert "--against" in said["error"]["advice"]
