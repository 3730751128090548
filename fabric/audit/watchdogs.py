"""Rules about the PFC watchdog, which ends a pause that never ends."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit import ends
from fabric.audit.findings import Skip
from fabric.audit.rule import Fault, Subject, remarks_only, rule
from fabric.unread import Fact

MIN_DETECT_MS = 100
_SEE = (
    "NX-OS: show queuing pfc-queue; SONiC: show pfcwd config; EOS: show priority-flow-control "
    "counters watchdog; NVUE: nv show interface IF qos pfc-watchdog"
)


@rule(
    "watchdog",
    "warning",
    "A NIC that pauses for ever then stops the whole fabric.",
    checks=(32,),
    facts=(Fact.WATCHDOG,),
    fields=("watchdog",),
    see=_SEE,
    mend="the watchdog on every port and every lossless priority",
    source="Guo et al., RDMA over Commodity Ethernet at Scale, SIGCOMM 2016, section 4.3",
    shows=ends.watchdog,
)
def watchdog(subject: Subject) -> Iterator[Fault | Skip]:
    """The PFC watchdog guards every switch port."""
    for live, intended in subject.ports():
        if intended.watchdog is None or live.watchdog == intended.watchdog:
            continue
        if live.watchdog is None:
            yield Fault("the PFC watchdog is off", live.name)
        elif live.watchdog.action != intended.watchdog.action:
            yield Fault(
                f"the PFC watchdog would {live.watchdog.action}, should {intended.watchdog.action}",
                live.name,
            )


@rule(
    "watchdog-times",
    "warning",
    "Too short, and it kills congestion that would have passed; too long, and the fabric stops.",
    checks=(33,),
    facts=(Fact.WATCHDOG,),
    fields=("watchdog",),
    see=_SEE,
    mend="at least 100 ms and one polling interval; SONiC lengthens it with the number of ports",
    source="sonic-net/sonic-buildimage sonic-pfcwd.yang; Cisco Nexus 9000 NX-OS QoS guide",
    shows=ends.watchdog,
)
def watchdog_times(subject: Subject) -> Iterator[Fault | Skip]:
    """The watchdog's times are those of the intent, and possible ones."""
    for live, intended in subject.ports():
        got, wanted = live.watchdog, intended.watchdog
        if got is None or wanted is None or got.action != wanted.action:
            continue
        if got != wanted:
            least = (got.detect_ms or MIN_DETECT_MS) < MIN_DETECT_MS
            yield Fault(
                f"the PFC watchdog's times are {ends.times(got)}, should be {ends.times(wanted)}"
                + (f"; below {MIN_DETECT_MS} ms it acts on ordinary congestion" if least else ""),
                live.name,
            )


@rule(
    "watchdog-preconditions",
    "warning",
    "It is configured, shown as configured, and watches nothing.",
    checks=(34,),
    see="EOS watches only queues with a guaranteed bandwidth, Junos only those with a "
    "flow-control-queue",
    mend="EOS: bandwidth guaranteed under the tx-queue; Junos: flow-control-queue in the CNP",
    source="Arista EOS PFC watchdog; Juniper, congestion-notification-profile",
)
def watchdog_preconditions(subject: Subject) -> Iterator[Fault | Skip]:  # noqa: ARG001
    """What the vendor's watchdog needs in order to watch is there."""
    return remarks_only()
