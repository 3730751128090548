"""Congestion control of bnxt_re in configfs: ``/sys/kernel/config/bnxt_re/DEV/ports/1/cc``.

The folder of a device is there once somebody has made it. Values are shown in
hexadecimal (``0x1a``) and written so too: older drivers take every number for
hexadecimal, with or without ``0x``. What is written takes effect with ``apply``.
Sources: Broadcom's bnxt_re configfs.c (``ecn_marking_store``, ``roce_dscp_show``) and
bnxt_setupcc.sh, which sets cc_mode 1, ecn_enable and ecn_marking for DCQCN.
"""

from __future__ import annotations

import dataclasses
import shlex

from fabric.devices.dcb.facts import Facts
from fabric.devices.dcb.paper import published
from fabric.devices.dcb.settings import Item
from fabric.qos import PortQos, Remark

FOLDER = "/sys/kernel/config/bnxt_re"
TOS, CONTROL = "RoCE TOS", "congestion control"
OWNED = (TOS, CONTROL)
UNSHOWN = "rate parameters of DCQCN (bnxt_re has others than this intent's)"

_DCQCN_MODE = 1
_ECN_BITS = 0b11


def folder_of(rdma_device: str) -> str:
    """The congestion control of the device's only port."""
    return f"{FOLDER}/{rdma_device}/ports/1/cc"


def _number(facts: Facts, name: str) -> int | None:
    return facts.files.number(f"{folder_of(facts.rdma_device)}/{name}")


def shown(facts: Facts) -> bool:
    """Whether all that is owned is shown."""
    names = ("ecn_enable", "ecn_marking", "roce_dscp", "roce_prio", "cnp_dscp", "cnp_prio")
    return all(_number(facts, name) is not None for name in names)


def read_congestion(facts: Facts, port: PortQos) -> PortQos:
    """The port with its DCQCN (None where it is off) and its TOS byte."""
    nic = port.nic
    if nic is None:
        return port
    value = {name: _number(facts, name) or 0 for name in _FILES}
    tos = value["roce_dscp"] << 2 | value["ecn_marking"] & _ECN_BITS
    dcqcn = None
    if value["ecn_enable"] and value["cc_mode"] == _DCQCN_MODE:
        dcqcn = published((value["roce_prio"],), value["cnp_dscp"], value["cnp_prio"])
    return dataclasses.replace(
        port, nic=dataclasses.replace(nic, dcqcn=dcqcn, verbs_traffic_class=tos or None)
    )


def markable(tos: int) -> int:
    """The TOS byte as the driver takes it: a packet is not sent as marked already."""
    return tos - 1 if tos & _ECN_BITS == _ECN_BITS else tos


_FILES = (
    "ecn_enable", "ecn_marking", "cc_mode", "roce_dscp", "roce_prio", "cnp_dscp", "cnp_prio"
)  # fmt: skip


def remarks(facts: Facts) -> tuple[Remark, ...]:
    """What is set so that the priority of a packet does not come from its DSCP."""
    path = f"{folder_of(facts.rdma_device)}/disable_prio_vlan_tx"
    if facts.files.number(path) != 0:
        return ()
    return (
        Remark(
            "trust",
            facts.interface,
            "RoCE packets are sent with a priority tag (VLAN 0)",
            (f"{path}: 0x0; 0x1 leaves the tag out, as PFC by DSCP wants it",),
        ),
    )


def congestion_items(port: PortQos) -> tuple[Item, ...]:
    """The TOS byte of RoCE packets, then who is slowed down by what."""
    nic = port.nic
    if nic is None:
        return ()
    tos = nic.verbs_traffic_class or 0
    marks = {"roce_dscp": tos >> 2, "ecn_marking": tos & _ECN_BITS}
    control = {"ecn_enable": 0}
    text = "off"
    if nic.dcqcn is not None:
        priority = nic.dcqcn.np_priorities[0]
        control = {
            "ecn_enable": 1,
            "cc_mode": _DCQCN_MODE,
            "roce_prio": priority,
            "cnp_prio": nic.dcqcn.cnp_priority,
            "cnp_dscp": nic.dcqcn.cnp_dscp,
        }
        text = f"priority {priority}, CNP DSCP {nic.dcqcn.cnp_dscp} priority {control['cnp_prio']}"
    return (
        _item(nic.rdma_device, TOS, str(tos) if tos else "not set", marks),
        _item(nic.rdma_device, CONTROL, text, control),
    )


def _item(rdma_device: str, name: str, value: str, files: dict[str, int]) -> Item:
    writes = " && ".join(f"echo {number:#x} > {file}" for file, number in files.items())
    folder = shlex.quote(folder_of(rdma_device))
    command = (
        f"(mkdir -p {FOLDER}/{shlex.quote(rdma_device)} && cd {folder} && {writes} && "
        "echo 0x1 > apply)"
    )
    return Item(name, value, (command,), needs=FOLDER)
