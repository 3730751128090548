"""``show version``, ``show inventory``, LLDP, and other facts about the switch.

Layouts as in recorded sessions of Nexus 9000 switches and ntc-templates' test
files for NX-OS (show version, show inventory, show lldp neighbors, show feature).
"""

from __future__ import annotations

import time

from fabric.twin.cli.grammar import Match
from fabric.twin.nxos.cli import EXEC, Cli, CliError, command
from fabric.twin.nxos.config_global import FEATURES
from fabric.twin.nxos.running import BIOS, VERSION, interface_key
from fabric.twin.nxos.show_config import clock
from fabric.twin.nxos.switch_view import short_name

_COPYRIGHT = """\
Cisco Nexus Operating System (NX-OS) Software (emulated)
TAC support: http://www.cisco.com/tac
"""


@command(EXEC, "show version")
def show_version(cli: Cli, _match: Match) -> str:
    """Software, hardware, name, uptime."""
    switch = cli.switch
    uptime = int(time.time() - switch.booted_at_s)
    days, rest = divmod(uptime, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"""{_COPYRIGHT}
Software
  BIOS: version {BIOS}
  NXOS: version {VERSION}
  BIOS compile time:  01/04/2024
  NXOS image file is: bootflash:///nxos64-cs.{VERSION.replace("(", ".").replace(")", "")}.F.bin
  NXOS compile time:  12/3/2024 12:00:00 [12/18/2024 05:25:10]

Hardware
  cisco Nexus9000 {switch.model.removeprefix("N9K-")} Chassis
  Intel(R) Xeon(R) CPU D-1528 @ 1.90GHz with 24571020 kB of memory.
  Processor Board ID {switch.serial}
  Device name: {cli.config.hostname}
  bootflash:  115805708 kB

Kernel uptime is {days} day(s), {hours} hour(s), {minutes} minute(s), {seconds} second(s)

Last reset at 102455 usecs after {clock(switch.booted_at_s)}
  Reason: Reset Requested by CLI command reload
  System version: {VERSION}
  Service:

plugin
  Core Plugin, Ethernet Plugin

Active Package(s):
"""


@command(EXEC, "show inventory")
def show_inventory(cli: Cli, _match: Match) -> str:
    """Chassis and its serial number."""
    model, serial = cli.switch.model, cli.switch.serial
    chassis = f"Nexus9000 {model.removeprefix('N9K-')} Chassis"
    return (
        f'NAME: "Chassis",  DESCR: "{chassis}"\n'
        f"PID: {model:<20},  VID: V01 ,  SN: {serial}\n\n"
        f'NAME: "Slot 1",  DESCR: "Ethernet Module"\n'
        f"PID: {model:<20},  VID: V01 ,  SN: {serial}\n"
    )


@command(EXEC, "show hostname")
def show_hostname(cli: Cli, _match: Match) -> str:
    """The switch's name."""
    return f"{cli.config.hostname}\n"


@command(EXEC, "show clock")
def show_clock(_cli: Cli, _match: Match) -> str:
    """The switch's time."""
    return time.strftime("%H:%M:%S.000 %Z %a %b %d %Y\nTime source is NTP\n")


@command(EXEC, "show feature")
def show_feature(cli: Cli, _match: Match) -> str:
    """Which features are enabled."""
    lines = ["Feature Name          Instance  State   ", "--------------------  --------  --------"]
    for name in FEATURES:
        state = "enabled" if name in cli.config.features else "disabled"
        lines.append(f"{name:<22}{1:<10}{state}")
    return "\n".join([*lines, ""])


@command(EXEC, "show lldp neighbors [interface <name:interface>]")
def show_lldp(cli: Cli, match: Match) -> str:
    """Who is at the other end of each cable; NICs announce host name and interface."""
    if "lldp" not in cli.config.features:
        raise CliError("feature lldp is not enabled")
    lines = [
        "Capability codes:",
        "  (R) Router, (B) Bridge, (T) Telephone, (C) DOCSIS Cable Device",
        "  (W) WLAN Access Point, (P) Repeater, (S) Station, (O) Other",
        "Device ID            Local Intf      Hold-time  Capability  Port ID  ",
    ]
    wanted, count = match.values.get("name"), 0
    for name in sorted(cli.config.interfaces, key=interface_key):
        peer = cli.switch.heard_on(name)
        if peer is None or wanted not in (None, name) or not cli.switch.link_up(name):
            continue
        is_switch = peer.device in cli.switch.site.topology.switches
        port = short_name(peer.port) if is_switch else peer.port
        kind = "BR" if is_switch else "S"
        tail = f"{short_name(name):<16}{120:<11}{kind:<12}{port:<14}"
        if len(peer.device) < 20:
            lines.append(f"{peer.device:<21}{tail}")
        else:
            lines += [peer.device, f"{'':<21}{tail}"]
        count += 1
    return "\n".join([*lines, f"Total entries displayed: {count}", ""])


@command(EXEC, "show users")
def show_users(cli: Cli, _match: Match) -> str:
    """Who is logged in."""
    return f"NAME     LINE         TIME         IDLE          PID COMMENT\n{cli.switch.user}\n"
