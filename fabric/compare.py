"""What differs between two states of one device, in words."""

from __future__ import annotations

import dataclasses

from fabric.qos import DeviceQos, PortQos

# Not what the device does, but how it is held and seen.
_SEEN_ONLY = {"saved", "neighbors", "unread", "facts", "remarks", "ports", "config_sha256"}


def differences(before: DeviceQos, after: DeviceQos) -> list[str]:
    """One line a difference, ports first; empty where both do the same.

    A configuration that differs in nothing that we read is one line of its own.
    """
    lines: list[str] = []
    for port in before.ports:
        now = after.port(port.name)
        if now is None:
            lines.append(f"{port.name}: no longer there")
        else:
            lines += [f"{port.name}: {line}" for line in port_differences(port, now)]
    known = {port.name for port in before.ports}
    lines += [f"{port.name}: new" for port in after.ports if port.name not in known]
    lines += _fields(before, after, _SEEN_ONLY)
    if before.config_sha256 != after.config_sha256:
        lines.append(
            "the running configuration is another text "
            f"({before.config_sha256[:12]} -> {after.config_sha256[:12]})"
        )
    return lines


def port_differences(before: PortQos, after: PortQos) -> list[str]:
    """One line a field that differs, as ``field: before -> after``."""
    lines = _fields(before, after, {"name", "nic", "dscp_to_priority", "queues"})
    for dscp, (old, new) in enumerate(
        zip(before.dscp_to_priority, after.dscp_to_priority, strict=True)
    ):
        if old != new:
            lines.append(f"DSCP {dscp}: priority {old} -> {new}")
    classes = {queue.traffic_class for queue in (*before.queues, *after.queues)}
    for traffic_class in sorted(classes):
        old_queue, new_queue = before.queue(traffic_class), after.queue(traffic_class)
        if old_queue is None or new_queue is None:
            if old_queue is not new_queue:
                lines.append(f"queue {traffic_class}: {_text(old_queue)} -> {_text(new_queue)}")
        else:
            lines += [
                f"queue {traffic_class} {line}" for line in _fields(old_queue, new_queue, set())
            ]
    if before.nic is not None and after.nic is not None:
        lines += _fields(before.nic, after.nic, {"dcqcn"})
        if before.nic.dcqcn is not None and after.nic.dcqcn is not None:
            lines += _fields(before.nic.dcqcn, after.nic.dcqcn, set())
        elif before.nic.dcqcn is not after.nic.dcqcn:
            lines.append(f"dcqcn: {_text(before.nic.dcqcn)} -> {_text(after.nic.dcqcn)}")
    elif before.nic is not after.nic:
        lines.append(f"nic: {_text(before.nic)} -> {_text(after.nic)}")
    return lines


def _fields(before: object, after: object, skip: set[str]) -> list[str]:
    lines = []
    for field in dataclasses.fields(before):  # type: ignore[arg-type]
        old, new = getattr(before, field.name), getattr(after, field.name)
        if field.name not in skip and old != new:
            lines.append(f"{field.name}: {_text(old)} -> {_text(new)}")
    return lines


def _text(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ",".join(map(_text, value)) or "none"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return " ".join(f"{name}={_text(item)}" for name, item in pairs)
    return str(value)
