"""``paisoar predict``."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from paisoar.cli import app
from tests.sites import write_site

runner = CliRunner()
ROW = {
    "evidence",
    "model",
    "gpus",
    "hosts",
    "images_per_s",
    "speedup",
    "efficiency",
    "step_ms",
    "compute_ms",
    "exposed_ms",
    "exchange_ms",
    "exchanges",
    "bucket_bytes",
    "network_gbps",
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def invoke(*arguments, code=0):
    result = runner.invoke(app, ["predict", *(str(argument) for argument in arguments)])
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}"
    return result


def document(*arguments, code=0):
    return json.loads(invoke(*arguments, "--json", code=code).stdout)


def test_without_a_site_it_is_a_clos_of_the_options():
    said = document(
        *("--models", "resnet50,vgg16", "--gpus", "1,2,8,32", "--gpus-per-host", "2"),
        *("--nic", "25G", "--sync", "ring", "--transport", "verbs"),
    )
    assert said["evidence"] == "predicted"
    assert "Clos" in said["fabric"]
    assert [(row["model"], row["gpus"]) for row in said["rows"]] == [
        (model, gpus) for model in ("resnet50", "vgg16") for gpus in (1, 2, 8, 32)
    ]
    for row in said["rows"]:
        assert set(row) == ROW
        assert row["evidence"] == "predicted"
        assert row["step_ms"] == pytest.approx(row["compute_ms"] + row["exposed_ms"])


def test_the_site_of_the_folder_is_taken_up_to_all_its_gpus(tmp_path):
    write_site(tmp_path)
    said = document("--gpus-per-host", "4")
    assert said["fabric"] == "site test (fabric.yaml)"
    assert said["settings"] == "intended"
    assert [row["gpus"] for row in said["rows"]] == [1, 2, 4, 8, 16]
    assert 24 < said["rows"][-1]["network_gbps"] < 25


def test_hosts_of_three_gpus_are_filled_one_after_the_other(tmp_path):
    write_site(tmp_path)
    said = document("--gpus-per-host", "3")
    assert [row["gpus"] for row in said["rows"]] == [1, 2, 3, 6, 12]


def test_a_nic_that_the_site_has_not_makes_it_a_clos(tmp_path):
    write_site(tmp_path)
    assert document("--nic", "25G", "--gpus", "8")["fabric"].startswith("site test")
    assert "100G" in document("--nic", "100G", "--gpus", "8")["fabric"]
    assert "Clos" in document("--clos", "--gpus", "8")["fabric"]


def test_a_clos_needs_no_valid_file_beside_it(tmp_path):
    (tmp_path / "fabric.yaml").write_text("nonsense: true\n")
    assert "Clos" in document("--clos", "--gpus", "8")["fabric"]
    assert "fabric.yaml" in invoke("--gpus", "8", code=2).stderr


def test_a_site_that_is_too_small_says_so_and_what_to_do(tmp_path):
    path = write_site(tmp_path)
    said = invoke("-f", path, "--gpus", "64", code=2)
    assert "4 hosts" in said.stderr
    assert "--clos" in said.stderr


def test_a_clos_of_1024_gpus_is_answered():
    said = document("--models", "resnet50", "--gpus", "1024")
    assert said["rows"][0]["hosts"] == 512
    assert 500 < said["rows"][0]["speedup"] < 1024


def test_a_measured_step_takes_the_tables_place():
    said = document("--models", "resnet50,vgg16", "--step-ms", "100,250", "--gpus", "1")
    assert [row["step_ms"] for row in said["rows"]] == [100.0, 250.0]
    assert {known["source"] for known in said["compute"]} == {"--step-ms"}


def test_people_see_that_it_is_predicted_and_what_it_rests_on():
    said = invoke("--models", "vgg16", "--gpus", "1,16").stdout
    assert said.startswith("Predicted: ring over verbs")
    assert "TensorFlow benchmarks" in said
    assert re.search(r"^ *predicted *$", said, re.MULTILINE)
    assert "6 % off (median), 27 % at worst" in said


def test_a_lossy_port_is_named_and_costs():
    plain = document("--models", "vgg16", "--gpus", "64")
    lossy = document("--models", "vgg16", "--gpus", "64", "--lossy-port", "leaf1:Ethernet1/1")
    assert lossy["lossy_port"] == "leaf1:Ethernet1/1"
    assert lossy["rows"][0]["images_per_s"] < plain["rows"][0]["images_per_s"]


def test_the_picture_is_svg_says_predicted_and_tells_lines_apart_without_colour(tmp_path):
    path = tmp_path / "scaling.svg"
    said = document("--models", "resnet50,vgg16", "--gpus", "1,2,4,8", "--plot", path)
    assert said["plot"] == str(path)
    text = path.read_text()
    ET.fromstring(text)
    assert ">predicted<" in text
    assert "resnet50 ring verbs" in text
    assert "vgg16 ring verbs" in text
    assert "stroke-dasharray" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--models", "lenet"), "lenet"),
        (("--gpus", "two"), "--gpus two"),
        (("--gpus", "0"), "--gpus 0"),
        (("--gpus", "3"), "--gpus 3"),
        (("--gpu", "abacus"), "abacus"),
        (("--sync", "gossip"), "--sync gossip"),
        (("--transport", "quic"), "--transport quic"),
        (("--wire", "fp8"), "--wire fp8"),
        (("--nic", "quick"), "--nic"),
        (("--batch", "-1"), "--batch -1"),
        (("--step-ms", "fast"), "--step-ms fast"),
        (("--step-ms", "1,2"), "--step-ms has 2 times for 1 models"),
        (("--step-ms", "-3"), "--step-ms -3"),
        (("--step-ms", "nan"), "--step-ms nan"),
        (("--step-ms", "inf"), "--step-ms inf"),
        (("--oversubscription", "nan"), "--oversubscription nan"),
        (("--oversubscription", "inf"), "--oversubscription inf"),
        (("--read",), "--read needs a site"),
        (("--plot", "x.bmp"), "x.bmp"),
        (("-f", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_bad_input_is_named(arguments, said):
    result = invoke(*arguments, code=2)
    assert said in result.stderr
    assert result.stdout == ""


def test_a_file_and_another_fabric_are_refused_together(tmp_path):
    path = write_site(tmp_path)
    assert "another fabric" in invoke("-f", path, "--oversubscription", "4", code=2).stderr


def test_check_lists_every_published_figure_with_its_error_and_its_set():
    said = document("--check")
    for row in said["rows"]:
        assert {"source", "figure", "published", "predicted", "error", "set"} <= set(row)
        assert row["set"] in ("fitted", "tested")
        assert row["evidence"] == "predicted"
    for side in ("fitted", "tested"):
        rows = [abs(row["error"]) for row in said["rows"] if row["set"] == side]
        assert said["summary"][side]["count"] == len(rows)
        assert said["summary"][side]["worst"] == pytest.approx(max(rows))
    assert all("source" in c or "fitted_on" in c for c in said["constants"])


def test_people_are_told_what_was_fitted_and_what_was_tested():
    said = invoke("--check").stdout
    assert "the PAISoar article" in said
    assert "constants were fitted on" in said
    assert "from which nothing was drawn: median error" in said
