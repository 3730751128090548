"""``show queuing interface`` and ``show queuing pfc-queue``.

Layouts: the OpenTelemetry collector's test files for Nexus 9000 (ciscoos
receiver) and recorded outputs of C93180YC-EX and -FX2 switches. The PFC table
is the newer one, without a PG column.
"""

from __future__ import annotations

from fabric.twin.cli.grammar import Match
from fabric.twin.nxos.cli import EXEC, Cli, command
from fabric.twin.nxos.config import GROUPS, IN_CLASSES, OUT_CLASSES
from fabric.twin.nxos.running import interface_key

GROUP_RULE = f"+{'-' * 61}+"
STATS_RULE = "-" * 56
PFC_RULE = "-" * 92


def _ports(cli: Cli, match: Match) -> list[str]:
    names = match.names("names")
    if names:
        return [cli.switch.known_interface(name) for name in names]
    ports = (name for name in cli.config.interfaces if name.startswith("Ethernet"))
    return sorted(ports, key=interface_key)


@command(EXEC, "show queuing interface [<names:interfaces>]")
@command(EXEC, "show queuing")
def show_queuing(cli: Cli, match: Match) -> str:
    """Queues, their drops and ECN marks, ingress buffers, PFC frames by CoS."""
    lines = ["", "slot  1", "=======", ""]
    for name in _ports(cli, match):
        lines += ["", *_egress(cli, name), "", *_ingress(cli, name), "", *_pfc(cli, name), ""]
    return "\n".join([*lines, ""])


def _egress(cli: Cli, name: str) -> list[str]:
    own = "Interface" if cli.config.interfaces[name].queuing_out else "System"
    rule = "-" * 78
    lines = [
        f"Egress Queuing for {name} [{own}]",
        rule,
        "QoS-Group# Bandwidth% PrioLevel                Shape                   QLimit",
        "                                   Min          Max        Units   ",
        rule,
    ]
    policy = cli.config.queuing_policy_out(name)[1]
    by_group = {OUT_CLASSES[cls]: actions for cls, actions in policy.classes.items()}
    for group in reversed(GROUPS):
        actions = by_group.get(group)
        share = level = "-"
        if actions is not None:
            percent = actions.remaining if actions.remaining is not None else actions.bandwidth
            share = "-" if percent is None else str(percent)
            level = "-" if actions.priority is None else str(actions.priority)
        lines.append(f"{group:>7}{share:>14}{level:>10}{'-':>12}{'-':>13}{'-':>6}{'9(D)':>16}")
    lines.append(rule)
    for group in GROUPS:
        lines += _group(cli, name, group)
    return [*lines, GROUP_RULE]


def _group(cli: Cli, name: str, group: int) -> list[str]:
    def of(counter: str) -> int:
        return cli.switch.counter(name, counter, group)

    rows = (
        ("Tx Pkts", of("tx_queue_packets")),
        ("Tx Byts", of("tx_queue_bytes")),
        ("WRED/AFD & Tail Drop Pkts", of("queue_drops")),
        ("WRED/AFD & Tail Drop Byts", 0),
        ("Q Depth Byts", 0),
        ("WD & Tail Drop Pkts", of("queue_drops")),
        ("ECN Pkts", of("ecn_marked_packets")),
    )
    title = f"QOS GROUP {group}"
    return [
        GROUP_RULE,
        f"|{title:>41}{'|':>21}",
        GROUP_RULE,
        "|                           |  Unicast       |Multicast       |",
        GROUP_RULE,
        *(f"|{label:>26} |{value:>16}|{0:>16}|" for label, value in rows),
    ]


def _ingress(cli: Cli, name: str) -> list[str]:
    rule = "-" * 53
    lines = [
        f"Ingress Queuing for {name}",
        rule,
        "QoS-Group#                 Pause                        ",
        "           Buff Size       Pause Th      Resume Th      ",
        rule,
    ]
    policy = cli.config.queuing_policy_in(name)
    classes = {} if policy is None else policy.classes
    by_group = {IN_CLASSES[cls]: actions.pause for cls, actions in classes.items()}
    for group in reversed(GROUPS):
        pause = by_group.get(group)
        sizes: tuple[int | str, ...] = ("-", "-", "-")
        if pause is not None:
            sizes = (pause.buffer_size, pause.pause_threshold, pause.resume_threshold)
        lines.append(f"{group:>7}{sizes[0]:>15}{sizes[1]:>13}{sizes[2]:>13}")
    return [
        *lines,
        "",
        "Port Ingress Statistics",
        STATS_RULE,
        f"{'Ingress MMU Drop Pkts':<29}{cli.switch.counter_sum(name, 'rx_discards'):>27}",
        f"{'Ingress MMU Drop Bytes':<29}{0:>27}",
        STATS_RULE,
    ]


def _pfc(cli: Cli, name: str) -> list[str]:
    sent = cli.switch.counter_sum(name, "tx_pause_frames")
    received = cli.switch.counter_sum(name, "rx_pause_frames")
    lines = [
        "PFC Statistics",
        PFC_RULE,
        f"TxPPP:{sent:>22},   RxPPP:{received:>22}",
        PFC_RULE,
        f" PFC_COS QOS_Group   TxPause{'TxCount':>26}   RxPause{'RxCount':>26}",
    ]
    groups = cli.config.pause_cos()
    for cos in GROUPS:
        group = str(groups[cos]) if cos in groups else "-"
        tx = cli.switch.counter(name, "tx_pause_frames", cos)
        rx = cli.switch.counter(name, "rx_pause_frames", cos)
        lines.append(f"{cos:>8}{group:>10}  Inactive{tx:>26}  Inactive{rx:>26}")
    return [*lines, PFC_RULE]


@command(EXEC, "show queuing pfc-queue [interface <names:interfaces>] [detail]")
def show_pfc_queue(cli: Cli, match: Match) -> str:
    """The PFC watchdog: whether it watches a port, and what it did to each no-drop queue."""
    lines = ["", "slot  1", "=======", ""]
    watchdog = cli.config.watchdog
    lines += [
        f"Global watch-dog interval [{'Enabled' if watchdog.enabled == 'on' else 'Disabled'}]",
        f"Global PFC watchdog configuration: poll interval {watchdog.interval_ms or 100} msec, "
        f"shutdown multiplier {watchdog.shutdown_multiplier or 1}, "
        f"auto-restore multiplier {watchdog.auto_restore or 10}, "
        f"fixed-restore multiplier {watchdog.fixed_restore or 0}",
    ]
    for name in _ports(cli, match):
        settings = cli.config.interfaces[name]
        watched = settings.watchdog or watchdog.enabled or "off"
        action = "Yes" if settings.watchdog == "on disable-action" else "No"
        lines += [
            "",
            f"{name} Interface PFC watchdog: [{'Disabled' if watched == 'off' else 'Enabled'}]",
            f"Disable-action                     : {action}",
            f"PFC watch-dog interface-multiplier : {settings.watchdog_multiplier or 0}",
        ]
        for cos, group in sorted(cli.config.pause_cos().items()):
            lines += _watched_queue(cli, name, group, cos)
    return "\n".join([*lines, ""])


def _watched_queue(cli: Cli, name: str, group: int, cos: int) -> list[str]:
    rule = f"+{'-' * 52}+"
    storms = cli.switch.counter(name, "watchdog_storms", cos)
    rows = (
        ("Shutdown", storms),
        ("Restored", storms),
        ("Total pkts drained", 0),
        ("Total pkts dropped", 0),
        ("Total pkts drained + dropped", 0),
        ("Aggregate pkts dropped", 0),
        ("Total Ingress pkts dropped", 0),
        ("Aggregate Ingress pkts dropped", 0),
    )
    pfc = "YES" if cli.switch.pfc_operates(name) else "NO"
    return [
        rule,
        f"| QOS GROUP {group} [Active] PFC [{pfc}] PFC-COS [{cos}]",
        rule,
        "|                               |  Stats             |",
        rule,
        *(f"|{label:>31}|{value:>20}|" for label, value in rows),
        rule,
    ]
