"""Rules about classification: which packet is put into which class, on every hop."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit import ends
from fabric.audit.findings import Skip
from fabric.audit.lossless import cnp_paused, default_paused
from fabric.audit.rule import Fault, Subject, first, remarks_only, rule
from fabric.qos import PortQos
from fabric.unread import Fact

_SEE = (
    "switch: its DSCP map (NX-OS: show policy-map interface ... type qos, SONiC: show qos map "
    "dscp-to-tc); host: mlnx_qos -i IF, or dcb app show dev IF dscp-prio"
)


@rule(
    "trust",
    "error",
    "Untagged routed packets carry no PCP: all of them land in priority 0.",
    checks=(4,),
    facts=(Fact.TRUST,),
    fields=("trust", "dscp_to_priority"),
    see="host: mlnx_qos -i IF (Priority trust state); EOS: show qos interfaces; default is CoS",
    mend="host: mlnx_qos -i IF --trust dscp; EOS: qos trust dscp",
    source="IEEE 802.1Q; RFC 2474",
    shows=ends.trust,
)
def trust(subject: Subject) -> Iterator[Fault | Skip]:
    """Ports classify by DSCP."""
    for live, intended in subject.ports():
        if live.trust != intended.trust:
            yield Fault(f"trusts {live.trust}, not {intended.trust}", live.name)


def _wrong(live: PortQos, intended: PortQos) -> dict[int, tuple[int, int]]:
    """DSCP -> (priority that it has, priority that it should have)."""
    if live.trust != intended.trust or live.dscp_to_priority == intended.dscp_to_priority:
        return {}
    pairs = enumerate(zip(live.dscp_to_priority, intended.dscp_to_priority, strict=True))
    return {dscp: pair for dscp, pair in pairs if pair[0] != pair[1]}


def _strict_class(subject: Subject, live: PortQos, priority: int) -> bool:
    """Whether CNPs' strict queue is where this priority ends up."""
    queue = live.queue(live.priority_to_class[priority])
    return (
        subject.live.kind == "switch"
        and priority == subject.wanted.cnp
        and queue is not None
        and queue.scheduler.mode == "strict"
    )


def starving(subject: Subject, live: PortQos, intended: PortQos) -> list[int]:
    """DSCPs beside CNPs' that a switch puts into their strict queue."""
    cnps = subject.wanted.dscps_of_role["cnp"]
    return [
        dscp
        for dscp, (got, _) in _wrong(live, intended).items()
        if dscp not in cnps and _strict_class(subject, live, got)
    ]


@rule(
    "dscp-map",
    "error",
    "A packet that changes its class on the way loses PFC and ECN there.",
    checks=(2, 3),
    facts=(Fact.DSCPS,),
    fields=("dscp_to_priority",),
    see=_SEE,
    mend="one map everywhere; SONiC's default puts DSCP 24 and 26 into lossy TC 1",
    source="RFC 2474; sonic-net/sonic-buildimage files/build_templates/qos_config.j2",
    shows=ends.dscps,
)
def dscp_map(subject: Subject) -> Iterator[Fault | Skip]:
    """Every DSCP is put into the priority that the intent gives it."""
    for live, intended in subject.ports():
        if skip := subject.skip("dscp-map", live.name, Fact.DSCPS):
            yield skip
            continue
        other = {*default_paused(subject, live), *starving(subject, live, intended)}
        other |= set(subject.wanted.dscps_of_role["cnp"])
        wrong = [
            f"DSCP {dscp} -> priority {got} (should be {wanted})"
            for dscp, (got, wanted) in _wrong(live, intended).items()
            if dscp not in other
        ]
        if wrong:
            yield Fault(
                first(wrong, "DSCPs map to the wrong priority"), live.name, tuple(wrong[:8])
            )


@rule(
    "cnp-dscp",
    "error",
    "CNPs that one side marks and the other does not know wait behind data, or are dropped.",
    checks=(13,),
    fields=("dscp_to_priority", "nic.dcqcn"),
    see="NIC: ecn/roce_np/cnp_dscp and cnp_802p_prio in sysfs; switch: the map of that DSCP",
    mend="one CNP DSCP on every NIC, mapped to its own strict queue on every switch",
    source="Linux drivers/infiniband/hw/mlx5/cong.c; sonic-net/sonic-mgmt issue 25347",
    shows=ends.cnps,
)
def cnp_dscp(subject: Subject) -> Iterator[Fault | Skip]:
    """NICs mark CNPs with the DSCP that every hop puts into the CNP class."""
    for live, intended in subject.ports():
        wrong = [
            f"CNPs (DSCP {dscp}) -> priority {got} (should be {wanted})"
            for dscp, (got, wanted) in _wrong(live, intended).items()
            if dscp in subject.wanted.dscps_of_role["cnp"] and not cnp_paused(subject, live)
        ]
        mine = live.nic.dcqcn if live.nic else None
        theirs = intended.nic.dcqcn if intended.nic else None
        if mine is not None and theirs is not None:
            marks = (mine.cnp_dscp, mine.cnp_priority)
            if marks != (theirs.cnp_dscp, theirs.cnp_priority):
                wrong.append(
                    f"the NIC marks CNPs with DSCP {marks[0]}, priority {marks[1]} "
                    f"(should be {theirs.cnp_dscp}, {theirs.cnp_priority})"
                )
        if wrong:
            yield Fault(wrong[0], live.name, tuple(wrong))


@rule(
    "class-map",
    "error",
    "PFC then pauses another queue than the one that fills the buffer.",
    checks=(5,),
    facts=(Fact.CLASSES,),
    fields=("priority_to_class",),
    see="SONiC: MAP_PFC_PRIORITY_TO_QUEUE, TC_TO_QUEUE_MAP, TC_TO_PRIORITY_GROUP_MAP; host: "
    "mlnx_qos -i IF (tc, priority)",
    mend="one number for one class: priority, queue, priority group and traffic class",
    source="sonic-net/sonic-buildimage sonic-port-qos-map.yang",
    shows=ends.classes,
)
def class_map(subject: Subject) -> Iterator[Fault | Skip]:
    """Every priority leaves by its own traffic class."""
    for live, intended in subject.ports():
        if live.priority_to_class == intended.priority_to_class:
            continue
        wrong = [
            f"priority {priority} -> traffic class {got} (should be {wanted})"
            for priority, (got, wanted) in enumerate(
                zip(live.priority_to_class, intended.priority_to_class, strict=True)
            )
            if got != wanted
        ]
        yield Fault(first(wrong, "priorities map to the wrong class"), live.name, tuple(wrong))


@rule(
    "rewrite",
    "error",
    "Behind a hop that rewrites it, the packet is of another class, without PFC and ECN.",
    checks=(41,),
    see="NX-OS: set dscp under policy-map type qos; VXLAN: whether the outer header copies DSCP",
    mend="remove the marking action; copy DSCP and ECN into the outer header",
    source="RFC 2474, RFC 6040; Cisco Nexus 9000 NX-OS QoS guide, Configuring Marking",
)
def rewrite(subject: Subject) -> Iterator[Fault | Skip]:  # noqa: ARG001
    """No hop changes a packet's DSCP."""
    return remarks_only()


@rule(
    "ecmp",
    "warning",
    "Flows between two hosts share few links: these congest while others are idle.",
    checks=(46,),
    see="NX-OS: show ip load-sharing; counters of parallel uplinks under traffic",
    mend="hash UDP source ports, with another seed in every tier",
    source="RFC 7690 and RFC 2992; RoCEv2 entropy: InfiniBand specification annex A17.9.2",
)
def ecmp(subject: Subject) -> Iterator[Fault | Skip]:  # noqa: ARG001
    """ECMP hashes the UDP source port, in which RoCEv2 puts its entropy."""
    return remarks_only()
