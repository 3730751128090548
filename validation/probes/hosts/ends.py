"""The pairs of a step, and what each end of one is told."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial

from fabric.devices.registry import expected_qos
from fabric.intended import roce_tos
from fabric.site import Site
from fabric.topology import PortRef
from validation.probes.hosts.instruments import INSTRUMENTS
from validation.probes.hosts.options import Options
from validation.probes.hosts.pairtest import End, PairTest, iterations_of
from validation.probes.hosts.ports import Ports
from validation.probes.hosts.tcp import (
    answer_words,
    client_words,
    default_tos,
    ping_words,
    server_words,
)
from validation.traffic import Step, TrafficPlan, application_tos

TCP_EXAMPLE = "iperf3"


def pair_tests(step: Step, options: Options) -> Iterator[PairTest]:
    """Every pair of every stream of a step, each with a name of its own."""
    number = 0
    for stream in step.streams:
        for source, target in stream.pairs:
            iterations = iterations_of(stream, options.pings)
            yield PairTest(
                name=str(number),
                source=source,
                target=target,
                stream=stream,
                tool=options.tool(stream.kind),
                iterations=iterations,
                seconds=options.seconds if iterations is None else None,
            )
            number += 1


def own_tos(site: Site, port: PortRef, options: Options) -> int | None:
    """The TOS byte that a test sets itself; None where the host marks what it sends.

    A host that was told to mark must do so: a test that did it in its place would hide
    that it does not.
    """
    if not options.rdma_cm:
        return application_tos(site, port)
    expected = expected_qos(site, port.device).port(port.port)
    if expected is None or expected.nic is None or expected.nic.rdma_cm_tos is not None:
        return None
    return roce_tos(site.intent)


def planned_us(plan: TrafficPlan, options: Options) -> float:
    """How long a suite's streams last; a given number of messages takes no time beside them."""
    tests = (next(pair_tests(step, options), None) for step in plan.steps)
    return sum((test.seconds or 0) * 1e6 for test in tests if test is not None)


def planned_commands(site: Site, plan: TrafficPlan, options: Options) -> list[dict[str, str]]:
    """Every command of a suite: step, host and words, servers before clients.

    Nothing is asked of a host: ``GID_INDEX`` stands for what its table says, and a port
    that is taken there is passed over.
    """
    lines = []
    for step in plan.steps:
        ports = Ports()
        servers, clients = [], []
        for test in pair_tests(step, options):
            port = ports.take(test.target.device, ())
            assert port is not None
            server, client = _planned(site, test, port, options)
            servers.append({"step": step.id, "host": test.target.device, "command": server})
            clients.append({"step": step.id, "host": test.source.device, "command": client})
        lines += servers + clients
    return lines


def _planned(site: Site, test: PairTest, port: int, options: Options) -> tuple[str, str]:
    target = site.host(test.target.device).nics[test.target.port]
    address = target.address or "ADDRESS"
    if test.stream.role != "roce" and test.stream.kind == "ping":
        asks = ping_words(test.stream, address, port, test.iterations or 0, default_tos(site))
        return shlex.join(answer_words(port, test.stream)), shlex.join(asks)
    if test.stream.role != "roce":
        server = server_words(TCP_EXAMPLE, port)
        seconds = test.seconds or options.seconds
        client = client_words(TCP_EXAMPLE, test.stream, address, port, seconds, default_tos(site))
        return " ".join(server), " ".join(client)
    mtu = site.intent.mtu.roce
    ends = [
        End(site.host(p.device).nics[p.port].rdma, "GID_INDEX", own_tos(site, p, options))
        for p in (test.source, test.target)
    ]
    words = partial(
        INSTRUMENTS[options.probe or "perftest"].words,
        test,
        options=options,
        mtu=mtu,
        port=port,
        folder="FOLDER",
    )
    client, server = words(end=ends[0], peer=address), words(end=ends[1])
    return " ".join(server), " ".join(client)
