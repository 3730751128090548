"""Rules over what devices do: findings with rule, evidence and fix."""

from fabric.audit.findings import AuditReport, Finding, Skip
from fabric.audit.run import audit, rules

__all__ = ["AuditReport", "Finding", "Skip", "audit", "rules"]
