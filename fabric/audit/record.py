"""The last audit of a site, kept for reports: ``.paisoar/audit.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fabric.audit.findings import AuditReport, Finding, Skip
from fabric.provisioning.planfile import write_private
from fabric.site import Site


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An audit and when it was made (ISO 8601, UTC)."""

    made_at: str
    report: AuditReport


def _path(site: Site) -> Path:
    return site.state_dir / "audit.json"


def save_audit(site: Site, report: AuditReport) -> None:
    """Keep this audit as the site's last."""
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    write_private(_path(site), json.dumps({"made_at": made_at, **report.to_json()}, indent=1))


def load_audit(site: Site) -> AuditRecord | None:
    """The site's last audit; None where there is none that can be read."""
    try:
        data = json.loads(_path(site).read_text(encoding="utf-8"))
        findings = tuple(
            Finding(**{**f, "evidence": tuple(f["evidence"]), "fix": tuple(f["fix"])})
            for f in data["findings"]
        )
        skipped = tuple(Skip(**skip) for skip in data["skipped"])
        report = AuditReport(findings, skipped, tuple(data["devices"]))
        return AuditRecord(data["made_at"], report)
    except (OSError, ValueError, KeyError, TypeError):
        return None
