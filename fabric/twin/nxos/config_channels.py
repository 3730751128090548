"""Port channels and ports that are broken out.

Syntax and rules: Cisco Nexus 9000 NX-OS Interfaces configuration guide, "Configuring Port
Channels" (``channel-group`` makes the channel where there is none; ports of another
layer, MTU or flow control are not compatible, unless ``force`` gives them the channel's;
``active`` and ``passive`` need ``feature lacp``) and "Configuring Layer 2 Interfaces"
(``interface breakout``); Nexus 9000 QoS configuration guide, "Attaching and Detaching a
QoS Policy Action" (a channel's policies take effect, whatever its members have). That a
port channel hands PFC and MTU down to its members is how the guides describe it; the
wording of the refusals was not found in a public source, but for ``port not compatible``.
"""

from __future__ import annotations

from fabric.twin.cli.grammar import Match
from fabric.twin.nxos.cli import CONFIG, EXEC, Cli, CliError, command
from fabric.twin.nxos.config import Interface
from fabric.twin.nxos.running import interface_key
from fabric.twin.nxos.switch_view import short_name

# What members must have in common, by the name that a refusal gives it.
_COMMON = (
    ("Ethernet Layer", "switchport"),
    ("MTU", "mtu"),
    ("Flow Control", "flowcontrol_receive"),
    ("Flow Control", "flowcontrol_send"),
)
_HANDED_DOWN = (
    *(attribute for _, attribute in _COMMON),
    "pfc_mode",
    "pfc_send_tlv",
    "watchdog",
)
_MAPS = ("10g-4x", "25g-4x", "50g-2x", "100g-2x", "100g-4x", "200g-2x")


@command(
    "config-if",
    "channel-group <number:1-4096> [force] [mode {mode: active | on | passive}]",
)
def join(cli: Cli, match: Match) -> None:
    """Make ports members of a port channel."""
    number, mode = match.integer("number"), match.values.get("mode", "on")
    if mode != "on" and "lacp" not in cli.config.features:
        raise CliError("feature lacp is not enabled")
    ports = [(name, cli.config.interfaces[name]) for name in cli.frame.target]
    for name, _ in ports:
        if not name.startswith("Ethernet"):
            raise CliError(f"{name}: the command is not supported on this interface")
    channel = cli.config.interfaces.get(f"port-channel{number}")
    for _, port in ports:
        if channel is None:
            held = {name: getattr(port, name) for name in (*_HANDED_DOWN, "shutdown")}
            channel = cli.config.interfaces[f"port-channel{number}"] = Interface(**held)
        if not match.has("force"):
            _compatible(port, channel)
    for _, port in ports:
        for attribute in _HANDED_DOWN:
            setattr(port, attribute, getattr(channel, attribute))
        port.channel = number
        port.lines["channel-group"] = f"channel-group {number}" + (
            f" mode {mode}" if mode != "on" else ""
        )


def _compatible(port: Interface, channel: Interface) -> None:
    for name, attribute in _COMMON:
        if getattr(port, attribute) != getattr(channel, attribute):
            raise CliError(f"command failed: port not compatible [{name}]")


@command("config-if", "no channel-group [<number:1-4096>]")
def leave(cli: Cli, match: Match) -> None:
    """A port by itself again; it keeps what the channel has given it."""
    for name in cli.frame.target:
        port = cli.config.interfaces[name]
        if "number" in match.values and port.channel != match.integer("number"):
            raise CliError(f"{name} is not a member of port-channel{match.integer('number')}")
        detach(port)


def detach(port: Interface) -> None:
    """Take a port out of its channel."""
    port.channel = None
    port.lines.pop("channel-group", None)


@command(
    CONFIG,
    "[no] interface breakout module <module:1-1> port <ports:vlans> map "
    f"{{map: {' | '.join(_MAPS)}}}",
)
def breakout(cli: Cli, match: Match) -> None:
    """``Ethernet1/50`` becomes ``Ethernet1/50/1`` to ``/4``, all at factory settings."""
    lanes = int(match.string("map").partition("-")[2][0])
    for port in match.numbers("ports"):
        whole, parts = f"Ethernet1/{port}", [f"Ethernet1/{port}/{n}" for n in range(1, lanes + 1)]
        gone, made = (parts, [whole]) if match.no else ([whole], parts)
        if gone[0] not in cli.config.interfaces or port <= cli.config.single_lane_ports:
            raise CliError(f"{whole} cannot be broken out")
        for name in gone:
            cli.config.interfaces.pop(name, None)
        cli.config.interfaces |= {name: Interface() for name in made}
    if match.no:
        cli.config.lines.remove(match.positive)
    else:
        cli.config.lines.append(match.text)


@command(EXEC, "show port-channel summary")
def summary(cli: Cli, _match: Match) -> str:
    """Each channel with its members."""
    rule = "-" * 80
    lines = [
        "Flags:  D - Down        P - Up in port-channel (members)",
        "        I - Individual  H - Hot-standby (LACP only)",
        "        s - Suspended   r - Module-removed",
        "        S - Switched    R - Routed",
        "        U - Up (port-channel)",
        rule,
        "Group Port-       Type     Protocol  Member Ports",
        "      Channel",
        rule,
    ]
    channels = (name for name in cli.config.interfaces if name.startswith("port-channel"))
    for name in sorted(channels, key=interface_key):
        number, settings = name.removeprefix("port-channel"), cli.config.interfaces[name]
        members = sorted(cli.config.members(name), key=interface_key)
        layer = "S" if settings.switchport else "R"
        state = "U" if cli.switch.link_up(name) else "D"
        ports = "".join(
            f"{short_name(port) + ('(P)' if cli.switch.link_up(port) else '(D)'):<13}"
            for port in members
        )
        lacp = any(
            " mode " in cli.config.interfaces[port].lines["channel-group"] for port in members
        )
        protocol = "LACP" if lacp else "NONE"
        lines.append(
            f"{number:<6}{short_name(name)}({layer}{state}){'':<5}Eth      {protocol:<10}{ports}"
        )
    return "\n".join([*lines, ""])
