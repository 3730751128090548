"""The example of the documentation, run as it says: alone, and on two ranks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.errors import GateRefusedError, PeerError
from tests.sites import make_site
from tests.trainer.test_launch import PASS
from trainer.start import run_script

ROOT = Path(__file__).parents[2]
EXAMPLE = "examples/train_digits.py"


def run(*words):
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_the_example_trains_alone_and_on_two_ranks():
    code, alone, error = run(EXAMPLE, "3")
    assert code == 0, error
    ranks = run_script(PASS, ROOT / EXAMPLE, ["3"], ranks=2).printed
    both = "\n".join(f"rank {rank}: {line}" for rank, lines in enumerate(ranks) for line in lines)
    accuracies = [float(found) for found in re.findall(r"accuracy ([0-9.]+)", alone + both)]
    assert len(accuracies) == 3
    assert min(accuracies) > 0.8
    assert re.search(r"^rank 1: loss ", both, re.MULTILINE)


def test_four_marked_lines_are_all_that_the_example_adds():
    lines = (ROOT / EXAMPLE).read_text().splitlines()
    marked = [line for line in lines if re.search(r"  # \d$", line)]
    assert [line[-1] for line in marked] == ["1", "2", "3", "4"]
    others = [line for line in lines if line not in marked]
    assert not any(line.startswith("from trainer") or "replicas." in line for line in others)
    shown = (ROOT / "docs" / "training.md").read_text()
    for line in marked:
        assert line.split("  #")[0] in shown


def test_a_script_that_is_not_there_is_refused():
    code, _, error = run("-m", "trainer.start", "nothing.py")
    assert code == 2
    assert "nothing.py: there is no such script" in error


def test_without_a_certificate_no_script_is_started(tmp_path):
    site = make_site(tmp_path)
    started = tmp_path / "started"
    script = tmp_path / "script.py"
    script.write_text(f"open({str(started)!r}, 'w')")
    code, _, error = run("-m", "trainer.start", "-f", str(site.path), str(script))
    assert code == 1
    assert "certificate" in error
    with pytest.raises(GateRefusedError):
        run_script(None, script, ranks=1)
    assert not started.exists()


@pytest.mark.parametrize("status", ["0", "None", "main()"])
def test_a_script_that_ends_with_exit_status_0_has_succeeded(tmp_path, status):
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\ndef main():\n    print('trained')\n    return 0\n"
        f"main()\nsys.exit({status})\n"
    )
    printed = run_script(PASS, script, ranks=2).printed
    assert all(lines[0] == "trained" for lines in printed)


@pytest.mark.parametrize(("status", "number"), [("7", 7), ("'no data'", 1)])
def test_another_exit_status_is_a_failure_with_rank_and_status(tmp_path, status, number):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom trainer.collective.courier import current\n"
        f"if current().communicator.rank == 1: sys.exit({status})\n"
    )
    with pytest.raises(PeerError, match=rf"rank 1 .*ended with exit status {number}") as caught:
        run_script(PASS, script, ranks=2)
    assert ("no data" in str(caught.value)) == (number == 1)
    assert "Traceback" not in str(caught.value)
