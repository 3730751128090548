"""Refusals of the gate: a short stable word for each, and the words that go with it."""

from __future__ import annotations

from typing import Literal

from fabric.errors import GateRefusedError

Reason = Literal[
    "no-certificate",
    "tampered",
    "wrong-key",
    "other-site",
    "class",
    "revocation-list-bad",
    "revoked",
    "not-yet-valid",
    "expired",
    "scope",
    "intent-changed",
    "port-down",
    "fabric-changed",
    "no-reading",
    "reading-bad",
    "reading-stale",
]
ADVICE_RENEW = "Run `paisoar validate` and `paisoar certify`."


def refused(reason: Reason, message: str, *, advice: str = "") -> GateRefusedError:
    """A refusal with one of the known reasons."""
    return GateRefusedError(message, reason=reason, advice=advice)
