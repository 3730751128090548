"""Configuration commands that are none of QoS: enough for a real base configuration.

Syntax: Cisco Nexus 9000 NX-OS command references, release 10.x. Lines that the
emulator does not act on are kept as they would be printed.
"""

from __future__ import annotations

from fabric.twin.cli.grammar import Match
from fabric.twin.cli.values import compact
from fabric.twin.nxos.cli import CONFIG, Cli, CliError, command
from fabric.twin.nxos.config import Interface
from fabric.twin.nxos.config_channels import detach

FEATURES = ("bfd", "bgp", "interface-vlan", "lacp", "lldp", "ospf", "pim", "scp-server", "udld")
_FEATURE_CHOICES = " | ".join(FEATURES)

# Settings of which there is one, or one for each of the words (none or one) behind them.
_SINGLE = {
    "snmp-server location": 0,
    "snmp-server contact": 0,
    "ip domain-name": 0,
    "ntp server": 1,
    "ntp source-interface": 0,
    "logging server": 1,
    "logging console": 0,
    "clock timezone": 0,
    "cli alias name": 1,
    "system jumbomtu": 0,
    "copp profile": 0,
    "boot nxos": 0,
    "username": 1,
    "router-id": 0,
    "log-adjacency-changes": 0,
    "exec-timeout": 0,
    "session-limit": 0,
    "limit-resource": 1,
}


@command(CONFIG, "hostname <name:word>", "no hostname")
def hostname(cli: Cli, match: Match) -> None:
    """``hostname NAME``."""
    cli.config.hostname = "switch" if match.no else match.string("name")


@command(CONFIG, f"[no] feature {{feature: {_FEATURE_CHOICES}}}")
def feature(cli: Cli, match: Match) -> None:
    """``feature lldp``; there is no feature for QoS."""
    name, features = match.string("feature"), cli.config.features
    if match.no and name in features:
        features.remove(name)
    elif not match.no and name not in features:
        features.append(name)


@command(
    CONFIG,
    "[no] ip domain-lookup",
    "[no] ip domain-name <name:word>",
    "[no] ip name-server <server:address>",
    "[no] ip route <prefix:prefix> <gateway:address>",
    "[no] ntp server <server:address> [prefer] [use-vrf <vrf:word>]",
    "[no] ntp source-interface <interface:interface>",
    "[no] logging server <server:address> [<level:0-7>] [use-vrf <vrf:word>]",
    "[no] logging console [<level:0-7>]",
    "[no] snmp-server (location | contact) <text:line>",
    "[no] clock timezone <zone:word> <hours:0-23> <minutes:0-59>",
    "[no] cfs eth distribute",
    "[no] cli alias name <alias:word> <text:line>",
    "[no] system jumbomtu <mtu:1500-9216>",
    "copp profile (strict | moderate | lenient | dense)",
    "boot nxos <image:word>",
    "username <user:word> password 5 <hash:word> role <role:word>",
)
def plain_line(cli: Cli, match: Match) -> None:
    """A global line that is kept as it is; ``no`` removes it."""
    lines, text = cli.config.lines, match.positive
    if match.no:
        if text in lines:
            lines.remove(text)
    else:
        _keep(lines, text)


def _keep(lines: list[str], text: str) -> None:
    """Add a line; what has one value only takes the place of the line that it had."""
    subject = _subject(text)
    place = next((i for i, line in enumerate(lines) if _subject(line) == subject), len(lines))
    lines[place : place + 1] = [text]


def _subject(line: str) -> str:
    """The words that say what a line sets: the whole line where there may be many of it."""
    words = line.split()
    for single, named in _SINGLE.items():
        if f"{line} ".startswith(f"{single} "):
            return " ".join(words[: len(single.split()) + named])
    return line


@command(CONFIG, "[no] vlan <vlans:vlans>")
def vlan(cli: Cli, match: Match) -> None:
    """``vlan 10``: the list of VLANs, then a block for each that has a name."""
    blocks = cli.config.blocks
    existing = next((h for h in blocks if h.startswith("vlan ") and not blocks[h]), "vlan 1")
    have = {n for part in existing[5:].split(",") for n in _span(part)}
    wanted = set(match.numbers("vlans"))
    if match.no and 1 in wanted:
        raise CliError("VLAN 1 is a default VLAN and cannot be deleted.")
    have = have - wanted if match.no else have | wanted
    kept = {h: b for h, b in blocks.items() if h.startswith("vlan ") and b}
    for header in [h for h in blocks if h.startswith("vlan ")]:
        del blocks[header]
    if have != {1}:
        blocks[f"vlan {compact(have)}"] = []
    for header, body in kept.items():
        if int(header[5:]) in have:
            blocks[header] = body
    if not match.no:
        cli.enter("config-vlan", match.text.removeprefix("vlan "))


@command("config-vlan", "[no] name <name:word>")
def vlan_name(cli: Cli, match: Match) -> None:
    """``name TEXT`` of one VLAN."""
    header = f"vlan {cli.frame.target[0]}"
    if "," in header or "-" in header:
        raise CliError("Only one VLAN can be named at a time.")
    if match.no:
        cli.config.blocks.pop(header, None)
    else:
        cli.config.blocks[header] = [match.text]


def _span(text: str) -> range:
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


@command(CONFIG, "vrf context <name:word>", "no vrf context <name:word>")
@command(CONFIG, "[no] router ospf <name:word>")
@command(CONFIG, "line (console | vty)")
@command(CONFIG, "vdc <name:word> id <id:1-4>")
def block(cli: Cli, match: Match) -> None:
    """A mode whose lines are kept as they are."""
    header = match.positive
    if match.no:
        cli.config.blocks.pop(header, None)
        return
    if match.has("ospf") and "ospf" not in cli.config.features:
        raise CliError("feature ospf is not enabled")
    cli.config.blocks.setdefault(header, [])
    modes = {
        "vrf": "config-vrf",
        "router": "config-router",
        "line": "config-line",
        "vdc": "config-vdc",
    }
    cli.enter(modes[match.words[0]], header)


@command("config-vrf", "[no] ip route <prefix:prefix> <gateway:address>")
@command("config-vrf", "[no] ip name-server <server:address>")
@command("config-router", "[no] router-id <id:address>")
@command("config-router", "[no] log-adjacency-changes [detail]")
@command("config-line", "[no] exec-timeout <minutes:0-525600>")
@command("config-line", "[no] session-limit <sessions:1-64>")
@command(
    "config-vdc",
    "limit-resource (vlan | vrf | port-channel | m4route-mem | m6route-mem | u4route-mem | "
    "u6route-mem) minimum <low:0-1000000> maximum <high:0-1000000>",
)
def block_line(cli: Cli, match: Match) -> None:
    """A line of such a mode."""
    lines = cli.config.blocks.setdefault(cli.frame.target[0], [])
    if match.no:
        if match.positive in lines:
            lines.remove(match.positive)
    else:
        _keep(lines, match.text)


@command(CONFIG, "interface <names:interfaces>")
def interface(cli: Cli, match: Match) -> None:
    """``interface Ethernet1/1-4``; loopbacks and VLAN interfaces come into being by it."""
    names = match.names("names")
    for name in names:
        if name not in cli.config.interfaces:
            create_interface(cli, name)
    cli.enter("config-if", *names)


def create_interface(cli: Cli, name: str) -> None:
    """A loopback, VLAN interface or port channel; CliError for a port that there is not."""
    if name.startswith("Vlan") and "interface-vlan" not in cli.config.features:
        raise CliError("feature interface-vlan is not enabled")
    if not name.startswith(("Vlan", "loopback", "port-channel")):
        raise CliError(f"interface {name} does not exist")
    cli.config.interfaces[name] = Interface(switchport=not name.startswith("Vlan"))


@command(CONFIG, "no interface <names:interfaces>")
def no_interface(cli: Cli, match: Match) -> None:
    """Only interfaces that came into being by configuration can be removed."""
    for name in match.names("names"):
        if name.startswith(("Ethernet", "mgmt")):
            raise CliError(f"interface {name} is physical and cannot be removed")
        for member in cli.config.members(name) if name.startswith("port-channel") else ():
            detach(cli.config.interfaces[member])
        cli.config.interfaces.pop(name, None)


@command(CONFIG, "default interface <names:interfaces>")
def default_interface(cli: Cli, match: Match) -> None:
    """``default interface``: back to factory settings."""
    for name in match.names("names"):
        if name not in cli.config.interfaces:
            raise CliError(f"interface {name} does not exist")
        cli.config.interfaces[name] = Interface()
