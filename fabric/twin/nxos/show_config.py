"""``show running-config``, ``show startup-config``, checkpoints, class and policy maps.

Header and layout of configurations as in recorded sessions of 9.3 and 10.x; of
``show policy-map`` and ``show checkpoint summary`` as in the QoS and system
management configuration guides.
"""

from __future__ import annotations

import time

from fabric.twin.cli.grammar import Match
from fabric.twin.nxos.cli import EXEC, Cli, CliError, command
from fabric.twin.nxos.config import (
    NETWORK_QOS_DEFAULT,
    OUT_CLASSES,
    QUEUING_OUT_DEFAULT,
    default_network_policy,
    default_queuing_policy,
)
from fabric.twin.nxos.running import (
    class_map_lines,
    interface_config,
    ipqos_config,
    network_class_lines,
    qos_class_lines,
    queuing_class_lines,
    running_config,
)


def clock(at_s: float) -> str:
    """A time as NX-OS prints it."""
    return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(at_s))


def _header(cli: Cli, shown: str) -> str:
    return (
        f"\n!Command: show {shown}\n"
        f"!Running configuration last done at: {clock(cli.switch.configured_at_s)}\n"
        f"!Time: {clock(time.time())}\n\n"
    )


@command(EXEC, "show running-config")
def show_running(cli: Cli, _match: Match) -> str:
    """The running configuration."""
    return _header(cli, "running-config") + running_config(cli.config)


@command(EXEC, "show running-config interface [<names:interfaces>]")
def show_running_interface(cli: Cli, match: Match) -> str:
    """The configuration of some interfaces."""
    names = match.names("names") or tuple(cli.config.interfaces)
    names = tuple(cli.switch.known_interface(name) for name in names)
    shown = f"running-config interface {', '.join(match.names('names'))}".strip()
    return _header(cli, shown) + interface_config(cli.config, names)


@command(EXEC, "show running-config ipqos")
def show_running_ipqos(cli: Cli, _match: Match) -> str:
    """Everything about QoS."""
    return _header(cli, "running-config ipqos") + ipqos_config(cli.config)


@command(EXEC, "show startup-config")
def show_startup(cli: Cli, _match: Match) -> str:
    """The configuration that the switch boots with."""
    return (
        f"\n!Command: show startup-config\n!Time: {clock(time.time())}\n"
        f"!Startup config saved at: {clock(cli.switch.saved_at_s)}\n\n{cli.switch.startup}"
    )


@command(EXEC, "show checkpoint summary", "show checkpoint summary user")
def checkpoint_summary(cli: Cli, _match: Match) -> str:
    """Checkpoints without their contents."""
    lines = ["User Checkpoint Summary", "-" * 80] if cli.switch.checkpoints else []
    for number, (name, held) in enumerate(cli.switch.checkpoints.items(), start=1):
        created = time.strftime("%a, %H:%M:%S %d %b %Y", time.localtime(held.created_s))
        lines += [
            f"{number}) {name}:",
            f"Created by {cli.switch.user}",
            f"Created at {created}",
            f"Size is {len(held.text):,} bytes",
            f"Description: {held.description}",
            "",
        ]
    return "\n".join([*lines, ""])


@command(EXEC, "show checkpoint <name:word>")
def show_checkpoint(cli: Cli, match: Match) -> str:
    """One checkpoint's configuration."""
    held = cli.switch.checkpoints.get(match.string("name"))
    if held is None:
        raise CliError(f"Checkpoint {match.string('name')} does not exist")
    line = "-" * 80
    return f"{line}\nName: {match.string('name')}\n\n!Command: Checkpoint cmd vdc 1\n\n{held.text}"


@command(EXEC, "show class-map [type qos] [<name:word>]")
def show_class_map(cli: Cli, match: Match) -> str:
    """Class maps of type qos."""
    wanted = match.values.get("name")
    if wanted is not None and wanted not in cli.config.class_maps:
        raise CliError(f"class-map type qos {wanted} does not exist")
    lines = ["", "", "  Type qos class-maps", "  ===================="]
    for name, class_map in cli.config.class_maps.items():
        if wanted in (None, name):
            lines += ["", *(f"    {line}" for line in class_map_lines(name, class_map))]
    return "\n".join([*lines, ""])


@command(EXEC, "show class-map type queuing")
def show_queuing_class_map(_cli: Cli, _match: Match) -> str:
    """The fixed egress classes of 8-queue mode."""
    lines = ["", "", "  Type queuing class-maps", "  ========================"]
    for name, group in sorted(OUT_CLASSES.items(), key=lambda item: -item[1]):
        lines += ["", f"    class-map type queuing match-any {name}"]
        lines += [f"      Description: Classifier for Egress queue {group}"]
        lines += [f"      match qos-group {group}"]
    return "\n".join([*lines, ""])


@command(EXEC, "show policy-map type {kind: qos | network-qos | queuing} [<name:word>]")
@command(EXEC, "show policy-map [<name:word>]")
def show_policy_map(cli: Cli, match: Match) -> str:
    """Policy maps with their actions."""
    kind, name = match.values.get("kind"), match.values.get("name")
    lines: list[str] = []
    for each in ("qos", "queuing", "network-qos"):
        if kind in (None, each):
            lines += _policies(cli, each, None if name is None else str(name))
    if name is not None and not any(line.strip().endswith(str(name)) for line in lines):
        raise CliError(f"policy-map {name} does not exist")
    return "\n".join([*lines, ""])


@command(EXEC, "show policy-map system [type {kind: qos | network-qos | queuing}]")
def show_system_policies(cli: Cli, match: Match) -> str:
    """The policies that hold for the whole switch."""
    config, kind = cli.config, match.values.get("kind")
    active = {
        "qos": config.system_qos_in,
        "queuing": config.system_queuing_out or QUEUING_OUT_DEFAULT,
        "network-qos": config.system_network_qos or NETWORK_QOS_DEFAULT,
    }
    lines: list[str] = []
    for each, name in active.items():
        if name and kind in (None, each):
            lines += _policies(cli, each, name)
    return "\n".join([*lines, ""])


def _policies(cli: Cli, kind: str, wanted: str | None) -> list[str]:
    config = cli.config
    blocks: dict[str, list[str]] = {}
    if kind == "qos":
        for name, policy in config.qos_policies.items():
            blocks[name] = [
                line
                for cls, actions in policy.classes.items()
                for line in (f"class {cls}", *(f"  {a}" for a in qos_class_lines(actions)))
            ]
    elif kind == "queuing":
        queuing = {QUEUING_OUT_DEFAULT: default_queuing_policy(), **config.queuing_policies}
        for name, policy_q in queuing.items():
            blocks[name] = [
                line
                for cls, queue in policy_q.classes.items()
                for line in (
                    f"class type queuing {cls}",
                    *(f"  {a}" for a in queuing_class_lines(queue)),
                )
            ]
    else:
        network = {NETWORK_QOS_DEFAULT: default_network_policy(), **config.network_policies}
        for name, policy_n in network.items():
            blocks[name] = [
                line
                for cls, actions_n in policy_n.classes.items()
                for line in (
                    f"class type network-qos {cls}",
                    *(f"  {a}" for a in network_class_lines(actions_n)),
                )
            ]
    lines = ["", "", f"  Type {kind} policy-maps", f"  {'=' * (len(kind) + 17)}"]
    for name, body in blocks.items():
        if wanted in (None, name):
            lines += ["", f"  policy-map type {kind} {name}", *(f"    {line}" for line in body)]
    return lines
