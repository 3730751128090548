"""The checks of tf_checks.py, run in one job of two ranks."""

import ast
from pathlib import Path

import pytest

from trainer.launch import NOT_NEEDED
from trainer.supervise import run_ranks

ROOT = Path(__file__).parents[2]
_SOURCE = ast.parse((Path(__file__).parent / "tf_checks.py").read_text())
# Read, not imported: this process stays without TensorFlow.
CHECKS = [
    node.name
    for node in _SOURCE.body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome():
    return run_ranks(
        "tests.trainer.tf_checks:everything",
        CHECKS,
        ranks=2,
        patience_s=20.0,
        path=[ROOT],
        hidden=NOT_NEEDED,
    )


@pytest.mark.parametrize("check", CHECKS)
def test_two_ranks(outcome, check):
    for rank, results in enumerate(outcome.results):
        assert results.get(check, "not reached") == "passed", f"rank {rank}"
