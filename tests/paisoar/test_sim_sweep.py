"""``paisoar sim sweep``."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from paisoar.cli import app
from tests.sites import write_site

runner = CliRunner()
SHORT = ("--duration", "2ms", "--warmup", "500us", "--jobs", "1")


def invoke(*arguments, code=0):
    result = runner.invoke(app, ["sim", "sweep", *(str(argument) for argument in arguments)])
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}"
    return result


def document(*arguments, code=0):
    return json.loads(invoke(*arguments, "--json", code=code).stdout)


def test_every_combination_has_a_row_and_a_line_of_the_table(tmp_path):
    path, out = write_site(tmp_path), tmp_path / "sweep.csv"
    kmin = "intent.profiles.25G.kmin"
    said = document(
        "-f", path, "--set", f"{kmin}=20KB,100KB", "--scenario", "incast", "--scenario", "ring",
        "--seeds", 2, "--out", out, *SHORT,
    )  # fmt: skip
    assert said["points"] == len(said["rows"]) == 8
    assert {(row[kmin], row["scenario"], row["seed"]) for row in said["rows"]} == {
        (size, scenario, seed)
        for size in ("20KB", "100KB")
        for scenario in ("incast", "ring")
        for seed in (1, 2)
    }
    incasts = [row for row in said["rows"] if row["scenario"] == "incast" and row["seed"] == 1]
    assert incasts[0]["marks"] != incasts[1]["marks"]
    assert all(row["drops"] == 0 for row in said["rows"])
    assert len(pd.read_csv(out)) == 8


def test_the_flow_level_sweeps_too(tmp_path):
    said = invoke("-f", write_site(tmp_path), "--level", "flow", *SHORT).stdout
    assert "incast" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "kmin"), "not a key with its values"),
        (("--set", "intent.profiles.25G.kmin=1MB"), "intent.profiles.25G.kmin=1MB"),
        (("--scenario", "storm"), "none of this name"),
        (("--out", "x.txt"), "neither .csv nor .parquet"),
        (("--duration", "1ms", "--warmup", "2ms"), "must be below"),
        (("--seeds", 1_000_000), "1,000,000 points are more"),
    ],
)
def test_bad_options_end_with_exit_2_and_say_why(tmp_path, arguments, words):
    assert words in document("-f", write_site(tmp_path), *arguments, code=2)["error"]["message"]
