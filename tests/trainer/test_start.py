"""The example of the documentation, run as it says: alone, and on two ranks."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.errors import GateRefusedError, InputError, PeerError
from tests.sites import make_site
from tests.trainer.test_launch import PASS
from trainer.start import main, run_script

ROOT = Path(__file__).parents[2]
EXAMPLE = "examples/train_digits.py"


START = (sys.executable, "-m", "tests.trainer.start_program")
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2")
# A script that computes with the other ranks, and no TensorFlow.
TOTAL = """
import numpy as np
from trainer.collective.courier import current
courier = current()
rank, size = courier.communicator.rank, courier.communicator.size
total = np.array([1.0])
courier.call(lambda c: c.allreduce(total))
print(f"{rank} of {size}: {total[0]:.0f}", flush=True)
"""


def begin(*words, **environ):
    """Start a process without a scheduler's variables but these; its streams are text."""
    foreign = ("SLURM_", "OMPI_", "PMIX_")
    own = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(words, cwd=ROOT, env={**own, **environ}, **pipes)


def end(process):
    out, error = process.communicate(timeout=60)
    return process.returncode, out, error


def run(*words, **environ):
    return end(begin(sys.executable, *words, **environ))


@pytest.fixture
def site_file(tmp_path):
    return str(make_site(tmp_path).path)


@pytest.fixture
def script(tmp_path):
    """Writes a script; more lines may follow those that all have."""

    def write(more="", first=TOTAL):
        path = tmp_path / "script.py"
        path.write_text(first + more)
        return str(path)

    return write


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
        f"import sys\ndef main():\n    print('trained')\n    return 0\nmain()\nsys.exit({status})\n"
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


@pytest.mark.parametrize(
    "environ",
    [
        {"RANK": "0", "WORLD_SIZE": "2"},
        {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
        {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"},
    ],
)
def test_processes_of_a_scheduler_do_not_train_each_for_itself(script, environ):
    code, out, error = run(script(), "--epochs", "3", **environ)
    assert code != 0
    assert out == ""
    assert "rank 0 of 2" in error
    assert re.search(r"python -m trainer.start \S+script.py --epochs 3`", error)


def test_one_process_of_a_scheduler_trains_alone(script):
    assert run(script(), RANK="0", WORLD_SIZE="1")[:2] == (0, "0 of 1: 1\n")


def test_processes_with_rank_and_world_size_are_one_job(site_file, script):
    command = (*START, "-f", site_file, script())
    ranks = [
        begin(*command, RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2") for rank in range(2)
    ]
    ended = [end(process) for process in ranks]
    assert [code for code, _, _ in ended] == [0, 0], ended
    assert [out for _, out, _ in ended] == ["0 of 2: 2\n", "rank 1: 1 of 2: 2\n"]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no Open MPI")
def test_mpirun_starts_one_job_of_two_ranks(site_file, script):
    code, out, error = end(begin(*MPIRUN, *START, "-f", site_file, script()))
    assert code == 0, error
    assert sorted(out.splitlines()) == ["0 of 2: 2", "rank 1: 1 of 2: 2"]


def test_advice_that_a_rank_gets_is_passed_on(site_file, script):
    refused = (
        "from fabric.errors import InputError\n"
        "if rank == 1: raise InputError('is empty', key='data', advice='Give some.')\n"
        "courier.call(lambda c: c.barrier())\n"
    )
    code, _, error = end(begin(*START, "-f", site_file, script(refused)))
    assert code == 2
    assert error.endswith("error: data: is empty. Give some.\n")


def test_a_slow_rank_is_reported_and_ended_only_when_patience_is(site_file, script):
    slow = script("import time\ntime.sleep(3.0 * rank)\ncourier.call(lambda c: c.barrier())\n")
    code, _, error = end(begin(*START, "-f", site_file, slow))
    assert code == 0
    assert re.search(r"rank 1 \(host .* keeps the others waiting for 2\.\d s", error)
    code, _, error = end(begin(*START, "-f", site_file, "--patience", "1", slow))
    assert code == 3
    assert re.search(r"rank 1.*did not come", error)


def test_what_rank_0_prints_is_shown_at_once_and_ctrl_c_ends_the_job(site_file, script):
    job = begin(*START, "-f", site_file, script("import time\ntime.sleep(60)\n"))
    try:
        assert job.stdout.readline() == "0 of 2: 2\n"
        job.send_signal(signal.SIGINT)
        code, _, error = end(job)
    finally:
        job.kill()
    assert code == 130
    assert error == "interrupted\n"


# Like a tf.function: what is raised inside of it comes out as something else, after a page of text.
LOST = """
import os, signal
def step(number):
    try:
        courier.call(lambda c: c.allreduce(total, doing=f"step {number}, bucket 0"))
    except Exception as error:
        raise RuntimeError(page) from error
page = "inside of the framework " * 100
for number in range(1, 100):
    if rank == 1 and number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    step(number)
"""


def test_the_report_of_a_lost_rank_is_the_last_line_and_no_traceback_hides_it(site_file, script):
    path = script(LOST)
    code, out, error = end(begin(*START, "-f", site_file, path))
    assert code == 3
    lines = error.splitlines()
    assert re.fullmatch(
        r"rank 1 \(host .*, pid \d+\) was killed by signal 9 \(SIGKILL\), last heard of at .*, "
        r"\d+\.\d s waited for",
        lines[-1],
    )
    assert re.search(r"^rank 0 reported: rank 0 in step 5, bucket 0: rank 1 \(host", error, re.M)
    assert "RuntimeError:" not in out + error
    # Where in the user's own script it was.
    assert f'File "{path}", line' in out


def test_a_long_traceback_is_kept_in_a_file_that_is_named(site_file, script):
    deep = "def deep(n): deep(n - 1) if n else [][1]\nif rank == 1: deep(20)\n"
    code, _, error = end(
        begin(*START, "-f", site_file, script(deep + "courier.call(lambda c: c.barrier())\n"))
    )
    assert code == 3
    (folder,) = re.findall(r"All that was written is in (\S+)\.$", error, re.MULTILINE)
    log = (Path(folder) / "rank-1.log").read_text()
    assert log.startswith("1 of 2: 2\nTraceback")
    assert log.rstrip().endswith("IndexError: list index out of range")


def test_what_the_documentation_imports_is_there():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "training.md").read_text(), re.S)
    imports = [
        node
        for block in blocks
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("trainer.")
    ]
    assert len(imports) >= 6
    for node in imports:
        # Read, not imported: most of them need TensorFlow.
        source = ast.parse((ROOT / f"{node.module.replace('.', '/')}.py").read_text())
        defined = {part.name for part in source.body if hasattr(part, "name")}
        assert {alias.name for alias in node.names} <= defined


@pytest.mark.parametrize("end_", ["", "raise KeyError"])
def test_sources_that_autograph_has_generated_are_removed(site_file, script, tmp_path, end_):
    # As AutoGraph does it: a module of a file in the temporary folder, removed at exit.
    generated = tmp_path / "__autograph_generated_filex1.py"
    more = (
        "import importlib.util, pathlib, sys\n"
        f"path = pathlib.Path({str(generated)!r})\n"
        "path.touch()\n"
        "spec = importlib.util.spec_from_file_location(path.stem, path)\n"
        "sys.modules[path.stem] = importlib.util.module_from_spec(spec)\n"
        f"{end_}\n"
    )
    code, _, error = end(begin(*START, "-f", site_file, "--ranks", "1", script(more)))
    assert code == (3 if end_ else 0), error
    assert not generated.exists()


def test_a_patience_that_is_no_number_of_seconds_is_refused(capsys):
    for patience in ("nan", "inf", "0"):
        assert main(["--patience", patience, EXAMPLE]) == InputError.exit_code
        assert "no patience" in capsys.readouterr().err
