"""Rules for what only a host's NIC has."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from fabric.audit.findings import Skip
from fabric.audit.rule import Fault, Subject, rule
from fabric.qos import Nic


def _nics(subject: Subject) -> Iterator[tuple[str, Nic, Nic]]:
    for live, intended in subject.ports():
        if live.nic is not None and intended.nic is not None:
            yield live.name, live.nic, intended.nic


@rule("dcbx", "error", "The NIC's firmware may then take the switch's settings instead of ours.")
def dcbx(subject: Subject) -> Iterator[Fault | Skip]:
    """The operating system, not firmware DCBX, decides."""
    for port, live, intended in _nics(subject):
        if unseen := subject.unseen(port, "DCBX mode"):
            yield Skip("dcbx", subject.live.device, unseen)
        elif live.dcbx != intended.dcbx:
            yield Fault(f"DCBX is {live.dcbx} controlled, should be {intended.dcbx}", port)


@rule("cable-length", "warning", "The NIC computes its PFC headroom from the cable's length.")
def cable_length(subject: Subject) -> Iterator[Fault | Skip]:
    """The NIC knows its cable's length."""
    for port, live, intended in _nics(subject):
        if unseen := subject.unseen(port, "cable length"):
            yield Skip("cable-length", subject.live.device, unseen)
        elif live.cable_m != intended.cable_m:
            yield Fault(f"cable length is {live.cable_m} m, should be {intended.cable_m} m", port)


@rule("tos", "error", "RDMA traffic with another TOS travels in a lossy class, or is never marked.")
def tos(subject: Subject) -> Iterator[Fault | Skip]:
    """RDMA connections carry the DSCP and ECT bits of the RoCE class."""
    for port, live, intended in _nics(subject):
        for fact, name, got, wanted in (
            ("rdma_cm TOS", "TOS of rdma_cm", live.rdma_cm_tos, intended.rdma_cm_tos),
            (
                "verbs traffic class",
                "traffic class of verbs",
                live.verbs_traffic_class,
                intended.verbs_traffic_class,
            ),
        ):
            if unseen := subject.unseen(port, fact):
                yield Skip("tos", subject.live.device, unseen)
            elif got != wanted:
                yield Fault(f"{name} is {got}, should be {wanted}", port)


@rule("dcqcn", "error", "A sender that is not slowed, or slows too much, takes others' bandwidth.")
def dcqcn(subject: Subject) -> Iterator[Fault | Skip]:
    """DCQCN is on for the RoCE priority, with the intent's parameters."""
    for port, live, intended in _nics(subject):
        if intended.dcqcn is None or live.dcqcn == intended.dcqcn:
            continue
        if unseen := subject.unseen(port, "DCQCN parameters"):
            yield Skip("dcqcn", subject.live.device, unseen)
            continue
        if live.dcqcn is None:
            yield Fault("DCQCN is off", port)
            continue
        wrong = [
            f"{field.name} is {_value(got)}, should be {_value(wanted)}"
            for field in dataclasses.fields(intended.dcqcn)
            if (got := getattr(live.dcqcn, field.name))
            != (wanted := getattr(intended.dcqcn, field.name))
        ]
        summary = (
            wrong[0] if len(wrong) == 1 else f"{len(wrong)} DCQCN settings differ, e.g. {wrong[0]}"
        )
        yield Fault(summary, port, tuple(wrong))


def _value(value: object) -> str:
    return ",".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


@rule("persistence", "warning", "After the next reboot the NIC is back at its defaults.")
def persistence(subject: Subject) -> Iterator[Fault | Skip]:
    """Settings come back after a reboot."""
    for port, live, intended in _nics(subject):
        if intended.persistent and not live.persistent:
            yield Fault("the settings do not survive a reboot", port)
