"""Fair shares of what wires and uplinks carry."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fabric.topology import ClosShape
from tests.sites import make_site
from validation.criteria import payload_bps
from validation.judgement.capacity import fair_shares_bps

WIRE = payload_bps(25e9, 4096)


def ends(site):
    return site.topology.endpoints


def test_senders_to_one_share_its_wire_and_others_keep_theirs(tmp_path):
    site = make_site(tmp_path, ClosShape(4, 2, 1))
    a, b, c, d = ends(site)
    shares = fair_shares_bps(site, [(a, c), (b, c), (c, d)])
    assert shares == pytest.approx([WIRE / 2, WIRE / 2, WIRE])


def test_what_one_cannot_use_another_gets(tmp_path):
    site = make_site(tmp_path, ClosShape(4, 2, 1))
    a, b, c, d = ends(site)
    # a sends to two: to c it shares with b, so that d gets no more than a has left.
    shares = fair_shares_bps(site, [(a, c), (b, c), (d, c), (a, b)])
    assert shares == pytest.approx([WIRE / 3] * 3 + [WIRE * 2 / 3])


def test_uplinks_that_are_too_few_bound_what_crosses_them(tmp_path):
    site = make_site(tmp_path, ClosShape(16, 2, 1))
    leaves = {"leaf1", "leaf2"}
    links = [
        link
        for link in site.topology.links
        if not ({link.a.device, link.b.device} & leaves and link.a.port == "Ethernet1/50")
    ]
    cut = replace(site.topology, links=tuple(links))
    assert len(cut.links) == len(site.topology.links) - 2
    thin = SimpleNamespace(topology=cut, intent=site.intent)
    ports = cut.endpoints
    crossing = fair_shares_bps(thin, list(zip(ports[:8], ports[8:], strict=True)))
    assert crossing == pytest.approx([payload_bps(100e9, 4096) / 8] * 8)
    inside = fair_shares_bps(thin, [(ports[0], ports[1])])
    assert inside == pytest.approx([WIRE])
