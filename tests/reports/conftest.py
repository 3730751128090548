"""A small fabric that was measured twice, and the content of a page made by hand."""

import shutil

import pandas as pd
import pytest

from fabric.site import load_site
from fabric.topology import PortRef
from reports.content.model import CertificateFacts, ReportContent, TrainingFacts
from tests.sites import write_site
from tests.validation.fake import FakeFabric
from validation.results.store import list_runs
from validation.run import run_suites

SUITES = ("preflight", "latency", "bandwidth", "incast", "mixed", "burst", "collective", "soak")
SLOW = ("host1:ens1f0", "host2:ens1f0")
HOSTS = ("host1:ens1f0", "host2:ens1f0", "host3:ens1f0")
PAIRS = [(a, b) for a in HOSTS for b in HOSTS if a != b]


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch):
    for name in ("PAISOAR_DATABASE_URL", "PAISOAR_SIGNING_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def twice_once(tmp_path_factory):
    """A sound run, then one without a soak in which the pair SLOW brings half."""
    path = write_site(tmp_path_factory.mktemp("twice"))
    path.write_text(path.read_text().replace("soak_cycles: 60", "soak_cycles: 6"))
    fabric = FakeFabric(load_site(path))
    run_suites(fabric.site, SUITES, readers=fabric.readers(), probe=fabric.probe)
    fabric.goodput[tuple(map(PortRef.parse, SLOW))] = 0.48
    run_suites(fabric.site, SUITES[:-1], readers=fabric.readers(), probe=fabric.probe)
    return fabric.site


@pytest.fixture
def twice(tmp_path, twice_once):
    """The same, in this test's own folder."""
    shutil.copytree(twice_once.path.parent, tmp_path / "site")
    return load_site(tmp_path / "site" / twice_once.path.name)


@pytest.fixture
def runs(twice):
    """Its two runs, the sound one first."""
    return list_runs(twice)


@pytest.fixture
def content():
    checks = pd.DataFrame(
        {
            "suite": ["bandwidth", "incast", "incast"],
            "check": ["goodput", "drops", "cnp"],
            "subject": ["host1 -> host2", "leaf1 Ethernet1/3", "host2"],
            "value": [23.5, 1234.0, float("nan")],
            "limit": [20.0, 0.0, float("nan")],
            "unit": ["Gb/s", "packets", ""],
            "verdict": ["PASS", "FAIL", "SKIP"],
            "reason": ["", "PFC is off <there>", "not shown"],
        }
    )
    return ReportContent(
        site="demo",
        environment="twin",
        evidence_class="simulated",
        run_id="v-1",
        created_at="2026-12-01 04:00 UTC",
        verdict="FAILED",
        hosts=3,
        switches=1,
        cables=3,
        checks=checks,
        coverage=pd.DataFrame({"suite": ["bandwidth"], "expected": [6], "run": [6]}),
        bandwidth=pd.DataFrame(PAIRS, columns=["source", "target"]).assign(goodput_gbps=23.5),
        latency=pd.DataFrame(PAIRS, columns=["source", "target"]).assign(p50_us=2.1, p99_us=2.5),
        latency_limit_us=9.0,
        incast=pd.DataFrame(
            {"senders": [2, 4], "receiver": "host2:ens1f0", "fraction": [0.97, 0.95],
             "jain": [0.99, 0.98]}
        ),
        incast_limit_fraction=0.9,
        senders=pd.DataFrame(
            {"time_us": [0, 10] * 2, "sender": ["host1", "host1", "host3", "host3"],
             "goodput_gbps": [11.0, 12.0, 13.0, 12.0], "receiver": "host2"}
        ),
        queues=pd.DataFrame({"time_us": [0, 10], "port": "leaf1:1", "queue_bytes": [0, 90000]}),
        pauses=pd.DataFrame({"device": ["leaf1"], "port": ["Ethernet1/1"], "pause_frames": [12]}),
        counters=pd.DataFrame(
            {"device": ["leaf1"] * 3, "port": ["Ethernet1/1"] * 3, "priority": [None, 3, None],
             "counter": ["rx_bytes", "tx_pause_frames", "rx_discards"], "delta": [9999, 12, 7]}
        ),
        findings=pd.DataFrame(),
        certificate=CertificateFacts(
            "cert-1", True, "", "simulated", "lossless-dcqcn", "now", "then", "k1", "f" * 64
        ),
        training=TrainingFacts(
            "greennet", "digits", 2, "shm", 0.981, 5000.0, True, True, "cert-1", "simulated",
            pd.DataFrame({"epoch": [1, 2], "loss": [0.9, 0.2], "accuracy": [0.8, 0.98]}),
        ),
        versions={"paisoar": "0.1.0", "numpy": "2"},
    )  # fmt: skip
