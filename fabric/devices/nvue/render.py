"""From an intended state to the part of NVUE's tree that the intent owns.

Attributes: CumulusNetworks/docs, Cumulus Linux 5.14, "Quality of Service" and its
section "Port Groups".
"""

from __future__ import annotations

from collections.abc import Mapping

from fabric.devices.nvue.names import content_name
from fabric.devices.nvue.normalise import POLL_MS, normalise, require_expressible
from fabric.devices.nvue.tree import Tree, merge
from fabric.qos import DeviceQos, PortQos


def intended_tree(intended: DeviceQos) -> Tree:
    """Everything that the intent owns on this device.

    Raises InputError for what NVUE cannot express at all.
    """
    require_expressible(intended)
    state = normalise(intended)
    if not state.ports:
        return {}
    qos: Tree = {}
    interfaces = {port.name: _interface(port, qos) for port in state.ports}
    classes = state.ports[0].priority_to_class
    queues = {str(number): {"traffic-class": str(to)} for number, to in enumerate(classes)}
    qos["egress-queue-mapping"] = {"default-global": {"switch-priority": queues}}
    watchdog = next((port.watchdog for port in state.ports if port.watchdog), None)
    if watchdog is not None:
        qos["pfc-watchdog"] = {
            "polling-interval": str(POLL_MS),
            "robustness": str((watchdog.detect_ms or POLL_MS) // POLL_MS),
        }
    return {"interface": interfaces, "qos": qos}


def _interface(port: PortQos, qos: Tree) -> Tree:
    below: Tree = {
        "mapping": {"profile": _define(qos, "mapping", _mapping(port))},
        "egress-scheduler": {"profile": _define(qos, "egress-scheduler", _scheduler(port))},
        "congestion-control": {"profile": _define(qos, "congestion-control", _marking(port))},
    }
    if port.pfc_priorities:
        below["pfc"] = {"profile": _define(qos, "pfc", _pfc(port))}
    if port.watchdog:
        below["pfc-watchdog"] = {"state": "enable"}
    return {"link": {"mtu": str(port.mtu_bytes)}, "qos": below}


def _mapping(port: PortQos) -> Tree:
    dscps = {
        str(dscp): {"switch-priority": str(to)} for dscp, to in enumerate(port.dscp_to_priority)
    }
    return {"dscp": dscps, "trust": "l3"}


def _scheduler(port: PortQos) -> Tree:
    """A queue without a share is left out: it gets what the others leave."""
    classes: Tree = {}
    for queue in port.queues:
        if queue.scheduler.mode == "strict":
            classes[str(queue.traffic_class)] = {"mode": "strict"}
        elif queue.scheduler.percent:
            share = {"bw-percent": str(queue.scheduler.percent), "mode": "dwrr"}
            classes[str(queue.traffic_class)] = share
    return {"traffic-class": classes}


def _marking(port: PortQos) -> Tree:
    """Queues that a profile does not name mark nothing; a profile names at least one."""
    classes = {
        str(queue.traffic_class): {
            "ecn": "enable",
            "max-threshold": str(queue.ecn.kmax_bytes),
            "min-threshold": str(queue.ecn.kmin_bytes),
            "probability": str(queue.ecn.pmax_percent),
            "red": "disable",
        }
        for queue in port.queues
        if queue.ecn
    }
    return {"traffic-class": classes or {"0": {"ecn": "disable", "red": "disable"}}}


def _pfc(port: PortQos) -> Tree:
    """``xon-threshold`` is how far below XOFF a pause ends."""
    profile: Tree = {
        "rx": "enable",
        "switch-priority": {str(priority): {} for priority in port.pfc_priorities},
        "tx": "enable",
    }
    for buffer in port.ingress_buffers[:1]:
        profile |= {
            "port-buffer": str(buffer.size_bytes),
            "xoff-threshold": str(buffer.xoff_bytes),
            "xon-threshold": str(buffer.xoff_bytes - buffer.xon_bytes),
        }
    return profile


def _define(qos: Tree, kind: str, profile: Mapping[str, object]) -> str:
    """Add the profile of this content, once, and return its name."""
    name = content_name(profile)
    merge(qos, {kind: {name: profile}})
    return name
