"""The part of ``fabric.yaml`` before its devices, written from an intent."""

from __future__ import annotations

from collections.abc import Mapping

from ruamel.yaml import YAML

from fabric.intent import Intent, PortProfile
from fabric.site import FabricFile
from fabric.starter import starter_yaml
from fabric.topology import ClosShape


def starter_intent() -> Intent:
    """The intent that ``paisoar init`` writes."""
    text = starter_yaml(ClosShape(2, 1, 0), site="starter", environment="site")
    return FabricFile.model_validate(YAML().load(text)).intent


def head_yaml(
    intent: Intent,
    profiles: Mapping[str, PortProfile],
    *,
    site: str,
    environment: str,
    max_oversubscription: float,
    origin: str,
) -> str:
    """Schema, site and intent, commented. ``profiles`` by port speed, as ``25G``."""
    mtu, watchdog, host = intent.mtu, intent.watchdog, intent.host
    lines = [
        f"# {origin}",
        "# `paisoar check` says whether it makes sense; nothing is touched until",
        "# `paisoar provision`. No passwords here: see `paisoar plan --help`.",
        "schema: paisoar/fabric/v1",
        f"site: {site}",
        f"environment: {environment}",
        "# Host-side over fabric-side speed that a leaf may have; 1 is non-blocking.",
        f"max_oversubscription: {max_oversubscription:g}",
        "",
        "intent:",
        f"  mtu: {{switch_port: {mtu.switch_port}, host: {mtu.host}, roce: {mtu.roce}}}",
        "  # One number for one class everywhere: PFC priority, switch queue, NIC class.",
        "  classes:",
    ]
    for name, cls in intent.classes.items():
        served = cls.scheduler
        percent = f", percent: {served.percent}" if served.mode == "ets" else ""
        lines += [f"    {name}:", f"      role: {cls.role}"]
        if cls.dscp:
            lines.append(f"      dscp: [{', '.join(map(str, cls.dscp))}]")
        lines.append(f"      priority: {cls.priority}")
        if cls.lossless:
            lines.append("      lossless: true")
        lines.append(f"      scheduler: {{mode: {served.mode}{percent}}}")
    lines += [
        "  # Thresholds by port speed: ECN of the egress queue, PFC of the ingress buffer.",
        "  profiles:",
    ]
    for speed, profile in profiles.items():
        alpha = f", alpha: {profile.alpha:g}" if profile.alpha is not None else ""
        lines.append(
            f"    {speed}: {{kmin: {size(profile.kmin)}, kmax: {size(profile.kmax)}, "
            f"pmax_percent: {profile.pmax_percent}, xoff: {size(profile.xoff)}, "
            f"xon: {size(profile.xon)}{alpha}}}"
        )
    lines += [
        f"  watchdog: {{action: {watchdog.action}, detect_ms: {watchdog.detect_ms}, "
        f"restore_ms: {watchdog.restore_ms}}}",
        "  dcqcn:",
        *(f"    {name}: {value}" for name, value in intent.dcqcn.model_dump().items()),
        f"  host: {{receive_buffer: {size(host.receive_buffer)}, "
        f"mark_ect: {'true' if host.mark_ect else 'false'}}}",
        "",
    ]
    return "\n".join(lines)


def size(size_bytes: int) -> str:
    """A size that is read back as exactly the same."""
    for suffix, factor in (("MB", 10**6), ("KB", 10**3)):
        if size_bytes % factor == 0 and size_bytes >= factor:
            return f"{size_bytes // factor}{suffix}"
    return f"{size_bytes}B"
