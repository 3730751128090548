"""Configuration commands of an interface or a range of them.

Syntax: Cisco Nexus 9000 NX-OS QoS configuration guide 10.5(x) (priority flow
control, queuing) and interfaces configuration guide (MTU, switchport; port channels
and what their members take from them are in ``config_channels``).
"""

from __future__ import annotations

from typing import Literal, cast

from fabric.twin.cli.grammar import Match
from fabric.twin.nxos.cli import Cli, CliError, command
from fabric.twin.nxos.config import DEFAULT_MTU, JUMBO_MTU, PORTS, Interface
from fabric.twin.nxos.policies import attach, is_ingress

MODE = "config-if"


def _targets(cli: Cli) -> list[tuple[str, Interface]]:
    interfaces = cli.config.interfaces
    missing = [name for name in cli.frame.target if name not in interfaces]
    if missing:
        raise CliError(f"interface {missing[0]} does not exist")
    return [(name, interfaces[name]) for name in cli.frame.target]


def _ports(cli: Cli) -> list[tuple[str, Interface]]:
    """The targets, which must be Ethernet ports or port channels."""
    targets = _targets(cli)
    for name, _ in targets:
        if not name.startswith(PORTS):
            raise CliError(f"{name}: the command is not supported on this interface")
    return targets


@command(MODE, "description <text:line>", "no description [<text:line>]")
def description(cli: Cli, match: Match) -> None:
    """``description TEXT``."""
    _set_line(cli, "description", match)


@command(MODE, "[no] ip address <prefix:prefix>", "no ip address")
@command(MODE, "[no] ip unnumbered <interface:interface>")
@command(MODE, "[no] ip ospf network point-to-point")
@command(MODE, "[no] ip router ospf <tag:word> area <area:address>")
@command(MODE, "[no] medium p2p")
def routed_line(cli: Cli, match: Match) -> None:
    """Layer 3 settings; a switched port has none."""
    for name, settings in _targets(cli):
        if name.startswith(PORTS) and settings.switchport:
            raise CliError(f"{name}: the command needs a routed port (no switchport)")
    words = tuple(word for word in match.words if word != "no")
    two = words[0] if words[0] == "medium" else " ".join(words[: 3 if words[1] == "router" else 2])
    _set_line(cli, {"ip ospf": "ip ospf network"}.get(two, two), match)


@command(MODE, "[no] vrf member <name:word>")
@command(MODE, "[no] speed {speed: auto | 10000 | 25000 | 40000 | 100000}", "no speed")
@command(MODE, "[no] spanning-tree port type {type: edge | network | normal}")
def kept_line(cli: Cli, match: Match) -> None:
    """Settings that are kept as they are."""
    words = [word for word in match.words if word not in ("no", *map(str, match.values.values()))]
    _set_line(cli, " ".join(words), match)


@command(MODE, "[no] negotiate auto")
def negotiate(cli: Cli, match: Match) -> None:
    """``no negotiate auto`` is what is printed; negotiating is the default."""
    for _, settings in _ports(cli):
        settings.lines.pop("negotiate auto", None)
        if match.no:
            settings.lines["negotiate auto"] = match.text


@command(MODE, "[no] switchport")
def switchport(cli: Cli, match: Match) -> None:
    """Switched or routed; changing it drops what belongs to the other."""
    for settings in _with_members(cli, _ports(cli)):
        if settings.switchport != (not match.no):
            settings.switchport = not match.no
            drop = ("ip ", "medium", "vrf") if settings.switchport else ("switchport",)
            settings.lines = {k: v for k, v in settings.lines.items() if not k.startswith(drop)}
            settings.shutdown = None


@command(MODE, "[no] switchport mode {mode: access | trunk}", "no switchport mode")
@command(MODE, "[no] switchport access vlan <vlan:1-4094>", "no switchport access vlan")
@command(MODE, "[no] switchport trunk native vlan <vlan:1-4094>")
@command(MODE, "[no] switchport trunk allowed vlan <vlans:vlans>")
def switched_line(cli: Cli, match: Match) -> None:
    """Layer 2 settings; a routed port has none."""
    for name, settings in _ports(cli):
        if not settings.switchport:
            raise CliError(f"{name}: the command needs a switched port (switchport)")
    choice = str(match.values.get("mode", ""))
    words = [word for word in match.words if word not in ("no", choice)]
    _set_line(cli, " ".join(words), match)


def _with_members(cli: Cli, targets: list[tuple[str, Interface]]) -> list[Interface]:
    """The targets, and members of those that are port channels: these do what it does.

    CliError for what a member is told otherwise than its channel, by itself.
    """
    for name, settings in targets:
        if settings.channel is not None:
            raise CliError(f"{name}: port is a member of port-channel{settings.channel}")
    interfaces = cli.config.interfaces
    members = [interfaces[one] for name, _ in targets for one in cli.config.members(name)]
    return [*(settings for _, settings in targets), *members]


def _set_line(cli: Cli, slot: str, match: Match) -> None:
    for _, settings in _targets(cli):
        if match.no:
            settings.lines.pop(slot, None)
        else:
            settings.lines[slot] = match.text


@command(MODE, "[no] shutdown")
def shutdown(cli: Cli, match: Match) -> None:
    """Administrative state."""
    for _, settings in _targets(cli):
        settings.shutdown = not match.no


@command(MODE, "mtu <mtu:576-9216>", "no mtu [<mtu:576-9216>]")
def mtu(cli: Cli, match: Match) -> None:
    """A switched port takes the default or the system's jumbo MTU only."""
    value = DEFAULT_MTU if match.no else match.integer("mtu")
    jumbo = next(
        (int(text.split()[-1]) for text in cli.config.lines if text.startswith("system jumbomtu")),
        JUMBO_MTU,
    )
    for name, settings in _targets(cli):
        ethernet = name.startswith(PORTS)
        if ethernet and settings.switchport and value not in (DEFAULT_MTU, jumbo):
            raise CliError(
                f"{name}: MTU on L2 interfaces can only be set to default or system-jumboMTU"
            )
    for settings in _with_members(cli, _targets(cli)):
        settings.mtu = value


@command(
    MODE,
    "priority-flow-control mode {mode: auto | off}",
    "priority-flow-control mode {mode: on} [send-tlv]",
    "no priority-flow-control mode [(auto | off | on [send-tlv])]",
)
def pfc_mode(cli: Cli, match: Match) -> None:
    """PFC and link-level pause exclude each other."""
    mode = "auto" if match.no else match.string("mode")
    for name, settings in _ports(cli):
        if mode == "on" and (settings.flowcontrol_receive or settings.flowcontrol_send):
            raise CliError(f"{name}: flowcontrol is enabled, PFC cannot be")
    for settings in _with_members(cli, _ports(cli)):
        settings.pfc_mode = cast(Literal["auto", "on", "off"], mode)
        settings.pfc_send_tlv = not match.no and match.has("send-tlv")


@command(
    MODE,
    "priority-flow-control watch-dog-interval (on [disable-action] | off)",
    "no priority-flow-control watch-dog-interval [(on [disable-action] | off)]",
)
def watchdog_interval(cli: Cli, match: Match) -> None:
    """Whether the PFC watchdog watches this port."""
    state: Literal["on", "on disable-action", "off"] | None = None
    if not match.no:
        state = "on disable-action" if match.has("disable-action") else "on"
        state = "off" if match.has("off") else state
    for settings in _with_members(cli, _ports(cli)):
        settings.watchdog = state


@command(
    MODE,
    "priority-flow-control watch-dog interface-multiplier <multiplier:0-10>",
    "no priority-flow-control watch-dog interface-multiplier [<multiplier:0-10>]",
)
def watchdog_multiplier(cli: Cli, match: Match) -> None:
    """The shutdown multiplier of one port."""
    for _, settings in _ports(cli):
        settings.watchdog_multiplier = None if match.no else match.integer("multiplier")


@command(MODE, "flowcontrol {side: receive | send} {state: on | off}")
@command(MODE, "no flowcontrol {side: receive | send} [(on | off)]")
def flowcontrol(cli: Cli, match: Match) -> None:
    """Link-level pause (IEEE 802.3x)."""
    on = not match.no and match.string("state") == "on"
    for name, settings in _ports(cli):
        if on and settings.pfc_mode == "on":
            raise CliError(f"{name}: priority-flow-control is on, flowcontrol cannot be")
    for settings in _with_members(cli, _ports(cli)):
        if match.string("side") == "receive":
            settings.flowcontrol_receive = on
        else:
            settings.flowcontrol_send = on


@command(MODE, "[no] service-policy [type qos] input <policy:word> [no-stats]")
def qos_input(cli: Cli, match: Match) -> None:
    """Classification of what comes in."""
    policy = match.string("policy")
    if not match.no and policy not in cli.config.qos_policies:
        raise CliError(f"policy-map type qos {policy} does not exist")
    ports = _ports(cli)
    for name, settings in ports:
        attach(f"{name}: qos input", settings.qos_in, policy, remove=match.no)
    for _, settings in ports:
        settings.qos_in = "" if match.no else policy
        _no_stats(settings, "qos input", match)


@command(MODE, "[no] service-policy type queuing {way: input | output} <policy:word> [no-stats]")
def queuing(cli: Cli, match: Match) -> None:
    """Egress queues, or the ingress buffers of no-drop classes."""
    policy, way = match.string("policy"), match.string("way")
    if not match.no:
        is_ingress(cli.config, policy, way)
    ports = _ports(cli)
    attribute = "queuing_in" if way == "input" else "queuing_out"
    for name, settings in ports:
        attach(f"{name}: queuing {way}", getattr(settings, attribute), policy, remove=match.no)
    for _, settings in ports:
        setattr(settings, attribute, "" if match.no else policy)
        _no_stats(settings, f"queuing {way}", match)


def _no_stats(settings: Interface, where: str, match: Match) -> None:
    settings.no_stats.discard(where)
    if match.has("no-stats") and not match.no:
        settings.no_stats.add(where)
