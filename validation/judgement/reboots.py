"""Nothing rebooted while a suite ran: its counters, and what it measured, would be of two lives."""

from __future__ import annotations

from validation.boots import boot_known, rebooted
from validation.criteria import Check, Judge
from validation.judgement.observation import Observation


def reboot_checks(observation: Observation) -> list[Check]:
    """``reboot``: one check a device whose counters were read on both sides of the suite.

    SKIP where a device shows neither uptime nor boot id.
    """
    judge = Judge(observation, "counters")
    checks = []
    for device in observation.plan.snapshot:
        before, after = observation.before.get(device), observation.after.get(device)
        if before is None or after is None or device in observation.unread:
            continue
        said = rebooted(before, after)
        if boot_known(before, after):
            reason = f"{device}: {said}"
            checks.append(
                judge.at_most("reboot", device, bool(said), 0, "reboots", reason=reason, at=device)
            )
        else:
            why = observation.deltas.why_missing(device, "uptime") or "its uptime was not read"
            checks.append(judge.skipped("reboot", device, f"whether it rebooted: {why}"))
    return checks
