"""From a switch's outputs to what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from fabric.devices.base import CUT_OFF, Outputs, ReadError, Target, require_shown, understood
from fabric.devices.eos.lines import (
    APPLY,
    DEFAULT_MTU,
    MMU_PROFILE,
    PROFILE,
    WATCHDOG,
    default_traffic_class,
    dscp_maps,
    ecn_of,
    is_physical,
    queue_maps,
    queue_number,
    seconds_ms,
    timer_of,
    unknown_timer,
    unread_maps,
)
from fabric.devices.eos.normalise import ALPHA
from fabric.devices.eos.render import ACTIONS
from fabric.devices.eos.shown import parse_json, parse_links, parse_neighbors, parse_pfc
from fabric.devices.portlines import is_saved, ports_of
from fabric.devices.sections import Section, find, number, parse, sha256
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    DeviceQos,
    Ecn,
    IngressBuffer,
    PortQos,
    Queue,
    Remark,
    Scheduler,
    Trust,
    Watchdog,
)
from fabric.unread import Fact, lacking

RUNNING = "show running-config"
STARTUP = "show startup-config"
PFC = "show priority-flow-control"
VERSION = "show version | json"
LLDP = "show lldp neighbors | json"
INTERFACES = "show interfaces | json"
FEC = "show interfaces error-correction | json"

# Switches PFC off for the whole switch. Source: EOS User Manual, "Priority Flow Control".
ALL_OFF = "priority-flow-control all off"

COMMANDS = (RUNNING, STARTUP, PFC, VERSION, LLDP, INTERFACES, FEC)

# Lines of NX-OS and IOS, which name their release in a line that EOS does not have.
_FOREIGN = re.compile(r"^(?:!Command: show|version \d).*", re.MULTILINE)
# What a port may get from its service-profile.
_OF_A_PROFILE = (Fact.TRUST, Fact.PFC, Fact.ECN, Fact.SCHEDULING, Fact.RATE, Fact.WATCHDOG)


def running_sections(target: Target, outputs: Outputs) -> list[Section]:
    """The running configuration; ReadError without one, for nothing is known then.

    Nor of one that was cut off: what holds for all ports comes behind the ports.
    """
    text = outputs.get(RUNNING, "")
    if found := _FOREIGN.search(text):
        raise ReadError(f"{target.device}: '{RUNNING}' is none of EOS: {found[0].strip()}")
    if not _whole(text):
        raise ReadError(f"{target.device}: {CUT_OFF}: '{RUNNING}' does not end with 'end'")
    return require_shown(parse(text), target.device, RUNNING)


def _whole(text: str) -> bool:
    """Whether the last line is there; of lines without EOS's own first one nobody can tell."""
    printed = text.lstrip().startswith("! Command: show ")
    return not printed or any(line.rstrip() == "end" for line in text.splitlines())


def read(target: Target, outputs: Outputs) -> DeviceQos:
    """What the switch does on every physical port that its configuration shows.

    A port's PFC state is the live one where ``show priority-flow-control`` shows
    it. Raises ReadError without a whole running configuration.
    """
    sections = running_sections(target, outputs)
    unread: list[str] = []
    live = understood(outputs, PFC, "live PFC state", partial(parse_pfc, PFC), unread)
    version = _version(outputs, unread)
    switch = _Switch(sections, live, unread)
    ports = tuple(switch.port(section) for _, section in ports_of(sections, str, is_physical))
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="eos",
        ports=ports,
        model=version.get("modelName", ""),
        firmware=version.get("version", ""),
        serial=version.get("serialNumber", ""),
        config_sha256=sha256(outputs[RUNNING]),
        saved=_saved(outputs, unread),
        neighbors=understood(outputs, LLDP, "neighbours", partial(parse_neighbors, LLDP), unread),
        facts=parse_links(
            _object(outputs, INTERFACES, "links", unread), _object(outputs, FEC, "FEC", unread)
        ),
        unread=tuple(dict.fromkeys(unread)),
        remarks=tuple(_remarks(sections)),
    )


def _remarks(sections: Iterable[Section]) -> Iterator[Remark]:
    """PFC that one line has taken from all ports, whatever they say themselves."""
    if any(section.text == ALL_OFF for section in sections):
        yield Remark(
            "pfc", "", f"PFC is off on all ports ({ALL_OFF})", (ALL_OFF,), (f"no {ALL_OFF}",)
        )


def _object(outputs: Outputs, command: str, fact: str, unread: list[str]) -> dict[str, Any]:
    """The JSON object that a command printed; empty where there is none."""
    if command not in outputs:
        return {}
    return understood(outputs, command, fact, partial(parse_json, command), unread) or {}


def _version(outputs: Outputs, unread: list[str]) -> dict[str, str]:
    data = _object(outputs, VERSION, "version", unread)
    facts = {"modelName": "model", "version": "firmware", "serialNumber": "serial"}
    unread += [
        f"{fact}: '{VERSION}' does not show it" for k, fact in facts.items() if k not in data
    ]
    return {key: str(data[key]) for key in facts if key in data}


def _saved(outputs: Outputs, unread: list[str]) -> bool | None:
    if not _whole(outputs.get(STARTUP, "")):
        unread.append(f"startup configuration: '{STARTUP}' does not end with 'end'")
        return None
    return is_saved(outputs, RUNNING, STARTUP, sha256, unread)


class _Switch:
    """What is the same for all ports, found once."""

    def __init__(
        self,
        sections: Sequence[Section],
        live: dict[str, tuple[int, ...]] | None,
        unread: list[str],
    ) -> None:
        self._sections = sections
        self._live = live
        self._unread = unread
        texts = [section.text for section in sections]
        unread += unread_maps(texts)
        dscps = {d: tc for text in texts for d, tc in dscp_maps(text).items()}
        self._dscp_to_class = tuple(
            int(dscps[dscp][0]) if dscp in dscps else default_traffic_class(dscp)
            for dscp in range(DSCP_COUNT)
        )
        queues = {tc: queue for text in texts for tc, (_, queue) in queue_maps(text).items()}
        self._class_to_queue = tuple(queues.get(tc, tc) for tc in range(PRIORITY_COUNT))
        self._all_off = ALL_OFF in texts
        self._watchdog = _GlobalWatchdog(texts)
        self._headroom, self._resume, self._alpha = self._buffers(texts)

    def _buffers(self, texts: Iterable[str]) -> tuple[int | None, int, float]:
        """Headroom, distance of XON and alpha of the buffer profile in use."""
        applied = next((t for t in texts if t.startswith(MMU_PROFILE) and t.endswith(APPLY)), None)
        profile = find(self._sections, applied.removesuffix(APPLY)) if applied else None
        if profile is None:
            self._unread.append("headroom: no buffer profile is applied, the chip's own is in use")
            return None, 0, ALPHA
        lines = [child.text for child in profile.children]
        headroom = _value(lines, r"ingress headroom (?:bytes )?(\d+)")
        if headroom is None:
            self._unread.append(f"headroom: {profile.text} does not say it in bytes")
        threshold = _text(lines, r"ingress threshold (\d+(?:/[1-9]\d*)?)")
        if threshold is None:
            self._unread.append(f"XOFF: {profile.text} does not say it")
        resume = _value(lines, r"ingress resume (?:bytes )?(\d+)")
        if resume is None and (line := _text(lines, r"(ingress resume .*)")):
            self._unread.append(f"XON: {profile.text} does not say it in bytes: {line}")
        return headroom, resume or 0, ALPHA if threshold is None else _fraction(threshold)

    def port(self, section: Section) -> PortQos:
        """What this ``interface`` section makes of its port."""
        name = section.text.removeprefix("interface ")
        lines = [child.text for child in section.children]
        profile = self._profile(name, lines)
        # What a port says itself goes before what its profile says.
        both = [*(child.text for child in profile), *lines]
        held = number(lines, "mtu", f"'{RUNNING}': {name}")
        mtu = DEFAULT_MTU if held is None else held
        if any(line.startswith("service-policy type qos input ") for line in both):
            why = "it has a service-policy of type qos"
            self._unread.append(lacking(name, Fact.DSCPS, why))
        self._unread += [
            lacking(name, Fact.RATE, x, "the port") for x in both if x.startswith("shape rate ")
        ]
        self._unread += [lacking(name, Fact.WATCHDOG, x) for x in both if unknown_timer(x)]
        pfc = self._pfc(name, both)
        return PortQos(
            name=name,
            mtu_bytes=mtu,
            trust=_trust(both, routed="no switchport" in lines),
            dscp_to_priority=self._dscp_to_class,
            priority_to_class=self._class_to_queue,
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=pfc,
            link_pause=_pfc_configured(both) is None
            and any(re.fullmatch(r"flowcontrol (?:receive|send) on", line) for line in lines),
            queues=self._queues(name, [*profile, *section.children]),
            ingress_buffers=self._ingress(pfc),
            watchdog=self._watchdog.of_port(both),
        )

    def _profile(self, port: str, lines: Iterable[str]) -> list[Section]:
        name = _text(lines, r"service-profile (\S+)")
        if name is None:
            return []
        found = find(self._sections, PROFILE + name)
        if found is None:
            why = f"there is no qos profile {name}"
            self._unread += [lacking(port, fact, why, "its profile") for fact in _OF_A_PROFILE]
        return found.children if found else []

    def _pfc(self, name: str, lines: Sequence[str]) -> tuple[int, ...]:
        configured = () if self._all_off else _pfc_configured(lines) or ()
        if self._live is None:
            return configured
        if name not in self._live:
            self._unread.append(f"live PFC state of {name}: not in '{PFC}'")
            return configured
        return self._live[name]

    def _ingress(self, priorities: Iterable[int]) -> tuple[IngressBuffer, ...]:
        if self._headroom is None:
            return ()
        size = self._headroom + self._resume
        return tuple(IngressBuffer(p, size, self._resume, 0, self._alpha) for p in priorities)

    def _queues(self, port: str, sections: Iterable[Section]) -> tuple[Queue, ...]:
        lines: dict[int, list[str]] = {tc: [] for tc in range(PRIORITY_COUNT)}
        for section in sections:
            queue = queue_number(section.text)
            if queue is not None:
                lines[queue] += section.lines()
        shared = [
            n for n in lines if _last(lines[n], ("priority strict", "no priority")) == "no priority"
        ]
        return tuple(
            Queue(
                tc,
                _scheduler(port, lines[tc], shared=tc <= max(shared, default=-1)),
                self._ecn(port, tc, lines[tc]),
                self._max_rate(port, tc, lines[tc]),
            )
            for tc in lines
        )

    def _max_rate(self, port: str, queue: int, lines: Iterable[str]) -> int:
        """What a shaper lets through in bits a second; 0 for none, and where it says no rate."""
        shaper = next((x for x in reversed([*lines]) if x.startswith("shape rate ")), "")
        match = re.fullmatch(r"shape rate (\d+)(?: kbps)?", shaper)
        if shaper and match is None:
            self._unread.append(lacking(port, Fact.RATE, shaper, f"queue {queue}"))
        return int(match[1]) * 1000 if match else 0

    def _ecn(self, port: str, queue: int, lines: Iterable[str]) -> Ecn | None:
        found = None
        for line in lines:
            if line.startswith("random-detect ecn ") and line != "random-detect ecn count":
                found = ecn_of(line)
                if found is None:
                    self._unread.append(lacking(port, Fact.ECN, line, f"queue {queue}"))
        return found


class _GlobalWatchdog:
    """The PFC watchdog's defaults for all ports."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._timeout = _text(texts, rf"{WATCHDOG} default timeout ([\d.]+)")
        self._recovery = _text(texts, rf"{WATCHDOG} default recovery-time ([\d.]+).*")
        self._action = _text(texts, rf"{WATCHDOG} (?:override )?(?:default )?action (\S+)")

    def of_port(self, lines: Sequence[str]) -> Watchdog | None:
        """What watches a port with these lines.

        It is on where the port says so, or where the switch has a timeout and the
        port does not refuse (that the port's own line alone suffices is unverified).
        """
        own = _last(lines, (WATCHDOG, f"no {WATCHDOG}"))
        if own.startswith("no ") or (not own and self._timeout is None):
            return None
        times = next((t for line in lines if (t := timer_of(line)) is not None), None)
        detect = times[0] if times else _ms(self._timeout)
        restore = times[1] if times else _ms(self._recovery)
        action = _text(lines, rf"{WATCHDOG} port action (\S+)") or self._action
        if action in ("drop", ACTIONS["forward"], "no-drop"):
            return Watchdog(detect, restore, "drop" if action == "drop" else "forward")
        return Watchdog(detect, restore, "shutdown")


def _ms(seconds: str | None) -> int | None:
    return None if seconds is None else seconds_ms(seconds)


def _trust(lines: Iterable[str], *, routed: bool) -> Trust:
    """A routed port trusts DSCP and a switched one CoS where nothing is said of it."""
    trust: Trust = "dscp" if routed else "pcp"
    for line in lines:
        if line == "no qos trust":
            trust = "none"
        elif match := re.fullmatch(r"qos trust (\w+)", line):
            trust = "dscp" if match[1] == "dscp" else "pcp"
    return trust


def _pfc_configured(lines: Iterable[str]) -> tuple[int, ...] | None:
    """Priorities that are not to drop; None where PFC is off."""
    on = False
    no_drop: set[int] = set()
    for line in lines:
        if line in ("priority-flow-control on", "priority-flow-control mode on"):
            on = True
        elif line == "no priority-flow-control":
            on = False
        elif match := re.fullmatch(r"priority-flow-control priority (\d) (no-drop|drop)", line):
            (no_drop.add if match[2] == "no-drop" else no_drop.discard)(int(match[1]))
    return tuple(sorted(no_drop)) if on else None


def _scheduler(port: str, lines: Sequence[str], *, shared: bool) -> Scheduler:
    """A queue is strict unless it, or a higher one, says ``no priority``.

    Source: EOS User Manual, "Quality of Service", ``priority``: a round-robin queue
    makes those below it round-robin queues too.
    """
    if not shared:
        return Scheduler("strict")
    return Scheduler("ets", number(lines, "bandwidth percent", f"'{RUNNING}': {port}") or 0)


def _last(lines: Iterable[str], wanted: tuple[str, ...]) -> str:
    """The last line that is one of these; empty for none."""
    return next((line for line in reversed(list(lines)) if line in wanted), "")


def _fraction(text: str) -> float:
    numerator, _, denominator = text.partition("/")
    return int(numerator) / int(denominator or 1)


def _text(lines: Iterable[str], pattern: str) -> str | None:
    found = None
    for line in lines:
        if match := re.fullmatch(pattern, line):
            found = match[1]
    return found


def _value(lines: Iterable[str], pattern: str) -> int | None:
    text = _text(lines, pattern)
    return None if text is None else int(text)
