"""Ranks that come to different collectives are told what happened, not how it was noticed."""

import time

import numpy as np
import pytest

from tests.trainer.groups import group
from trainer.collective.errors import MismatchError, in_short


def as_ranks_do(work):
    """Tell the others of an error, as a rank's process does."""

    def told(rank):
        try:
            work(rank)
        except MismatchError as error:
            rank.membership.fail(error)
            raise

    return told


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_rank_with_fewer_steps_is_named_with_the_way_out(transport):
    def train(rank):
        for step in range(1, 5 if rank.rank == 0 else 7):
            rank.allreduce(np.ones(100, np.float32), doing=f"step {step}")
        rank.end_training(4 if rank.rank == 0 else 6)

    with group(2, transport) as ranks:
        errors = ranks.errors(as_ranks_do(train))
    for error in errors:
        assert isinstance(error, MismatchError)
        assert "rank 0 has 4, rank 1 has more and is in step 5" in error.message
        assert "dataset.take(common_steps(n))" in error.advice
        assert "trainer.uneven" in error.advice
        assert "allreduce" not in str(error)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_rank_whose_program_ends_early_is_named(transport):
    def work(rank):
        if rank.rank == 1:
            rank.allreduce(np.ones(100, np.float32))
        rank.end_program()

    with group(2, transport) as ranks:
        errors = ranks.errors(as_ranks_do(work))
    for error in errors:
        assert isinstance(error, MismatchError)
        assert error.message.startswith("rank 0 has come to the end of its program, rank 1 goes on")
        assert "in_step" in error.advice


def test_ranks_that_end_together_end_well():
    def train(rank):
        rank.allreduce(np.ones(100, np.float32))
        rank.end_training(1)
        rank.end_program()
        return rank.size

    with group(2, "shm") as ranks:
        assert ranks(train) == [2, 2]


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_failure_elsewhere_ends_ranks_that_never_wait(transport):
    with group(2, transport) as ranks:
        ranks(lambda rank: rank.allreduce(np.ones(4, np.float32)))
        ranks.rendezvous.abort(1, "lost its way")

        def go_on(rank):
            while not rank.membership.failed:
                time.sleep(0.01)
            # Both connections are whole: nobody would have to wait.
            rank.allreduce(np.ones(4, np.float32))

        for error in ranks.errors(go_on):
            assert "rank 1 (host" in str(error)
            assert "lost its way" in str(error)


def test_a_page_of_the_frameworks_is_cut_to_what_is_the_matter():
    page = (
        "Graph execution error:\n\nDetected at node conv defined at (most recent call last):\n"
        '  File "a.py", line 3, in <module>\n\nOOM when allocating tensor with shape[32,9]\n'
        "\t [[{{node conv}}]]\nHint: If you want to see a list\n [Op:__inference_step_1]"
    )
    assert (
        in_short(RuntimeError(page)) == "RuntimeError: OOM when allocating tensor with shape[32,9]"
    )
    assert in_short(KeyError("no such layer")) == "KeyError: 'no such layer'"
    assert in_short(MemoryError()) == "MemoryError: "
    assert len(in_short(ValueError("x" * 10_000))) < 500
