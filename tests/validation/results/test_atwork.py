"""A run's process: there, gone, or not to be asked after from here."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from validation.results.atwork import is_gone, this_process

ASK = "from validation.results.atwork import this_process; print(this_process().model_dump_json())"


def test_this_process_is_there():
    assert not is_gone(this_process())


def test_a_killed_one_is_gone_before_its_parent_has_noticed():
    child = os.fork()
    if not child:
        signal.pause()
        os._exit(0)
    stat = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    known = this_process().model_copy(update={"pid": child, "started_ticks": int(stat[19])})
    assert not is_gone(known)
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # a zombie still has its number
    assert is_gone(known)
    os.waitpid(child, 0)
    assert is_gone(known)


def test_a_number_that_was_given_to_another_process_is_not_taken_for_it():
    mine = this_process()
    assert is_gone(mine.model_copy(update={"started_ticks": mine.started_ticks - 1}))


def test_a_reboot_ends_every_process():
    assert is_gone(this_process().model_copy(update={"boot": "another"}))


@pytest.mark.parametrize("place", ["host", "namespace"])
def test_nothing_is_concluded_about_a_process_elsewhere(place):
    elsewhere = {place: "another", "pid": 2**22 + 1}
    if place == "host":
        elsewhere["boot"] = "another"
    assert not is_gone(this_process().model_copy(update=elsewhere))


def test_a_process_that_ended_is_gone():
    shown = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert is_gone(type(this_process()).model_validate_json(shown.stdout))
