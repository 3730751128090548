"""The rxe family: an MTU, the TOS of rdma_cm, and nothing that makes a network lossless.

rxe has no priority flow control, no receive buffers, no ECN reaction and no counters
of any of it (Linux drivers/infiniband/sw/rxe/rxe_hw_counters.c). Each of these is
named in ``unread``, so that the audit skips what it cannot judge.
"""

from __future__ import annotations

import dataclasses
import shlex

from fabric.counters import Counter
from fabric.devices.base import Capabilities, Outputs, ReadError, TargetPort
from fabric.devices.linux.common import rdma_cm_command, rdma_cm_file, rdma_cm_folder
from fabric.devices.linux.dump import MISSING, Dump, parse_dump
from fabric.devices.linux.tools import link_mtu
from fabric.devices.nic import NicReading, Setting, SettingChange
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT, Nic, PortQos

UNSEEN = (
    "PFC of priorities 0-7 (rxe has none)",
    "trust (rxe sorts by no DSCP)",
    "traffic class of priorities 0-7 (rxe has one queue)",
    "link pause (of the interface below, which rxe does not know)",
    "receive buffer of every priority (rxe has none)",
    "DCQCN parameters (rxe neither marks nor slows down)",
    "DCBX mode (rxe has no DCB)",
    "verbs traffic class (set in the application)",
)
# Names of hw_counters, 64 bits wide.
RDMA = {
    "duplicate_request": "duplicate_request",
    "out_of_sequence": "out_of_seq_request",
    "packet_seq_err": "rcvd_seq_err",
    "rnr_nak_retry_err": "rcvd_rnr_err",
    "local_ack_timeout_err": "completer_retry_err",
    "link_down_events": "link_downed",
}
# Of the interface below, all its traffic: rxe counts what queue pairs took, and not
# what came for one that was gone, so that a cable's ends would never agree.
INTERFACE = ("rx_packets", "tx_packets", "rx_bytes", "tx_bytes")
_BY_PORT = "rxe counts packets, not by priority"
_NO_PFC = "rxe has no PFC"
_NO_DCQCN = "rxe neither sees marks nor slows down"
_DROPS = "rxe drops under load and does not count it"
# Judgement goes by these names: what is not named here would be missing without a reason.
UNCOUNTED = {
    "rx_prio_packets": _BY_PORT,
    "tx_prio_packets": _BY_PORT,
    "rx_prio_discards": _DROPS,
    "rx_discards": _DROPS,
    "tx_discards": _DROPS,
    "queue_drops": _DROPS,
    "rx_mtu_drops": _DROPS,
    "out_of_buffer": _DROPS,
    "rx_pause_frames": _NO_PFC,
    "tx_pause_frames": _NO_PFC,
    "rx_pause_us": _NO_PFC,
    "tx_pause_us": _NO_PFC,
    "tx_pause_storm_warnings": _NO_PFC,
    "tx_pause_storm_errors": _NO_PFC,
    "np_ecn_marked_packets": _NO_DCQCN,
    "np_cnp_sent": _NO_DCQCN,
    "rp_cnp_handled": _NO_DCQCN,
    "rp_cnp_ignored": _NO_DCQCN,
    "implied_nak_seq_err": "rxe does not count them",
    "rx_crc_errors": "rxe never sees frames",
    "rx_icrc_errors": "rxe drops them and does not count it",
}


class RxeFamily:
    """Software RDMA: for tests of tools, never for a certificate."""

    name = "rxe"

    def capabilities(self, port: TargetPort) -> Capabilities:  # noqa: ARG002
        """No lossless class at all."""
        return Capabilities(
            max_lossless_classes=0, notes=("software: it can be tried, not certified",)
        )

    def read_commands(self, port: TargetPort) -> tuple[str, ...]:
        """The interface's MTU and rdma_cm's TOS."""
        device = f"/sys/class/infiniband/{port.rdma_device}/parent"
        folder = rdma_cm_folder(port.rdma_device)
        return (
            f"ip -j link show dev {port.name}",
            f"grep -rH . {device} {folder} 2>&1 || true",
        )

    def counter_commands(self, port: TargetPort) -> tuple[str, ...]:
        """The RDMA device's counters, and packets and bytes of the interface."""
        interface = " ".join(_interface(port, name) for name in INTERFACE)
        return (f"grep -rH . {_counters(port)} {interface} 2>&1 || true",)

    def read(self, port: TargetPort, outputs: Outputs) -> NicReading:
        """What there is to read. Raises ReadError where an output makes no sense."""
        link, grep = self.read_commands(port)
        mtu = link_mtu(link, outputs[link], port.name) if link in outputs else None
        files = parse_dump(outputs.get(grep, ""))
        unread = [f"{port.name}: {fact}" for fact in UNSEEN]
        unread += [
            f"{port.name}: everything that `{c}` shows" for c in (link, grep) if c not in outputs
        ]
        if mtu is None:
            return NicReading(None, (*unread, f"{port.name}: MTU"))
        tos = files.number(rdma_cm_file(port.rdma_device))
        if tos is None:
            unread.append(f"{port.name}: rdma_cm TOS ({_why(files, port)})")
        state = _port(
            port.name, mtu, Nic(port.rdma_device, "off", 0, tos, None, None, False, "rxe")
        )
        known = frozenset(("mtu", *(() if tos is None else ("rdma_cm TOS",))))
        settings = tuple(s for s in self.settings(state) if s.name in known)
        parent = files.text(f"/sys/class/infiniband/{port.rdma_device}/parent")
        driver = "rdma_rxe" if parent == port.name else ""
        return NicReading(state, tuple(unread), settings, known, "Soft-RoCE", driver)

    def read_counters(
        self, device: str, port: TargetPort, outputs: Outputs
    ) -> tuple[tuple[Counter, ...], tuple[str, ...]]:
        """What rxe counts; what it never counts is missing."""
        dump = parse_dump(outputs.get(self.counter_commands(port)[0], ""))
        counters = []
        missing = [f"{port.name}: {name}: {reason}" for name, reason in UNCOUNTED.items()]
        paths = {name: f"{_counters(port)}/{theirs}" for name, theirs in RDMA.items()}
        paths |= {name: _interface(port, name) for name in INTERFACE}
        for name, path in paths.items():
            value = dump.number(path)
            if value is None:
                missing.append(f"{port.name}: {name}: there is no {path}")
            else:
                counters.append(Counter(device, port.name, name, value))
        return tuple(counters), tuple(missing)

    def normalise(self, port: PortQos) -> PortQos:
        """MTU and rdma_cm's TOS are all that it can express."""
        nic = port.nic
        if nic is not None:
            nic = dataclasses.replace(
                nic, dcbx="off", cable_m=0, verbs_traffic_class=None, dcqcn=None
            )
        return _port(port.name, port.mtu_bytes, nic)

    def settings(self, port: PortQos) -> tuple[Setting, ...]:
        """MTU and rdma_cm's TOS."""
        return tuple(
            Setting(name, value, (f'{{ {command}; }} || fail "{name} cannot be set"',))
            for name, value, command in _items(port)
        )

    def changes(
        self, port: TargetPort, outputs: Outputs, intended: PortQos
    ) -> tuple[SettingChange, ...]:
        """From what the outputs show to what is intended."""
        live = self.read(port, outputs).port
        if live is None:
            raise ReadError(f"{port.name}: nothing can be planned without its MTU")
        held = {name: (value, command) for name, value, command in _items(live)}
        changes = []
        for name, value, command in _items(intended):
            before, back = held.get(name, (None, None))
            if before != value:
                if back is None and name == "rdma_cm TOS":
                    back = _without_tos(port)
                rollback = () if back is None else (back,)
                changes.append(SettingChange(name, before, value, (command,), rollback))
        return tuple(changes)


def _items(port: PortQos) -> list[tuple[str, str, str]]:
    """Name, value and command of each setting whose value is known."""
    name = shlex.quote(port.name)
    found = [("mtu", str(port.mtu_bytes), f"ip link set dev {name} mtu {port.mtu_bytes}")]
    nic = port.nic
    if nic is not None and nic.rdma_cm_tos is not None:
        tos = nic.rdma_cm_tos
        found.append(("rdma_cm TOS", str(tos), rdma_cm_command(nic.rdma_device, tos)))
    return found


def _port(name: str, mtu: int, nic: Nic | None) -> PortQos:
    return PortQos(
        name=name,
        mtu_bytes=mtu,
        trust="none",
        dscp_to_priority=(0,) * DSCP_COUNT,
        priority_to_class=(0,) * PRIORITY_COUNT,
        class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
        pfc_priorities=(),
        link_pause=False,
        queues=(),
        ingress_buffers=(),
        nic=nic,
    )


def _counters(port: TargetPort) -> str:
    return f"/sys/class/infiniband/{port.rdma_device}/ports/1/hw_counters"


def _without_tos(port: TargetPort) -> str:
    """Back to where configfs held nothing of the device: the kernel's own TOS is 0."""
    folder = shlex.quote(rdma_cm_folder(port.rdma_device))
    return f"echo 0 > {shlex.quote(rdma_cm_file(port.rdma_device))} && rmdir {folder}"


def _interface(port: TargetPort, name: str) -> str:
    return f"/sys/class/net/{port.name}/statistics/{name}"


def _why(files: Dump, port: TargetPort) -> str:
    path = rdma_cm_file(port.rdma_device)
    complaint = files.complaint(path)
    return f"there is no {path}" if complaint == MISSING else f"{path} is not shown"
