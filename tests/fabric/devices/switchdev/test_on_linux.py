"""The bridge's module against the real ``tc`` and ``ip``, in a network namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fabric.devices.switchdev import BRIDGE
from fabric.qos import Ecn, Queue, Scheduler
from tests.fabric.devices.intents import roce_port, state, target

PORTS = ("swp1", "swp2")
NEEDED = (
    "tc qdisc add dev swp1 root handle 1: ets bands 2 strict 1",
    "tc qdisc add dev swp1 parent 1:1 red limit 400000 min 30000 max 90000 avpkt 1000 burst 30 ecn",
    "tc qdisc del dev swp1 root",
    "tc qdisc add dev swp1 clsact",
    "tc filter add dev swp1 ingress pref 1 protocol ip flower ip_tos 8/0xfc "
    "action skbedit priority 1",
    "tc qdisc del dev swp1 clsact",
)


class Namespace:
    """A network namespace that lives as long as a process in it."""

    def __init__(self) -> None:
        # What /sys/class/net shows depends on who mounted it.
        keep = "mount -t sysfs none /sys && echo there && exec sleep 60"
        self._keeper = subprocess.Popen(
            ["unshare", "-n", "-m", "sh", "-c", keep], stdout=subprocess.PIPE, cwd="/"
        )
        assert self._keeper.stdout is not None
        self._keeper.stdout.readline()
        self._enter = ["nsenter", "-t", str(self._keeper.pid), "-n", "-m", "-r", "-w", "sh", "-c"]

    def run(self, command: str) -> str:
        """Both streams, as a terminal shows them."""
        done = subprocess.run(
            [*self._enter, command], capture_output=True, text=True, check=False, timeout=20
        )
        return done.stdout + done.stderr

    def close(self) -> None:
        """Its interfaces go with it."""
        self._keeper.terminate()
        self._keeper.communicate()


@pytest.fixture
def switch() -> Iterator[Namespace]:
    if os.geteuid() != 0 or not all(map(shutil.which, ("tc", "ip", "unshare", "nsenter"))):
        pytest.skip("needs root, iproute2 and util-linux")
    if subprocess.run(["unshare", "-n", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody make a network namespace")
    namespace = Namespace()
    try:
        made = namespace.run("ip link add br0 type bridge && ip link set br0 up")
        for port in PORTS:
            made += namespace.run(
                f"ip link add {port} type veth peer name h{port} && "
                f"ip link set {port} master br0 up && ip link set h{port} up"
            )
        if made:
            pytest.skip(f"this kernel bridges no veth: {made.strip()}")
        for command in NEEDED:
            if BRIDGE.is_error(answer := namespace.run(command)):
                pytest.skip(f"this kernel lacks what the lab's switch has: {command}: {answer}")
        yield namespace
    finally:
        namespace.close()


def outputs(switch: Namespace) -> dict[str, str]:
    shown = {c: switch.run(c) for c in BRIDGE.read_commands(target("bridge", *PORTS))}
    return {command: text for command, text in shown.items() if not BRIDGE.is_error(text)}


def apply(switch: Namespace, commands: tuple[str, ...]) -> None:
    for command in commands:
        answer = switch.run(command)
        assert not BRIDGE.is_error(answer), f"{command}: {answer}"


@pytest.mark.parametrize("shaped", [False, True])
def test_changes_there_and_back_on_the_real_tools(switch, shaped):
    ports = target("bridge", *PORTS)
    if shaped:
        apply(
            switch, ("tc qdisc add dev swp1 root handle 9: tbf rate 20mbit burst 20kb limit 1mb",)
        )
    first = state("bridge", *(roce_port(port) for port in PORTS))
    untouched = BRIDGE.read(ports, outputs(switch))
    there = BRIDGE.change(ports, outputs(switch), first)
    apply(switch, there.commands)
    reached = BRIDGE.read(ports, outputs(switch))
    assert reached.ports == BRIDGE.normalise(first).ports
    assert BRIDGE.change(ports, outputs(switch), first).empty

    marked = Queue(3, Scheduler("ets", 70), Ecn(50_000, 90_000, 100))
    other = replace(roce_port("swp1"), mtu_bytes=4200, queues=(marked,))
    again = BRIDGE.change(ports, outputs(switch), state("bridge", other))
    apply(switch, again.commands)
    held = BRIDGE.read(ports, outputs(switch))
    assert held.port("swp1") == BRIDGE.normalise(state("bridge", other)).port("swp1")
    assert held.port("swp2") == reached.port("swp2")

    apply(switch, again.rollback)
    assert BRIDGE.read(ports, outputs(switch)).ports == reached.ports
    apply(switch, there.rollback)
    assert BRIDGE.read(ports, outputs(switch)).ports == untouched.ports


def test_counters_of_the_real_tools(switch):
    ports = target("bridge", *PORTS)
    first = state("bridge", *(roce_port(port) for port in PORTS))
    apply(switch, BRIDGE.change(ports, outputs(switch), first).commands)
    shown = {command: switch.run(command) for command in BRIDGE.counter_commands(ports)}
    snapshot = BRIDGE.read_counters(ports, shown, 1.0)
    values = {(c.port, c.name, c.priority): c.value for c in snapshot.counters}
    assert values["swp1", "ecn_marked_packets", 3] == 0
    assert {queue for port, name, queue in values if name == "tx_queue_packets"} == set(range(8))
    assert [reason for reason in snapshot.missing if "does not show" in reason] == []


def test_what_the_real_tools_refuse(switch):
    assert BRIDGE.is_error(switch.run("tc qdisc add dev swp1 root handle 1: ets bands 4 strict 5"))
    assert BRIDGE.is_error(switch.run("tc qdisc del dev swp1 root"))
    assert BRIDGE.is_error(switch.run("ip link set dev swp9 mtu 4200"))
    assert BRIDGE.is_error(switch.run("tc filter del dev swp1 ingress pref 49026"))
