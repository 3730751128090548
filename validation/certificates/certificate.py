"""Certificates as they lie on disk: found, believed, shown, revoked.

``.paisoar/certificates/ID.dsse.json`` is the certificate, ``ID.states.json``
beside it what every device did when it was certified (believed only as far as
the certificate's own hashes confirm it). ``docs/certificate.md`` describes the
format and whom the gate trusts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from fabric.errors import GateRefusedError, InputError, JudgedBadError
from fabric.qos import DeviceQos
from fabric.site import EvidenceClass, Site
from validation.certificates import revocation
from validation.certificates.envelope import SealError, open_sealed
from validation.certificates.fingerprint import Fingerprint, device_sha256
from validation.certificates.keys import signer, trusted_dir, trusted_keys
from validation.certificates.predicate import (
    CERTIFICATE_ID,
    PAYLOAD_TYPE,
    Predicate,
    parse_statement,
)
from validation.certificates.revocation import Revocation, RevocationError, RevocationList
from validation.certificates.validity import check
from validation.files import read_file
from validation.refusal import ADVICE_RENEW, refused
from validation.results.states import sha256, states_from_bytes
from validation.times import Clock, from_text, to_text, utc_now

SUFFIX = ".dsse.json"
ADVICE_ORIGINAL = "Take the original from where it was issued, or validate and certify again."
# A certificate of ten thousand hosts has some 10 MB.
MAX_BYTES = 64 << 20
_MAX_LISTED = 5


@dataclass(frozen=True)
class Certificate:
    """A certificate whose signature was verified: what it states, and where it lies."""

    predicate: Predicate
    path: Path
    sha256: str

    @property
    def id(self) -> str:
        """Its name, which is also its file's."""
        return self.predicate.id

    @property
    def site(self) -> str:
        """The site that it is about."""
        return self.predicate.scope.site

    @property
    def evidence_class(self) -> EvidenceClass:
        """What its evidence may be called."""
        return self.predicate.evidence_class

    @property
    def not_before(self) -> datetime:
        """From when on it holds."""
        return from_text(self.predicate.not_before)

    @property
    def not_after(self) -> datetime:
        """Until when it holds."""
        return from_text(self.predicate.not_after)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts that it covers."""
        return self.predicate.scope.hosts

    @property
    def fingerprint(self) -> Fingerprint:
        """The fabric that was certified."""
        return self.predicate.fingerprint.value()

    @property
    def verdict(self) -> Literal["PASS"]:
        """Nothing else is ever signed."""
        return "PASS"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: everything that it states, and its file's hash."""
        return {
            **self.predicate.model_dump(mode="json"),
            "class": self.evidence_class,
            "verdict": self.verdict,
            "sha256": self.sha256,
        }


@dataclass(frozen=True)
class Shown:
    """A certificate and whether it holds now; ``certificate`` None where it is not believed."""

    certificate: Certificate | None
    path: Path
    valid: bool
    reason: str
    message: str


def certificates_dir(site: Site) -> Path:
    """Where the site's certificates lie."""
    return site.state_dir / "certificates"


def certificate_path(site: Site, certificate_id: str) -> Path:
    """Where the certificate of this id lies."""
    return certificates_dir(site) / f"{certificate_id}{SUFFIX}"


def states_path(site: Site, certificate_id: str) -> Path:
    """Where the states that it was issued for lie."""
    return certificates_dir(site) / f"{certificate_id}.states.json"


def ids(site: Site) -> tuple[str, ...]:
    """Certificates of a site by id, the oldest first; nothing is verified."""
    found = (path.name.removesuffix(SUFFIX) for path in certificates_dir(site).glob(f"*{SUFFIX}"))
    return tuple(sorted(name for name in found if re.fullmatch(CERTIFICATE_ID, name)))


def locate(site: Site, path_or_id: str | Path | None = None) -> Path:
    """The file of this certificate, or of the newest one.

    Raises GateRefusedError (``no-certificate``) where the site has none at all,
    InputError where it has not the one that was asked for.
    """
    names = ids(site)
    if path_or_id is None:
        if not names:
            raise refused(
                "no-certificate", f"site {site.name} has no certificate.", advice=ADVICE_RENEW
            )
        return certificate_path(site, names[-1])
    path = Path(path_or_id)
    if re.fullmatch(CERTIFICATE_ID, str(path_or_id)):
        path = certificate_path(site, str(path_or_id))
    # Not ``exists``, which raises for a name that no file can have.
    if not os.path.lexists(path):
        raise _unknown(site, str(path_or_id))
    return path


def _unknown(site: Site, wanted: str) -> InputError:
    names = ids(site)
    there = f"There are: {', '.join(names[-_MAX_LISTED:])}" if names else "There is none yet"
    more = f", and {len(names) - _MAX_LISTED} older ones" if len(names) > _MAX_LISTED else ""
    return InputError(
        f"there is no certificate {wanted}",
        advice=f"{there}{more}. Name one of them or a file"
        + ("; without a name the newest is taken." if names else f". {ADVICE_RENEW}"),
    )


def _bytes(path: Path) -> bytes:
    """What the file holds; InputError where it is no file that can be read."""
    try:
        # Never opened unless it is a file: a pipe would be waited for.
        if not path.is_file():
            raise InputError("a certificate is a file, this is none", file=path)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"the certificate cannot be read: {error.strerror}", file=path) from error
    if len(data) > MAX_BYTES:
        raise refused(
            "tampered",
            f"certificate {path.name} is not believed: it is larger than {MAX_BYTES >> 20} MiB, "
            "which none is.",
            advice=ADVICE_ORIGINAL,
        )
    return data


def read(site: Site, path_or_id: str | Path | None = None) -> Certificate:
    """A certificate that a trusted key signed, whatever it says.

    The bytes that were verified are the bytes that are parsed. Raises
    GateRefusedError: ``no-certificate``, ``tampered``, ``wrong-key``; InputError
    where there is no such file.
    """
    path = locate(site, path_or_id)
    data = _bytes(path)
    keys = trusted_keys(site)
    try:
        opened = open_sealed(data, PAYLOAD_TYPE, keys)
    except SealError as error:
        advice = (
            f"If that key should be trusted, put its public half into {trusted_dir(site)}."
            if error.kind == "wrong-key"
            else ADVICE_ORIGINAL
        )
        raise refused(
            error.kind, f"certificate {path.name} is not believed: {error}.", advice=advice
        ) from error
    try:
        predicate = parse_statement(opened.payload)
    except (ValidationError, ValueError) as error:
        raise refused(
            "tampered",
            f"certificate {path.name} is signed but malformed: {str(error).splitlines()[0]}.",
            advice=ADVICE_RENEW,
        ) from error
    named = path.name.removesuffix(SUFFIX)
    if re.fullmatch(CERTIFICATE_ID, named) and named != predicate.id:
        raise refused(
            "tampered",
            f"{path.name} holds the certificate {predicate.id}: it was put in its place.",
            advice=ADVICE_RENEW,
        )
    return Certificate(predicate, path, sha256(data))


def verify(
    site: Site, path_or_id: str | Path | None = None, *, clock: Clock = utc_now
) -> Certificate:
    """A certificate that holds now; the fabric itself is the gate's to look at.

    Raises GateRefusedError with its reason and InputError; see :func:`read` and
    :func:`validation.certificates.validity.check`.
    """
    certificate = read(site, path_or_id)
    check(site, certificate, clock())
    return certificate


def show(site: Site, path_or_id: str | Path | None = None, *, clock: Clock = utc_now) -> Shown:
    """A certificate and whether it holds, for people.

    Raises GateRefusedError only where the site has none at all, InputError where
    there is no such file.
    """
    path = locate(site, path_or_id)
    certificate = None
    try:
        certificate = read(site, path)
        check(site, certificate, clock())
    except GateRefusedError as error:
        return Shown(certificate, path, False, error.reason, error.message)
    return Shown(certificate, path, True, "", f"holds until {certificate.predicate.not_after}")


def revoke(
    site: Site, certificate_id: str, reason: str, *, clock: Clock = utc_now
) -> RevocationList:
    """Put a certificate on the signed list; nothing changes where it is on it already.

    Raises InputError for an unknown certificate, JudgedBadError where the
    present list cannot be believed.
    """
    if not reason.strip():
        raise InputError("say why the certificate is revoked")
    if certificate_id not in ids(site):
        raise _unknown(site, certificate_id)
    now = clock()
    entry = Revocation(id=certificate_id, at=to_text(now), reason=reason.strip())
    try:
        return revocation.publish(site, signer(site), trusted_keys(site), now, entry)
    except RevocationError as error:
        raise JudgedBadError(
            f"certificate {certificate_id} cannot be revoked: {error}.",
            advice="Put back the newest revocation list, then revoke again.",
        ) from error


def certified_states(site: Site, certificate: Certificate) -> Mapping[str, DeviceQos]:
    """What each device did when it was certified, as far as that is on disk and unaltered."""
    try:
        states = states_from_bytes(read_file(states_path(site, certificate.id)))
    except (OSError, ValueError):
        return {}
    per_device = certificate.fingerprint.per_device
    return {
        name: state
        for name, state in states.items()
        if name == state.device and device_sha256(site, state) == per_device.get(name)
    }
