"""Rules about receive buffers: what PFC needs in order to lose nothing."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit import ends
from fabric.audit.findings import Skip
from fabric.audit.rule import Fault, Subject, rule
from fabric.qos import IngressBuffer, PortQos
from fabric.unread import Fact

# dynamic_th of SONiC's BUFFER_PROFILE: -8 to 7, alpha is 2 to that power.
_MIN_ALPHA, _MAX_ALPHA = 2.0**-8, 2.0**7
_SEE = (
    "NX-OS: show queuing interface (Buff Size, Pause Th, Resume Th); SONiC: show buffer "
    "configuration; host: mlnx_qos -i IF (Receive buffer size)"
)


def _senseless(buffer: IngressBuffer) -> str:
    if buffer.alpha is not None and not _MIN_ALPHA <= buffer.alpha <= _MAX_ALPHA:
        return f"alpha {buffer.alpha:g} is out of range"
    if buffer.alpha is None and buffer.xoff_bytes and buffer.xon_bytes > buffer.xoff_bytes:
        return f"XON ({buffer.xon_bytes} B) is above XOFF ({buffer.xoff_bytes} B)"
    if buffer.xoff_bytes > buffer.size_bytes:
        return f"XOFF ({buffer.xoff_bytes} B) is above the buffer's size ({buffer.size_bytes} B)"
    return ""


def _short(got: IngressBuffer, wanted: IngressBuffer) -> int:
    """Bytes of headroom that are missing; 0 for none."""
    needed = wanted.size_bytes - wanted.xoff_bytes
    return max(0, needed - (got.size_bytes - got.xoff_bytes))


def _explained(live: PortQos, intended: PortQos) -> bool:
    """Whether a NIC's thresholds follow from a cable length or MTU that other rules report."""
    if live.nic is None or intended.nic is None:
        return False
    return live.nic.cable_m != intended.nic.cable_m or live.mtu_bytes != intended.mtu_bytes


def _wrong(
    subject: Subject, rule_id: str
) -> Iterator[tuple[PortQos, PortQos, IngressBuffer, IngressBuffer | None] | Skip]:
    for live, intended in subject.ports():
        if live.ingress_buffers == intended.ingress_buffers:
            continue
        if skip := subject.skip(rule_id, live.name, Fact.BUFFER):
            yield skip
            continue
        for wanted in intended.ingress_buffers:
            got = live.ingress_buffer(wanted.priority)
            if got != wanted:
                yield live, intended, wanted, got


@rule(
    "buffer-sanity",
    "error",
    "A buffer that resumes before it has paused, or pauses when it is full, drops packets.",
    checks=(43,),
    facts=(Fact.BUFFER,),
    fields=("ingress_buffers",),
    see=_SEE,
    mend="XON below XOFF, XOFF and headroom within the size, a lossless pool for a lossless PG",
    source="sonic-net/sonic-buildimage sonic-buffer-profile.yang",
    shows=ends.buffers,
)
def buffer_sanity(subject: Subject) -> Iterator[Fault | Skip]:
    """Thresholds of lossless buffers are in order."""
    for found in _wrong(subject, "buffer-sanity"):
        if isinstance(found, Skip):
            continue
        live, _, wanted, got = found
        if got is not None and (why := _senseless(got)):
            yield Fault(f"buffer of priority {wanted.priority}: {why}", live.name)


@rule(
    "headroom",
    "error",
    "What is in flight when the pause is sent finds no room: drops, with PFC on.",
    checks=(22,),
    facts=(Fact.BUFFER,),
    fields=("ingress_buffers",),
    see=_SEE + "; cable length, speed and MTU of the port",
    mend="headroom for two cable lengths, two MTUs and the peer's reaction time",
    source="IEEE 802.1Qbb annex; sonic-net/sonic-swss buffer_headroom_mellanox.lua",
    shows=ends.buffers,
)
def headroom(subject: Subject) -> Iterator[Fault | Skip]:
    """The headroom above XOFF holds what still arrives after a pause."""
    for found in _wrong(subject, "headroom"):
        if isinstance(found, Skip):
            continue
        live, intended, wanted, got = found
        if got is None or _senseless(got) or _explained(live, intended):
            continue
        if missing := _short(got, wanted):
            yield Fault(
                f"headroom of priority {wanted.priority} is "
                f"{got.size_bytes - got.xoff_bytes} B, {missing} B too small",
                live.name,
                (f"needed: {wanted.size_bytes - wanted.xoff_bytes} B for this cable and MTU",),
            )


@rule(
    "buffer",
    "error",
    "Too little headroom drops packets that PFC was to save.",
    checks=(22,),
    facts=(Fact.BUFFER,),
    fields=("ingress_buffers",),
    see=_SEE,
    mend="the buffers that paisoar plan shows",
    source="IEEE 802.1Qbb",
    shows=ends.buffers,
)
def buffer(subject: Subject) -> Iterator[Fault | Skip]:
    """Lossless priorities have their buffer, XOFF and XON."""
    for found in _wrong(subject, "buffer"):
        if isinstance(found, Skip):
            yield found
            continue
        live, intended, wanted, got = found
        if got is None:
            # Without PFC there is no lossless buffer: that is rule pfc's to say.
            if wanted.priority in live.pfc_priorities:
                yield Fault(f"priority {wanted.priority} has no lossless buffer", live.name)
        elif not (_senseless(got) or _explained(live, intended) or _short(got, wanted)):
            yield Fault(
                f"buffer of priority {wanted.priority} is {got.size_bytes} B with XOFF at "
                f"{got.xoff_bytes} and XON at {got.xon_bytes}, should be "
                f"{wanted.size_bytes} B, {wanted.xoff_bytes} and {wanted.xon_bytes}",
                live.name,
            )
