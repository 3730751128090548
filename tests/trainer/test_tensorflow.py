"""What two ranks with TensorFlow do: a function a check, in the modules of ``checks``.

TensorFlow takes long to import, so all checks run in one job, in order. Each
runs on both ranks at once and asserts.
"""

import ast
from pathlib import Path

import pytest

from trainer.launch import NOT_NEEDED
from trainer.supervise import run_ranks

ROOT = Path(__file__).parents[2]
# Read, not imported: this process stays without TensorFlow.
CHECKS = [
    f"{path.stem}.{node.name}"
    for path in sorted((Path(__file__).parent / "checks").glob("*.py"))
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
]

# In one process: the job that all of them look at is run once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("two ranks with TensorFlow")]


@pytest.fixture(scope="module")
def outcome():
    return run_ranks(
        "tests.trainer.checks.run:everything",
        CHECKS,
        ranks=2,
        # Kernels are compiled in between: long, where others want the same cores.
        patience_s=180.0,
        path=[ROOT],
        hidden=NOT_NEEDED,
    )


@pytest.mark.parametrize("check", CHECKS)
def test_two_ranks(outcome, check):
    for rank, results in enumerate(outcome.results):
        assert results.get(check, "not reached") == "passed", f"rank {rank}"
