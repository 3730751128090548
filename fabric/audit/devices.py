"""Rules for a device as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit.findings import Skip
from fabric.audit.rule import Fault, Subject, rule
from fabric.compare import differences
from fabric.topology import PortRef


@rule("unread", "warning", "What a device does not show is not known to be right.")
def unread(subject: Subject) -> Iterator[Fault | Skip]:
    """Every fact that the rules need was shown."""
    for fact in subject.live.unread:
        yield Skip("unread", subject.live.device, fact)


@rule("unsaved", "warning", "The next reload brings another configuration back.")
def unsaved(subject: Subject) -> Iterator[Fault | Skip]:
    """A switch boots with the configuration that it runs."""
    if subject.live.kind != "switch":
        return
    if subject.live.saved is None:
        yield Skip("unsaved", subject.live.device, "the startup configuration was not shown")
    elif not subject.live.saved:
        yield Fault("the running configuration is not the startup configuration")


@rule("cabling", "error", "Every limit and path here is computed from the cables of fabric.yaml.")
def cabling(subject: Subject) -> Iterator[Fault | Skip]:
    """LLDP sees the neighbours that fabric.yaml names."""
    if subject.live.kind != "switch":
        return
    if subject.live.neighbors is None:
        yield Skip("cabling", subject.live.device, "no LLDP table was shown")
        return
    seen = {neighbor.port: neighbor for neighbor in subject.live.neighbors}
    for port in subject.intended.ports:
        peer = subject.site.topology.peer(PortRef(subject.live.device, port.name))
        neighbor = seen.get(port.name)
        if neighbor is None:
            yield Skip("cabling", subject.live.device, f"LLDP sees nobody on {port.name}")
        elif (neighbor.peer, neighbor.peer_port) != (peer.device, peer.port):
            yield Fault(
                f"LLDP sees {neighbor.peer}:{neighbor.peer_port}, fabric.yaml says {peer}",
                port.name,
            )


@rule("drift", "error", "A certificate holds for what was measured, not for what came after.")
def drift(subject: Subject) -> Iterator[Fault | Skip]:
    """The device does what it did when the site was certified."""
    before, now = subject.baseline, subject.live
    if before is None:
        return
    changed = differences(before, now)
    if changed:
        yield Fault(
            f"changed since the certificate: {changed[0]}"
            + (f" and {len(changed) - 1} more" if len(changed) > 1 else ""),
            evidence=tuple(changed),
        )
