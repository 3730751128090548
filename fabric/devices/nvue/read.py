"""From a switch's outputs to what it does.

Defaults of profiles and ports: CumulusNetworks/docs, Cumulus Linux 5.14, "Quality
of Service"; the default MTU of front ports is 9216 ("Switch Port Attributes").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from fabric.devices.base import Outputs, ReadError, Target, understood
from fabric.devices.nvue import tree as trees
from fabric.devices.nvue.names import is_physical, order
from fabric.devices.nvue.ports import PortReader
from fabric.devices.nvue.tree import Tree
from fabric.qos import DeviceQos, Neighbor, PortFacts, PortQos

APPLIED = "nv config show -r applied -o json"
STARTUP = "nv config show -r startup -o json"
SYSTEM = "nv show system -o json"
HARDWARE = "nv show platform hardware -o json"
LLDP = "sudo lldpctl -f json"

_FEC: dict[str, Literal["none", "fc", "rs"]] = {"off": "none", "baser": "fc", "rs": "rs"}

COMMANDS = (APPLIED, STARTUP, SYSTEM, HARDWARE, LLDP)


def applied_tree(outputs: Outputs) -> Tree:
    """The applied configuration; ReadError without it, for nothing is known then."""
    tree = trees.parse(outputs.get(APPLIED, ""), APPLIED)
    if not trees.get(tree, "interface"):
        raise ReadError(f"'{APPLIED}' shows no interface")
    return tree


def read(target: Target, outputs: Outputs) -> DeviceQos:
    """What the switch does on every front port of its configuration.

    Raises ReadError where an output is none of NVUE.
    """
    tree = applied_tree(outputs)
    unread: list[str] = []
    system, hardware = (
        understood(outputs, command, "version", partial(_json, command), unread) or {}
        for command in (SYSTEM, HARDWARE)
    )
    model = _shown(hardware, "model", "product-name")
    firmware = _shown(system, "build", "product-release")
    serial = _shown(hardware, "serial-number")
    for name, shown in (("model", model), ("firmware", firmware), ("serial", serial)):
        if not shown:
            unread.append(f"{name}: not in '{SYSTEM}' or '{HARDWARE}'")
    reader = PortReader(tree, unread)
    names = sorted(filter(is_physical, trees.get(tree, "interface")), key=order)
    ports = tuple(reader.port(name) for name in names)
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="nvue",
        ports=ports,
        model=model,
        firmware=firmware,
        serial=serial,
        config_sha256=trees.sha256(tree),
        saved=_saved(outputs, tree, unread),
        neighbors=understood(outputs, LLDP, "neighbours", _neighbors, unread),
        unread=tuple(dict.fromkeys(unread)),
        facts=tuple(_facts(tree, port) for port in ports),
    )


def _facts(tree: Tree, port: PortQos) -> PortFacts:
    """What is configured: FEC that is not is negotiated."""
    return PortFacts(
        port.name,
        admin_up=trees.value(tree, "interface", port.name, "link", "state") != "down",
        fec=_FEC.get(trees.value(tree, "interface", port.name, "link", "fec"), "auto"),
        pfc_mode="on" if port.pfc_priorities else "off",
    )


def _shown(facts: Mapping[str, Any], *names: str) -> str:
    """The first of these that is shown; empty for none."""
    values = (facts.get(name) for name in names)
    return next((str(shown) for shown in values if shown and shown != "N/A"), "")


def _json(command: str, text: str) -> Mapping[str, Any]:
    try:
        data, _ = json.JSONDecoder().raw_decode(text, max(text.find("{"), 0))
    except ValueError as error:
        raise ReadError(f"'{command}' printed no JSON: {error}") from error
    return data if isinstance(data, dict) else {}


def _saved(outputs: Outputs, tree: Tree, unread: list[str]) -> bool | None:
    parse = partial(trees.parse, command=STARTUP)
    booted = understood(outputs, STARTUP, "startup configuration", parse, unread)
    return None if booted is None else trees.sha256(booted) == trees.sha256(tree)


def _neighbors(text: str) -> tuple[Neighbor, ...]:
    """Lldpd names a lone interface by itself, several in a list."""
    interfaces = _json(LLDP, text).get("lldp", {}).get("interface", [])
    if isinstance(interfaces, dict):
        interfaces = [{name: facts} for name, facts in interfaces.items()]
    found = []
    for entry in interfaces:
        for port, facts in entry.items():
            peer = next(iter(facts.get("chassis", {})), "")
            if is_physical(port) and peer not in ("", "id"):
                found.append(Neighbor(port, peer, _peer_port(facts.get("port", {}))))
    return tuple(found)


def _peer_port(port: Mapping[str, Any]) -> str:
    """The port's name: its id where that is one, else its description."""
    identity = port.get("id", {})
    if identity.get("type") in ("ifname", "local"):
        return str(identity.get("value", ""))
    return str(port.get("descr") or identity.get("value", ""))
