"""Show commands: configuration, state and counters, as text or as JSON.

Layouts: ``show priority-flow-control``, a listing of EOS 4.36 in a public guide;
JSON keys as in public captures (``show interfaces``, ``show version``, ``show lldp
neighbors``), aristanetworks/anta (queues, PFC, ECN) and a public health check
(watchdog).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from fabric.twin.cli.grammar import Match
from fabric.twin.eos.cli import EXEC, USER, Cli, CliError, command
from fabric.twin.eos.config import block_text, running_config
from fabric.twin.eos.state import Port

RELEASE = "4.33.2F"


def _only_text(cli: Cli) -> None:
    if cli.json:
        raise CliError("This is an unconverted command")


def _as_json(data: object) -> str:
    return json.dumps(data, indent=4) + "\n"


def _clock(at_s: float) -> str:
    return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(at_s))


def _header(cli: Cli, shown: str) -> str:
    switch = cli.switch
    return f"! Command: {shown}\n! device: {switch.name} ({switch.model}, EOS-{RELEASE})\n!\n"


@command(EXEC, "show running-config")
def show_running(cli: Cli, _match: Match) -> str:
    """The running configuration."""
    _only_text(cli)
    text = running_config(cli.switch.config)
    return _header(cli, "show running-config") + "! boot system flash:/EOS.swi\n" + text


@command(EXEC, "show running-config interfaces <names:interfaces>")
def show_running_interfaces(cli: Cli, match: Match) -> str:
    """The configuration of some interfaces."""
    _only_text(cli)
    config = cli.switch.config
    names = [name for name in match.names("names") if config.has_interface(name)]
    return "".join(block_text(config, f"interface {name}") for name in names)


@command(EXEC, "show startup-config")
def show_startup(cli: Cli, _match: Match) -> str:
    """The configuration that the switch boots with."""
    _only_text(cli)
    saved = f"! Startup-config last modified at  {_clock(cli.switch.saved_at_s)} by admin\n"
    head = _header(cli, "show startup-config").split("\n", 1)
    return f"{head[0]}\n{saved}{head[1]}! boot system flash:/EOS.swi\n{cli.switch.startup}"


@command(USER, "show version")
def show_version(cli: Cli, _match: Match) -> str:
    """Model, release and serial number."""
    switch = cli.switch
    mac = switch.mac("system")
    if cli.json:
        return _as_json(
            {
                "mfgName": "Arista",
                "modelName": switch.model,
                "hardwareRevision": "11.01",
                "serialNumber": switch.serial,
                "systemMacAddress": mac,
                "version": RELEASE,
                "architecture": "x86_64",
                "uptime": round(time.time() - switch.booted_at_s, 2),
                "memTotal": 8098984,
                "memFree": 5404612,
            }
        )
    return (
        f"Arista {switch.model}\nHardware version: 11.01\nSerial number: {switch.serial}\n"
        f"Hardware MAC address: {mac}\nSystem MAC address: {mac}\n\n"
        f"Software image version: {RELEASE}\nArchitecture: x86_64\n"
        "Total memory: 8098984 kB\nFree memory: 5404612 kB\n"
    )


@command(USER, "show lldp neighbors")
def show_lldp(cli: Cli, _match: Match) -> str:
    """Who is at the other end of each cable."""
    rows = [
        (port.name, peer.device, peer.port)
        for port in _ports(cli)
        if port.up and (peer := cli.switch.heard_on(port.name)) is not None
    ]
    if cli.json:
        neighbors = [
            {"port": port, "neighborDevice": device, "neighborPort": far, "ttl": 120}
            for port, device, far in rows
        ]
        return _as_json({"tablesInserts": len(rows), "lldpNeighbors": neighbors})
    lines = [
        f"Number of table inserts         : {len(rows)}",
        "",
        "Port          Neighbor Device ID       Neighbor Port ID    TTL",
        "---------- ------------------------ ---------------------- ---",
    ]
    for port, device, far in rows:
        short = port.replace("Ethernet", "Et")
        lines.append(f"{short:<13} {device:<24} {far:<19} 120")
    return "\n".join([*lines, ""])


def _ports(cli: Cli, names: Iterable[str] = ()) -> list[Port]:
    wanted = list(names)
    ports = [n for n in cli.switch.config.interfaces() if n.startswith("Ethernet")]
    return [Port(cli.switch, name) for name in ports if not wanted or name in wanted]


@command(USER, "show priority-flow-control [status]")
def show_pfc(cli: Cli, _match: Match) -> str:
    """On which priorities each port pauses and is paused."""
    _only_text(cli)
    lines = [
        "The hardware supports PFC on priorities 0 1 2 3 4 5 6 7",
        "",
        "Port           Enabled  Priorities  Active  Note",
        "-------------- -------- ----------- ------- -------------",
    ]
    for port in _ports(cli):
        on = port.pfc_on
        priorities = " ".join(map(str, port.no_drop)) if on else ""
        note = "DCBX disabled" if on else ""
        enabled = "Yes" if on else "No"
        lines.append(f"{port.name:<14} {enabled:<8} {priorities:<11} {enabled:<7} {note}".rstrip())
    return "\n".join([*lines, ""])


@command(USER, "show priority-flow-control counters")
def show_pfc_counters(cli: Cli, _match: Match) -> str:
    """PFC frames of each port."""
    rows = {
        port.name: (port.sum("rx_pause_frames"), port.sum("tx_pause_frames"))
        for port in _ports(cli)
    }
    if cli.json:
        counts = {name: {"rxFrames": rx, "txFrames": tx} for name, (rx, tx) in rows.items()}
        return _as_json({"interfaceCounters": counts})
    lines = ["Port                  RxPfc                TxPfc"]
    lines += [
        f"{name.replace('Ethernet', 'Et'):<14} {rx:>12} {tx:>20}" for name, (rx, tx) in rows.items()
    ]
    return "\n".join([*lines, ""])


@command(USER, "show priority-flow-control counters watchdog")
def show_watchdog(cli: Cli, _match: Match) -> str:
    """Queues that were stuck; ports without any are left out."""
    found = {
        port.name: {
            "txQueues": {
                str(queue): {"stuckCount": stuck, "recoveryCount": stuck}
                for queue in range(8)
                if (stuck := port.count("watchdog_storms", queue))
            }
        }
        for port in _ports(cli)
        if port.sum("watchdog_storms")
    }
    if cli.json:
        return _as_json({"interfaces": found})
    lines = [
        "Port                TxQ    Total times    Total times",
        " " * 27 + "stuck      recovered",
    ]
    for name, queues in found.items():
        for queue, counts in queues["txQueues"].items():
            stuck, back = counts["stuckCount"], counts["recoveryCount"]
            lines.append(f"{name:<18} UC{queue} {stuck:>14} {back:>14}")
    return "\n".join([*lines, ""])


@command(USER, "show interfaces [<names:interfaces>]")
def show_interfaces(cli: Cli, match: Match) -> str:
    """State and counters of each port."""
    ports = _ports(cli, match.names("names"))
    if not cli.json:
        return "\n".join(_interface_text(port) for port in ports) + "\n"
    return _as_json({"interfaces": {port.name: _interface_json(port) for port in ports}})


def _interface_json(port: Port) -> dict[str, object]:
    return {
        "name": port.name,
        "forwardingModel": "routed" if port.routed else "bridged",
        "lineProtocolStatus": "up" if port.up else "down",
        "interfaceStatus": "connected" if port.up else "disabled" if port.shut else "notconnect",
        "hardware": "ethernet",
        "physicalAddress": port.mac,
        "burnedInAddress": port.mac,
        "description": port.description,
        "bandwidth": port.speed_bps if port.up else 0,
        "mtu": port.mtu,
        "interfaceCounters": {
            "inOctets": port.sum("rx_bytes"),
            "inUcastPkts": port.sum("rx_packets"),
            "inMulticastPkts": 0,
            "inBroadcastPkts": 0,
            "inDiscards": port.sum("rx_discards"),
            "inTotalPkts": port.sum("rx_packets"),
            "outOctets": port.sum("tx_bytes"),
            "outUcastPkts": port.sum("tx_packets"),
            "outMulticastPkts": 0,
            "outBroadcastPkts": 0,
            "outDiscards": port.sum("tx_discards"),
            "outTotalPkts": port.sum("tx_packets"),
            "linkStatusChanges": 2 * port.sum("link_down_events") + port.up,
            "totalInErrors": port.sum("rx_crc_errors") + port.sum("rx_mtu_drops"),
            "inputErrorsDetail": {
                "runtFrames": 0,
                "giantFrames": port.sum("rx_mtu_drops"),
                "fcsErrors": port.sum("rx_crc_errors"),
                "alignmentErrors": 0,
                "symbolErrors": 0,
                "rxPause": 0,
            },
            "totalOutErrors": 0,
            "outputErrorsDetail": {"collisions": 0, "txPause": 0},
        },
    }


@command(USER, "show interfaces [<names:interfaces>] error-correction")
def show_error_correction(cli: Cli, match: Match) -> str:
    """Forward error correction of each port."""
    ports = _ports(cli, match.names("names"))
    if cli.json:
        found = {
            port.name: {
                "errCorrEncodingStatus": "reedSolomon" if port.up else "disabled",
                "fecEncodingReedSolomonAvailable": True,
                "fecEncodingFireCodeAvailable": port.speed_bps < 10**11,
            }
            for port in ports
        }
        return _as_json({"interfaceErrCorrStatuses": found})
    lines = ["Name          Configured  Available                    Error-correction"]
    for port in ports:
        status = "Reed-Solomon" if port.up else "Disabled"
        lines.append(
            f"{port.name.replace('Ethernet', 'Et'):<13} Default     Reed-Solomon {status:>28}"
        )
    return "\n".join([*lines, ""])


def _interface_text(port: Port) -> str:
    status = "up" if port.up else "down"
    state = "connected" if port.up else "disabled" if port.shut else "notconnect"
    return (
        f"{port.name} is {status}, line protocol is {status} ({state})\n"
        f"  Description: {port.description}\n"
        f"  {'IP' if port.routed else 'Ethernet'} MTU {port.mtu} bytes\n"
        f"     {port.sum('rx_packets')} packets input, {port.sum('rx_bytes')} bytes\n"
        f"     {port.sum('rx_discards')} input discards\n"
        f"     {port.sum('tx_packets')} packets output, {port.sum('tx_bytes')} bytes\n"
        f"     {port.sum('tx_discards')} output discards\n"
    )


@command(USER, "show interfaces [<names:interfaces>] status")
def show_status(cli: Cli, match: Match) -> str:
    """One line a port."""
    _only_text(cli)
    lines = ["Port       Name                     Status       Vlan     Duplex Speed  Type"]
    for port in _ports(cli, match.names("names")):
        state = "connected" if port.up else "disabled" if port.shut else "notconnect"
        speed = f"{port.speed_bps // 10**9}G" if port.up else "auto"
        vlan = "routed" if port.routed else "1"
        short = port.name.replace("Ethernet", "Et")
        lines.append(
            f"{short:<10} {port.description[:24]:<24} {state:<12} {vlan:<8} full   {speed:<6} --"
        )
    return "\n".join([*lines, ""])


@command(USER, "show interfaces [<names:interfaces>] counters queue detail")
def show_queues(cli: Cli, match: Match) -> str:
    """Packets, bytes and drops of each transmit queue."""
    ports = _ports(cli, match.names("names"))
    if cli.json:
        found = {
            port.name: {
                "ucastQueues": {
                    "trafficClasses": {f"TC{queue}": _queue_json(port, queue) for queue in range(8)}
                },
                "mcastQueues": {
                    "trafficClasses": {f"TC{queue}": _queue_json(None, queue) for queue in range(4)}
                },
            }
            for port in ports
        }
        return _as_json({"egressQueueCounters": {"interfaces": found}})
    lines = ["Port      TxQ    Counter/pkts    Counter/bytes   Drop/pkts       Drop/bytes"]
    for port in ports:
        for queue in range(8):
            packets = port.count("tx_queue_packets", queue)
            size = port.count("tx_queue_bytes", queue)
            drops = port.count("queue_drops", queue)
            short = port.name.replace("Ethernet", "Et")
            lines.append(f"{short:<9} UC{queue} {packets:>15} {size:>16} {drops:>11} {0:>16}")
    return "\n".join([*lines, ""])


def _queue_json(port: Port | None, queue: int) -> dict[str, object]:
    def of(name: str) -> int:
        return port.count(name, queue) if port else 0

    counts = {
        "enqueuedPackets": of("tx_queue_packets"),
        "enqueuedBytes": of("tx_queue_bytes"),
        "droppedPackets": of("queue_drops"),
        "droppedBytes": 0,
    }
    return {"dropPrecedences": {"DP0": counts}}


@command(USER, "show qos interfaces [<names:interfaces>] ecn counters queue")
def show_ecn_counters(cli: Cli, match: Match) -> str:
    """Packets that each queue marked; ``-`` where nobody asked to count."""
    found = {
        port.name: {
            str(queue): str(port.count("ecn_marked_packets", queue))
            if port.counts_ecn(queue)
            else "-"
            for queue in range(8)
        }
        for port in _ports(cli, match.names("names"))
    }
    if cli.json:
        counts = {name: {"queueCounters": queues} for name, queues in found.items()}
        return _as_json({"intfQueueCounters": counts})
    lines = ["Port           TxQ   Marked Packets", "-------------- ----- --------------"]
    for name, queues in found.items():
        lines += [f"{name:<14} {queue:<5} {marked}" for queue, marked in queues.items()]
    return "\n".join([*lines, ""])


@command(USER, "show qos profile [<name:word>]")
def show_profiles(cli: Cli, match: Match) -> str:
    """QoS profiles."""
    _only_text(cli)
    wanted = match.values.get("name")
    headers = [h for h in cli.switch.config.blocks if h.startswith("qos profile ")]
    return "".join(
        block_text(cli.switch.config, header)
        for header in headers
        if wanted in (None, header.removeprefix("qos profile "))
    )


@command(USER, "show qos maps")
def show_maps(cli: Cli, _match: Match) -> str:
    """The maps in force."""
    _only_text(cli)
    dscps = cli.switch.dscp_to_class()
    lines = [
        "   Number of Traffic Classes supported: 8",
        "",
        "   Dscp-tc map:",
        "     d1 :  d2  0  1  2  3  4  5  6  7  8  9",
    ]
    for tens in range(7):
        cells = " ".join(f"{dscps[n]:>2}" for n in range(10 * tens, min(10 * tens + 10, 64)))
        lines.append(f"      {tens} :      {cells}")
    return "\n".join([*lines, ""])
