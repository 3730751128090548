"""From a switch's outputs to what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from fabric.devices.base import CUT_OFF, Outputs, ReadError, Target, require_shown, understood
from fabric.devices.nxos.names import is_physical
from fabric.devices.nxos.normalise import POLL_MS
from fabric.devices.nxos.policies import NetworkQos, Policies
from fabric.devices.nxos.profiles import effective, unknown_profile
from fabric.devices.nxos.remarks import remarks
from fabric.devices.nxos.render import DEFAULT_MTU, SHUTDOWN_MULTIPLIER, WATCHDOG_ON
from fabric.devices.nxos.state import (
    LinkState,
    PfcState,
    Version,
    parse_links,
    parse_neighbors,
    parse_pfc,
    parse_version,
)
from fabric.devices.portlines import is_saved, lost_ports, ports_of
from fabric.devices.sections import Section, find, number, parse, sha256
from fabric.qos import PRIORITY_COUNT, DeviceQos, PortFacts, PortQos, Watchdog
from fabric.unread import Fact, lacking, lacking_all

RUNNING = "show running-config"
STARTUP = "show startup-config"
PFC = "show interface priority-flow-control"
VERSION = "show version"
LLDP = "show lldp neighbors"
INTERFACE = "show interface"

COMMANDS = (RUNNING, STARTUP, PFC, VERSION, LLDP, INTERFACE)


def running_sections(target: Target, outputs: Outputs) -> list[Section]:
    """The running configuration; ReadError without one, for nothing is known then."""
    text = outputs.get(RUNNING, "")
    if text.rstrip().endswith("\nend"):
        raise ReadError(
            f"{target.device}: '{RUNNING}' is none of NX-OS: it ends with 'end', as those of "
            "EOS and IOS do"
        )
    return require_shown(parse(text), target.device, RUNNING)


def read(target: Target, outputs: Outputs) -> DeviceQos:
    """What the switch does on every physical port that its configuration shows.

    A port's PFC state is the live one where ``show interface
    priority-flow-control`` shows it. Raises ReadError without a running configuration.
    """
    sections = running_sections(target, outputs)
    unread: list[str] = []
    live = understood(outputs, PFC, "live PFC state", parse_pfc, unread)
    version = _version(outputs, unread)
    device = _Device(sections, live, unread)
    neighbors = understood(outputs, LLDP, "neighbours", parse_neighbors, unread)
    links = parse_links(outputs.get(INTERFACE, ""))
    seen = {*(live or ()), *links, *(neighbor.port for neighbor in neighbors or ())}
    configured = _configured(sections)
    lost, lacking = _lost(outputs[RUNNING], sections, configured, seen)
    if lost:
        unread.append(f"{CUT_OFF}: {lacking}")
    ports = tuple(
        device.port(effective(section, sections))
        for name, section in configured.items()
        if name not in lost
    )
    for name, section in configured.items():
        if why := unknown_profile(section, sections):
            unread += lacking_all(name, why)
    return DeviceQos(
        device=target.device,
        kind="switch",
        os="nxos",
        ports=ports,
        model=version.model,
        firmware=version.firmware,
        serial=version.serial,
        config_sha256=sha256(outputs[RUNNING]),
        saved=None if lost else _saved(outputs, configured, unread),
        neighbors=neighbors,
        unread=tuple(dict.fromkeys(unread)),
        facts=_facts(ports, live, links),
        remarks=tuple(remarks(sections)),
    )


def _saved(outputs: Outputs, configured: Iterable[str], unread: list[str]) -> bool | None:
    """None also of a startup configuration that was cut off."""
    saved = is_saved(outputs, RUNNING, STARTUP, sha256, unread)
    if saved is not False:
        return saved
    startup = parse(outputs[STARTUP])
    if startup and _lost(outputs[STARTUP], startup, _configured(startup), configured)[0]:
        unread.append(f"startup configuration: '{STARTUP}' seems cut off")
        return None
    return False


def _configured(sections: Iterable[Section]) -> dict[str, Section]:
    """The front ports of a configuration."""
    return dict(ports_of(sections, str, is_physical))


def _lost(
    text: str, sections: Sequence[Section], configured: Mapping[str, Section], seen: Iterable[str]
) -> tuple[set[str], str]:
    """Ports whose section a configuration that was cut off lacks, wholly or in part; and why.

    Without ``show interface`` or the like it can be told only of what NX-OS itself has
    printed, where the last line is not a whole one.
    """
    shown = {name for name in seen if is_physical(name)}
    broken = text.lstrip().startswith("!Command: show ") and not text.endswith("\n")
    lost = lost_ports(sections, configured, shown, broken=broken)
    missing = shown - set(configured)
    if lost and missing:
        return lost, f"{len(missing)} ports that other outputs show are not in '{RUNNING}'"
    return lost, f"'{RUNNING}' ends in the midst of {', '.join(lost)}"


def _facts(
    ports: tuple[PortQos, ...],
    live: dict[str, PfcState] | None,
    links: Mapping[str, LinkState],
) -> tuple[PortFacts, ...]:
    """What the ports are seen to be; a switch that does not show it can still be read."""
    facts = []
    for port in ports:
        link, pfc = links.get(port.name), (live or {}).get(port.name)
        facts.append(
            PortFacts(
                port.name,
                up=link.up if link else None,
                admin_up=link.admin_up if link else None,
                speed_bps=link.speed_bps if link else None,
                fec=link.fec if link else None,
                pfc_mode=pfc.mode if pfc else None,
                mac=link.mac if link else None,
            )
        )
    return tuple(facts)


def _version(outputs: Outputs, unread: list[str]) -> Version:
    version = parse_version(outputs.get(VERSION, ""))
    for name in ("model", "firmware", "serial"):
        if not getattr(version, name):
            unread.append(f"{name}: not in '{VERSION}'")
    return version


class _Device:
    """What is the same for all ports, found once."""

    def __init__(
        self,
        sections: Sequence[Section],
        live: dict[str, PfcState] | None,
        unread: list[str],
    ) -> None:
        self._policies = Policies(sections)
        self._live = live
        self._unread = unread
        system = find(sections, "system qos")
        self._system = system.children if system else []
        self._network_qos: NetworkQos = self._policies.network_qos(
            _attached(self._system, "network-qos")
        )
        self._watchdog_on = find(sections, WATCHDOG_ON) is not None
        texts = [section.text for section in sections]
        polls = number(texts, SHUTDOWN_MULTIPLIER, RUNNING)
        poll_ms = number(texts, "priority-flow-control watch-dog interval", RUNNING)
        self._detect_ms = (1 if polls is None else polls) * (poll_ms or POLL_MS)
        unread += [f"{Fact.CLASS_MTU}: {why}" for why in self._network_qos.unread]

    def port(self, section: Section) -> PortQos:
        """What this ``interface`` section makes of its port."""
        name = section.text.removeprefix("interface ")
        lines = [child.text for child in section.children]
        classification = self._policies.classification(self._policy(section, "qos input"))
        queues, unknown = self._policies.queues(self._policy(section, "queuing output"))
        buffers, unsized = self._policies.buffers(self._policy(section, "queuing input"))
        self._unread += (lacking(name, Fact.DSCPS, why) for why in classification.unread)
        self._unread += (lacking(name, fact, why, of) for fact, of, why in (*unknown, *unsized))
        mtu = number(lines, "mtu", f"'{RUNNING}': {name}")
        return PortQos(
            name=name,
            mtu_bytes=DEFAULT_MTU if mtu is None else mtu,
            trust=classification.trust,
            dscp_to_priority=classification.dscp_to_priority,
            priority_to_class=tuple(range(PRIORITY_COUNT)),
            class_mtu_bytes=self._network_qos.class_mtu_bytes,
            pfc_priorities=self._pfc_priorities(name, lines),
            link_pause=any(
                re.fullmatch(r"flowcontrol (?:receive|send) on", line) for line in lines
            ),
            queues=queues,
            ingress_buffers=buffers,
            watchdog=self._watchdog(lines),
        )

    def _policy(self, section: Section, kind: str) -> str | None:
        """A port's own policy goes before the one of the whole system."""
        own = _attached(section.children, kind)
        return own if own is not None else _attached(self._system, kind)

    def _pfc_priorities(self, name: str, lines: Sequence[str]) -> tuple[int, ...]:
        mode = "auto"
        for line in lines:
            if match := re.match(r"priority-flow-control mode (\w+)", line):
                mode = match[1]
        state = self._live.get(name) if self._live is not None else None
        if state is not None and state.priorities is not None:
            return state.priorities
        if state is None and self._live is not None:
            self._unread.append(f"live PFC state of {name}: not in '{PFC}'")
        if state is None and mode != "on":
            return ()
        self._unread += (
            lacking(name, Fact.PFC, why, "all priorities") for why in self._network_qos.unread
        )
        return self._network_qos.pause

    def _watchdog(self, lines: Sequence[str]) -> Watchdog | None:
        """On only where it is on for the system and for the port."""
        on = next((line for line in lines if line.startswith(WATCHDOG_ON)), None)
        if on is None or not self._watchdog_on:
            return None
        return Watchdog(
            self._detect_ms, None, "forward" if "disable-action" in on.split() else "drop"
        )


def _attached(lines: Iterable[Section], kind: str) -> str | None:
    """Name of the policy of this kind that these lines attach."""
    words = kind.split()
    for line in lines:
        parts = line.text.split()
        if parts[:2] == ["service-policy", "type"] and parts[2 : 2 + len(words)] == words:
            return parts[2 + len(words)] if len(parts) > 2 + len(words) else None
    return None
