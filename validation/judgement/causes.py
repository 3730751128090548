"""The likely cause behind a counter, read from the devices' own state.

Each function returns a clause that completes "... packets dropped: <cause>",
and never guesses: where the configuration shows nothing, it says so.
"""

from __future__ import annotations

from fabric.headroom import headroom_bytes
from fabric.intent import ROCE_HEADER_BYTES
from fabric.qos import Nic, PortQos
from fabric.reach.linkstate import down_ports
from fabric.site import Site
from fabric.topology import PortRef
from validation.judgement.observation import Observation
from validation.traffic import application_tos

UNKNOWN = "the configuration that was read shows no cause; look at cabling and hardware"


def port_state(observation: Observation, port: PortRef) -> PortQos | None:
    """What this port does; None where the device was not read or shows no such port."""
    state = observation.states.get(port.device)
    return state.port(port.port) if state else None


def ingress_drop(observation: Observation, port: PortRef) -> str:
    """Why RDMA packets that came in at this port found no buffer."""
    here = port_state(observation, port)
    if here is None:
        return "the port's configuration could not be read"
    priority = observation.priority
    peer_ref = observation.site.topology.peer(port)
    peer = port_state(observation, peer_ref)
    return (
        _misplaced(observation.site, here)
        or _pfc_off(here, priority, "there")
        or (_pfc_off(peer, priority, f"at its peer {peer_ref}") if peer else "")
        or _buffer(observation.site, port, here, priority)
        or ("link pause is on there, which replaces PFC" if here.link_pause else "")
        or stray(observation)
        or UNKNOWN
    )


def egress_drop(observation: Observation, port: PortRef, priority: int | None) -> str:
    """Why packets were dropped in this port's egress queue."""
    here = port_state(observation, port)
    if priority is not None and priority != observation.priority:
        return stray(observation) or f"queue {priority} there is lossy"
    if here is None:
        return "the port's configuration could not be read"
    peer_ref = observation.site.topology.peer(port)
    return (
        _pfc_off(here, observation.priority, "there")
        or stray(observation)
        or f"{UNKNOWN} (its peer is {peer_ref})"
    )


def too_large(observation: Observation, port: PortRef) -> str:
    """Why a port dropped packets as too large."""
    here = port_state(observation, port)
    mtu = observation.site.intent.mtu
    wanted = mtu.host if here is not None and here.nic is not None else mtu.switch_port
    if here is None:
        return "the port's MTU could not be read"
    smallest = min(here.mtu_bytes, here.class_mtu_bytes[observation.priority])
    if smallest < wanted:
        return f"the MTU there is {smallest}, the intent says {wanted}"
    return f"the MTU there is {smallest} as intended: a peer sends larger packets"


def wrong_priority(observation: Observation, port: PortRef) -> str:
    """Why RDMA packets are not seen in their priority at this port; empty if unknown."""
    here = port_state(observation, port)
    if here is None:
        return "the port's configuration could not be read"
    return _misplaced(observation.site, here) or _mismarked_by(observation.site, port, here)


def mismarked(observation: Observation, endpoint: PortRef) -> str:
    """How this NIC marks RDMA wrongly, as far as its settings show it; empty if they do not."""
    port = port_state(observation, endpoint)
    return "" if port is None else _mismarked_by(observation.site, endpoint, port)


def no_marks(observation: Observation, receiver: PortRef) -> str:
    """Why congestion towards this NIC was not marked or not answered."""
    site = observation.site
    last_hop = site.topology.peer(receiver)
    switch = port_state(observation, last_hop)
    if switch is not None:
        queue = switch.queue(switch.class_of_dscp(site.intent.roce.dscp[0]))
        if queue is None or queue.ecn is None:
            return f"ECN is off on the RDMA queue of {last_hop}"
    nic = port_state(observation, receiver)
    if nic is not None and nic.nic is not None:
        dcqcn = nic.nic.dcqcn
        if dcqcn is None or observation.priority not in dcqcn.np_priorities:
            return f"{receiver} sends no CNPs for priority {observation.priority} (NP is off)"
    return stray(observation) or UNKNOWN


def much_pause(observation: Observation) -> str:
    """Why PFC had to act for long although DCQCN is there to prevent it."""
    dscp = observation.site.intent.roce.dscp[0]
    unmarking = []
    for switch in observation.site.topology.switches:
        for ref in observation.cabled(switch):
            port = port_state(observation, ref)
            queue = port.queue(port.class_of_dscp(dscp)) if port else None
            if port is not None and (queue is None or queue.ecn is None):
                unmarking.append(ref)
    if unmarking:
        more = f" and {len(unmarking) - 1} more ports" if len(unmarking) > 1 else ""
        return f"ECN is off on the RDMA queue of {unmarking[0]}{more}"
    return no_reaction(observation)


def no_reaction(observation: Observation) -> str:
    """Why senders do not slow down on CNPs."""
    for endpoint in observation.site.topology.endpoints:
        port = port_state(observation, endpoint)
        if port is None or port.nic is None:
            continue
        dcqcn = port.nic.dcqcn
        if dcqcn is None or observation.priority not in dcqcn.rp_priorities:
            return f"{endpoint} ignores CNPs for priority {observation.priority} (RP is off)"
    return stray(observation) or UNKNOWN


def ignored(observation: Observation, sender: PortRef) -> str:
    """Why this NIC port did not slow down on the CNPs that it received."""
    port = port_state(observation, sender)
    dcqcn = port.nic.dcqcn if port is not None and port.nic is not None else None
    if dcqcn is None or observation.priority not in dcqcn.rp_priorities:
        return f"its reaction point is off for priority {observation.priority}"
    return wrong_priority(observation, sender) or UNKNOWN


def on_path(observation: Observation, source: PortRef, target: PortRef) -> tuple[str, PortRef]:
    """Why a pair's packets do not get through, and at which port; the source if unknown."""
    topology = observation.site.topology
    if down := link_down(observation, source, target):
        return down
    needed = observation.site.intent.mtu.roce + ROCE_HEADER_BYTES
    for path in topology.paths(source, target):
        for egress in path:
            for ref in (egress, topology.peer(egress)):
                port = port_state(observation, ref)
                if port is None:
                    continue
                passes = min(port.mtu_bytes, port.class_mtu_bytes[observation.priority])
                if passes < needed:
                    return f"{ref} passes packets of {passes:,} bytes only", ref
            if cap := _capped(observation, egress):
                return cap, egress
    return UNKNOWN, source


def _capped(observation: Observation, port: PortRef) -> str:
    """What keeps RDMA from this port's full rate; empty where nothing does."""
    here = port_state(observation, port)
    if here is None:
        return ""
    queue = here.queue(here.class_of_dscp(observation.site.intent.roce.dscp[0]))
    if queue is not None and queue.max_rate_bps:
        return f"{port} sends RDMA at {queue.max_rate_bps / 1e9:g} Gb/s at most"
    dcqcn = here.nic.dcqcn if here.nic is not None else None
    if dcqcn is not None and dcqcn.max_rate_mbps:
        return f"{port} sends a queue pair at {dcqcn.max_rate_mbps / 1e3:g} Gb/s at most"
    return ""


def link_down(
    observation: Observation, source: PortRef, target: PortRef
) -> tuple[str, PortRef] | None:
    """Why no path is left between two NICs, and at which port; None where one is."""
    topology = observation.site.topology
    down = down_ports(topology, observation.states)
    if not down:
        return None
    for end in (source, target):
        if end in down:
            return down[end], end
    over = [set(down).intersection(path) for path in topology.paths(source, target)]
    if over and all(over):
        port = min(over[0])
        return down[port], port
    return None


def _pfc_off(port: PortQos, priority: int, where: str) -> str:
    if priority in port.pfc_priorities:
        return ""
    others = ",".join(map(str, port.pfc_priorities))
    return f"PFC is off {where}" + (f" for it (on for {others})" if others else "")


def _misplaced(site: Site, port: PortQos) -> str:
    dscp, wanted = site.intent.roce.dscp[0], site.intent.roce.priority
    if port.nic is not None and port.nic.family == "rxe":
        return ""  # software sorts by nothing, and needs not
    if port.trust != "dscp":
        return f"the port trusts {port.trust}, not DSCP, so RDMA lands in priority 0"
    priority = port.priority_of_dscp(dscp)
    if priority != wanted:
        return f"DSCP {dscp} is mapped to priority {priority} there, not {wanted}"
    traffic_class = port.priority_to_class[priority]
    # A NIC may number its classes otherwise, as long as RoCE has one of its own.
    shared = traffic_class == port.priority_to_class[site.intent.default.priority]
    if traffic_class != wanted and (port.nic is None or shared):
        return f"priority {priority} goes to queue {traffic_class} there, not {wanted}"
    return ""


def _mismarked_by(site: Site, endpoint: PortRef, port: PortQos) -> str:
    if port.nic is None:
        return ""
    wanted = site.intent.roce.dscp[0]
    tos = port.nic.verbs_traffic_class
    if tos is None:
        if application_tos(site, endpoint) is not None:
            return _mismarked_by_cm(endpoint, port.nic, wanted)
        return f"{endpoint} sets no traffic class for RDMA: it leaves with DSCP 0, not {wanted}"
    if tos >> 2 != wanted:
        return f"{endpoint} sends RDMA with DSCP {tos >> 2}, not {wanted}"
    return ""


def _mismarked_by_cm(endpoint: PortRef, nic: Nic, wanted: int) -> str:
    """How rdma_cm marks, where programs mark the rest: that is all there is to be seen."""
    tos = nic.rdma_cm_tos
    if tos is None or tos >> 2 == wanted:
        return ""
    return f"{endpoint}: rdma_cm there marks RDMA with DSCP {tos >> 2}, not {wanted}"


def stray(observation: Observation) -> str:
    """Which NIC sends RDMA outside its class, and how; empty where none is seen to."""
    for endpoint in observation.site.topology.endpoints:
        port = port_state(observation, endpoint)
        if port is None:
            continue
        cause = _mismarked_by(observation.site, endpoint, port)
        if not cause:
            misplaced = _misplaced(observation.site, port)
            cause = f"at {endpoint}, {misplaced}" if misplaced else ""
        if cause:
            return cause
    return ""


def _buffer(site: Site, ref: PortRef, port: PortQos, priority: int) -> str:
    buffer = port.ingress_buffer(priority)
    if buffer is None:
        return f"priority {priority} has no lossless buffer there"
    link = site.topology.link_of[ref]
    mtu = site.intent.mtu.host if port.nic else site.intent.mtu.switch_port
    needed = headroom_bytes(link.speed_bps, link.length_m, mtu)
    headroom = buffer.size_bytes - buffer.xoff_bytes
    if headroom < needed:
        return f"its headroom is {headroom:,} bytes, {needed:,} are needed"
    return ""
