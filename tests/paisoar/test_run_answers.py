"""What a run's answer says at its end: what can be done next, and nothing that is not so."""

from pathlib import Path

import pytest

from fabric.provisioning.outcome import NOTHING_SENT, Outcome
from fabric.provisioning.runs import RunResult
from paisoar.commands.provision import _answer
from paisoar.console import console

RUN, OF = "20261201-0412-ab12", "20261201-0400-cd34"
DONE, SAME = Outcome("done"), Outcome("unchanged")
ROLLED_BACK = Outcome("rolled-back", "a line was refused")
GONE = Outcome("failed", f"{NOTHING_SENT}: no answer", unreachable=True)
HALF = Outcome("failed", "the session broke")
LATER = Outcome("untouched", "the run was stopped before its turn")
AGAIN = "Once that is mended, a new plan goes on from here: paisoar plan"
BACK = f"Take it back with: paisoar rollback {RUN}"


def last_lines(kind, *outcomes, stopped=""):
    devices = {f"leaf{number}": outcome for number, outcome in enumerate(outcomes, start=1)}
    result = RunResult(RUN, kind, "x", OF, "then", "now", devices, stopped=stopped)
    out = console()
    with out.capture() as capture:
        _answer(result, Path("fabric.yaml")).show(out)
    text = capture.get()
    return [line for line in text.splitlines() if "paisoar " in line]


@pytest.mark.parametrize(
    ("kind", "outcomes", "lines"),
    [
        ("provision", [DONE, SAME], ["Next: paisoar audit", BACK]),
        ("provision", [SAME], []),
        ("provision", [DONE, GONE], [AGAIN, BACK]),
        ("provision", [HALF, SAME], [AGAIN, BACK]),
        ("provision", [GONE, SAME], [AGAIN]),
        ("provision", [ROLLED_BACK, LATER], [AGAIN]),
        ("check", [Outcome("would-change")], [f"Nothing was sent. Next: paisoar provision {OF}"]),
        ("check", [SAME], []),
        (
            "check",
            [Outcome("would-change"), GONE],
            ["Nothing was sent. Once that is mended: paisoar plan"],
        ),
        ("rollback", [DONE, SAME], ["Go forward again with: paisoar plan"]),
        (
            "rollback",
            [DONE, HALF],
            [f"Once that is mended, it goes on with: paisoar rollback {OF}"],
        ),
    ],
)
def test_the_next_steps_are_those_that_there_are(kind, outcomes, lines):
    assert last_lines(kind, *outcomes) == lines
