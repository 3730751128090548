"""The outputs beside this file, and intended states within NVUE's means."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from fabric.devices.base import Target, TargetPort
from fabric.devices.nvue import tree as trees
from fabric.devices.nvue.read import APPLIED
from fabric.devices.nvue.tree import Tree, copy, put, remove
from fabric.qos import DeviceQos, IngressBuffer, PortQos, Watchdog
from tests.fabric.devices.sonic.samples import queue_sets
from tests.fabric.devices.sonic.samples import roce_port as sonic_port

FIXTURES = Path(__file__).parent / "fixtures"
PORTS = ("swp1", "swp49")


def sample(name: str) -> str:
    return (FIXTURES / name).read_text()


def target(*ports: str) -> Target:
    cabled = tuple(TargetPort(port, 25 * 10**9, 3.0) for port in ports or PORTS)
    return Target("leaf-a", "nvue", "MSN3420", cabled)


def outputs(tree: Tree | str) -> dict[str, str]:
    return {APPLIED: tree if isinstance(tree, str) else trees.to_text(tree)}


def roce_port(name: str = "swp1", *, kmin: int = 100_000) -> PortQos:
    buffer = IngressBuffer(3, 183_000, 150_000, 140_000)
    port = replace(sonic_port(name, kmin=kmin), ingress_buffers=(buffer,))
    return replace(port, watchdog=Watchdog(200, None, "drop"))


def switch(*ports: PortQos) -> DeviceQos:
    return DeviceQos("leaf-a", "switch", "nvue", ports)


BARE = {
    "interface": {name: {"description": "a port", "type": "swp"} for name in ("swp1", "swp49")},
    "system": {"hostname": "leaf-a"},
}


@st.composite
def switches(draw: st.DrawFn, names: tuple[str, ...] = PORTS) -> DeviceQos:
    classes = tuple(draw(st.permutations(range(8))))
    ports = []
    for name in names:
        pfc = tuple(sorted(draw(st.sets(st.integers(0, 7), max_size=3))))
        xon = draw(st.integers(0, 10**6))
        xoff = xon + draw(st.integers(0, 10**5))
        size = xoff + draw(st.integers(0, 10**6))
        buffered = draw(st.booleans())
        watchdog = st.builds(Watchdog, st.integers(50, 6000), st.none() | st.integers(100, 900))
        ports.append(
            PortQos(
                name=name,
                mtu_bytes=draw(st.integers(1500, 9216)),
                trust="dscp",
                dscp_to_priority=tuple(draw(st.lists(st.integers(0, 7), min_size=64, max_size=64))),
                priority_to_class=classes,
                class_mtu_bytes=(1500,) * 8,
                pfc_priorities=pfc,
                link_pause=draw(st.booleans()),
                queues=draw(queue_sets()),
                ingress_buffers=tuple(
                    IngressBuffer(p, size, xoff, xon, 0.5) for p in pfc if buffered
                ),
                watchdog=draw(st.none() | watchdog),
            )
        )
    return switch(*ports)


def carried_out(tree: Tree, commands: tuple[str, ...]) -> Tree:
    """What these ``nv`` lines make of a tree; an error for any other line."""
    after = copy(tree)
    for command in commands:
        nv, verb, *words = command.split()
        assert nv == "nv"
        if verb == "unset":
            remove(after, tuple(words))
            continue
        assert verb == "set"
        numbers = words[words.index("dscp") + 1] if "dscp" in words[:-1] else ""
        for number in numbers.split(","):
            path = [number if word == numbers else word for word in words]
            of_pfc = path[-2] == "switch-priority" and path[1] == "pfc"
            if of_pfc or path[-1] == "pfc-watchdog":
                put(after, tuple(path), None)
            else:
                put(after, tuple(path[:-1]), path[-1])
    return after


def as_json(text: str) -> object:
    return json.loads(text)
