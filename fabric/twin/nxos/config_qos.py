"""Class maps, and policies of type qos and network-qos, and ``system qos``.

Syntax: Cisco Nexus 9000 NX-OS QoS configuration guide, release 10.5(x), chapters
on classification, marking, network QoS and priority flow control. In 8-queue
mode the network-qos classes are fixed: ``c-8q-nq1`` to ``c-8q-nq7`` and
``c-8q-nq-default``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeVar, cast

from fabric.twin.cli.grammar import Match
from fabric.twin.nxos.cli import CONFIG, Cli, CliError, command
from fabric.twin.nxos.config import (
    IN_CLASSES,
    NETWORK_CLASSES,
    NETWORK_QOS_DEFAULT,
    OUT_CLASSES,
    QUEUING_OUT_DEFAULT,
    ClassMap,
    NetworkClass,
    NetworkPolicy,
    QosClass,
    QosPolicy,
)
from fabric.twin.nxos.policies import attach, is_ingress

Held = TypeVar("Held")

DEFAULT_CLASS = "class-default"
BUILT_IN_POLICIES = (
    NETWORK_QOS_DEFAULT,
    QUEUING_OUT_DEFAULT,
    "default-nq-policy",
    "default-out-policy",
)


def forbid_built_in(name: str) -> None:
    """CliError for a policy that the system owns."""
    if name in BUILT_IN_POLICIES:
        raise CliError(f"policy-map {name} is system defined and cannot be changed")


def forbid_in_use(cli: Cli, kind: str, name: str) -> None:
    """CliError for a policy that is attached somewhere."""
    users = cli.config.users_of(kind, name)
    if users:
        raise CliError(f"policy-map type {kind} {name} is in use by {', '.join(users[:3])}")


@command(CONFIG, "class-map [type qos] [{match: match-all | match-any}] <name:word>")
def class_map(cli: Cli, match: Match) -> None:
    """``class-map type qos match-any NAME``."""
    name, how = match.string("name"), str(match.values.get("match", "match-all"))
    if name == DEFAULT_CLASS or name in {**NETWORK_CLASSES, **OUT_CLASSES, **IN_CLASSES}:
        raise CliError(f"class-map {name} is system defined and cannot be changed")
    existing = cli.config.class_maps.get(name)
    if existing is None:
        kind = cast(Literal["match-all", "match-any"], how)
        cli.config.class_maps[name] = ClassMap(kind)
    elif "match" in match.values and existing.match != how:
        raise CliError(f"class-map {name} exists as {existing.match}")
    cli.enter("config-cmap-qos", name)


@command(CONFIG, "no class-map [type qos] [(match-all | match-any)] <name:word>")
def no_class_map(cli: Cli, match: Match) -> None:
    """A class map that a policy refers to stays."""
    name = match.string("name")
    if name not in cli.config.class_maps:
        raise CliError(f"class-map type qos {name} does not exist")
    for policy, contents in cli.config.qos_policies.items():
        if name in contents.classes:
            raise CliError(f"class-map {name} is in use by policy-map type qos {policy}")
    del cli.config.class_maps[name]


@command("config-cmap-qos", "[no] match dscp <values:dscps>")
@command("config-cmap-qos", "[no] match {field: cos | precedence} <values:priorities>")
def match_field(cli: Cli, match: Match) -> None:
    """``match dscp 24-31``; several lines add up."""
    contents = cli.config.class_maps[cli.frame.target[0]]
    field = str(match.values.get("field", "dscp"))
    held: set[int] = getattr(contents, field)
    values = set(match.numbers("values"))
    setattr(contents, field, held - values if match.no else held | values)


@command("config-cmap-qos", "description <text:line>", "no description [<text:line>]")
def class_map_description(cli: Cli, match: Match) -> None:
    """``description TEXT``."""
    contents = cli.config.class_maps[cli.frame.target[0]]
    contents.description = "" if match.no else match.string("text")


@command(CONFIG, "policy-map [type qos] <name:word>")
def qos_policy(cli: Cli, match: Match) -> None:
    """``policy-map type qos NAME``."""
    forbid_built_in(match.string("name"))
    cli.config.qos_policies.setdefault(match.string("name"), QosPolicy())
    cli.enter("config-pmap-qos", match.string("name"))


@command(CONFIG, "no policy-map [type qos] <name:word>")
def no_qos_policy(cli: Cli, match: Match) -> None:
    """A policy in use stays."""
    remove_policy(cli, "qos", match.string("name"), cli.config.qos_policies)


def remove_policy(cli: Cli, kind: str, name: str, policies: dict[str, Held]) -> None:
    """Remove a policy that nothing uses; CliError where there is none or it is in use."""
    forbid_built_in(name)
    if name not in policies:
        raise CliError(f"policy-map type {kind} {name} does not exist")
    forbid_in_use(cli, kind, name)
    del policies[name]


@command("config-pmap-qos", "description <text:line>", "no description [<text:line>]")
def qos_policy_description(cli: Cli, match: Match) -> None:
    """``description TEXT``."""
    policy = cli.config.qos_policies[cli.frame.target[0]]
    policy.description = "" if match.no else match.string("text")


@command("config-pmap-qos", "class [type qos] <name:word>")
def qos_class(cli: Cli, match: Match) -> None:
    """A class of the policy; its class map must exist. ``class-default`` stays last."""
    policy, name = cli.frame.target[0], match.string("name")
    if name != DEFAULT_CLASS and name not in cli.config.class_maps:
        raise CliError(f"class-map type qos {name} does not exist")
    classes = cli.config.qos_policies[policy].classes
    if name not in classes:
        last = classes.pop(DEFAULT_CLASS, None)
        classes[name] = QosClass()
        if last is not None:
            classes[DEFAULT_CLASS] = last
    cli.enter("config-pmap-c-qos", policy, name)


@command("config-pmap-qos", "no class [type qos] <name:word>")
def no_qos_class(cli: Cli, match: Match) -> None:
    """Remove a class from the policy."""
    remove_class(cli.config.qos_policies[cli.frame.target[0]].classes, match.string("name"))


def remove_class(classes: dict[str, Held], name: str) -> None:
    """Remove a class; CliError where the policy has none of this name."""
    if name not in classes:
        raise CliError(f"class {name} is not part of the policy")
    del classes[name]


@command("config-pmap-c-qos", "set qos-group <value:0-7>", "no set qos-group [<value:0-7>]")
@command("config-pmap-c-qos", "set cos <value:0-7>", "no set cos [<value:0-7>]")
@command("config-pmap-c-qos", "set dscp <value:0-63>", "no set dscp [<value:0-63>]")
def set_field(cli: Cli, match: Match) -> None:
    """``set qos-group N``: which queue and network-qos class the packets belong to."""
    policy, name = cli.frame.target
    actions = cli.config.qos_policies[policy].classes[name]
    field = match.words[-1].replace("-", "_")
    setattr(actions, field, None if match.no else match.integer("value"))


@command(CONFIG, "policy-map type network-qos <name:word>")
def network_policy(cli: Cli, match: Match) -> None:
    """``policy-map type network-qos NAME``."""
    forbid_built_in(match.string("name"))
    cli.config.network_policies.setdefault(match.string("name"), NetworkPolicy())
    cli.enter("config-pmap-nqos", match.string("name"))


@command(CONFIG, "no policy-map type network-qos <name:word>")
def no_network_policy(cli: Cli, match: Match) -> None:
    """A policy in use stays."""
    remove_policy(cli, "network-qos", match.string("name"), cli.config.network_policies)


@command("config-pmap-nqos", "description <text:line>", "no description [<text:line>]")
def network_policy_description(cli: Cli, match: Match) -> None:
    """``description TEXT``."""
    policy = cli.config.network_policies[cli.frame.target[0]]
    policy.description = "" if match.no else match.string("text")


@command("config-pmap-nqos", "class type network-qos <name:word>")
def network_class(cli: Cli, match: Match) -> None:
    """One of the fixed classes."""
    policy, name = cli.frame.target[0], match.string("name")
    if name not in NETWORK_CLASSES:
        raise CliError(f"class-map type network-qos {name} does not exist")
    cli.config.network_policies[policy].classes.setdefault(name, NetworkClass())
    cli.enter("config-pmap-nqos-c", policy, name)


@command("config-pmap-nqos", "no class type network-qos <name:word>")
def no_network_class(cli: Cli, match: Match) -> None:
    """Remove a class from the policy."""
    remove_class(cli.config.network_policies[cli.frame.target[0]].classes, match.string("name"))


def _network_actions(cli: Cli) -> NetworkClass:
    policy, name = cli.frame.target
    return cli.config.network_policies[policy].classes[name]


@command("config-pmap-nqos-c", "mtu <mtu:576-9216>", "no mtu [<mtu:576-9216>]")
def class_mtu(cli: Cli, match: Match) -> None:
    """MTU of the class."""
    _network_actions(cli).mtu = None if match.no else match.integer("mtu")


@command("config-pmap-nqos-c", "pause pfc-cos <cos:0-7> [receive]")
def pause(cli: Cli, match: Match) -> None:
    """Make the class no-drop, paused by this CoS; each CoS belongs to one class."""
    policy, name = cli.frame.target
    for other, actions in cli.config.network_policies[policy].classes.items():
        if other != name and actions.pause_cos == match.integer("cos"):
            raise CliError(f"pfc-cos {match.integer('cos')} is used by class {other} already")
    actions = _network_actions(cli)
    actions.pause_cos, actions.pause_receive = match.integer("cos"), match.has("receive")


@command("config-pmap-nqos-c", "no pause [pfc-cos <cos:0-7> [receive]]")
def no_pause(cli: Cli, _match: Match) -> None:
    """Let the class drop again."""
    actions = _network_actions(cli)
    actions.pause_cos, actions.pause_receive = None, False


@command(CONFIG, "system qos")
def system_qos(cli: Cli, _match: Match) -> None:
    """``system qos``: policies for the whole switch."""
    cli.enter("config-sys-qos")


@command("config-sys-qos", "[no] service-policy type network-qos <policy:word>")
def system_network_qos(cli: Cli, match: Match) -> None:
    """One network-qos policy; the default one comes back by ``no``."""
    policy = match.string("policy")
    _known(policy, cli.config.network_policies, "network-qos", match)
    attach("system qos", cli.config.system_network_qos, policy, remove=match.no)
    cli.config.system_network_qos = "" if match.no else policy


@command("config-sys-qos", "[no] service-policy type queuing {way: input | output} <policy:word>")
def system_queuing(cli: Cli, match: Match) -> None:
    """The queuing policy of every interface that has none of its own."""
    policy, way = match.string("policy"), match.string("way")
    if not match.no:
        is_ingress(cli.config, policy, way)
    attribute = "system_queuing_in" if way == "input" else "system_queuing_out"
    attach("system qos", getattr(cli.config, attribute), policy, remove=match.no)
    setattr(cli.config, attribute, "" if match.no else policy)


@command("config-sys-qos", "[no] service-policy [type qos] input <policy:word>")
def system_qos_input(cli: Cli, match: Match) -> None:
    """Classification on every interface that has no policy of its own."""
    policy = match.string("policy")
    _known(policy, cli.config.qos_policies, "qos", match)
    attach("system qos", cli.config.system_qos_in, policy, remove=match.no)
    cli.config.system_qos_in = "" if match.no else policy


def _known(policy: str, policies: Iterable[str], kind: str, match: Match) -> None:
    if not match.no and policy not in policies:
        raise CliError(f"policy-map type {kind} {policy} does not exist")


_WATCHDOG = "priority-flow-control"


@command(CONFIG, f"{_WATCHDOG} watch-dog-interval {{state: on | off}}")
@command(CONFIG, f"no {_WATCHDOG} watch-dog-interval [(on | off)]")
def watchdog(cli: Cli, match: Match) -> None:
    """Switch the PFC watchdog on for all ports that do not say otherwise."""
    state = cast(Literal["on", "off"] | None, match.values.get("state"))
    cli.config.watchdog.enabled = None if match.no else state


@command(CONFIG, f"{_WATCHDOG} watch-dog interval <value:100-1000>")
@command(CONFIG, f"no {_WATCHDOG} watch-dog interval [<value:100-1000>]")
def watchdog_interval(cli: Cli, match: Match) -> None:
    """Polling interval in milliseconds."""
    cli.config.watchdog.interval_ms = None if match.no else match.integer("value")


@command(CONFIG, f"{_WATCHDOG} watch-dog shutdown-multiplier <value:1-10>")
@command(CONFIG, f"no {_WATCHDOG} watch-dog shutdown-multiplier [<value:1-10>]")
def watchdog_shutdown(cli: Cli, match: Match) -> None:
    """Intervals for which a queue must be stuck before it is shut."""
    cli.config.watchdog.shutdown_multiplier = None if match.no else match.integer("value")


@command(CONFIG, f"{_WATCHDOG} {{kind: auto-restore | fixed-restore}} multiplier <value:0-100>")
@command(
    CONFIG, f"no {_WATCHDOG} {{kind: auto-restore | fixed-restore}} multiplier [<value:0-100>]"
)
def watchdog_restore(cli: Cli, match: Match) -> None:
    """Intervals after which a shut queue is tried again."""
    attribute = match.string("kind").replace("-", "_")
    setattr(cli.config.watchdog, attribute, None if match.no else match.integer("value"))
