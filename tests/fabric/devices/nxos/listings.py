"""The listings beside this file, and intended states within NX-OS's means."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from fabric.devices.base import Target, TargetPort
from fabric.devices.nxos.normalise import MAX_STRICT_QUEUES
from fabric.qos import (
    DeviceQos,
    Ecn,
    IngressBuffer,
    PortQos,
    Queue,
    Scheduler,
    Watchdog,
)

FIXTURES = Path(__file__).parent / "fixtures"


def listing(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def target(*ports: str) -> Target:
    return Target(
        "leaf-1",
        "nxos",
        "N9K-C93180YC-FX",
        tuple(TargetPort(port, 25 * 10**9, 3.0) for port in ports),
    )


def roce_port(name: str = "Ethernet1/1", *, kmin: int = 100_000, pfc: bool = True) -> PortQos:
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
        watchdog=Watchdog(200, None, "drop"),
    )


def switch(*ports: PortQos) -> DeviceQos:
    return DeviceQos("leaf-1", "switch", "nxos", ports)


@st.composite
def ecns(draw: st.DrawFn) -> Ecn:
    kmin = draw(st.integers(1, 10**7))
    return Ecn(kmin, kmin + draw(st.integers(1, 10**7)), draw(st.integers(1, 100)))


@st.composite
def buffers(draw: st.DrawFn, priority: int) -> IngressBuffer:
    xon = draw(st.integers(1, 10**6))
    xoff = xon + draw(st.integers(0, 10**5))
    return IngressBuffer(priority, xoff + draw(st.integers(0, 10**6)), xoff, xon)


@st.composite
def switches(draw: st.DrawFn, names: tuple[str, ...] = ("Ethernet1/1", "Ethernet1/2")) -> DeviceQos:
    """A state that NX-OS can express entirely: device-wide facts alike on all ports."""
    paused = tuple(sorted(draw(st.sets(st.integers(0, 7), max_size=3))))
    class_mtus = tuple(draw(st.lists(st.integers(1500, 9216), min_size=8, max_size=8)))
    detect_ms = 100 * draw(st.integers(1, 10))
    shared = st.builds(Scheduler, st.just("ets"), st.integers(0, 100))
    ports = []
    for name in names:
        pfc = paused if draw(st.booleans()) else ()
        strict = draw(st.sets(st.integers(0, 7), max_size=MAX_STRICT_QUEUES))
        ports.append(
            PortQos(
                name=name,
                mtu_bytes=draw(st.integers(1500, 9216)),
                trust="dscp",
                dscp_to_priority=tuple(draw(st.lists(st.integers(0, 7), min_size=64, max_size=64))),
                priority_to_class=tuple(range(8)),
                class_mtu_bytes=class_mtus,
                pfc_priorities=pfc,
                link_pause=not pfc and draw(st.booleans()),
                queues=tuple(
                    Queue(
                        number,
                        Scheduler("strict") if number in strict else draw(shared),
                        draw(st.none() | ecns()),
                    )
                    for number in range(8)
                ),
                ingress_buffers=tuple(
                    draw(buffers(priority)) for priority in pfc if draw(st.booleans())
                ),
                watchdog=Watchdog(detect_ms, None, "drop") if draw(st.booleans()) else None,
            )
        )
    return switch(*ports)
