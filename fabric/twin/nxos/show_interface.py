"""``show interface`` in its forms.

Layouts as in recorded sessions of Nexus 9000 switches (C93180YC-FX, 9.3(3)) and
in ntc-templates' and the OpenTelemetry collector's test files for NX-OS.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from fabric.twin.cli.grammar import Match
from fabric.twin.nxos.cli import EXEC, Cli, command
from fabric.twin.nxos.running import interface_key
from fabric.twin.nxos.switch_view import short_name

RULE = "-" * 80


def _chosen(cli: Cli, match: Match, *, ports: bool = False) -> list[str]:
    """The interfaces that were asked for, or all (``ports``: Ethernet only)."""
    names = match.names("names")
    if names:
        return [cli.switch.known_interface(name) for name in names]
    found = sorted(cli.config.interfaces, key=interface_key)
    return [name for name in found if name.startswith("Ethernet") or not ports]


def _mac(device: str, port: str) -> str:
    digest = hashlib.sha256(f"{device}/{port}".encode()).hexdigest()
    return f"00de.fb{digest[:2]}.{digest[2:6]}"


@command(EXEC, "show interface [<names:interfaces>]")
def show_interface(cli: Cli, match: Match) -> str:
    """State and counters of each interface."""
    return "\n".join("\n".join(_interface(cli, name)) + "\n" for name in _chosen(cli, match))


def _interface(cli: Cli, name: str) -> list[str]:
    switch, settings = cli.switch, cli.config.interfaces[name]
    up, speed_bps = switch.link_up(name), switch.speed_bps(name)
    reason = "Administratively down" if settings.is_shut else "Link not connected"
    mac = _mac(switch.name, name)
    lines = [
        f"{name} is up" if up else f"{name} is down ({reason})",
        f"admin state is {'down' if settings.is_shut else 'up'}, Dedicated Interface",
        f"  Hardware: 100/1000/10000/25000/40000/100000 Ethernet, address: {mac} (bia {mac})",
    ]
    for slot, label in (("description", "Description"), ("ip address", "Internet Address is")):
        if slot in settings.lines:
            colon = ":" if slot == "description" else ""
            lines.append(f"  {label}{colon} {settings.lines[slot].removeprefix(slot).strip()}")
    receive = "on" if settings.flowcontrol_receive else "off"
    send = "on" if settings.flowcontrol_send else "off"
    gbps = speed_bps // 10**9
    lines += [
        f"  MTU {settings.mtu} bytes, BW {speed_bps // 1000} Kbit , DLY 10 usec",
        "  reliability 255/255, txload 1/255, rxload 1/255",
        "  Encapsulation ARPA, medium is broadcast",
        f"  full-duplex, {gbps} Gb/s, media type is {gbps}G" if up else "  auto-duplex, auto-speed",
        "  Beacon is turned off",
        "  Auto-Negotiation is turned on  FEC mode is Auto",
        f"  Input flow-control is {receive}, output flow-control is {send}",
        "  Auto-mdix is turned off",
        "  Rate mode is dedicated",
        "  Switchport monitor is off ",
        "  EtherType is 0x8100 ",
        "  EEE (efficient-ethernet) : n/a",
        "    admin fec state is auto, oper fec state is auto",
        "  Last link flapped never",
        '  Last clearing of "show interface" counters never',
        f"  {switch.counter_sum(name, 'link_down_events')} interface resets",
        "  Load-Interval #1: 30 seconds",
        "    30 seconds input rate 0 bits/sec, 0 packets/sec",
        "    30 seconds output rate 0 bits/sec, 0 packets/sec",
        "    input rate 0 bps, 0 pps; output rate 0 bps, 0 pps",
    ]
    return lines + _counters(cli, name)


def _counters(cli: Cli, name: str) -> list[str]:
    def of(counter: str) -> int:
        return cli.switch.counter_sum(name, counter)

    giants, crc = of("rx_mtu_drops"), of("rx_crc_errors")
    return [
        "  RX",
        f"    {of('rx_packets')} unicast packets  0 multicast packets  0 broadcast packets",
        f"    {of('rx_packets')} input packets  {of('rx_bytes')} bytes",
        "    0 jumbo packets  0 storm suppression bytes",
        f"    0 runts  {giants} giants  {crc} CRC  0 no buffer",
        f"    {giants + crc} input error  0 short frame  0 overrun   0 underrun  0 ignored",
        "    0 watchdog  0 bad etype drop  0 bad proto drop  0 if down drop",
        f"    0 input with dribble  {of('rx_discards')} input discard",
        "    0 Rx pause",
        "  TX",
        f"    {of('tx_packets')} unicast packets  0 multicast packets  0 broadcast packets",
        f"    {of('tx_packets')} output packets  {of('tx_bytes')} bytes",
        "    0 jumbo packets",
        "    0 output error  0 collision  0 deferred  0 late collision",
        f"    0 lost carrier  0 no carrier  0 babble  {of('tx_discards')} output discard",
        "    0 Tx pause",
    ]


@command(EXEC, "show interface [<names:interfaces>] priority-flow-control [detail]")
def show_pfc(cli: Cli, match: Match) -> str:
    """PFC mode, whether it operates on which CoS (hexadecimal bit map), PFC frames."""
    rule = "=" * 60
    lines = [rule, "Port               Mode Oper(VL bmap)  RxPPP      TxPPP     ", rule, ""]
    bitmap = sum(1 << cos for cos in cli.config.pause_cos())
    for name in _chosen(cli, match, ports=True):
        mode = cli.config.interfaces[name].pfc_mode.capitalize()
        oper = f"On  ({bitmap:x})" if cli.switch.pfc_operates(name) else "Off"
        received = cli.switch.counter_sum(name, "rx_pause_frames")
        sent = cli.switch.counter_sum(name, "tx_pause_frames")
        lines.append(f"{name:<19}{mode:<5}{oper:<14}{received:<11}{sent:<10}")
    return "\n".join([*lines, ""])


@command(EXEC, "show interface [<names:interfaces>] flowcontrol")
def show_flowcontrol(cli: Cli, match: Match) -> str:
    """Link-level pause."""
    lines = [
        "",
        RULE,
        "Port         Send FlowControl  Receive FlowControl  RxPause TxPause ",
        "             admin    oper     admin    oper                        ",
        RULE,
    ]
    for name in _chosen(cli, match, ports=True):
        settings = cli.config.interfaces[name]
        send = "on" if settings.flowcontrol_send else "off"
        receive = "on" if settings.flowcontrol_receive else "off"
        lines.append(
            f"{short_name(name):<13}{send:<9}{send:<9}{receive:<9}{receive:<12}{0:<8}{0:<8}"
        )
    return "\n".join([*lines, ""])


@command(EXEC, "show interface [<names:interfaces>] status")
def show_status(cli: Cli, match: Match) -> str:
    """One line a port: connected or not, VLAN, speed."""
    lines = [
        "",
        RULE,
        "Port          Name               Status    Vlan      Duplex  Speed   Type",
        RULE,
    ]
    for name in _chosen(cli, match):
        settings, up = cli.config.interfaces[name], cli.switch.link_up(name)
        status = "connected" if up else "disabled" if settings.is_shut else "notconnec"
        vlan = settings.lines.get("switchport access vlan", "1").split()[-1]
        vlan = "trunk" if settings.lines.get("switchport mode", "").endswith("trunk") else vlan
        vlan = vlan if name.startswith("Ethernet") and settings.switchport else "routed"
        label = settings.lines.get("description", "--").removeprefix("description ")
        speed = _speed(cli.switch.speed_bps(name)) if up else "auto"
        lines.append(
            f"{short_name(name):<14}{label[:18]:<19}{status:<10}{vlan:<10}"
            f"{'full' if up else 'auto':<8}{speed:<8}--"
        )
    return "\n".join([*lines, ""])


def _speed(speed_bps: int) -> str:
    return f"{speed_bps // 10**9}G" if speed_bps > 10**9 else "1000"


@command(EXEC, "show interface [<names:interfaces>] brief")
def show_brief(cli: Cli, match: Match) -> str:
    """One line a port with the reason why it is down."""
    lines = [
        "",
        RULE,
        "Ethernet        VLAN    Type Mode   Status  Reason                 Speed     Port",
        "Interface                                                                    Ch #",
        RULE,
    ]
    for name in _chosen(cli, match, ports=True):
        settings, up = cli.config.interfaces[name], cli.switch.link_up(name)
        vlan = settings.lines.get("switchport access vlan", "1").split()[-1]
        vlan, mode = (vlan, "access") if settings.switchport else ("--", "routed")
        down = "Administratively down" if settings.is_shut else "Link not connected"
        speed = f"{_speed(cli.switch.speed_bps(name))}(D)" if up else "auto(D)"
        lines.append(
            f"{short_name(name):<16}{vlan:<8}eth  {mode:<7}{'up' if up else 'down':<8}"
            f"{'none' if up else down:<23}{speed:<10}--"
        )
    return "\n".join([*lines, ""])


@command(EXEC, "show interface [<names:interfaces>] counters")
def show_counters(cli: Cli, match: Match) -> str:
    """Bytes and packets in and out."""
    names = _chosen(cli, match)
    lines: list[str] = []
    for way, side in (("In", "rx"), ("Out", "tx")):
        lines += _table(
            (f"{way}Octets", f"{way}UcastPkts"),
            ((n, [_sum(cli, n, f"{side}_bytes"), _sum(cli, n, f"{side}_packets")]) for n in names),
        )
        lines += _table((f"{way}McastPkts", f"{way}BcastPkts"), ((n, [0, 0]) for n in names))
    return "\n".join([*lines, ""])


@command(EXEC, "show interface [<names:interfaces>] counters errors")
def show_errors(cli: Cli, match: Match) -> str:
    """Errors and discards."""
    names = _chosen(cli, match)
    columns = (
        ("Align-Err", "FCS-Err", "Xmit-Err", "Rcv-Err", "UnderSize", "OutDiscards"),
        ("Single-Col", "Multi-Col", "Late-Col", "Exces-Col", "Carri-Sen", "Runts"),
        ("Giants", "SQETest-Err", "Deferred-Tx", "IntMacTx-Er", "IntMacRx-Er", "Symbol-Err"),
        ("InDiscards",),
    )
    rows: dict[str, dict[str, int]] = {}
    for name in names:
        crc, giants = _sum(cli, name, "rx_crc_errors"), _sum(cli, name, "rx_mtu_drops")
        rows[name] = {
            "FCS-Err": crc,
            "Rcv-Err": crc + giants,
            "Giants": giants,
            "OutDiscards": _sum(cli, name, "tx_discards"),
            "InDiscards": _sum(cli, name, "rx_discards"),
        }
    lines: list[str] = []
    for titles in columns:
        lines += ["", RULE, f"{'Port':<10}" + "".join(f"{title:>12}" for title in titles), RULE]
        for name in names:
            cells = "".join(f"{rows[name].get(title, 0):>12}" for title in titles)
            lines.append(f"{short_name(name):<10}{cells}")
    return "\n".join([*lines, ""])


def _sum(cli: Cli, name: str, counter: str) -> int:
    return cli.switch.counter_sum(name, counter)


def _table(titles: tuple[str, str], rows: Iterable[tuple[str, list[int]]]) -> list[str]:
    rule = "-" * 82
    lines = ["", rule, f"{'Port':<24}{titles[0]:>29}{titles[1]:>29}", rule]
    for name, values in rows:
        lines.append(f"{short_name(name):<24}{values[0]:>29}{values[1]:>29}")
    return lines
