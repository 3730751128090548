"""Any intent on the emulator: reached from any other, read back as the same, taken back."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings

from fabric.devices.nxos import MODULE
from fabric.devices.nxos.normalise import MAX_STRICT_QUEUES
from fabric.devices.sections import parse
from fabric.provisioning.plan import mismatches
from fabric.qos import DeviceQos
from fabric.site import Site
from fabric.twin.nxos import EmulatedSwitch
from tests.fabric.devices.intents import switches, target
from tests.fabric.devices.nxos.interpreter import as_set
from tests.fabric.twin.consoles import Console

PORT = "Ethernet1/1"

# The smallest receive buffer that it takes; thresholds may be smaller.
LEAST_BYTES = 27_456


def with_real_buffers(intended: DeviceQos) -> DeviceQos:
    (port,) = intended.ports
    buffers = tuple(
        replace(
            buffer,
            size_bytes=buffer.size_bytes + LEAST_BYTES,
            xoff_bytes=buffer.xoff_bytes + LEAST_BYTES,
            xon_bytes=buffer.xon_bytes + LEAST_BYTES,
        )
        for buffer in port.ingress_buffers
    )
    return replace(intended, ports=(replace(port, ingress_buffers=buffers),))


INTENTS = switches("nxos", (PORT,)).map(with_real_buffers)


def strict_queues(intended: DeviceQos) -> int:
    return sum(queue.scheduler.mode == "strict" for queue in intended.ports[0].queues)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(INTENTS, INTENTS)
def test_any_intent_follows_any_other_and_back(site: Site, first, second):
    assume(max(strict_queues(first), strict_queues(second)) <= MAX_STRICT_QUEUES)
    where = target("nxos", PORT)

    def change(intended):
        return MODULE.change(
            where, {c: console.type(c) for c in MODULE.read_commands(where)}, intended
        )

    with tempfile.TemporaryDirectory() as folder:
        console = Console(EmulatedSwitch("leaf1", Path(folder), site))
        for intended in (first, second):
            before, done = console.running(), change(intended)
            console.type("configure terminal", *done.commands, "end")
            held = MODULE.read(where, {c: console.type(c) for c in MODULE.read_commands(where)})
            assert mismatches(held, MODULE.normalise(intended)) == []
            assert change(intended).empty
        console.type("configure terminal", *done.rollback, "end")
        # Objects may come back in another order, which says nothing.
        assert as_set(parse(console.running())) == as_set(parse(before))
