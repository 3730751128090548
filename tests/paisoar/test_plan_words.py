"""Whose a change is called that a plan finds."""

from fabric.provisioning.drift import Drift
from fabric.provisioning.halfway import HalfwayRun
from paisoar.commands.plan import _since

RUN, KILLED = "20261201-0412-ab12", "20261201-0500-cd34"


def test_what_a_killed_run_of_ours_may_have_done_is_not_called_somebodys():
    halfway = [HalfwayRun(KILLED, "provision", KILLED, ("leaf1",), at_work=False)]
    assert _since(Drift("leaf1", RUN, "+ mtu 9216"), halfway) == f"leaf1, changed since run {RUN}"
    others = _since(Drift("leaf2", RUN, "+ mtu 1500"), halfway)
    assert others == f"leaf2, changed by somebody since run {RUN}"
