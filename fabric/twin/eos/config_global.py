"""Configuration commands outside interfaces: a base configuration, and QoS for all ports.

Syntax: Arista EOS User Manual; aristanetworks/avd, templates of eos_cli_config_gen.
Lines that the emulator does not act on are kept as they would be printed.
"""

from __future__ import annotations

from fabric.twin.cli.grammar import Match
from fabric.twin.eos.cli import CONFIG, SESSION, Cli, CliError, command
from fabric.twin.eos.config import Block
from fabric.twin.eos.settings import setting, switchable

GLOBAL = (CONFIG, SESSION)
CREATED = ("Loopback", "Vlan", "Port-Channel")

setting(GLOBAL, "hostname", "hostname <name:word>", short="hostname")
setting(GLOBAL, "transceiver qsfp", "transceiver qsfp default-mode 4x10G")
setting(GLOBAL, "service routing", "service routing protocols model (multi-agent | ribd)")
setting(GLOBAL, "spanning-tree mode", "spanning-tree mode (mstp | rapid-pvst | none)")
setting(GLOBAL, "ip routing", "ip routing")
setting(GLOBAL, "ip route {to} {via}", "ip route <to:prefix> <via:address>")
setting(GLOBAL, "ip name-server {server}", "ip name-server [vrf <vrf:word>] <server:address>")
setting(GLOBAL, "ntp server {server}", "ntp server [vrf <vrf:word>] <server:address> [prefer]")
setting(GLOBAL, "logging host {host}", "logging [vrf <vrf:word>] host <host:address>")
setting(GLOBAL, "snmp-server location", "snmp-server location <text:line>")
setting(GLOBAL, "clock timezone", "clock timezone <zone:word>", short="clock timezone")
setting(
    GLOBAL,
    "username {user}",
    "username <user:word> privilege <level:0-15> role <role:word> "
    "(nopassword | secret sha512 <hash:word>)",
    short="username <user:word>",
)
setting(GLOBAL, "hardware counter feature ecn", "hardware counter feature ecn out")
switchable(GLOBAL, "aaa root", "aaa root", on=True)


def _block(mode: str, header: str, *lines: str) -> None:
    """A mode whose lines are kept as they are."""

    def enter(cli: Cli, match: Match) -> None:
        text = match.positive.removeprefix("default ")
        if match.words[0] in ("no", "default"):
            cli.config.blocks.pop(text, None)
            return
        cli.config.below(text)
        cli.go(mode, text)

    for place in GLOBAL:
        command.add(place, header, enter)
        command.add(place, f"(no | default) {header}", enter)
    for line in lines:
        setting(mode, line.partition(" <")[0] + " {value}" * ("<value" in line), line)


_block("vlan", "vlan <vlans:vlans>", "name <name:word>")
_block("vrf", "vrf instance <name:word>")
_block(
    "router-ospf",
    "router ospf <process:1-65535>",
    "router-id <id:address>",
    "max-lsa <value:0-100000>",
    "passive-interface <value:interface>",
)
_block(
    "class-map",
    "class-map type qos match-any <name:word>",
    "match ip access-group <value:word>",
    "match dscp <value:dscps>",
)
_block("api", "management api http-commands", "protocol http")
switchable("api", "shutdown", "shutdown", on=True)


@command(
    CONFIG,
    "policy-map type (qos | quality-of-service) <name:word>",
    "no policy-map type (qos | quality-of-service) <name:word>",
)
@command(
    SESSION,
    "policy-map type (qos | quality-of-service) <name:word>",
    "no policy-map type (qos | quality-of-service) <name:word>",
)
def policy_map(cli: Cli, match: Match) -> None:
    """``policy-map type quality-of-service NAME``; that is also how it is printed."""
    header = f"policy-map type quality-of-service {match.string('name')}"
    if match.no:
        cli.config.blocks.pop(header, None)
        return
    cli.config.below(header)
    cli.go("policy-map", header)


@command("policy-map", "[no] class <name:word>")
def policy_class(cli: Cli, match: Match) -> None:
    """A class of such a policy."""
    header = f"class {match.string('name')}"
    if match.no:
        for block in cli.blocks():
            block.blocks.pop(header, None)
        return
    for block in cli.blocks():
        block.below(header)
    cli.go("policy-map-class", header)


setting("policy-map-class", "set traffic-class", "set traffic-class <tc:0-7>")
setting("policy-map-class", "set dscp", "set dscp <dscp:0-63>")


@command(CONFIG, "interface <names:interfaces>")
@command(SESSION, "interface <names:interfaces>")
def interface(cli: Cli, match: Match) -> None:
    """``interface Et1-4``; logical interfaces come into being by it."""
    names = match.names("names")
    for name in names:
        if not cli.config.has_interface(name) and not name.startswith(CREATED):
            raise CliError("Interface does not exist")
        cli.config.below(f"interface {name}")
    cli.go("if", *(f"interface {name}" for name in names))


@command(CONFIG, "(no | default) interface <names:interfaces>")
@command(SESSION, "(no | default) interface <names:interfaces>")
def no_interface(cli: Cli, match: Match) -> None:
    """Physical interfaces go back to factory settings, logical ones go."""
    for name in match.names("names"):
        if not cli.config.has_interface(name):
            raise CliError("Interface does not exist")
        if name.startswith(CREATED) and match.no:
            del cli.config.blocks[f"interface {name}"]
        else:
            cli.config.blocks[f"interface {name}"] = Block()


# --- QoS: maps. EOS User Manual, "Quality of Service".


def default_traffic_class(dscp: int) -> int:
    """The map of a switch on which nobody has configured one."""
    return {0: 1, 1: 0}.get(dscp // 8, dscp // 8)


@command(
    CONFIG,
    "qos map dscp <dscps:dscps> to traffic-class <tc:0-7> [drop-precedence <precedence:0-2>]",
)
@command(
    SESSION,
    "qos map dscp <dscps:dscps> to traffic-class <tc:0-7> [drop-precedence <precedence:0-2>]",
)
def map_dscps(cli: Cli, match: Match) -> None:
    """Traffic classes of DSCPs; what is the default anyway is not kept."""
    tc, precedence = match.integer("tc"), match.values.get("precedence")
    for dscp in match.numbers("dscps"):
        cli.config.lines.pop(f"qos map dscp {dscp}", None)
        if tc != default_traffic_class(dscp) or precedence is not None:
            drop = "" if precedence is None else f" drop-precedence {precedence}"
            line = f"qos map dscp {dscp} to traffic-class {tc}{drop}"
            cli.config.lines[f"qos map dscp {dscp}"] = line


@command(CONFIG, "(no | default) qos map dscp <dscps:dscps> [to traffic-class <tc:0-7>]")
@command(SESSION, "(no | default) qos map dscp <dscps:dscps> [to traffic-class <tc:0-7>]")
def unmap_dscps(cli: Cli, match: Match) -> None:
    """Back to the default traffic class."""
    for dscp in match.numbers("dscps"):
        cli.config.lines.pop(f"qos map dscp {dscp}", None)


@command(CONFIG, "[(no | default)] qos map traffic-class <tcs:classes> to tx-queue <queue:0-7>")
@command(SESSION, "[(no | default)] qos map traffic-class <tcs:classes> to tx-queue <queue:0-7>")
def map_classes(cli: Cli, match: Match) -> None:
    """Queues of traffic classes; class 7 and queue 7 belong to each other."""
    queue = match.integer("queue")
    for tc in match.numbers("tcs"):
        if (tc == 7) != (queue == 7):
            raise CliError("Traffic-class 7 and tx-queue 7 are reserved for control traffic")
    for tc in match.numbers("tcs"):
        cli.config.lines.pop(f"qos map traffic-class {tc}", None)
        if match.words[0] == "qos" and tc != queue:
            line = f"qos map traffic-class {tc} to tx-queue {queue}"
            cli.config.lines[f"qos map traffic-class {tc}"] = line


setting(GLOBAL, "qos rewrite dscp", "qos rewrite dscp")

# --- PFC for all ports. EOS User Manual, "DCBX and Flow Control"; avd,
# priority-flow-control template.

_WATCHDOG = "priority-flow-control pause watchdog"
setting(GLOBAL, "priority-flow-control all", "priority-flow-control all off")
setting(
    GLOBAL,
    f"{_WATCHDOG} default timeout",
    f"{_WATCHDOG} default timeout <seconds:timeout>",
    short=f"{_WATCHDOG} default timeout",
)
setting(
    GLOBAL,
    f"{_WATCHDOG} default recovery-time",
    f"{_WATCHDOG} default recovery-time <seconds:timeout> [forced]",
    short=f"{_WATCHDOG} default recovery-time",
)
setting(
    GLOBAL,
    f"{_WATCHDOG} default polling-interval",
    f"{_WATCHDOG} default polling-interval (auto | <seconds:polling>)",
    short=f"{_WATCHDOG} default polling-interval",
)
setting(
    GLOBAL,
    f"{_WATCHDOG} action",
    f"{_WATCHDOG} action (drop | errdisable | no-drop)",
    short=f"{_WATCHDOG} action",
    default=f"{_WATCHDOG} action errdisable",
)

# --- Buffers of Trident chips. avd, platform-trident template and platform schema;
# ``ingress headroom`` with a number alone (bytes), the Gaudi networking guide.

_MMU = "platform trident mmu queue profile"
_UNIT = "[(bytes | cells)] <size:0-268435456>"


@command(CONFIG, f"{_MMU} <name:word>", f"no {_MMU} <name:word>")
@command(SESSION, f"{_MMU} <name:word>", f"no {_MMU} <name:word>")
def mmu_profile(cli: Cli, match: Match) -> None:
    """A profile of queue buffers; it does nothing before it is applied."""
    header = f"{_MMU} {match.string('name')}"
    if match.no:
        cli.config.blocks.pop(header, None)
        return
    cli.config.below(header)
    cli.go("mmu-profile", header)


setting(GLOBAL, f"{_MMU} apply", f"{_MMU} <name:word> apply")
setting(GLOBAL, "mmu headroom-pool", f"platform trident mmu headroom-pool limit {_UNIT}")
setting("mmu-profile", "ingress threshold", "ingress threshold <share:fraction>")
setting("mmu-profile", "ingress reserved", f"ingress reserved {_UNIT}", short="ingress reserved")
setting("mmu-profile", "ingress headroom", f"ingress headroom {_UNIT}", short="ingress headroom")
setting(
    "mmu-profile", "ingress resume", "ingress resume <size:0-268435456>", short="ingress resume"
)
_GROUP = "ingress priority-group"
setting(
    "mmu-profile", f"{_GROUP} {{group}} threshold", f"{_GROUP} <group:0-7> threshold <x:fraction>"
)
setting("mmu-profile", f"{_GROUP} {{group}} reserved", f"{_GROUP} <group:0-7> reserved {_UNIT}")
for _cast in ("unicast", "multicast"):
    _QUEUE = f"egress {_cast} queue"
    setting(
        "mmu-profile",
        f"{_QUEUE} {{queue}} threshold",
        f"{_QUEUE} <queue:0-7> threshold <share:fraction>",
    )
    setting("mmu-profile", f"{_QUEUE} {{queue}} reserved", f"{_QUEUE} <queue:0-7> reserved {_UNIT}")
