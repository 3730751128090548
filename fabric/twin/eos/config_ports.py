"""Configuration commands of interfaces and qos profiles, and of the queues in both.

Syntax: Arista EOS User Manual, "Quality of Service" and "DCBX and Flow Control";
aristanetworks/avd, templates ethernet-interfaces, qos-profiles and
ethernet-interface-uc-tx-queues.
"""

from __future__ import annotations

from fabric.twin.cli.grammar import Match
from fabric.twin.eos.cli import CONFIG, SESSION, Cli, CliError, command
from fabric.twin.eos.settings import setting, switchable

IF = "if"
PROFILE = "qos-profile"
BOTH = (IF, PROFILE)
MAX_MTU = 9214

setting(IF, "description", "description <text:line>", short="description")
switchable(IF, "shutdown", "shutdown", on=False)
setting(IF, "mtu", f"mtu <mtu:68-{MAX_MTU}>", short="mtu", default="mtu 1500")
setting(IF, "speed", "speed (auto | 10g | 25g | 40g-4 | 100g-4 | forced 10000full)", short="speed")
setting(IF, "vrf", "vrf <name:word>", short="vrf")
setting(IF, "channel-group", "channel-group <group:1-2000> mode (on | active | passive)")
setting(IF, "switchport mode", "switchport mode (access | trunk)", short="switchport mode")
setting(IF, "switchport access vlan", "switchport access vlan <vlan:1-4094>")
setting(IF, "switchport trunk allowed", "switchport trunk allowed vlan <vlans:vlans>")
setting(IF, "spanning-tree portfast", "spanning-tree portfast [(edge | network)]")
setting(IF, "dcbx mode", "dcbx mode (ieee | cee)", short="dcbx mode")
for _way in ("send", "receive"):
    setting(
        IF,
        f"flowcontrol {_way}",
        f"flowcontrol {_way} (on | off)",
        short=f"flowcontrol {_way}",
        default=f"flowcontrol {_way} off",
    )


@command(IF, "[(no | default)] switchport")
def switchport(cli: Cli, match: Match) -> None:
    """Ports switch by default; a routed one has no settings of VLANs."""
    for block in cli.blocks():
        block.lines.pop("switchport", None)
        if match.no:
            block.lines = {k: v for k, v in block.lines.items() if not k.startswith("switchport")}
            block.lines["switchport"] = "no switchport"


def _routed(cli: Cli, _match: Match) -> None:
    for path, block in zip(cli.frame.target, cli.blocks(), strict=True):
        name = path.removeprefix("interface ")
        if name.startswith("Ethernet") and "switchport" not in block.lines:
            raise CliError(f"{name}: ip configuration needs a routed port (no switchport)")


setting(
    IF,
    "ip address",
    "ip address (<address:prefix> | unnumbered <of:interface>)",
    short="ip address",
    check=_routed,
)
setting(IF, "ip ospf network", "ip ospf network point-to-point")
setting(IF, "ip ospf area", "ip ospf area <area:address>", short="ip ospf area")


# --- Classification and profiles.


@command(BOTH[0], "qos trust (cos | dscp)", "(no | default) qos trust [(cos | dscp)]")
@command(BOTH[1], "qos trust (cos | dscp)", "(no | default) qos trust [(cos | dscp)]")
def trust(cli: Cli, match: Match) -> None:
    """``no qos trust`` is a setting: everything then is in the port's own class."""
    for block in cli.blocks():
        block.lines.pop("qos trust", None)
        if match.words[0] != "default":
            block.lines["qos trust"] = "no qos trust" if match.no else match.text


setting(BOTH, "qos cos", "qos cos <cos:0-7>", short="qos cos")
setting(BOTH, "qos dscp", "qos dscp <dscp:0-63>", short="qos dscp")
setting(IF, "service-profile", "service-profile <name:word>", short="service-profile")
setting(
    BOTH,
    "service-policy type qos input",
    "service-policy type qos input <name:word>",
    short="service-policy type qos input",
)
setting(PROFILE, "shape rate", "shape rate <rate:1-400000000> [(kbps | percent)]")


@command(CONFIG, "qos profile <name:word>", "no qos profile <name:word>")
@command(SESSION, "qos profile <name:word>", "no qos profile <name:word>")
def qos_profile(cli: Cli, match: Match) -> None:
    """Settings that many interfaces share."""
    header = f"qos profile {match.string('name')}"
    if match.no:
        cli.config.blocks.pop(header, None)
        return
    cli.config.below(header)
    cli.go(PROFILE, header)


# --- Priority flow control.

_WATCHDOG = "priority-flow-control pause watchdog"
_PRIORITY = "priority-flow-control priority"
setting(BOTH, "priority-flow-control", "priority-flow-control on", short="priority-flow-control")
setting(
    BOTH,
    f"{_PRIORITY} {{priority}}",
    f"{_PRIORITY} <priority:0-7> (no-drop | drop)",
    short=f"{_PRIORITY} <priority:0-7>",
    default=f"{_PRIORITY} {{priority}} drop",
)
setting(BOTH, _WATCHDOG, _WATCHDOG)
setting(
    BOTH,
    f"{_WATCHDOG} port action",
    f"{_WATCHDOG} port action (drop | notify-only)",
    short=f"{_WATCHDOG} port action",
)


def _polls_often_enough(_cli: Cli, match: Match) -> None:
    """A polling interval is half of the shorter time at most."""
    poll = match.values.get("poll")
    times = (match.values["timeout"], match.values["recovery"])
    if isinstance(poll, float) and poll > min(float(str(t)) for t in times) / 2:
        raise CliError("Polling interval must be at most half of timeout and recovery time")


setting(
    BOTH,
    f"{_WATCHDOG} port timer",
    f"{_WATCHDOG} port timer timeout <timeout:timeout> polling-interval (auto | <poll:polling>) "
    "recovery-time <recovery:timeout> [forced]",
    short=f"{_WATCHDOG} port timer",
    check=_polls_often_enough,
)

# --- Queues. On these chips unicast and multicast have queues of their own.

TXQ, MC_TXQ = "txq", "txq-mc"
_UNITS = "(bytes | kbytes | mbytes | segments | microseconds | milliseconds)"


@command(IF, "uc-tx-queue <queue:0-7>", "mc-tx-queue <queue:0-7>")
@command(PROFILE, "uc-tx-queue <queue:0-7>", "mc-tx-queue <queue:0-7>")
def queue(cli: Cli, match: Match) -> None:
    """The settings of one transmit queue."""
    cli.go(TXQ if match.words[0] == "uc-tx-queue" else MC_TXQ, match.text)


@command(IF, "(no | default) (uc-tx-queue | mc-tx-queue) <queue:0-7>")
@command(PROFILE, "(no | default) (uc-tx-queue | mc-tx-queue) <queue:0-7>")
def no_queue(cli: Cli, match: Match) -> None:
    """Back to factory settings."""
    for block in cli.blocks():
        block.blocks.pop(f"{match.words[1]} {match.integer('queue')}", None)


@command(IF, "tx-queue <queue:0-7>")
@command(PROFILE, "tx-queue <queue:0-7>")
def common_queue(_cli: Cli, _match: Match) -> None:
    """Other chips have one queue for both."""
    raise CliError("Unavailable command (not supported on this hardware platform)")


@command(TXQ, "priority strict", "no priority [strict]", "default priority [strict]")
@command(MC_TXQ, "priority strict", "no priority [strict]", "default priority [strict]")
def priority(cli: Cli, match: Match) -> None:
    """Strict is the default; ``no priority`` makes it a round-robin queue."""
    for block in cli.blocks():
        block.lines.pop("priority", None)
        if match.words[0] != "default":
            block.lines["priority"] = "no priority" if match.no else match.text


setting(
    (TXQ, MC_TXQ),
    "bandwidth",
    "bandwidth percent <percent:1-100>",
    "bandwidth guaranteed percent <percent:1-100>",
    "bandwidth guaranteed <rate:8-60000000>",
    short="bandwidth [(percent | guaranteed)]",
)
setting((TXQ, MC_TXQ), "shape rate", "shape rate <rate:1-400000000> [(kbps | percent)]")


def _thresholds(_cli: Cli, match: Match) -> None:
    units = [word for word in match.words if word.endswith(("bytes", "segments", "seconds"))]
    if len(set(units)) > 1:
        raise CliError("Minimum and maximum threshold must have the same unit")
    if match.integer("low") > match.integer("high"):
        raise CliError("Minimum threshold must not be greater than maximum threshold")


setting(
    TXQ,
    "random-detect ecn",
    f"random-detect ecn minimum-threshold <low:1-268435456> {_UNITS} "
    f"maximum-threshold <high:1-268435456> {_UNITS} "
    "[max-mark-probability <percent:1-100>] [weight <weight:0-15>]",
    short="random-detect ecn",
    check=_thresholds,
)


def _on_interface(cli: Cli, _match: Match) -> None:
    """Counting is a matter of a port, not of a profile."""
    if cli.frame.target[0].startswith("qos profile "):
        raise CliError("ECN counters cannot be enabled in a qos profile")


setting(TXQ, "random-detect ecn count", "random-detect ecn count", check=_on_interface)
