"""Rules for a device as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit.findings import Skip
from fabric.audit.rule import Fault, Subject, remarks_only, rule
from fabric.compare import differences
from fabric.devices.registry import module_of


@rule(
    "unread",
    "warning",
    "What a device does not show is not known to be right.",
    see="the reason that stands beside the skip",
    mend="let the account run the command, or save its output",
)
def unread(subject: Subject) -> Iterator[Fault | Skip]:
    """Every fact that the rules need was shown."""
    for fact in subject.live.unread:
        yield Skip("unread", subject.live.device, fact)


@rule(
    "unsaved",
    "warning",
    "The next reload brings another configuration back.",
    checks=(37,),
    see="show running-config against show startup-config",
    mend="NX-OS: copy running-config startup-config; SONiC: config save; NVUE: nv config save",
)
def unsaved(subject: Subject) -> Iterator[Fault | Skip]:
    """A switch boots with the configuration that it runs."""
    if subject.live.kind != "switch":
        return
    if subject.live.saved is None:
        yield Skip("unsaved", subject.live.device, "the startup configuration was not shown")
    elif not subject.live.saved:
        yield Fault(
            "the running configuration is not the startup configuration", fix=_save(subject)
        )


def _save(subject: Subject) -> tuple[str, ...]:
    """The vendor's own commands; empty where its module names none."""
    return module_of(subject.site, subject.live.device).safety_net("audit").save


@rule(
    "drift",
    "error",
    "A certificate holds for what was measured, not for what came after.",
    checks=(45,),
    see="paisoar certificate show",
    mend="put it back, or validate and certify anew",
)
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


@rule(
    "uneven",
    "warning",
    "One odd node sets the pace of a collective; and what was measured on others does not hold.",
    checks=(45,),
    see="ethtool -i IF (firmware-version), mlxconfig query; show version",
    mend="the same firmware and driver on all devices of one model",
)
def uneven(subject: Subject) -> Iterator[Fault | Skip]:
    """Devices of one model run the same firmware and driver."""
    for odd in subject.odd:
        yield Fault(odd)


@rule(
    "vendor",
    "warning",
    "The vendor's own documentation warns of it.",
    see="the evidence beside the finding",
    mend="as the message says",
)
def vendor(subject: Subject) -> Iterator[Fault | Skip]:  # noqa: ARG001
    """Nothing that only this vendor's module knows is wrong."""
    return remarks_only()
