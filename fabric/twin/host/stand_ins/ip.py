"""``ip``: links, addresses and routes of an emulated host (iproute2).

Shows what Ansible's facts and our modules read, in text and in JSON; sets MTU and
administrative state, makes bonds and their members. Everything else is refused with the
program's text.
"""

from __future__ import annotations

import sys

from . import bonds, driver, link
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
    if kind == "link" and command in _LINK_COMMANDS:
        return _LINK_COMMANDS[command](host, words)
    if command in ("show", "list", "lst", "ls", "sh", "s", "l"):
        return _show(host, kind, words, options)
    sys.stderr.write(f'Command "{command}" is unknown, try "ip {kind} help".\n')
    return 255


def link_facts(nic: Nic) -> dict[str, object]:
    """One link in the names of iproute2's JSON."""
    state = nic.state()
    bond = bonds.bond_of(nic)
    slave = ["SLAVE"] if bond else []
    no_carrier = ["NO-CARRIER"] if state.admin_up[0] and not state.carrier[0] else []
    return {
        "ifindex": int(nic.facts["index"]),
        "ifname": nic.name,
        "flags": [*no_carrier, "BROADCAST", "MULTICAST", *slave, *link.flags(state)],
        "mtu": nic.mtu,
        "qdisc": "mq",
        **({"master": bond} if bond else {}),
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
    above = [bonds.bond_facts(host, bond) for bond in bonds.bonds(host)]
    links: list[dict[str, object]] = [dict(LOOPBACK), *map(link_facts, host.nics()), *above]
    for name in names:
        links = [entry for entry in links if entry["ifname"] == name]
        if not links:
            sys.stderr.write(f'Device "{name}" does not exist.\n')
            return 1
    for shown in links:
        if "d" in options:
            shown.update(_details(host, str(shown["ifname"])))
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


def _details(host: Host, name: str) -> dict[str, object]:
    """What ``-d`` adds to a link."""
    nic = host.nic(name)
    if nic is None:
        return bonds.bond_details(host, name) if name in bonds.bonds(host) else {}
    member = bonds.member_details(nic) if bonds.bond_of(nic) else {}
    device = {"parentbus": "pci", "parentdev": nic.facts["pci"]}
    return {"min_mtu": driver.MIN_MTU, "max_mtu": driver.MAX_MTU, **device, **member}


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
    master = f" master {shown['master']}" if "master" in shown else ""
    head = (
        f"{shown['ifindex']}: {shown['ifname']}: <{','.join(flags)}> mtu {shown['mtu']} "
        f"qdisc {shown['qdisc']}{master} state {shown['operstate']}"
    )
    if "addr_info" in shown:
        print(f"{head} group {shown['group']} qlen {shown['txqlen']}")
    else:
        print(f"{head} mode {shown['linkmode']} group {shown['group']} qlen {shown['txqlen']}")
    details = f" minmtu {shown['min_mtu']} maxmtu {shown['max_mtu']}" if "min_mtu" in shown else ""
    print(f"    link/{shown['link_type']} {shown['address']} brd {shown['broadcast']}{details}")
    if linkinfo := shown.get("linkinfo"):
        print(f"    {_kind_line(linkinfo)}")
    for entry in known:
        print(
            f"    inet {entry['local']}/{entry['prefixlen']} scope {entry['scope']} "
            f"{entry['label']}\n       valid_lft forever preferred_lft forever"
        )


def _kind_line(linkinfo: object) -> str:
    """What ``ip -d`` prints of a bond or of a member: ``bond mode 802.3ad miimon 0 ...``."""
    assert isinstance(linkinfo, dict)
    slave = "info_slave_kind" in linkinfo
    data = linkinfo["info_slave_data" if slave else "info_data"]
    return " ".join(["bond_slave" if slave else "bond", *(f"{k} {v}" for k, v in data.items())])


def _add_link(host: Host, words: list[str]) -> int:
    """``ip link add [name] NAME type bond [mode MODE]``; other kinds are none of ours."""
    options = dict(zip(words[1::2], words[2::2], strict=False))
    if words[:1] == ["name"]:
        return _add_link(host, words[1:])
    if not words or options.pop("type", "") != "bond":
        sys.stderr.write("RTNETLINK answers: Operation not supported\n")
        return 2
    name, mode = words[0], options.pop("mode", bonds.MODES[0])
    mode = bonds.MODES[int(mode)] if mode.isdigit() and int(mode) < len(bonds.MODES) else mode
    if mode not in bonds.MODES:
        sys.stderr.write(f'Error: argument "{mode}" is wrong: invalid mode\n\n')
        return 255
    if name == "lo" or host.nic(name) is not None or name in bonds.bonds(host):
        sys.stderr.write("RTNETLINK answers: File exists\n")
        return 2
    bonds.add(host, name, mode)
    return 0


def _delete_link(host: Host, words: list[str]) -> int:
    name = next((word for word in words if word not in ("dev", "type", "bond")), "")
    if name in bonds.bonds(host):
        bonds.remove(host, name)
        return 0
    if host.nic(name) is not None or name == "lo":
        sys.stderr.write("RTNETLINK answers: Operation not supported\n")
        return 2
    sys.stderr.write(f'Cannot find device "{name}"\n')
    return 1


def _set_bond(host: Host, bond: str, words: list[str]) -> int:
    while words:
        word = words.pop(0)
        if word == "mtu" and words:
            text = words.pop(0)
            if status := _refused_mtu(text, bonds.MIN_MTU, bonds.MAX_MTU):
                return status
            bonds.set_mtu(host, bond, int(text))
        elif word not in ("up", "down"):
            sys.stderr.write(f'Error: either "dev" is duplicate, or "{word}" is a garbage.\n')
            return 255
    return 0


def _enslave(nic: Nic, bond: str) -> int:
    if bond not in bonds.bonds(nic.host):
        sys.stderr.write(f'Error: argument "{bond}" is wrong: Device does not exist\n\n')
        return 255
    if nic.state().admin_up[0]:
        sys.stderr.write("Error: Device can not be enslaved while up.\n")
        return 2
    bonds.enslave(nic, bond)
    return 0


def _set_link(host: Host, words: list[str]) -> int:
    if words and words[0] == "dev":
        words.pop(0)
    name = words.pop(0) if words else ""
    if name in bonds.bonds(host):
        return _set_bond(host, name, words)
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
        elif word == "nomaster":
            bonds.release(nic)
        elif word == "master" and words:
            status = _enslave(nic, words.pop(0))
            if status:
                return status
        elif word in ("txqueuelen", "alias", "group") and words:
            words.pop(0)
        else:
            sys.stderr.write(f'Error: either "dev" is duplicate, or "{word}" is a garbage.\n')
            return 255
    return 0


def _set_mtu(nic: Nic, text: str) -> int:
    low, high = MTUS.get(nic.family, (driver.MIN_MTU, driver.MAX_MTU))
    if status := _refused_mtu(text, low, high):
        return status
    write_text(f"{nic.net}/mtu", f"{int(text)}\n")
    return 0


def _refused_mtu(text: str, low: int, high: int) -> int:
    """Why a device takes no such MTU, as a status; 0 where it does."""
    if not text.isdigit():
        sys.stderr.write(f'Error: argument "{text}" is wrong: Invalid "mtu" value\n\n')
        return 255
    if int(text) < low:
        sys.stderr.write("Error: mtu less than device minimum.\n")
        return 2
    if int(text) > high:
        sys.stderr.write("Error: mtu greater than device maximum.\n")
        return 2
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


_LINK_COMMANDS = {
    "add": _add_link,
    "set": _set_link,
    "delete": _delete_link,
    "del": _delete_link,
}
