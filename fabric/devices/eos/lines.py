"""Forms of EOS configuration lines that are written and read in more than one place.

Sources: aristanetworks/avd, eos_cli_config_gen templates and schema (qos-profiles,
qos, priority-flow-control, platform-trident) and its molecule scenario ``qos``;
Arista EOS User Manual, "Quality of Service" and "DCBX and Flow Control".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fabric.devices.sections import Section
from fabric.qos import Ecn
from fabric.unread import Fact

PREFIX = "PAISOAR-"
INDENT = "   "

PROFILE = "qos profile "
MMU_PROFILE = "platform trident mmu queue profile "
APPLY = " apply"
WATCHDOG = "priority-flow-control pause watchdog"

DEFAULT_MTU = 1500
# The User Manual says kbytes and mbytes, not how many bytes they are (unverified).
UNIT_BYTES = {"bytes": 1, "kbytes": 1000, "mbytes": 1_000_000}
# Marked where nothing is said of it (unverified).
DEFAULT_MARK_PERCENT = 100

_PHYSICAL = re.compile(r"Ethernet\d+(?:/\d+){0,3}")
_SHORT = {"Et": "Ethernet", "Ma": "Management", "Po": "Port-Channel", "Lo": "Loopback"}

_DSCP_MAP = re.compile(
    r"qos map dscp (?P<dscps>[\d ,-]+) to traffic-class (?P<tc>\d)"
    r"(?: drop-precedence (?P<precedence>\d))?"
)
_QUEUE_MAP = re.compile(
    r"qos map traffic-class (?P<tcs>[\d ,-]+) to (?P<kind>(?:uc-)?tx-queue) (?P<queue>\d)"
)
_TX_QUEUE = re.compile(r"(?:uc-)?tx-queue (\d)")
_ECN = re.compile(
    r"random-detect ecn minimum-threshold (?P<kmin>\d+) (?P<kmin_unit>\w+) "
    r"maximum-threshold (?P<kmax>\d+) (?P<kmax_unit>\w+)"
    r"(?: max-mark-probability (?P<percent>\d+))?(?: weight \d+)?"
)
_TIMER = re.compile(
    rf"{WATCHDOG} port timer timeout (?P<timeout>[\d.]+) polling-interval (?P<poll>\S+) "
    r"recovery-time (?P<recovery>[\d.]+)(?P<forced> forced)?"
)


def interface_name(text: str) -> str:
    """The long name of an interface: ``Et49/1`` is ``Ethernet49/1``."""
    match = re.fullmatch(r"([A-Za-z-]+)(\d.*)", text.strip())
    if not match:
        return text.strip()
    return _SHORT.get(match[1], match[1]) + match[2]


def is_physical(name: str) -> bool:
    """Whether this long name is a front port; breakout ports are, subinterfaces are not."""
    return _PHYSICAL.fullmatch(name) is not None


def default_traffic_class(dscp: int) -> int:
    """Where EOS puts a DSCP that no map names: its eighth, with 0 and 1 exchanged.

    Source: EOS User Manual, default DSCP to traffic class map (0-7 to 1, 8-15 to 0,
    24-31 to 3, 48-55 to 6).
    """
    return {0: 1, 1: 0}.get(dscp // 8, dscp // 8)


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of a list such as ``8 9 10`` or ``8-10,12``."""
    found: list[int] = []
    for part in text.replace(",", " ").split():
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return tuple(found)


def dscp_maps(line: str) -> dict[int, str]:
    """DSCP -> what stands behind ``to traffic-class``; empty for another line."""
    match = _DSCP_MAP.fullmatch(line)
    if not match:
        return {}
    target = match["tc"]
    if match["precedence"]:
        target += f" drop-precedence {match['precedence']}"
    return dict.fromkeys(numbers(match["dscps"]), target)


def dscp_map_line(dscps: Iterable[int], target: object) -> str:
    """The line that puts these DSCPs into a traffic class."""
    return f"qos map dscp {' '.join(map(str, sorted(dscps)))} to traffic-class {target}"


def queue_maps(line: str) -> dict[int, tuple[str, int]]:
    """Traffic class -> kind and number of its queue; empty for another line."""
    match = _QUEUE_MAP.fullmatch(line)
    if not match:
        return {}
    return dict.fromkeys(numbers(match["tcs"]), (match["kind"], int(match["queue"])))


def unread_maps(lines: Iterable[str]) -> Iterator[str]:
    """Entries for maps of the whole switch whose lines cannot be read."""
    for line in lines:
        if line.startswith("qos map dscp ") and " to traffic-class" in line and not dscp_maps(line):
            yield f"{Fact.DSCPS}: {line}"
        if (
            line.startswith("qos map traffic-class ")
            and "tx-queue" in line
            and not queue_maps(line)
        ):
            yield f"{Fact.CLASSES}: {line}"


def queue_number(line: str) -> int | None:
    """Number of the transmit queue that this line configures; None for another line."""
    match = _TX_QUEUE.fullmatch(line)
    return int(match[1]) if match else None


def ecn_of(line: str) -> Ecn | None:
    """Thresholds of a line; None where it says nothing in bytes."""
    match = _ECN.fullmatch(line)
    if not match or not {match["kmin_unit"], match["kmax_unit"]} <= UNIT_BYTES.keys():
        return None
    return Ecn(
        int(match["kmin"]) * UNIT_BYTES[match["kmin_unit"]],
        int(match["kmax"]) * UNIT_BYTES[match["kmax_unit"]],
        int(match["percent"] or DEFAULT_MARK_PERCENT),
    )


def ecn_line(ecn: Ecn) -> str:
    """The line of these thresholds; both have one unit."""
    unit = "bytes" if ecn.kmin_bytes % 1000 or ecn.kmax_bytes % 1000 else "kbytes"
    factor = UNIT_BYTES[unit]
    return (
        f"random-detect ecn minimum-threshold {ecn.kmin_bytes // factor} {unit} "
        f"maximum-threshold {ecn.kmax_bytes // factor} {unit} "
        f"max-mark-probability {ecn.pmax_percent} weight 0"
    )


def timer_of(line: str) -> tuple[int, int] | None:
    """Detection and restore time in milliseconds of a port's watchdog timer."""
    match = _TIMER.fullmatch(line)
    return (seconds_ms(match["timeout"]), seconds_ms(match["recovery"])) if match else None


def unknown_timer(line: str) -> bool:
    """Whether this is a port's watchdog timer whose times cannot be read."""
    return line.startswith(f"{WATCHDOG} port timer ") and timer_of(line) is None


def timer_line(detect_ms: int, restore_ms: int) -> str:
    """The line of these times; EOS finds its polling interval by itself."""
    return (
        f"{WATCHDOG} port timer timeout {detect_ms / 1000:g} polling-interval auto "
        f"recovery-time {restore_ms / 1000:g}"
    )


def seconds_ms(text: str) -> int:
    """Milliseconds of a time in seconds with decimals."""
    return round(float(text) * 1000)


def meaning(line: str) -> object:
    """What a line says, whatever its form: lines that mean the same compare equal."""
    if (match := _TIMER.fullmatch(line)) is not None:
        return ("timer", timer_of(line), match["poll"], match["forced"])
    ecn = ecn_of(line)
    return line if ecn is None else ("ecn", ecn)


def all_texts(sections: Iterable[Section]) -> Iterable[str]:
    """Every line of these sections."""
    for section in sections:
        yield from section.texts()
