"""Rules about who pauses what: PFC, and the link pause that excludes it."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit import ends
from fabric.audit.findings import Skip
from fabric.audit.rule import FIX, Fault, Subject, numbers, rule
from fabric.qos import PortQos
from fabric.unread import Fact

_PFC_SEE = (
    "switch: its PFC table (NX-OS: show interface priority-flow-control, whose bit map is "
    "hexadecimal); host: mlnx_qos -i IF, or dcb pfc show dev IF"
)


def over_limit(subject: Subject, live: PortQos) -> bool:
    """Whether the port pauses more priorities than the hardware holds."""
    if len(live.pfc_priorities) <= max(len(subject.wanted.lossless), 1):
        return False
    limit = subject.max_lossless
    return limit is not None and len(live.pfc_priorities) > limit


def cnp_paused(subject: Subject, live: PortQos) -> bool:
    """Whether CNPs travel in a priority that is paused."""
    if subject.wanted.cnp in live.pfc_priorities:
        return True
    return any(
        live.priority_of_dscp(dscp) in live.pfc_priorities
        and live.priority_of_dscp(dscp) != subject.wanted.cnp
        for dscp in subject.wanted.dscps_of_role["cnp"]
    )


def default_paused(subject: Subject, live: PortQos) -> list[int]:
    """DSCPs of the default class that travel in a priority that is paused."""
    if live.trust != "dscp":
        return []
    paused = set(live.pfc_priorities)
    return [
        d for d in subject.wanted.dscps_of_role["default"] if live.dscp_to_priority[d] in paused
    ]


def negotiates(subject: Subject) -> bool:
    """Whether the device leaves PFC to DCBX: no port of it is forced on."""
    modes = {facts.pfc_mode for facts in subject.live.facts}
    return "auto" in modes and "on" not in modes


def _idle(subject: Subject, port: str) -> bool:
    """Whether PFC is off because the link is down, and not because somebody has said so."""
    facts = subject.facts(port)
    return facts.up is False and facts.pfc_mode != "off"


def _missing(live: PortQos, intended: PortQos) -> set[int]:
    return set(intended.pfc_priorities) - set(live.pfc_priorities)


@rule(
    "bare-tier",
    "error",
    "Lossless ends at this switch: every path over it drops under congestion.",
    checks=(11,),
    see="the whole switch: no port pauses a lossless priority, no queue marks ECN",
    mend="paisoar plan and provision the switch; leaves alone are not enough",
    source="Zhu et al., SIGCOMM 2015 (DCQCN needs PFC and ECN on every hop)",
)
def bare_tier(subject: Subject) -> Iterator[Fault | Skip]:
    """Every switch between two hosts has PFC and ECN, not the leaves only."""
    if subject.bare:
        live = subject.live
        yield Fault(
            "no port of this switch has PFC on a lossless priority or ECN in any queue",
            "",
            (f"{live.device}: {len(subject.pairs)} cabled ports, PFC on none, ECN in none",),
            FIX,
        )


@rule(
    "max-lossless",
    "error",
    "The ASIC has no headroom for so many: it takes it from those that need it, or refuses.",
    checks=(24,),
    facts=(Fact.PFC,),
    fields=("pfc_priorities", "ingress_buffers"),
    see=_PFC_SEE,
    mend="keep one or two lossless priorities; most ASICs hold two",
    source="reference of the device; sonic-net/sonic-buildimage qos_config.j2 (two by default)",
    shows=ends.pfc,
)
def max_lossless(subject: Subject) -> Iterator[Fault | Skip]:
    """No more priorities are lossless than the hardware can hold."""
    # Any hardware that has PFC at all holds one.
    if (
        subject.live.kind == "switch"
        and subject.max_lossless is None
        and any(len(live.pfc_priorities) > 1 for live, _ in subject.pairs)
    ):
        model = subject.live.model or "this model"
        reason = f"how many lossless priorities {model} holds is not known"
        yield Skip("max-lossless", subject.live.device, reason)
    for live, _ in subject.ports():
        if over_limit(subject, live):
            yield Fault(
                f"PFC is on for {len(live.pfc_priorities)} priorities, "
                f"the hardware holds {subject.max_lossless}",
                live.name,
            )


@rule(
    "cnp-lossless",
    "error",
    "A paused CNP comes too late: the sender it should slow down keeps the congestion up.",
    checks=(12,),
    facts=(Fact.PFC,),
    fields=("pfc_priorities", "dscp_to_priority", "ingress_buffers"),
    see="PFC table against the priority of the CNP's DSCP (48 unless changed)",
    mend="give CNPs a priority of their own, without PFC",
    source="Zhu et al., SIGCOMM 2015, section 4; NVIDIA RoCE configuration guides",
    shows=ends.pfc,
)
def cnp_lossless(subject: Subject) -> Iterator[Fault | Skip]:
    """CNPs travel in a priority that nothing pauses."""
    for live, _ in subject.ports():
        if cnp_paused(subject, live) and not over_limit(subject, live):
            where = {live.priority_of_dscp(d) for d in subject.wanted.dscps_of_role["cnp"]}
            yield Fault(
                f"CNPs travel in priority {numbers(frozenset(where))}, which is paused",
                live.name,
            )


@rule(
    "default-lossless",
    "error",
    "TCP then fills the lossless buffer, and pauses RDMA on every link behind it.",
    checks=(30,),
    facts=(Fact.PFC,),
    fields=("pfc_priorities", "dscp_to_priority", "ingress_buffers"),
    see="priority of DSCP 0 in the DSCP map, against the PFC table",
    mend="map DSCP 0 and all that is not RoCE to a priority without PFC",
    source="Guo et al., RDMA over Commodity Ethernet at Scale, SIGCOMM 2016",
    shows=ends.pfc,
)
def default_lossless(subject: Subject) -> Iterator[Fault | Skip]:
    """Traffic that is not RDMA's stays out of the lossless priorities."""
    for live, _ in subject.ports():
        if over_limit(subject, live):
            continue
        if dscps := default_paused(subject, live):
            yield Fault(
                f"{len(dscps)} DSCPs of other traffic travel in a paused priority, "
                f"e.g. DSCP {dscps[0]} in priority {live.dscp_to_priority[dscps[0]]}",
                live.name,
            )


@rule(
    "pfc-auto",
    "error",
    "A NIC whose DCBX is left to the system never answers: auto stays off, and packets drop.",
    checks=(28,),
    facts=(Fact.PFC,),
    fields=("pfc_priorities", "ingress_buffers"),
    see="NX-OS: show interface priority-flow-control (Auto, Off); show lldp dcbx interface (CIN)",
    mend="force it: priority-flow-control mode on, on every port of the path",
    source='Cisco Nexus 9000 NX-OS QoS guide, "Configuring Priority Flow Control"',
    shows=ends.pfc,
)
def pfc_auto(subject: Subject) -> Iterator[Fault | Skip]:
    """PFC that is left to negotiation has been negotiated."""
    if not negotiates(subject):
        return
    for live, intended in subject.ports():
        left = subject.facts(live.name).pfc_mode == "auto" and not _idle(subject, live.name)
        if left and _missing(live, intended):
            yield Fault(
                "PFC is left to negotiation, and the other end has not agreed to it",
                live.name,
            )


@rule(
    "pfc",
    "error",
    "Without PFC at both ends of a cable, congestion drops RDMA packets.",
    checks=(1, 36),
    facts=(Fact.PFC,),
    fields=("pfc_priorities", "ingress_buffers"),
    see=_PFC_SEE,
    mend="the same lossless priorities at both ends of every cable, and no others",
    source="IEEE 802.1Qbb",
    shows=ends.pfc,
)
def pfc(subject: Subject) -> Iterator[Fault | Skip]:
    """Both ends pause the lossless priorities, and only these."""
    left_alone = negotiates(subject)
    # What a module has to say of the whole device explains what its ports lack.
    everywhere_off = any(one.rule == "pfc" and not one.port for one in subject.live.remarks)
    for live, intended in subject.ports():
        if live.pfc_priorities == intended.pfc_priorities or over_limit(subject, live):
            continue
        missing = _missing(live, intended)
        if missing and everywhere_off:
            continue
        if missing and _idle(subject, live.name):
            yield Skip("pfc", subject.live.device, f"{live.name}: PFC of a link that is down")
            continue
        if missing and left_alone and subject.facts(live.name).pfc_mode == "auto":
            continue
        extra = set(live.pfc_priorities) - set(intended.pfc_priorities)
        if cnp_paused(subject, live):
            extra.discard(subject.wanted.cnp)
            extra -= {live.priority_of_dscp(d) for d in subject.wanted.dscps_of_role["cnp"]}
        extra -= {live.dscp_to_priority[dscp] for dscp in default_paused(subject, live)}
        if missing:
            _, far = subject.far_end(live.name)
            alone = far is not None and missing <= set(far.pfc_priorities)
            yield Fault(
                f"PFC is off for priority {numbers(frozenset(missing))}"
                + (" at this end of the cable only" if alone else ""),
                live.name,
            )
        elif extra:
            yield Fault(
                f"PFC is on for priority {numbers(frozenset(extra))}, which is lossy",
                live.name,
            )


@rule(
    "link-pause",
    "error",
    "802.3x pause stops every class, and PFC with it.",
    checks=(25,),
    facts=(Fact.LINK_PAUSE,),
    fields=("link_pause",),
    see="host: ethtool -a IF; NX-OS: show interface flowcontrol",
    mend="host: ethtool -A IF rx off tx off; switch: flowcontrol receive off, send off",
    source="IEEE 802.3 annex 31B, IEEE 802.1Qbb",
    shows=ends.link_pause,
)
def link_pause(subject: Subject) -> Iterator[Fault | Skip]:
    """Link pause is off where PFC is used."""
    for live, intended in subject.ports():
        if skip := subject.skip("link-pause", live.name, Fact.LINK_PAUSE):
            yield skip
        elif live.link_pause and not intended.link_pause:
            yield Fault("link pause (802.3x) is on", live.name)
