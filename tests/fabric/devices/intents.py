"""Intended states of a switch within the means of one system or another."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from fabric.devices.base import Target, TargetPort
from fabric.qos import DeviceQos, Ecn, IngressBuffer, PortQos, Queue, Scheduler, Watchdog


def target(os: str, *ports: str, model: str = "") -> Target:
    return Target("leaf-1", os, model, tuple(TargetPort(p, 25 * 10**9, 3.0) for p in ports))


def state(os: str, *ports: PortQos) -> DeviceQos:
    return DeviceQos("leaf-1", "switch", os, ports)


def roce_port(name: str, *, kmin: int = 100_000, pfc: bool = True) -> PortQos:
    """What the article's intent asks of a 25G port: DSCP 26 lossless, CNP strict."""
    dscps = [0] * 64
    dscps[26], dscps[48] = 3, 6
    return PortQos(
        name=name,
        mtu_bytes=9000,
        trust="dscp",
        dscp_to_priority=tuple(dscps),
        priority_to_class=tuple(range(8)),
        class_mtu_bytes=(9000,) * 8,
        pfc_priorities=(3,) if pfc else (),
        link_pause=False,
        queues=tuple(
            Queue(
                number,
                Scheduler("strict") if number == 6 else Scheduler("ets", 50 * (number in (0, 3))),
                Ecn(kmin, 4 * kmin, 20) if number == 3 else None,
            )
            for number in range(8)
        ),
        ingress_buffers=(IngressBuffer(3, 173_000, 150_000, 140_000),) if pfc else (),
        watchdog=Watchdog(200, 400, "drop"),
    )


def reached(intended: DeviceQos) -> bool:
    """Whether some DSCP is put into each priority that pauses, which Junos asks for."""
    return all(set(port.pfc_priorities) <= set(port.dscp_to_priority) for port in intended.ports)


@st.composite
def ecns(draw: st.DrawFn) -> Ecn:
    kmin = draw(st.integers(1, 10**7))
    return Ecn(kmin, kmin + draw(st.integers(1, 10**7)), draw(st.integers(1, 100)))


@st.composite
def switches(draw: st.DrawFn, os: str, names: tuple[str, ...], *, max_mtu: int = 9216) -> DeviceQos:
    """Ports that classify alike and otherwise differ; strict queues above shared ones."""
    dscps = tuple(draw(st.lists(st.integers(0, 7), min_size=64, max_size=64)))
    paused = tuple(sorted(draw(st.sets(st.integers(0, 6), max_size=3))))
    return state(
        os,
        *(
            draw(ports(name, dscps, paused if draw(st.booleans()) else (), max_mtu))
            for name in names
        ),
    )


@st.composite
def ports(
    draw: st.DrawFn, name: str, dscps: tuple[int, ...], pfc: tuple[int, ...], max_mtu: int
) -> PortQos:
    mtu = draw(st.integers(1500, max_mtu))
    lowest_strict = draw(st.integers(1, 8))
    shares = draw(st.lists(st.integers(0, 12), min_size=8, max_size=8))
    xon = draw(st.integers(1, 10**6))
    xoff = xon + draw(st.integers(0, 10**5))
    size = xoff + draw(st.integers(1, 10**6))
    times = st.integers(100, 5000)
    actions = st.sampled_from(["drop", "forward", "shutdown"])
    return replace(
        roce_port(name),
        mtu_bytes=mtu,
        class_mtu_bytes=(mtu,) * 8,
        dscp_to_priority=dscps,
        pfc_priorities=pfc,
        link_pause=not pfc and draw(st.booleans()),
        queues=tuple(
            Queue(
                number,
                Scheduler("strict")
                if number >= lowest_strict
                else Scheduler("ets", shares[number]),
                draw(st.none() | ecns()),
            )
            for number in range(8)
        ),
        ingress_buffers=tuple(IngressBuffer(priority, size, xoff, xon) for priority in pfc),
        watchdog=draw(st.none() | st.builds(Watchdog, times, times, actions)),
    )
