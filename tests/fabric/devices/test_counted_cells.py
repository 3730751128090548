"""Numbers as switches print them: with thousands separators, or not at all."""

import re

import pytest

from fabric.devices.base import Target
from fabric.devices.cloudengine import MODULE as CLOUDENGINE
from fabric.devices.cloudengine.counters import queue_command
from fabric.devices.comware import MODULE as COMWARE
from fabric.devices.comware.counters import QUEUES as COMWARE_QUEUES
from fabric.devices.junos import MODULE as JUNOS
from fabric.devices.junos.counters import EXTENSIVE
from fabric.devices.junos.counters import QUEUES as JUNOS_QUEUES
from fabric.devices.os10 import MODULE as OS10
from tests.fabric.devices.cloudengine import test_cloudengine as cloudengine
from tests.fabric.devices.comware import test_comware as comware
from tests.fabric.devices.intents import target
from tests.fabric.devices.junos import test_junos_counters as junos
from tests.fabric.devices.os10 import test_os10 as os10

SYSTEMS = {
    "cloudengine": (
        CLOUDENGINE,
        target("cloudengine", "25GE1/0/1"),
        {
            "display interface": cloudengine.INTERFACE,
            queue_command("25GE1/0/1"): cloudengine.QUEUES,
        },
    ),
    "comware": (
        COMWARE,
        target("comware", "HundredGigE1/0/1"),
        {
            "display interface": comware.INTERFACE,
            COMWARE_QUEUES: comware.QUEUE_TEXT,
        },
    ),
    "junos": (
        JUNOS,
        target("junos", "et-0/0/0"),
        {EXTENSIVE: junos.PORT, JUNOS_QUEUES: junos.QUEUE},
    ),
    "os10": (OS10, target("os10", "ethernet1/1/1"), {"show interface": os10.COUNTERS}),
}
# A count: a whole word, and no part of a name, a rate or a share.
COUNT = re.compile(r"(?<![\w.,/-])(\d{1,3}(?:,\d{3})+|\d+)(?=[\s,]|$)", re.MULTILINE)
# Lines that say which queue or priority the next ones are about.
HEADS = re.compile(r"\s*(?:Queue:? |Priority +:|\d +\S+ +\d)")


def _values(module, where: Target, outputs: dict[str, str]) -> dict[tuple[str, int | None], int]:
    shown = module.read_counters(where, outputs, 1.0)
    return {(counter.name, counter.priority): counter.value for counter in shown.counters}


def _recounted(outputs: dict[str, str], written) -> dict[str, str]:
    """The outputs with every count written anew, but in lines that have numbers as names."""
    return {
        command: "".join(
            line if HEADS.match(line) else COUNT.sub(lambda match: written(match[1]), line)
            for line in text.splitlines(keepends=True)
        )
        for command, text in outputs.items()
    }


@pytest.mark.parametrize("system", SYSTEMS)
def test_large_counts_are_read_with_and_without_separators(system):
    module, where, outputs = SYSTEMS[system]

    def large(text: str) -> int:
        return int(text.replace(",", "")) + 1_000_000

    plain = _values(module, where, _recounted(outputs, lambda text: str(large(text))))
    parted = _values(module, where, _recounted(outputs, lambda text: f"{large(text):,}"))
    assert plain
    assert any(value >= 1_000_000 for value in plain.values())
    assert parted == plain


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("cell", ["N/A", "-", "--", "", ","])
def test_what_is_not_counted_is_missing_and_never_a_number(system, cell):
    module, where, outputs = SYSTEMS[system]
    known = _values(module, where, outputs)
    got = module.read_counters(where, _recounted(outputs, lambda _: cell), 1.0)
    values = {(counter.name, counter.priority): counter.value for counter in got.counters}
    assert values.items() <= known.items()
    assert len(got.missing) > len(module.read_counters(where, outputs, 1.0).missing)
