"""The outputs beside this file, and intended states within SONiC's means."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from hypothesis import strategies as st

from fabric.devices.base import Target, TargetPort
from fabric.devices.sonic.database import Tables, copy
from fabric.devices.sonic.read import RUNNING
from fabric.qos import DeviceQos, Ecn, IngressBuffer, PortQos, Queue, Scheduler, Watchdog

FIXTURES = Path(__file__).parent / "fixtures"
PORTS = ("Ethernet0", "Ethernet48")


def sample(name: str) -> str:
    return (FIXTURES / name).read_text()


def target(*ports: str) -> Target:
    return Target(
        "tor-7",
        "sonic",
        "Accton-AS7326-56X",
        tuple(TargetPort(port, 25 * 10**9, 3.0) for port in ports or PORTS),
    )


def outputs(tables: Tables | str) -> dict[str, str]:
    return {RUNNING: tables if isinstance(tables, str) else json.dumps(tables)}


def roce_port(name: str = "Ethernet0", *, kmin: int = 100_000, alpha: float = 0.125) -> PortQos:
    """What the article's intent asks of a 25G port: DSCP 26 lossless, CNP strict."""
    dscps = [0] * 64
    dscps[26], dscps[48] = 3, 6
    return PortQos(
        name=name,
        mtu_bytes=9216,
        trust="dscp",
        dscp_to_priority=tuple(dscps),
        priority_to_class=tuple(range(8)),
        class_mtu_bytes=(9216,) * 8,
        pfc_priorities=(3,),
        link_pause=False,
        queues=tuple(
            Queue(
                number,
                Scheduler("strict") if number == 6 else Scheduler("ets", 50 * (number in (0, 3))),
                Ecn(kmin, 4 * kmin, 20) if number == 3 else None,
            )
            for number in range(8)
        ),
        ingress_buffers=(IngressBuffer(3, 183_000, 150_000, 140_000, alpha),),
        watchdog=Watchdog(200, 400, "drop"),
    )


def switch(*ports: PortQos) -> DeviceQos:
    return DeviceQos("tor-7", "switch", "sonic", ports)


@st.composite
def buffers(draw: st.DrawFn, priority: int) -> IngressBuffer:
    xon = draw(st.integers(0, 10**6))
    xoff = xon + draw(st.integers(0, 10**5))
    alpha = draw(st.floats(2**-9, 2**8))
    return IngressBuffer(priority, xoff + draw(st.integers(1, 10**6)), xoff, xon, alpha)


@st.composite
def ecns(draw: st.DrawFn) -> Ecn:
    kmin = draw(st.integers(0, 10**7))
    return Ecn(kmin, kmin + draw(st.integers(0, 10**7)), draw(st.integers(0, 100)))


@st.composite
def queue_sets(draw: st.DrawFn) -> tuple[Queue, ...]:
    """Shares add up to 100, as an intent's do, or there are none."""
    strict = draw(st.sets(st.integers(0, 7), max_size=7))
    ets = [number for number in range(8) if number not in strict]
    cuts = sorted(draw(st.lists(st.integers(0, 100), min_size=len(ets) - 1, max_size=len(ets) - 1)))
    percents = dict(
        zip(ets, (b - a for a, b in zip([0, *cuts], [*cuts, 100], strict=True)), strict=True)
    )
    return tuple(
        Queue(
            number,
            Scheduler("strict") if number in strict else Scheduler("ets", percents[number]),
            draw(st.none() | ecns()),
        )
        for number in range(8)
    )


@st.composite
def switches(draw: st.DrawFn, names: tuple[str, ...] = PORTS) -> DeviceQos:
    ports = []
    for name in names:
        pfc = tuple(sorted(draw(st.sets(st.integers(0, 7), max_size=3))))
        watchdog = st.builds(
            Watchdog,
            st.none() | st.integers(50, 6000),
            st.none() | st.integers(50, 70_000),
            st.sampled_from(["drop", "forward", "shutdown"]),
        )
        ports.append(
            PortQos(
                name=name,
                mtu_bytes=draw(st.integers(1500, 9216)),
                trust="dscp",
                dscp_to_priority=tuple(draw(st.lists(st.integers(0, 7), min_size=64, max_size=64))),
                priority_to_class=tuple(draw(st.permutations(range(8)))),
                class_mtu_bytes=(draw(st.integers(1500, 9216)),) * 8,
                pfc_priorities=pfc,
                link_pause=draw(st.booleans()),
                queues=draw(queue_sets()),
                ingress_buffers=tuple(draw(buffers(p)) for p in pfc if draw(st.booleans())),
                watchdog=draw(st.none() | watchdog),
            )
        )
    return switch(*ports)


def carried_out(tables: Tables, commands: tuple[str, ...]) -> Tables:
    """What these ``sonic-db-cli`` commands make of CONFIG_DB; an error for any other command."""
    after = copy(tables)
    for command in commands:
        sudo, cli, database, verb, key, *words = shlex.split(command)
        assert (sudo, cli, database) == ("sudo", "sonic-db-cli", "CONFIG_DB")
        name, _, row = key.partition("|")
        table = after.setdefault(name, {})
        if verb == "HSET":
            assert words
            table.setdefault(row, {}).update(zip(words[::2], words[1::2], strict=True))
        elif verb == "HDEL":
            for field in words:
                del table[row][field]
        else:
            assert verb == "DEL"
            assert not words
            del table[row]
    return {name: table for name, table in after.items() if table}
