"""``ip``: links, addresses and routes of an emulated host (iproute2).

Shows what Ansible's facts and our modules read, in text and in JSON; sets MTU
and administrative state. Everything else is refused with the program's text.
"""

from __future__ import annotations

import sys

from . import driver, link
from .files import Host, Nic, read_text, write_text
from .registers import MTUS

VERSION = "ip utility, iproute2-6.1.0, libbpf 1.1.0"
OBJECTS = ("address", "link", "neighbor", "neighbour", "route")
LOOPBACK = {
    "ifindex": 1,
    "ifname": "lo",
    "flags": ["LOOPBACK", "UP", "LOWER_UP"],
    "mtu": 65536,
    "qdisc": "noqueue",
    "operstate": "UNKNOWN",
    "linkmode": "DEFAULT",
    "group": "default",
    "txqlen": 1000,
    "link_type": "loopback",
    "address": "00:00:00:00:00:00",
    "broadcast": "00:00:00:00:00:00",
}
FOREVER = 4294967295


def main(host: Host, arguments: list[str]) -> int:
    """Run the program; its exit status."""
    words = list(arguments)
    options = set()
    while words and words[0].startswith("-"):
        option = words.pop(0).lstrip("-")
        if option in ("V", "Version"):
            print(VERSION)
            return 0
        if option in ("family", "f") and words:
            option = {"inet": "4", "inet6": "6"}.get(words.pop(0), "0")
        options.add(
            {"json": "j", "details": "d", "brief": "br", "oneline": "o"}.get(option, option)
        )
    if not words:
        sys.stderr.write("Usage: ip [ OPTIONS ] OBJECT { COMMAND | help }\n")
        return 255
    typed = words.pop(0)
    matches = [name for name in OBJECTS if name.startswith(typed)]
    if not matches:
        sys.stderr.write(f'Object "{typed}" is unknown, try "ip help".\n')
        return 1
    kind = matches[0]
    command = words.pop(0) if words else "show"
    if kind == "route":
        return _route(host, command, options)
    if kind.startswith("neigh"):
        if "j" in options:
            print("[]")
        return 0
    if kind == "link" and command == "set":
        return _set_link(host, words)
    if command in ("show", "list", "lst", "ls", "sh", "s", "l"):
        return _show(host, kind, words, options)
    sys.stderr.write(f'Command "{command}" is unknown, try "ip {kind} help".\n')
    return 255


def link_facts(nic: Nic) -> dict[str, object]:
    """One link in the names of iproute2's JSON."""
    state = nic.state()
    no_carrier = ["NO-CARRIER"] if state.admin_up[0] and not state.carrier[0] else []
    return {
        "ifindex": int(nic.facts["index"]),
        "ifname": nic.name,
        "flags": [*no_carrier, "BROADCAST", "MULTICAST", *link.flags(state)],
        "mtu": nic.mtu,
        "qdisc": "mq",
        "operstate": "UP" if link.is_up(state) else "DOWN",
        "linkmode": "DEFAULT",
        "group": "default",
        "txqlen": 1000,
        "link_type": "ether",
        "address": nic.facts["mac"],
        "broadcast": "ff:ff:ff:ff:ff:ff",
    }


def addresses(host: Host, name: str) -> list[dict[str, object]]:
    """The IPv4 addresses of an interface in the names of iproute2's JSON."""
    if name == "lo":
        return [_address("127.0.0.1", 8, "host", "lo")]
    nic = host.nic(name)
    if nic is None or not nic.facts.get("address"):
        return []
    return [_address(nic.facts["address"], 16, "global", name)]


def _address(local: str, prefix: int, scope: str, label: str) -> dict[str, object]:
    return {
        "family": "inet",
        "local": local,
        "prefixlen": prefix,
        "scope": scope,
        "label": label,
        "valid_life_time": FOREVER,
        "preferred_life_time": FOREVER,
    }


def _show(host: Host, kind: str, words: list[str], options: set[str]) -> int:
    names = []
    secondary = False
    while words:
        word = words.pop(0)
        if word == "dev" and words:
            names.append(words.pop(0))
        elif word in ("up", "primary", "secondary"):
            secondary = secondary or word == "secondary"
        elif word in ("type", "master", "vrf", "group", "scope", "to") and words:
            words.pop(0)
        else:
            names.append(word)
    links: list[dict[str, object]] = [dict(LOOPBACK), *map(link_facts, host.nics())]
    for name in names:
        links = [entry for entry in links if entry["ifname"] == name]
        if not links:
            sys.stderr.write(f'Device "{name}" does not exist.\n')
            return 1
    for shown in links:
        nic = host.nic(str(shown["ifname"]))
        if "d" in options and nic is not None:
            shown.update(min_mtu=driver.MIN_MTU, max_mtu=driver.MAX_MTU)
            shown["parentbus"], shown["parentdev"] = "pci", nic.facts["pci"]
        if kind == "address":
            hide = secondary or "6" in options
            shown["addr_info"] = [] if hide else addresses(host, str(shown["ifname"]))
    if "j" in options:
        import json

        indent = 4 if {"p", "pretty"} & options else None
        print(json.dumps(links, indent=indent, separators=None if indent else (",", ":")))
        return 0
    for shown in links:
        _print_link(shown, options)
    return 0


def _print_link(shown: dict[str, object], options: set[str]) -> None:
    flags = shown["flags"]
    assert isinstance(flags, list)
    known = shown.get("addr_info", [])
    assert isinstance(known, list)
    if "br" in options:
        last = " ".join(f"{a['local']}/{a['prefixlen']}" for a in known)
        if "addr_info" not in shown:
            last = f"{shown['address']} <{','.join(flags)}>"
        print(f"{shown['ifname']:<16} {shown['operstate']:<14} {last} ")
        return
    head = (
        f"{shown['ifindex']}: {shown['ifname']}: <{','.join(flags)}> mtu {shown['mtu']} "
        f"qdisc {shown['qdisc']} state {shown['operstate']}"
    )
    if "addr_info" in shown:
        print(f"{head} group {shown['group']} qlen {shown['txqlen']}")
    else:
        print(f"{head} mode {shown['linkmode']} group {shown['group']} qlen {shown['txqlen']}")
    details = f" minmtu {shown['min_mtu']} maxmtu {shown['max_mtu']}" if "min_mtu" in shown else ""
    print(f"    link/{shown['link_type']} {shown['address']} brd {shown['broadcast']}{details}")
    for entry in known:
        print(
            f"    inet {entry['local']}/{entry['prefixlen']} scope {entry['scope']} "
            f"{entry['label']}\n       valid_lft forever preferred_lft forever"
        )


def _set_link(host: Host, words: list[str]) -> int:
    if words and words[0] == "dev":
        words.pop(0)
    name = words.pop(0) if words else ""
    nic = host.nic(name)
    if nic is None:
        sys.stderr.write(f'Cannot find device "{name}"\n' if name else "Not enough information\n")
        return 1
    while words:
        word = words.pop(0)
        if word in ("up", "down"):
            with nic.edit() as state:
                state.admin_up = [int(word == "up")]
                link.show(nic, state)
        elif word == "mtu" and words:
            status = _set_mtu(nic, words.pop(0))
            if status:
                return status
        elif word in ("txqueuelen", "alias", "group") and words:
            words.pop(0)
        else:
            sys.stderr.write(f'Error: either "dev" is duplicate, or "{word}" is a garbage.\n')
            return 255
    return 0


def _set_mtu(nic: Nic, text: str) -> int:
    if not text.isdigit():
        sys.stderr.write(f'Error: argument "{text}" is wrong: Invalid "mtu" value\n\n')
        return 255
    mtu = int(text)
    low, high = MTUS.get(nic.family, (driver.MIN_MTU, driver.MAX_MTU))
    if mtu < low:
        sys.stderr.write("Error: mtu less than device minimum.\n")
        return 2
    if mtu > high:
        sys.stderr.write("Error: mtu greater than device maximum.\n")
        return 2
    write_text(f"{nic.net}/mtu", f"{mtu}\n")
    return 0


def _route(host: Host, command: str, options: set[str]) -> int:
    if command == "get":
        sys.stderr.write("RTNETLINK answers: Network is unreachable\n")
        return 2
    if "6" in options or "j" in options:
        if "j" in options:
            print("[]")
        return 0
    for nic in host.nics():
        address = nic.facts.get("address", "")
        if address and read_text(f"{nic.net}/operstate").strip() == "up":
            first, second, *_ = address.split(".")
            print(f"{first}.{second}.0.0/16 dev {nic.name} proto kernel scope link src {address} ")
    return 0
