"""Policies of type queuing: bandwidth, priority, WRED and ECN, ingress buffers.

Syntax: Cisco Nexus 9000 NX-OS QoS configuration guide, release 10.5(x), chapter
"Configuring Queuing and Scheduling". The classes of 8-queue mode are fixed:
``c-out-8q-q1`` to ``q7`` and ``c-out-8q-q-default`` for egress, ``c-in-q1`` to
``q7`` and ``c-in-q-default`` for ingress. The smallest ingress buffer that a
93180YC takes (27456 and 12480 bytes) is from a recorded lab session.
"""

from __future__ import annotations

from fabric.twin.cli.grammar import Match
from fabric.twin.nxos.cli import CONFIG, Cli, CliError, command
from fabric.twin.nxos.config import (
    IN_CLASSES,
    OUT_CLASSES,
    UNIT_BYTES,
    Pause,
    QueuingClass,
    QueuingPolicy,
)
from fabric.twin.nxos.config_qos import forbid_built_in, remove_class, remove_policy

MODE = "config-pmap-c-que"
MIN_BUFFER_BYTES = 27456
MIN_THRESHOLD_BYTES = 12480


@command(CONFIG, "policy-map type queuing <name:word>")
def queuing_policy(cli: Cli, match: Match) -> None:
    """``policy-map type queuing NAME``."""
    forbid_built_in(match.string("name"))
    cli.config.queuing_policies.setdefault(match.string("name"), QueuingPolicy())
    cli.enter("config-pmap-que", match.string("name"))


@command(CONFIG, "no policy-map type queuing <name:word>")
def no_queuing_policy(cli: Cli, match: Match) -> None:
    """A policy in use stays."""
    remove_policy(cli, "queuing", match.string("name"), cli.config.queuing_policies)


@command("config-pmap-que", "class type queuing <name:word>")
def queuing_class(cli: Cli, match: Match) -> None:
    """One of the fixed classes; a policy holds egress or ingress ones, never both."""
    policy, name = cli.frame.target[0], match.string("name")
    if name not in OUT_CLASSES and name not in IN_CLASSES:
        raise CliError(f"class-map type queuing {name} does not exist")
    classes = cli.config.queuing_policies[policy].classes
    if any((other in IN_CLASSES) != (name in IN_CLASSES) for other in classes):
        raise CliError(f"class {name} and those of policy-map {policy} go different ways")
    classes.setdefault(name, QueuingClass())
    cli.enter(MODE, policy, name)


@command("config-pmap-que", "no class type queuing <name:word>")
def no_queuing_class(cli: Cli, match: Match) -> None:
    """Remove a class from the policy."""
    remove_class(cli.config.queuing_policies[cli.frame.target[0]].classes, match.string("name"))


def _actions(cli: Cli, *, ingress: bool = False) -> QueuingClass:
    """The class being configured; CliError where the command belongs to the other way."""
    policy, name = cli.frame.target
    if (name in IN_CLASSES) != ingress:
        raise CliError(f"the command is not supported in class {name}")
    return cli.config.queuing_policies[policy].classes[name]


def _check_total(cli: Cli, attribute: str, value: int) -> None:
    policy, name = cli.frame.target
    classes = cli.config.queuing_policies[policy].classes
    others = sum(getattr(c, attribute) or 0 for other, c in classes.items() if other != name)
    if others + value > 100:
        raise CliError(f"bandwidth of policy-map {policy} would be {others + value} percent")


@command(MODE, "bandwidth percent <percent:0-100>")
def bandwidth(cli: Cli, match: Match) -> None:
    """A share of the link's bandwidth; a priority queue has none."""
    actions, percent = _actions(cli), match.integer("percent")
    if actions.priority is not None:
        raise CliError("bandwidth and priority exclude each other in a class")
    _check_total(cli, "bandwidth", percent)
    actions.bandwidth, actions.remaining = percent, None


@command(MODE, "bandwidth remaining percent <percent:0-100>")
def bandwidth_remaining(cli: Cli, match: Match) -> None:
    """A share of what priority queues leave."""
    actions, percent = _actions(cli), match.integer("percent")
    if actions.priority is not None:
        raise CliError("bandwidth and priority exclude each other in a class")
    _check_total(cli, "remaining", percent)
    actions.remaining, actions.bandwidth = percent, None


@command(MODE, "no bandwidth percent [<percent:0-100>]")
def no_bandwidth(cli: Cli, _match: Match) -> None:
    """Drop the share."""
    _actions(cli).bandwidth = None


@command(MODE, "no bandwidth remaining percent [<percent:0-100>]")
def no_bandwidth_remaining(cli: Cli, _match: Match) -> None:
    """Drop the share."""
    _actions(cli).remaining = None


@command(MODE, "priority [level <level:1-3>]", "no priority [level <level:1-3>]")
def priority(cli: Cli, match: Match) -> None:
    """Serve this queue before all others."""
    actions = _actions(cli)
    if match.no:
        actions.priority = None
        return
    if actions.bandwidth is not None or actions.remaining is not None:
        raise CliError("bandwidth and priority exclude each other in a class")
    actions.priority = match.integer("level") if "level" in match.values else 1


@command(
    MODE,
    "shape min <min:0-100000000> {min_unit: kbps | mbps | gbps | pps} "
    "max <max:1-100000000> {max_unit: kbps | mbps | gbps | pps}",
    "no shape [min <min:0-100000000> {min_unit: kbps | mbps | gbps | pps} "
    "max <max:1-100000000> {max_unit: kbps | mbps | gbps | pps}]",
)
def shape(cli: Cli, match: Match) -> None:
    """Limits of the queue's rate."""
    _actions(cli).shape = "" if match.no else match.text


@command(
    MODE,
    "queue-limit (<size:1-208000000> {unit: bytes | kbytes | mbytes} | dynamic <alpha:0-10>)",
    "no queue-limit [(<size:1-208000000> {unit: bytes | kbytes | mbytes} | dynamic <alpha:0-10>)]",
)
def queue_limit(cli: Cli, match: Match) -> None:
    """Tail-drop limit, fixed or a share of the free buffer."""
    _actions(cli).queue_limit = "" if match.no else match.text


_UNITS = "bytes | kbytes | mbytes"
_WRED = (
    f"random-detect minimum-threshold <min:0-208000000> {{min_unit: {_UNITS}}} "
    f"maximum-threshold <max:0-208000000> {{max_unit: {_UNITS}}} "
    "drop-probability <probability:0-100> weight <weight:0-15> [cap-average] [ecn]"
)
_WRED_PRESET = "random-detect threshold (burst-optimized | mesh-optimized) [ecn]"


@command(MODE, _WRED, _WRED_PRESET)
def random_detect(cli: Cli, match: Match) -> None:
    """WRED, which marks instead of dropping with ``ecn``; ``ecn`` is part of this line."""
    actions = _actions(cli)
    if "min" in match.values:
        low = match.integer("min") * UNIT_BYTES[match.string("min_unit")]
        high = match.integer("max") * UNIT_BYTES[match.string("max_unit")]
        if low > high:
            raise CliError("minimum-threshold must not be greater than maximum-threshold")
    actions.random_detect = match.text


@command(MODE, "no random-detect", f"no {_WRED}", f"no {_WRED_PRESET}")
def no_random_detect(cli: Cli, _match: Match) -> None:
    """No WRED, no ECN."""
    _actions(cli).random_detect = ""


_PAUSE = (
    "pause buffer-size <buffer:0-208000000> pause-threshold <pause:0-208000000> "
    "resume-threshold <resume:0-208000000>"
)


@command(MODE, _PAUSE)
def ingress_pause(cli: Cli, match: Match) -> None:
    """Ingress buffer of a no-drop class, and when it pauses and resumes its peer."""
    actions = _actions(cli, ingress=True)
    buffer, pause, resume = match.integer("buffer"), match.integer("pause"), match.integer("resume")
    if buffer < MIN_BUFFER_BYTES:
        raise CliError(f"buffer-size must be at least {MIN_BUFFER_BYTES} bytes")
    if pause < MIN_THRESHOLD_BYTES or resume < MIN_THRESHOLD_BYTES:
        raise CliError(f"thresholds must be at least {MIN_THRESHOLD_BYTES} bytes")
    if not resume <= pause <= buffer:
        raise CliError("resume-threshold <= pause-threshold <= buffer-size must hold")
    actions.pause = Pause(buffer, pause, resume)


@command(MODE, "no pause", f"no {_PAUSE}")
def no_ingress_pause(cli: Cli, _match: Match) -> None:
    """The default buffer."""
    _actions(cli, ingress=True).pause = None
