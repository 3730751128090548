"""Rules for what only a host's NIC has."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from fabric.audit import ends
from fabric.audit.findings import Skip
from fabric.audit.fixes import mend
from fabric.audit.rule import FIX, SOFTWARE_FAMILIES, Fault, Subject, first, numbers, rule
from fabric.qos import Dcqcn, Nic, PortQos
from fabric.unread import FIELDS

_CNP_MARKS = ("cnp_dscp", "cnp_priority")
_POINTS = ("np_priorities", "rp_priorities")


def _nics(subject: Subject) -> Iterator[tuple[str, Nic, Nic]]:
    for live, intended in subject.ports():
        if live.nic is not None and intended.nic is not None:
            yield live.name, live.nic, intended.nic


@rule(
    "dcbx",
    "error",
    "The NIC's firmware may then take the switch's settings instead of ours.",
    checks=(26,),
    fields=("nic.dcbx",),
    see="mlnx_qos -i IF (DCBX mode), dcb dcbx show dev IF",
    mend="mlnx_qos -i IF --dcbx os; mlxconfig LLDP_NB_DCBX_P1=0, DCBX_WILLING_P1=0",
    source="Mellanox/mlnx-tools python/mlnx_qos; IEEE 802.1Qaz",
    shows=ends.dcbx,
)
def dcbx(subject: Subject) -> Iterator[Fault | Skip]:
    """The operating system, not firmware DCBX, decides."""
    for port, live, intended in _nics(subject):
        if skip := subject.skip("dcbx", port, "DCBX mode"):
            yield skip
        elif live.dcbx != intended.dcbx:
            yield Fault(f"DCBX is {live.dcbx} controlled, should be {intended.dcbx}", port)


@rule(
    "cable-length",
    "warning",
    "The PFC headroom is computed from the cable's length.",
    checks=(23,),
    fields=("nic.cable_m", "ingress_buffers"),
    see="mlnx_qos -i IF (Cable len), ethtool -m IF; SONiC: CABLE_LENGTH against the optics",
    mend="mlnx_qos -i IF --pfc ... --cable_len METRES; SONiC: the port's field of CABLE_LENGTH",
    source="Linux drivers/net/ethernet/mellanox/mlx5/core/en/port_buffer.c",
    shows=ends.cable,
)
def cable_length(subject: Subject) -> Iterator[Fault | Skip]:
    """Where headroom is computed from it, the cable's length is known."""
    for port, live, intended in _nics(subject):
        if skip := subject.skip("cable-length", port, "cable length"):
            yield skip
        elif live.cable_m != intended.cable_m:
            yield Fault(f"cable length is {live.cable_m} m, should be {intended.cable_m} m", port)
    for one, _ in subject.pairs:
        link, fits = subject.link(one.name), subject.facts(one.name).headroom_cable_m
        if link is not None and fits is not None and not fits[0] < link.length_m <= fits[1]:
            message = f"headroom is for cables of {fits[0]} to {fits[1]} m"
            yield Fault(
                message + (", too long ones" if link.length_m <= fits[0] else ", too short ones"),
                one.name,
                (f"{subject.live.device}:{one.name}: the cable is {link.length_m:g} m long",),
            )


@dataclasses.dataclass(frozen=True, slots=True)
class _Tos:
    """One of the two ways in which RDMA gets its TOS byte."""

    name: str
    fact: str
    got: int | None
    wanted: int | None


def _bytes(live: Nic, intended: Nic) -> tuple[_Tos, _Tos]:
    return (
        _Tos("TOS of rdma_cm", "rdma_cm TOS", live.rdma_cm_tos, intended.rdma_cm_tos),
        _Tos(
            "traffic class of verbs",
            "verbs traffic class",
            live.verbs_traffic_class,
            intended.verbs_traffic_class,
        ),
    )


def _confused(tos: _Tos) -> str:
    """Which of DSCP, TOS and TOS with ECT was put where another belongs; empty for none."""
    if tos.got is None or tos.wanted is None or tos.got == tos.wanted:
        return ""
    dscp = tos.wanted >> 2
    if tos.got == dscp:
        return f"{tos.name} is {tos.got}, the DSCP; the byte is DSCP << 2 | ECT: {tos.wanted}"
    if tos.got >> 2 == dscp:
        return f"{tos.name} is {tos.got}, with other ECN bits; should be {tos.wanted}"
    return ""


@rule(
    "tos-confused",
    "error",
    "A DSCP in place of a TOS byte is another class; without ECT the packet is never marked.",
    checks=(18,),
    fields=("nic.rdma_cm_tos", "nic.verbs_traffic_class"),
    see="configfs default_roce_tos, sysfs tc/1/traffic_class, NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS",
    mend="DSCP 26 is TOS 104, and 106 with ECT(0)",
    source="RFC 2474, RFC 3168; NVIDIA NCCL environment variables",
    shows=ends.tos,
)
def tos_confused(subject: Subject) -> Iterator[Fault | Skip]:
    """A TOS byte is DSCP << 2 with the ECT bits, not a DSCP."""
    for port, live, intended in _nics(subject):
        wrong = [why for tos in _bytes(live, intended) if (why := _confused(tos))]
        if wrong:
            yield Fault(first(wrong, "TOS bytes are no TOS bytes"), port, tuple(wrong))


@rule(
    "tos",
    "error",
    "RDMA traffic with another TOS travels in a lossy class, or is never marked.",
    checks=(17,),
    fields=("nic.rdma_cm_tos", "nic.verbs_traffic_class"),
    see="configfs default_roce_tos, sysfs tc/1/traffic_class; under load: rx/tx_prioN_packets",
    mend="cma_roce_tos -d DEV -t 106, and the same in tc/1/traffic_class",
    source="Linux drivers/infiniband/core/cma_configfs.c",
    shows=ends.tos,
)
def tos(subject: Subject) -> Iterator[Fault | Skip]:
    """Connections through rdma_cm carry the DSCP and ECT bits of the RoCE class."""
    for port, live, intended in _nics(subject):
        cm, _ = _bytes(live, intended)
        if skip := subject.skip("tos", port, cm.fact):
            yield skip
        elif cm.got != cm.wanted and not _confused(cm):
            yield Fault(f"{cm.name} is {cm.got}, should be {cm.wanted}", port)


@rule(
    "verbs-tos",
    "error",
    "What goes through rdma_cm is protected; NCCL and UCX, which use verbs alone, are not.",
    checks=(17,),
    fields=("nic.verbs_traffic_class",),
    see="sysfs /sys/class/infiniband/DEV/tc/1/traffic_class (MLNX_OFED); NCCL_IB_TC",
    mend="echo 106 > /sys/class/infiniband/DEV/tc/1/traffic_class, or NCCL_IB_TC=106",
    source="mlnx-ofa_kernel drivers/infiniband/hw/mlx5; NVIDIA NCCL environment variables",
    shows=ends.tos,
)
def verbs_tos(subject: Subject) -> Iterator[Fault | Skip]:
    """Queue pairs made by verbs alone carry it too."""
    for port, live, intended in _nics(subject):
        _, verbs = _bytes(live, intended)
        if skip := subject.skip("verbs-tos", port, verbs.fact):
            yield skip
        elif verbs.got != verbs.wanted and not _confused(verbs):
            yield Fault(f"{verbs.name} is {verbs.got}, should be {verbs.wanted}", port)


def _off(live: Dcqcn | None) -> str:
    """Which points act on no priority at all; empty for none."""
    if live is None:
        return "DCQCN is off"
    names = {"np_priorities": "notification point", "rp_priorities": "reaction point"}
    off = [names[point] for point in _POINTS if not getattr(live, point)]
    return f"DCQCN's {' and '.join(off)} is off on every priority" if off else ""


def _misplaced(live: Dcqcn, wanted: Dcqcn) -> list[str]:
    labels = {"np_priorities": "notification", "rp_priorities": "reaction"}
    return [
        f"{labels[point]} on priority {numbers(getattr(live, point))}, "
        f"should be on {numbers(getattr(wanted, point))}"
        for point in _POINTS
        if getattr(live, point) and getattr(live, point) != getattr(wanted, point)
    ]


_DCQCN_SEE = (
    "MLNX_OFED: /sys/class/net/IF/ecn/roce_{np,rp}/enable/N; kernel: debugfs cc_params and "
    "mlxconfig ROCE_CC_PRIO_MASK_P1; irdma: module parameter dcqcn_enable (0 by default)"
)


@rule(
    "dcqcn-off",
    "error",
    "This NIC sends no CNPs, or ignores them: its flows are stopped by PFC alone.",
    checks=(15,),
    fields=("nic.dcqcn",),
    see=_DCQCN_SEE,
    mend="echo 1 > .../ecn/roce_np/enable/N and .../ecn/roce_rp/enable/N",
    source="Linux drivers/infiniband/hw/mlx5/cong.c; Intel irdma README",
    shows=ends.dcqcn,
)
def dcqcn_off(subject: Subject) -> Iterator[Fault | Skip]:
    """DCQCN's notification and reaction points are on."""
    for port, live, intended in _nics(subject):
        if intended.dcqcn is None or live.dcqcn == intended.dcqcn:
            continue
        if subject.unseen(port, "DCQCN parameters") or subject.unseen(port, "ECN "):
            continue
        if why := _off(live.dcqcn):
            yield Fault(why, port)


@rule(
    "dcqcn-priority",
    "error",
    "RoCE's own priority is not controlled, or another one is, for nothing.",
    checks=(16,),
    fields=("nic.dcqcn",),
    see=_DCQCN_SEE,
    mend="enable ECN on RoCE's priority, and on no other",
    source="mlnx-ofa_kernel en_sysfs.c; NVIDIA, ROCE_CC_PRIO_MASK_P1",
    shows=ends.dcqcn,
)
def dcqcn_priority(subject: Subject) -> Iterator[Fault | Skip]:
    """DCQCN acts on RoCE's priority, and on no other."""
    for port, live, intended in _nics(subject):
        if live.dcqcn is None or intended.dcqcn is None or subject.unseen(port, "ECN "):
            continue
        if wrong := _misplaced(live.dcqcn, intended.dcqcn):
            yield Fault(wrong[0], port, tuple(wrong))


@rule(
    "dcqcn",
    "error",
    "A sender that is not slowed, or slows too much, takes others' bandwidth.",
    checks=(15, 45),
    fields=("nic.dcqcn",),
    see=_DCQCN_SEE,
    mend="the values of intent.dcqcn",
    source="Zhu et al., SIGCOMM 2015; Linux drivers/infiniband/hw/mlx5/cong.c",
    shows=ends.dcqcn,
)
def dcqcn(subject: Subject) -> Iterator[Fault | Skip]:
    """DCQCN has the intent's parameters."""
    for port, live, intended in _nics(subject):
        if intended.dcqcn is None or live.dcqcn == intended.dcqcn:
            continue
        if skip := subject.skip("dcqcn", port, "DCQCN parameters", "ECN "):
            yield skip
            continue
        if live.dcqcn is None:
            continue
        wrong = [
            f"{field.name} is {getattr(live.dcqcn, field.name)}, "
            f"should be {getattr(intended.dcqcn, field.name)}"
            for field in dataclasses.fields(intended.dcqcn)
            if field.name not in (*_CNP_MARKS, *_POINTS)
            and getattr(live.dcqcn, field.name) != getattr(intended.dcqcn, field.name)
        ]
        if wrong:
            yield Fault(first(wrong, "DCQCN settings differ"), port, tuple(wrong))


@rule(
    "gid",
    "error",
    "RoCE v1 is not routed: across a leaf no connection comes up.",
    checks=(40,),
    see="/sys/class/infiniband/DEV/ports/1/gid_attrs/types/*, show_gids; NCCL_IB_GID_INDEX",
    mend="an IPv4 or IPv6 address on the interface; cma_roce_mode -d DEV -m 2; a v2 GID index",
    source="Linux Documentation/ABI/testing/sysfs-class-infiniband; InfiniBand annex A17",
)
def gid(subject: Subject) -> Iterator[Fault | Skip]:
    """Every RDMA device has a RoCE v2 GID."""
    for live, _ in subject.pairs:
        if live.nic is None:
            continue
        got = subject.facts(live.name).gid_type
        if got is None:
            yield Skip("gid", subject.live.device, f"{live.name}: GID table not shown")
        elif got == "v1":
            yield Fault("the GID table has RoCE v1 entries only", live.name)


@rule(
    "lldp-agents",
    "warning",
    "It sets DCB by its own file, at every link flap, over what mlnx_qos or dcb have set.",
    checks=(29,),
    see="systemctl status lldpad",
    mend="systemctl disable --now lldpad lldpad.socket; lldpd speaks LLDP without DCB",
    source="openlldp issue 125",
)
def lldp_agents(subject: Subject) -> Iterator[Fault | Skip]:
    """No lldpad runs beside mlnx_qos or dcb."""
    for live, _ in subject.pairs:
        agents = subject.facts(live.name).lldp_agents
        if live.nic is not None and agents is not None and "lldpad" in agents:
            yield Fault("lldpad runs on the host", "", (f"{live.name}: {', '.join(agents)}",))
            return


@rule(
    "virtual",
    "warning",
    "PFC, buffers and trust belong to the physical function: here they can be seen, not set.",
    checks=(42,),
    see="/sys/class/net/IF/device/physfn; /sys/class/net/IF/master; both members' mlnx_qos",
    mend="set the physical function on the host; both members of a bond alike",
    source="Linux Documentation/networking/sriov.rst; NVIDIA RoCE LAG",
)
def virtual(subject: Subject) -> Iterator[Fault | Skip]:
    """RDMA runs on physical functions, and members of a bond are alike."""
    members: dict[str, list[str]] = {}
    for live, _ in subject.pairs:
        facts = subject.facts(live.name)
        if facts.virtual_function:
            yield Fault("the interface is a virtual function", live.name)
        if facts.bond:
            members.setdefault(facts.bond, []).append(live.name)
    for bond, names in members.items():
        speeds = {subject.facts(name).speed_bps for name in names}
        if len(speeds - {None}) > 1:
            yield Fault(f"the members of {bond} run at different speeds", ", ".join(names))


@rule(
    "software-nic",
    "warning",
    "Soft-RoCE and virtual switches have no pause, no ECN and no counters of it: nothing is known.",
    checks=(44,),
    see="rdma link; ethtool -i IF",
    mend="nothing: judge such a host by none of these rules, and never as lossless",
    source="Linux drivers/infiniband/sw/rxe/rxe_hw_counters.c",
)
def software_nic(subject: Subject) -> Iterator[Fault | Skip]:
    """Software RDMA is skipped, never passed."""
    for live, _ in subject.pairs:
        if live.nic is not None and live.nic.family in SOFTWARE_FAMILIES:
            yield Skip(
                "software-nic", subject.live.device, f"{live.name}: {live.nic.family} is software"
            )


@rule(
    "persistence",
    "warning",
    "After the next reboot the NIC is back at its defaults.",
    checks=(37,),
    fields=(),
    see="systemctl is-enabled paisoar-roce@IF; what mlnx_qos and dcb set is gone after a reboot",
    mend="paisoar provision installs a unit that sets it at boot",
    source="Mellanox/mlnx-tools README (settings are not persistent)",
)
def persistence(subject: Subject) -> Iterator[Fault | Skip]:
    """Settings come back after a reboot."""
    for live, intended in subject.ports():
        lost = live.nic and intended.nic and live.nic.persistent < intended.nic.persistent
        # What is not as intended now is another rule's; mending it makes it last.
        if not lost or not _right_now(subject, live, intended):
            continue
        if skip := subject.skip("persistence", live.name, "whether the settings survive"):
            yield skip
        else:
            yield Fault("the settings do not survive a reboot", live.name, fix=FIX)


def _right_now(subject: Subject, live: PortQos, intended: PortQos) -> bool:
    """Whether all that the host shows of the port is as intended, whether or not it lasts."""
    hidden = [
        field
        for fact, fields in FIELDS.items()
        if subject.unseen(live.name, fact)
        for field in fields
    ]
    return mend(live, intended, [*hidden, "nic.persistent"]) == intended
