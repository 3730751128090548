"""Whether a certificate holds for a site now, as far as files tell; no device is read.

What ``paisoar certificate verify`` and ``show`` say, and the first half of what
the gate demands: they can never disagree.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from fabric.site import EvidenceClass, Site
from validation.certificates import revocation
from validation.certificates.fingerprint import fingerprint
from validation.certificates.keys import trusted_keys
from validation.certificates.revocation import RevocationError
from validation.refusal import ADVICE_RENEW, refused
from validation.times import to_text

if TYPE_CHECKING:
    from validation.certificates.certificate import Certificate

CLASSES: tuple[EvidenceClass, ...] = ("simulated", "soft-roce", "hardware")


def check(
    site: Site,
    certificate: Certificate,
    now: datetime,
    minimum_class: EvidenceClass | None = None,
) -> None:
    """Whether a certificate holds for this site at this time.

    ``minimum_class`` may demand more than the site's environment does. Raises
    GateRefusedError: ``other-site``, ``class``, ``revocation-list-bad``,
    ``revoked``, ``not-yet-valid``, ``expired``, ``intent-changed``.
    """
    if certificate.site != site.name:
        # Escaped, so that names that look alike can be told apart.
        raise refused(
            "other-site",
            f"certificate {certificate.id} is of site {certificate.site!a}, this is {site.name!a}.",
            advice=ADVICE_RENEW,
        )
    _class_is_enough(site, certificate, site.evidence_class)
    if minimum_class is not None:
        _class_is_enough(site, certificate, minimum_class)
    _not_revoked(site, certificate)
    _in_time(certificate, now)
    _same_intent(site, certificate)


def _class_is_enough(site: Site, found: Certificate, minimum: EvidenceClass) -> None:
    have = found.evidence_class
    if have == "simulated" and site.environment != "twin":
        raise refused(
            "class",
            f"certificate {found.id} rests on simulated evidence, which opens the gate for "
            f"a twin's own hosts only; {site.name} is a {site.environment}.",
            advice="Validate on the real hosts.",
        )
    if have == "soft-roce" and found.predicate.profile.name != "lossy-tolerant":
        raise refused(
            "class",
            f"certificate {found.id} rests on Soft-RoCE, which never proves the profile "
            f"{found.predicate.profile.name}.",
            advice="Validate on real NICs.",
        )
    if CLASSES.index(have) < CLASSES.index(minimum):
        raise refused(
            "class",
            f"certificate {found.id} rests on {have} evidence, {minimum} is demanded.",
            advice="Validate where such evidence can be had.",
        )


def _not_revoked(site: Site, certificate: Certificate) -> None:
    try:
        listed = revocation.load(
            site, trusted_keys(site), certificate.predicate.revocation_sequence
        )
    except RevocationError as error:
        raise refused(
            "revocation-list-bad",
            f"it cannot be told whether certificate {certificate.id} is revoked: {error}.",
            advice="Put back the newest revocation list.",
        ) from error
    entry = listed.find(certificate.id) if listed is not None else None
    if entry is not None:
        raise refused(
            "revoked",
            f"certificate {certificate.id} was revoked on {entry.at}: {entry.reason}.",
            advice=ADVICE_RENEW,
        )


def _in_time(certificate: Certificate, now: datetime) -> None:
    if now < certificate.not_before:
        raise refused(
            "not-yet-valid",
            f"certificate {certificate.id} holds from {certificate.predicate.not_before} on, "
            f"it is {to_text(now)}.",
            advice="Check this machine's clock.",
        )
    if now >= certificate.not_after:
        raise refused(
            "expired",
            f"certificate {certificate.id} expired at {certificate.predicate.not_after}, "
            f"it is {to_text(now)}.",
            advice=ADVICE_RENEW,
        )


def _same_intent(site: Site, found: Certificate) -> None:
    certified = found.fingerprint
    now = fingerprint(site, {})
    changes = []
    if certified.intent_sha256 != now.intent_sha256:
        changes.append("intent: is not what was certified")
    if certified.cabling_sha256 != now.cabling_sha256:
        changes.append("devices and cables: are not those that were certified")
    profile = found.predicate.profile
    criteria = site.document.certify.model_dump(mode="json")
    for name, was in {"profile": profile.name, **profile.thresholds}.items():
        # How long a certificate holds is written into it; changing that concerns the next.
        if name != "valid_hours" and criteria.get(name) != was:
            changes.append(f"certify.{name}: {was} -> {criteria.get(name, 'gone')}")
    if changes:
        raise refused(
            "intent-changed",
            f"{site.path} was changed since certificate {found.id}: {'; '.join(changes)}.",
            advice="Provision what it says now, validate and certify; or put it back.",
        )
