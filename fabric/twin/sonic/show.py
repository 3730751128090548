"""``show``: configuration, neighbours, counters, in SONiC's layouts.

Source: sonic-net/sonic-utilities doc/Command-Reference.md, scripts/ (portstat,
queuestat, pfcstat, pg-drop, lldpshow) and their tests' outputs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabric.twin.shell.session import Answer, Call
from fabric.twin.sonic.click import Command, Group, UsageError, dispatch

if TYPE_CHECKING:
    from fabric.twin.sonic.switch import EmulatedSwitch

VERSION = "SONiC.202311.1-3f8a6c21d"
KERNEL = "5.10.0-23-2-amd64"
QUEUES = 10  # of a port: eight for unicast, then two for multicast
NA = "N/A"


def layout(heading: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 0) -> str:
    """A table as ``tabulate`` prints it: two blanks between columns, headings padded by two.

    The first ``left`` columns are aligned to the left, the others to the right.
    """
    columns = zip(heading, *rows, strict=True)
    widths = [max(len(title) + 2, *map(len, cells)) for title, *cells in columns]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    lines = [line(heading), "  ".join("-" * width for width in widths), *map(line, rows)]
    return "\n".join(lines) + "\n"


class ShowCommand:
    """The program ``show`` of one switch."""

    def __init__(self, switch: EmulatedSwitch) -> None:
        self._switch = switch
        self._group: Group = {
            "interfaces": {
                "counters": Command(self._interface_counters),
                "status": Command(self._status, optional=1),
            },
            "lldp": {"table": Command(self._lldp)},
            "pfc": {
                "counters": Command(self._pfc_counters),
                "priority": Command(self._pfc_priority, optional=1),
            },
            "pfcwd": {"config": Command(self._pfcwd_config), "stats": Command(self._pfcwd_stats)},
            "priority-group": {"drop": {"counters": Command(self._group_drops)}},
            "queue": {
                "counters": Command(self._queue_counters, optional=1),
                "wredcounters": Command(self._marks, optional=1),
            },
            "runningconfiguration": {"all": Command(self._running)},
            "version": Command(self._version),
        }

    def __call__(self, call: Call) -> Answer:
        """Carry out one command."""
        return dispatch("show", self._group, call.arguments)

    def _ports(self, words: Sequence[str] = ()) -> list[str]:
        ports = sorted(
            self._switch.config.table("PORT"), key=lambda name: int(name.removeprefix("Ethernet"))
        )
        if words and words[0] not in ports:
            raise UsageError(f"Invalid interface name {words[0]}")
        return [port for port in ports if not words or port == words[0]]

    def _running(self, _words: Sequence[str]) -> Answer:
        return Answer(self._switch.running_text())

    def _version(self, _words: Sequence[str]) -> Answer:
        metadata = self._switch.config.table("DEVICE_METADATA").get("localhost", {})
        days = int(time.time() - self._switch.booted_at_s) // 86_400
        return Answer(
            f"\nSONiC Software Version: {VERSION}\nSONiC OS Version: 11\n"
            f"Distribution: Debian 11.8\nKernel: {KERNEL}\n"
            f"Build commit: {VERSION.rpartition('-')[2]}\n"
            "Build date: Thu Nov 16 14:23:00 UTC 2023\nBuilt by: sonicbld@sonic-build-1\n\n"
            f"Platform: {metadata.get('platform', NA)}\nHwSKU: {metadata.get('hwsku', NA)}\n"
            f"ASIC: broadcom\nASIC Count: 1\nSerial Number: {self._switch.serial}\n"
            f"Model Number: {NA}\nHardware Revision: {NA}\n"
            f"Uptime: 10:11:12 up {days} days,  1 user,  load average: 0.42, 0.38, 0.35\n"
            "Date: Mon 04 Dec 2023 10:11:12\n\nDocker images:\n"
            "REPOSITORY              TAG        IMAGE ID       SIZE\n"
            "docker-orchagent        202311.1   9c1b6a5d2e3f   335MB\n"
        )

    def _lldp(self, _words: Sequence[str]) -> Answer:
        rows = []
        for port in self._ports():
            peer = self._switch.heard_on(port)
            if peer is not None and self._switch.link_up(port):
                rows.append([port, peer.device, *self._neighbour(peer.device, peer.port)])
        heading = (
            "LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr",
        )  # fmt: skip
        return Answer(
            "Capability codes: (R) Router, (B) Bridge, (O) Other\n"
            f"{layout(heading, rows, left=5)}{'-' * 50}\nTotal entries displayed:  {len(rows)}\n"
        )

    def _neighbour(self, device: str, port: str) -> tuple[str, str, str]:
        """What a neighbour says of its port: a SONiC switch its alias, a host its MAC address."""
        other = self._switch.peers.get(device)
        alias = getattr(other, "alias_of", None)
        if device in self._switch.site.topology.hosts:
            digest = hashlib.sha256(f"{device}/{port}".encode()).hexdigest()
            octets = [digest[i : i + 2] for i in (0, 2, 4)]
            return f"0c:42:a1:{':'.join(octets)}", "O", port
        return (port if alias is None else alias(port)), "BR", port

    def _status(self, words: Sequence[str]) -> Answer:
        heading = (
            "Interface", "Lanes", "Speed", "MTU", "FEC", "Alias", "Vlan", "Oper", "Admin", "Type",
            "Asym PFC",
        )  # fmt: skip
        rows = []
        for port in self._ports(words):
            row = self._switch.config.table("PORT")[port]
            rows.append([
                port, row.get("lanes", NA), f"{int(row.get('speed', 0)) // 1000}G",
                row.get("mtu", "9100"), row.get("fec", NA), row.get("alias", port), "routed",
                "up" if self._switch.link_up(port) else "down",
                row.get("admin_status", "down"), NA, row.get("pfc_asym", "off"),
            ])  # fmt: skip
        return Answer(layout(heading, rows))

    def _interface_counters(self, _words: Sequence[str]) -> Answer:
        heading = (
            "IFACE", "STATE", "RX_OK", "RX_BPS", "RX_UTIL", "RX_ERR", "RX_DRP", "RX_OVR",
            "TX_OK", "TX_BPS", "TX_UTIL", "TX_ERR", "TX_DRP", "TX_OVR",
        )  # fmt: skip
        rows = []
        for port in self._ports():

            def of(name: str, port: str = port) -> str:
                return f"{self._switch.counter_sum(port, name):,}"

            state = "U" if self._switch.link_up(port) else "D"
            rows.append([
                port, state, of("rx_packets"), "0.00 B/s", "0.00%", of("rx_crc_errors"),
                of("rx_discards"), "0", of("tx_packets"), "0.00 B/s", "0.00%", "0",
                of("tx_discards"), "0",
            ])  # fmt: skip
        return Answer(layout(heading, rows))

    def _by_queue(self, words: Sequence[str], heading: Sequence[str], names: Sequence[str]) -> str:
        tables = []
        for port in self._ports(words):
            rows = []
            for queue in range(QUEUES):
                kind = "UC" if queue < 8 else "MC"
                counts = [
                    f"{self._switch.counter(port, name, queue):,}" if name else "0"
                    for name in names
                ]
                rows.append([port, f"{kind}{queue}", *counts])
            tables.append(layout(heading, rows))
        return "\n".join(tables)

    def _queue_counters(self, words: Sequence[str]) -> Answer:
        heading = ("Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes")
        names = ("tx_queue_packets", "tx_queue_bytes", "queue_drops", "")
        return Answer(self._by_queue(words, heading, names))

    def _marks(self, words: Sequence[str]) -> Answer:
        heading = (
            "Port", "TxQ", "WredDrp/pkts", "WredDrp/bytes", "EcnMarked/pkts", "EcnMarked/bytes",
        )  # fmt: skip
        return Answer(self._by_queue(words, heading, ("", "", "ecn_marked_packets", "")))

    def _pfc_counters(self, _words: Sequence[str]) -> Answer:
        tables = []
        for title, name in (("Port Rx", "rx_pause_frames"), ("Port Tx", "tx_pause_frames")):
            rows = [
                [port, *(f"{self._switch.counter(port, name, p):,}" for p in range(8))]
                for port in self._ports()
            ]
            tables.append(layout((title, *(f"PFC{p}" for p in range(8))), rows))
        return Answer("\n".join(tables))

    def _pfc_priority(self, words: Sequence[str]) -> Answer:
        rows = [
            [port, self._switch.config.get("PORT_QOS_MAP", port, "pfc_enable") or NA]
            for port in self._ports(words)
        ]
        return Answer(f"\n{layout(('Interface', 'Lossless priorities'), rows, left=2)}\n")

    def _group_drops(self, _words: Sequence[str]) -> Answer:
        rows = []
        for port in self._ports():
            drops = [0] * 8
            for priority in range(8):
                group = self._switch.group_of(port, priority)
                drops[group] += self._switch.counter(port, "rx_prio_discards", priority)
            rows.append([port, *map(str, drops)])
        heading = ("Port", *(f"PG{group}" for group in range(8)))
        return Answer(f"Ingress PG dropped packets:\n{layout(heading, rows)}")

    def _pfcwd_config(self, _words: Sequence[str]) -> Answer:
        table = self._switch.config.table("PFC_WD")
        poll = table.get("GLOBAL", {}).get("POLL_INTERVAL")
        rows = [
            [port, *(table[port].get(f, NA) for f in ("action", "detection_time",
                                                      "restoration_time"))]
            for port in self._ports()
            if port in table
        ]  # fmt: skip
        heading = ("PORT", "ACTION", "DETECTION TIME", "RESTORATION TIME")
        title = f"Changed polling interval to {poll}ms\n" if poll else ""
        return Answer(title + layout(heading, rows))

    def _pfcwd_stats(self, _words: Sequence[str]) -> Answer:
        heading = (
            "QUEUE", "STATUS", "STORM DETECTED/RESTORED", "TX OK/DROP", "RX OK/DROP",
            "TX LAST OK/DROP", "RX LAST OK/DROP",
        )  # fmt: skip
        rows = []
        for port in self._ports():
            watched = self._switch.config.get("PORT_QOS_MAP", port, "pfcwd_sw_enable") or ""
            for priority in (p for p in watched.split(",") if p):
                storms = self._switch.counter(port, "watchdog_storms", int(priority))
                rows.append([
                    f"{port}:{priority}", "operational", f"{storms}/{storms}",
                    "0/0", "0/0", "0/0", "0/0",
                ])  # fmt: skip
        return Answer(layout(heading, rows))
