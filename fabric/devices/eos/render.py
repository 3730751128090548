"""From an intended state to the configuration that the intent owns.

Traffic class, PFC priority and transmit queue are one number. ``docs/devices-eos.md``
lists every line; ``fabric.devices.eos.lines`` names the sources of their forms.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict

from fabric.devices.eos.lines import (
    APPLY,
    DEFAULT_MTU,
    MMU_PROFILE,
    PREFIX,
    PROFILE,
    WATCHDOG,
    default_traffic_class,
    dscp_map_line,
    ecn_line,
    timer_line,
)
from fabric.devices.eos.normalise import normalise, require_expressible, threshold_of
from fabric.devices.sections import Section
from fabric.qos import PRIORITY_COUNT, DeviceQos, PortQos, Queue

# The action where a port names none: the port is shut. avd, qos_profiles schema.
ACTIONS = {"drop": "drop", "forward": "notify-only"}


def intended_sections(intended: DeviceQos) -> list[Section]:
    """Everything that the intent owns on this device, in the order of its definition.

    Raises InputError for what EOS cannot express at all.
    """
    require_expressible(intended)
    state = normalise(intended)
    if not state.ports:
        return []
    profiles: dict[str, Section] = {}
    interfaces = [_interface(port, profiles) for port in state.ports]
    return [*_buffers(state), *_dscp_maps(state), *profiles.values(), *interfaces]


def _dscp_maps(state: DeviceQos) -> list[Section]:
    """Lines for the DSCPs that EOS would put elsewhere."""
    by_class: dict[int, list[int]] = defaultdict(list)
    for dscp, priority in enumerate(state.ports[0].dscp_to_priority):
        if priority != default_traffic_class(dscp):
            by_class[priority].append(dscp)
    return [Section(dscp_map_line(by_class[tc], tc)) for tc in sorted(by_class)]


def _buffers(state: DeviceQos) -> list[Section]:
    buffers = [buffer for port in state.ports for buffer in port.ingress_buffers]
    if not buffers:
        return []
    headroom = buffers[0].size_bytes - buffers[0].xoff_bytes
    threshold = threshold_of(buffers[0].alpha)
    lines = [f"ingress threshold {threshold}", f"ingress headroom {headroom}"]
    if buffers[0].xoff_bytes:
        lines.append(f"ingress resume {buffers[0].xoff_bytes}")
    profile = _object(MMU_PROFILE, "BUF", [Section(line) for line in lines])
    return [profile, Section(profile.text + APPLY)]


def _interface(port: PortQos, profiles: dict[str, Section]) -> Section:
    profile = _object(PROFILE, "QOS", _profile_lines(port))
    profiles[profile.text] = profile
    lines = [Section(f"mtu {port.mtu_bytes}")] if port.mtu_bytes != DEFAULT_MTU else []
    if port.link_pause:
        lines += [Section("flowcontrol send on"), Section("flowcontrol receive on")]
    lines.append(Section(f"service-profile {profile.text.removeprefix(PROFILE)}"))
    for queue in port.queues:
        if queue.ecn is not None:
            count = Section("random-detect ecn count")
            lines.append(Section(f"uc-tx-queue {queue.traffic_class}", [count]))
    return Section(f"interface {port.name}", lines)


def _profile_lines(port: PortQos) -> list[Section]:
    lines = ["qos trust dscp"]
    if port.pfc_priorities:
        lines.append("priority-flow-control on")
    lines += [f"priority-flow-control priority {p} no-drop" for p in port.pfc_priorities]
    if port.watchdog is not None:
        lines.append(WATCHDOG)
        if port.watchdog.detect_ms is not None:
            restore_ms = port.watchdog.restore_ms or port.watchdog.detect_ms
            lines.append(timer_line(port.watchdog.detect_ms, restore_ms))
        if port.watchdog.action in ACTIONS:
            lines.append(f"{WATCHDOG} port action {ACTIONS[port.watchdog.action]}")
    queues = [_queue(queue) for queue in port.queues]
    return [*map(Section, lines), *(queue for queue in queues if queue.children)]


def _queue(queue: Queue) -> Section:
    """A queue's lines; the highest is strict where nothing is said of it."""
    lines = []
    if queue.scheduler.mode == "ets":
        lines.append("no priority")
        if queue.scheduler.percent:
            lines.append(f"bandwidth percent {queue.scheduler.percent}")
    elif queue.traffic_class != PRIORITY_COUNT - 1:
        lines.append("priority strict")
    if queue.ecn is not None:
        lines.append(ecn_line(queue.ecn))
    return Section(f"uc-tx-queue {queue.traffic_class}", [Section(line) for line in lines])


def _object(head: str, kind: str, children: list[Section]) -> Section:
    """A profile whose name comes from the lines that it holds.

    It is never redefined under its name: what holds other lines has another
    name, so that it can be defined beside the one in use.
    """
    text = "\n".join(line for child in children for line in child.texts())
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Section(f"{head}{PREFIX}{kind}-{digest}", children)
