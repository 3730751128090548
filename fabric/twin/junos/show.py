"""Show commands of operational mode.

Layouts: ``show interfaces extensive`` of a QFX with Junos 22.4, ``show interfaces
queue`` of an ACX and ``show lldp neighbors``, public captures.
"""

from __future__ import annotations

import time

from fabric.twin.cli.grammar import Match
from fabric.twin.junos.cli import OPERATIONAL, Cli, CliError, command
from fabric.twin.junos.state import Port

RELEASE = "22.4R3-S2.11"


@command(OPERATIONAL, "show configuration")
def show_configuration(cli: Cli, _match: Match) -> str:
    """The active configuration, as set lines."""
    if not cli.display_set:
        raise CliError("the emulator prints a configuration with | display set only")
    return cli.switch.config.text()


@command(OPERATIONAL, "show version")
def show_version(cli: Cli, _match: Match) -> str:
    """Name, model and release."""
    switch = cli.switch
    return (
        f"localre:\n{'-' * 74}\nHostname: {switch.config.hostname}\n"
        f"Model: {switch.model.lower()}\nJunos: {RELEASE}\n"
        f"JUNOS OS Kernel 64-bit  [20240112.0_builder_stable_12]\nJUNOS OS libs [{RELEASE}]\n"
    )


@command(OPERATIONAL, "show chassis hardware")
def show_hardware(cli: Cli, _match: Match) -> str:
    """Serial numbers."""
    switch = cli.switch
    return (
        "Hardware inventory:\n"
        "Item             Version  Part number  Serial number     Description\n"
        f"Chassis                                {switch.serial:<18}{switch.model}\n"
        f"Pseudo CB 0\nRouting Engine 0          BUILTIN      BUILTIN           RE-{switch.model}\n"
        f"FPC 0            REV 23   650-085266   {switch.serial:<18}{switch.model}\n"
    )


@command(OPERATIONAL, "show lldp neighbors")
def show_lldp(cli: Cli, _match: Match) -> str:
    """Who is at the other end of each cable."""
    lines = [
        "Local Interface    Parent Interface    Chassis Id          Port info          System Name"
    ]
    for port in _ports(cli, None):
        peer = cli.switch.heard_on(port.name)
        if peer is not None and cli.switch.speaks_lldp and port.up:
            mac = cli.switch.mac(peer.device)
            lines.append(f"{port.name:<19}{'-':<20}{mac:<20}{peer.port:<19}{peer.device:<20}")
    return "\n".join([*lines, ""])


@command(OPERATIONAL, "show system commit")
def show_commits(cli: Cli, _match: Match) -> str:
    """The last commits, newest first; one that waits says until when."""
    lines = []
    for number, (at_s, comment, minutes) in enumerate(cli.switch.commits()):
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))
        wait = "" if minutes is None else f" commit confirmed, rollback in {minutes}mins"
        lines.append(f"{number:<4}{when} by {cli.switch.user} via cli{wait}")
        if comment:
            lines.append(f"    {comment}")
    return "\n".join([*lines, ""])


@command(OPERATIONAL, "show system uptime")
def show_uptime(cli: Cli, _match: Match) -> str:
    """Now, and since when the switch runs."""
    up_s = int(time.time() - cli.switch.booted_at_s)
    days, rest = divmod(up_s, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    clock = f"{hours:02}:{minutes:02}"
    weeks = f"{days // 7}w{days % 7}d" if days >= 7 else f"{days}d"
    ago = f"{weeks} {clock}" if days else f"{clock}:{left:02}"
    booted, now = (
        time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))
        for at_s in (cli.switch.booted_at_s, time.time())
    )
    return (
        f"Current time: {now}\nTime Source:  LOCAL CLOCK\nSystem booted: {booted} ({ago} ago)\n"
        f"Protocols started: {booted} ({ago} ago)\n"
    )


def _ports(cli: Cli, wanted: object) -> list[Port]:
    return [Port(cli.switch, name) for name in cli.switch.ports if wanted in (None, name)]


@command(OPERATIONAL, "show interfaces terse [<port:interface>]")
def show_terse(cli: Cli, match: Match) -> str:
    """One line a port and unit."""
    lines = ["Interface               Admin Link Proto    Local                 Remote"]
    for port in _ports(cli, match.values.get("port")):
        admin, link = ("down" if port.disabled else "up"), ("up" if port.up else "down")
        lines.append(f"{port.name:<24}{admin:<6}{link}")
        if cli.switch.config.has("interfaces", port.name, "unit", "0"):
            lines.append(f"{port.name + '.0':<24}{admin:<6}{link:<5}inet")
    lines += ["em0                     up    up", "lo0                     up    up"]
    return "\n".join([*lines, ""])


@command(OPERATIONAL, "show interfaces [<port:interface>]")
def show_interfaces(cli: Cli, match: Match) -> str:
    """State of each port."""
    ports = _ports(cli, match.values.get("port"))
    blocks = ["\n".join(_head(number, port)) for number, port in enumerate(ports, start=648)]
    return "\n\n".join(blocks) + "\n"


@command(OPERATIONAL, "show interfaces [<port:interface>] extensive")
def show_extensive(cli: Cli, match: Match) -> str:
    """State and counters of each port."""
    ports = _ports(cli, match.values.get("port"))
    blocks = ["\n".join(_extensive(number, port)) for number, port in enumerate(ports, start=648)]
    return "\n\n".join(blocks) + "\n"


def _head(index: int, port: Port) -> list[str]:
    state = "Up" if port.up else "Down"
    speed = f"{port.speed_bps // 10**9}Gbps"
    flow = "Enabled" if port.link_pause else "Disabled"
    admin = "Administratively down" if port.disabled else "Enabled"
    mac = port.mac
    fec = ("FEC91" if port.speed_bps >= 10**11 else "FEC108") if port.up else "NONE"
    return [
        f"Physical interface: {port.name}, {admin}, Physical link is {state}",
        f"  Interface index: {index}, SNMP ifIndex: {index - 100}, Generation: {index - 500}",
        *([f"  Description: {port.description}"] if port.description else []),
        f"  Link-level type: Ethernet, MTU: {port.mtu}, LAN-PHY mode, Speed: {speed}, "
        f"Loopback: Disabled, Source filtering: Disabled, Flow control: {flow}, Media type: Fiber",
        "  CoS queues     : 8 supported, 8 maximum usable queues",
        f"  Current address: {mac}, Hardware address: {mac}",
        f"  Ethernet FEC Mode  : {fec:>22}",
    ]


def _extensive(index: int, port: Port) -> list[str]:
    drops, resource = port.sum("rx_discards"), 0
    transitions = 2 * port.sum("link_down_events") + port.up
    lines = [
        *_head(index, port),
        "  Statistics last cleared: Never",
        "  Traffic statistics:",
        f"   Input  bytes  : {port.sum('rx_bytes'):>20} {0:>20} bps",
        f"   Output bytes  : {port.sum('tx_bytes'):>20} {0:>20} bps",
        f"   Input  packets: {port.sum('rx_packets'):>20} {0:>20} pps",
        f"   Output packets: {port.sum('tx_packets'):>20} {0:>20} pps",
        "  Input errors:",
        f"    Errors: {port.sum('rx_crc_errors')}, Drops: {drops}, Framing errors: 0, Runts: 0, "
        "Policed discards: 0, L3 incompletes: 0, L2 channel errors: 0, L2 mismatch timeouts: 0, "
        f"FIFO errors: 0, Resource errors: {resource}",
        "  Output errors:",
        f"    Carrier transitions: {transitions}, Errors: 0, Drops: {port.sum('tx_discards')}, "
        "Collisions: 0, Aged packets: 0, FIFO errors: 0, HS link CRC errors: 0, MTU errors: 0, "
        "Resource errors: 0",
        f"  Egress queues: 12 supported, {len(port.queues)} in use",
        "  Queue counters:       Queued packets  Transmitted packets      Dropped packets",
    ]
    for queue in port.queues:
        sent, lost = port.count("tx_queue_packets", queue), port.count("queue_drops", queue)
        lines.append(f"    {queue:<2}{sent + lost:>32}{sent:>21}{lost:>21}")
    lines += [
        "  MAC statistics:                      Receive         Transmit",
        f"    Total octets       {port.sum('rx_bytes'):>21}{port.sum('tx_bytes'):>17}",
        f"    Total packets      {port.sum('rx_packets'):>21}{port.sum('tx_packets'):>17}",
        f"    CRC/Align errors   {port.sum('rx_crc_errors'):>21}{0:>17}",
        f"    MAC pause frames   {0:>21}{0:>17}",
        f"    Oversized frames   {port.sum('rx_mtu_drops'):>21}",
        "  MAC Priority Flow Control Statistics:",
    ]
    for priority in range(8):
        received = port.count("rx_pause_frames", priority)
        sent = port.count("tx_pause_frames", priority)
        lines.append(f"    Priority :  {priority} {received:>29}{sent:>17}")
    return lines


@command(OPERATIONAL, "show interfaces queue [<port:interface>]")
def show_queue(cli: Cli, match: Match) -> str:
    """What each queue sent, dropped and marked."""
    blocks = []
    for index, port in enumerate(_ports(cli, match.values.get("port")), start=648):
        state = "Up" if port.up else "Down"
        lines = [
            f"Physical interface: {port.name}, Enabled, Physical link is {state}",
            f"  Interface index: {index}, SNMP ifIndex: {index - 100}",
            f"Forwarding classes: 12 supported, {len(port.queues)} in use",
            f"Egress queues: 12 supported, {len(port.queues)} in use",
        ]
        for queue in port.queues:
            lines += _queue(port, queue)
        blocks.append("\n".join(lines))
    return "\n".join(blocks) + "\n"


def _queue(port: Port, queue: int) -> list[str]:
    sent, size = port.count("tx_queue_packets", queue), port.count("tx_queue_bytes", queue)
    lost, marked = port.count("queue_drops", queue), port.count("ecn_marked_packets", queue)

    def row(label: str, value: int, unit: str = "pps") -> str:
        return f"    {label:<21}: {value:>21} {0:>21} {unit}"

    return [
        f"Queue: {queue}, Forwarding classes: {port.queues[queue]}",
        "  Queued:",
        row("Packets", sent + lost),
        row("Bytes", size, "bps"),
        "  Transmitted:",
        row("Packets", sent),
        row("Bytes", size, "bps"),
        row("Tail-dropped packets", lost),
        row("Tail-dropped bytes", 0, "bps"),
        row("RED-dropped packets", 0),
        row("RED-dropped bytes", 0, "bps"),
        row("ECN-CE packets", marked),
        row("ECN-CE bytes", 0, "bps"),
    ]
