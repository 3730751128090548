"""Soft-RoCE: what it drops and sends again under load is named, and judged as nothing."""

import pytest

from tests.validation.fake import FakeFabric
from tests.validation.judgement.test_judgement import HOST1, LEAF, once, site_with
from validation.probes.sim import SimProbe
from validation.run import run_suites


class SoftwareProbe(SimProbe):
    """Its traffic says of itself that software carried it."""

    evidence_class = "soft-roce"


@pytest.fixture
def fabric(tmp_path):
    return FakeFabric(site_with(tmp_path))


def checks(fabric, name, suite, soft):
    kind = SoftwareProbe if soft else SimProbe
    made = run_suites(
        fabric.site,
        [suite],
        readers=fabric.readers(),
        probe=lambda site, states: kind(site, states, fabric.carry),
    )
    return {c.subject: c for c in made.all_checks if c.id == f"{suite}.{name}"}


@pytest.mark.parametrize("soft", [True, False])
def test_what_is_sent_again_is_named_and_not_judged(fabric, soft):
    once(fabric, (*HOST1, "duplicate_request", None), 7)
    found = checks(fabric, "retransmission", "bandwidth", soft)
    assert found["host1"].verdict == ("SKIP" if soft else "FAIL")
    assert "duplicate_request moved by 7" in found["host1"].reason
    assert found["host2"].verdict == "PASS"
    # A host that sent nothing again proves no lossless class where nothing could pause it.
    assert ("shows no lossless class" in found["host2"].reason) is soft


@pytest.mark.parametrize("soft", [True, False])
def test_a_full_queue_is_named_and_not_judged(fabric, soft):
    once(fabric, (*LEAF, "queue_drops", 3), 5)
    found = checks(fabric, "loss", "bandwidth", soft)
    assert found[str(LEAF)].verdict == ("SKIP" if soft else "FAIL")
    assert "5 packets of priority 3 dropped at egress" in found[str(LEAF)].reason


def test_packets_that_are_dropped_for_another_reason_fail_all_the_same(fabric):
    once(fabric, (*LEAF, "rx_mtu_drops", None), 5)
    assert checks(fabric, "loss", "preflight", True)[str(LEAF)].verdict == "FAIL"
