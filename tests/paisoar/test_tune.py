"""``paisoar tune``."""

import json

import pytest
from typer.testing import CliRunner

from paisoar.cli import app
from tests.sites import write_site

runner = CliRunner()
SMALL = ("--traffic", "incast,ring", "--budget", "8", "--duration", "4ms", "--jobs", "1")


def invoke(*arguments, command="tune", code=0):
    result = runner.invoke(app, [command, *(str(argument) for argument in arguments)])
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}"
    return result


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return write_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def searched(site):
    return json.loads(invoke("-f", site, *SMALL, "--json").stdout)


def test_a_search_is_one_document(searched):
    assert searched["evidence"] == "simulated"
    assert searched["simulated"] == "the whole site: 4 hosts, 3 switches"
    assert searched["traffic"] == ["incast", "ring"]
    assert searched["incast"] == 3
    assert searched["constraints"]["drops"] == 0
    assert searched["partial"] is False
    assert len(searched["tried"]) == searched["budget"] == 8
    assert [choice["number"] for choice in searched["choices"]] == list(
        range(1, len(searched["choices"]) + 1)
    )
    assert searched["today"]["settings"]["intent.profiles.25G.kmin"] == "100KB"


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_choices_stand_beside_today_with_a_picture(site, searched, tmp_path, ending):
    plot = tmp_path / f"tune.{ending}"
    said = invoke("-f", site, *SMALL, "--plot", plot).stdout
    assert "today" in said
    assert "25G kmin" in said
    assert "no drops" in said
    head = plot.read_bytes()[:400]
    assert head.startswith(b"\x89PNG") if ending == "png" else b"<svg" in head


def test_a_choice_is_written_into_a_copy_that_check_accepts(site, searched, tmp_path, monkeypatch):
    before, copy = site.read_bytes(), tmp_path / "tuned.yaml"
    from fabric.sim.tune.search import Search

    def never(*_):
        raise AssertionError("the kept search was not used")

    monkeypatch.setattr(Search, "run", never)
    said = json.loads(invoke("-f", site, *SMALL, "--choose", 1, "--write", copy, "--json").stdout)
    assert said["written"] == str(copy)
    assert (searched["kept"], said["kept"]) == (False, True)
    assert site.read_bytes() == before
    invoke("-f", copy, command="check")
    chosen = searched["choices"][0]["settings"]["intent.profiles.25G.kmax"]
    assert f"kmax: {chosen}" in copy.read_text()
    assert "# Thresholds by port speed." in copy.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--traffic", "storm"), "--traffic storm"),
        (("--incast", "1"), "two senders"),
        (("--budget", "2"), "--budget 2"),
        (("--duration", "4"), "--duration"),
        (("--plot", "x.pdf"), "neither .png nor .svg"),
        (("--choose", "1"), "go together"),
        (("--write", "new.yaml"), "go together"),
        (("--choose", "99", "--write", "new.yaml"), "no such choice"),
    ],
)
def test_bad_options_end_with_exit_2_and_say_why(site, searched, arguments, words):
    said = json.loads(invoke("-f", site, *SMALL, *arguments, "--json", code=2).stdout)
    assert words in said["error"]["message"]


def test_the_original_is_never_overwritten(site, searched):
    said = invoke("-f", site, *SMALL, "--choose", 1, "--write", site, code=2)
    assert "overwrites nothing" in said.stderr


def test_a_bad_file_is_named_with_line_and_key(tmp_path):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("time_reset_us: 55", "time_reset_us: soon"))
    said = json.loads(invoke("-f", path, "--json", code=2).stdout)
    assert ": intent.dcqcn.time_reset_us" in said["error"]["message"]


def test_ctrl_c_prints_what_was_found_marked_as_partial(site, monkeypatch):
    from fabric.sim import sweep

    call = sweep._call

    def interrupted(parent, work, index, point):
        if index == 3:
            raise KeyboardInterrupt
        return call(parent, work, index, point)

    monkeypatch.setattr(sweep, "_call", interrupted)
    said = json.loads(invoke("-f", site, *SMALL, "--fresh", "--json", code=130).stdout)
    assert said["partial"] is True
    assert len(said["tried"]) == 3
