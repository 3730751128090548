"""Ranks over real SSH, on the emulated hosts of a twin."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fabric.errors import InputError
from fabric.reach.access import twin_dir
from fabric.topology import ClosShape
from fabric.twin.lifecycle import down, up
from tests.sites import make_site
from tests.trainer.test_supervise import gone_within
from trainer.collective.errors import LostPeerError
from trainer.hosts import meeting_for, places_on
from trainer.supervise import run_ranks

ROOT = Path(__file__).parents[2]
PROGRAMS = "tests.trainer.programs"

pytestmark = pytest.mark.xdist_group("twin-of-the-trainer")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = make_site(tmp_path_factory.mktemp("site"), ClosShape(hosts=2, leaves=2, spines=1))
    up(made)
    yield made
    down(made.path)


def ranks_of(site):
    """The processes of ranks on this twin's hosts; other twins may have theirs."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        home = (process.info["environ"] or {}).get("HOME", "")
        if "trainer.rank" in (process.info["cmdline"] or []) and home.startswith(
            str(twin_dir(site).resolve())
        ):
            found.append(process)
    return found


def run(site, name, payload=None, **options):
    hosts = list(site.topology.hosts)
    return run_ranks(
        f"{PROGRAMS}:{name}",
        payload,
        path=[ROOT],
        places=places_on(site, hosts, options["ranks"]),
        meeting=meeting_for(site, hosts),
        **options,
    )


def test_ranks_run_on_the_hosts_and_meet_over_tcp(site):
    outcome = run(site, "where", ranks=3)
    assert [result["host"] for result in outcome.results] == ["host1", "host1", "host2"]
    assert {result["total"] for result in outcome.results} == {3.0}
    # Ranks of one host share its memory; hosts are joined by TCP.
    assert {result["transport"] for result in outcome.results} == {"shm+tcp"}


def test_a_host_that_is_none_of_the_sites_is_refused(site):
    with pytest.raises(InputError, match="host9 is no host"):
        places_on(site, ["host1", "host9"], 2)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_is_lost_on_its_host_is_named_within_ten_seconds(site, number):
    struck = []

    def strike(rank, value):
        if rank == 1 and not struck:
            time.sleep(0.5)  # what a rank does last is known from its last heartbeat
            struck.append(time.monotonic())
            (victim,) = [p for p in ranks_of(site) if "host2" in host_of(p)]
            os.kill(victim.pid, number)

    with pytest.raises(LostPeerError) as caught:
        run(site, "reduce_on", ranks=2, on_event=strike)
    assert time.monotonic() - struck[0] < 10
    failure = caught.value.failure
    assert (failure.culprit.rank, failure.culprit.host) == (1, "host2")
    assert failure.at.startswith("step ")
    assert "rank 0 reported: rank 0 in step" in str(caught.value)
    assert gone_within([p.pid for p in ranks_of(site)], seconds=5)


def host_of(process):
    """The emulated host of a process: its home lies in that host's folder."""
    return Path(process.environ()["HOME"]).parts


@pytest.mark.slow
def test_ranks_on_hosts_end_when_the_launcher_is_killed(site, tmp_path):
    script = (
        "from pathlib import Path\n"
        "from fabric.site import load_site\n"
        "from trainer.hosts import meeting_for, places_on\n"
        "from trainer.supervise import run_ranks\n"
        f"site = load_site(Path({str(site.path)!r}))\n"
        "hosts = list(site.topology.hosts)\n"
        f"run_ranks('{PROGRAMS}:reduce_on', None, ranks=2, path=[Path({str(ROOT)!r})],\n"
        "    places=places_on(site, hosts, 2), meeting=meeting_for(site, hosts),\n"
        "    on_event=lambda rank, value: print(rank, flush=True))\n"
    )
    launcher = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert {launcher.stdout.readline().strip() for _ in range(2)} == {"0", "1"}
        pids = [process.pid for process in ranks_of(site)]
        assert len(pids) == 2
    finally:
        launcher.kill()
        launcher.communicate(timeout=60)
    assert gone_within(pids, seconds=10)
