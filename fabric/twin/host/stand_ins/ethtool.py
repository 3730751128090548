"""``ethtool``: settings, pause, flags, driver and statistics of a port.

Shapes as ethtool 6.1 prints them over netlink. Statistics: names and the rule
that per-priority pause counters show only where PFC is enabled (and global ones
only where link pause is) from Linux Documentation/networking/device_drivers/
ethernet/mellanox/mlx5/counters.rst.
"""

from __future__ import annotations

import sys

from . import driver
from .dcbnl import Ice, dcbnl_of
from .files import PRIORITIES, Host, Nic, NicState, read_pairs
from .link import is_up

USAGE = "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n"
VERSION = "ethtool version 6.1"
NO_DEVICE = "netlink error: No such device\n"
QUERIES = {
    "-S": "statistics",
    "--statistics": "statistics",
    "-a": "pause",
    "--show-pause": "pause",
    "-i": "driver",
    "--driver": "driver",
    "--show-fec": "fec",
    "-A": "set_pause",
    "--pause": "set_pause",
    "--show-priv-flags": "flags",
    "--set-priv-flags": "set_flags",
}


def main(host: Host, arguments: list[str]) -> int:
    """Run the program; its exit status."""
    if arguments == ["--version"]:
        print(VERSION)
        return 0
    query, rest = "settings", list(arguments)
    if rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option not in QUERIES:
            return _unsupported(host, option, rest)
        query = QUERIES[option]
    if not rest or (not query.startswith("set_") and len(rest) > 1):
        sys.stderr.write(USAGE)
        return 1
    nic = host.nic(rest.pop(0))
    if nic is None:
        return _no_device(query)
    if query in CHANGES:
        return CHANGES[query](nic, rest)
    _print(query, nic, nic.state())
    return 0


def _print(query: str, nic: Nic, state: NicState) -> None:
    if query == "flags":
        show_flags(nic, state)
    elif query == "statistics":
        print("NIC statistics:")
        for name, value in statistics(nic, state):
            print(f"     {name}: {value}")
    elif query == "pause":
        print(f"Pause parameters for {nic.name}:")
        print("Autonegotiate:\toff")
        print(f"RX:\t\t{_on(state.rx_pause[0])}")
        print(f"TX:\t\t{_on(state.tx_pause[0])}\n")
    elif query == "driver":
        show_driver(nic)
    elif query == "fec":
        print(f"FEC parameters for {nic.name}:")
        print("Supported/Configured FEC encodings: Auto RS BaseR")
        print(f"Active FEC encoding: {'RS' if is_up(state) else 'Off'}")
    else:
        show_settings(nic, state)


def statistics(nic: Nic, state: NicState) -> list[tuple[str, str]]:
    """The counters that the driver shows in its present configuration."""
    paused = bool(state.rx_pause[0] or state.tx_pause[0])
    hidden = {
        f"{way}_prio{priority}_pause"
        for priority in range(PRIORITIES)
        if not state.pfc[priority]
        for way in ("rx", "tx")
    }
    if nic.family in ("bnxt", "irdma"):
        hidden = set()

    def shown(name: str) -> bool:
        if "_global_pause" in name:
            return paused
        base = name.removesuffix("_duration").removesuffix("_transition")
        return base not in hidden

    counters = read_pairs(f"{nic.folder}/counters")
    return [(name, value) for name, value in counters.items() if shown(name)]


def show_flags(nic: Nic, state: NicState) -> None:
    """``--show-priv-flags``: those of ice that concern us; others show other flags."""
    print(f"Private flags for {nic.name}:")
    names = {"link-down-on-close": 0, "fw-lldp-agent": int(not state.dcbx_os[0])}
    if nic.family != "irdma":
        names = {"rx_cqe_compress": 0}
    for name, on in names.items():
        print(f"{name:<22}: {_on(on)}")


def set_flags(nic: Nic, words: list[str]) -> int:
    """``--set-priv-flags IF FLAG on|off``."""
    rules = dcbnl_of(nic)
    good = len(words) == 2 and words[1] in ("on", "off")
    if not good or words[0] != "fw-lldp-agent" or not isinstance(rules, Ice):
        sys.stderr.write("netlink error: bit name not found\nnetlink error: Invalid argument\n")
        return 1
    with nic.edit() as state:
        rules.set_agent(state, on=words[1] == "on")
    return 0


def set_pause(nic: Nic, words: list[str]) -> int:
    """``-A IF [autoneg on|off] [rx on|off] [tx on|off]``; mlx5 has no pause autonegotiation."""
    wanted = {}
    while words:
        name = words.pop(0)
        value = words.pop(0) if words else ""
        if name not in ("autoneg", "rx", "tx") or value not in ("on", "off"):
            sys.stderr.write(USAGE)
            return 1
        wanted[name] = value == "on"
    if wanted.get("autoneg"):
        sys.stderr.write("netlink error: Invalid argument\n")
        return 1
    with nic.edit() as state:
        try:
            dcbnl_of(nic).set_pause(
                state,
                rx=wanted.get("rx", bool(state.rx_pause[0])),
                tx=wanted.get("tx", bool(state.tx_pause[0])),
            )
        except driver.Refused as refusal:
            sys.stderr.write(f"netlink error: {refusal}\n")
            return 1
    return 0


CHANGES = {"set_pause": set_pause, "set_flags": set_flags}


def show_driver(nic: Nic) -> None:
    """``ethtool -i``."""
    print(f"driver: {nic.facts.get('driver', 'mlx5_core')}")
    print(f"version: {nic.facts['driver_version']}")
    print(f"firmware-version: {nic.facts['firmware']}")
    print("expansion-rom-version: ")
    print(f"bus-info: {nic.facts['pci']}")
    for name, value in (
        ("statistics", "yes"),
        ("test", "yes"),
        ("eeprom-access", "no"),
        ("register-dump", "no"),
        ("priv-flags", "yes"),
    ):
        print(f"supports-{name}: {value}")


def show_settings(nic: Nic, state: NicState) -> None:
    """``ethtool IF``."""
    up = is_up(state)
    speed = f"{nic.facts['speed_mbps']}Mb/s" if up else "Unknown!"
    print(f"Settings for {nic.name}:")
    print("\tSupported ports: [ Backplane ]")
    print("\tSupported pause frame use: Symmetric")
    print("\tSupports auto-negotiation: Yes")
    print("\tAdvertised pause frame use: Symmetric")
    print("\tAdvertised auto-negotiation: Yes")
    print(f"\tSpeed: {speed}")
    print(f"\tDuplex: {'Full' if up else 'Unknown! (255)'}")
    print("\tAuto-negotiation: on")
    print("\tPort: Direct Attach Copper")
    print("\tPHYAD: 0")
    print("\tTransceiver: internal")
    print("\tSupports Wake-on: d")
    print("\tWake-on: d")
    print(f"\tLink detected: {'yes' if up else 'no'}")


def _on(value: int) -> str:
    return "on" if value else "off"


def _no_device(query: str) -> int:
    if query == "statistics":
        sys.stderr.write("Cannot get stats strings information: No such device\n")
        return 96
    if query == "driver":
        sys.stderr.write("Cannot get driver information: No such device\n")
        return 71
    sys.stderr.write(NO_DEVICE)
    if query == "settings":
        print("No data available")
        return 75
    return 1


def _unsupported(host: Host, option: str, rest: list[str]) -> int:
    """Options that ethtool has and this host's driver does not answer."""
    if len(option) == 2 and option[1] in "kgclTPu" and rest and host.nic(rest[0]):
        sys.stderr.write("netlink error: Operation not supported\n")
        return 1
    sys.stderr.write(USAGE)
    return 1
