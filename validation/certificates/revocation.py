"""The signed list of revoked certificates, which only ever grows.

``.paisoar/certificates/revocations.dsse.json``: a DSSE envelope around JSON
``{schema, site, sequence, issued_at, revoked: [{id, at, reason}]}``. Each new
list has the next sequence number. Going back to an older list is noticed in two
ways: each certificate says which list was current when it was signed, and a
local high-water mark remembers the newest list ever seen here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from securesystemslib.signer import Signer, SSlibKey

from fabric.errors import InputError
from fabric.site import Site
from validation.certificates.envelope import SealError, open_sealed, seal
from validation.files import read_file, write_whole
from validation.times import to_text

PAYLOAD_TYPE = "application/vnd.paisoar.revocations+json"
SCHEMA = "paisoar/revocations/v1"


class RevocationError(Exception):
    """The list is missing, forged, of another site, or older than one seen before."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Revocation(_Strict):
    """One revoked certificate."""

    id: str
    at: str
    reason: str


class RevocationList(_Strict):
    """A whole list as it is signed."""

    schema_: str = Field(alias="schema", pattern=f"^{SCHEMA}$")
    site: str
    sequence: int = Field(ge=1)
    issued_at: str
    revoked: tuple[Revocation, ...]

    def find(self, certificate_id: str) -> Revocation | None:
        """The entry of this certificate; None where it is not revoked."""
        return next((entry for entry in self.revoked if entry.id == certificate_id), None)


@dataclass(frozen=True, slots=True)
class _HighWater:
    sequence: int
    sha256: str


def list_path(site: Site) -> Path:
    """Where the list lies."""
    return site.state_dir / "certificates" / "revocations.dsse.json"


def high_water_path(site: Site) -> Path:
    """Where the newest list ever seen here is remembered."""
    return site.state_dir / "keys" / "revocations.high-water.json"


def load(site: Site, trusted: Sequence[SSlibKey], at_least: int = 0) -> RevocationList | None:
    """The current list, at least as new as ``at_least`` and as any seen before.

    None only where there never was one. Raises RevocationError with the reason.
    Remembers the list as seen.
    """
    mark = _high_water(site)
    needed = max(at_least, mark.sequence)
    path = list_path(site)
    try:
        data = read_file(path)
    except FileNotFoundError:
        if needed:
            raise RevocationError(
                f"the revocation list {path} is gone; number {needed} or newer must be there"
            ) from None
        return None
    except OSError as error:
        raise RevocationError(f"the revocation list cannot be read: {error}") from error
    try:
        payload = open_sealed(data, PAYLOAD_TYPE, trusted).payload
        found = RevocationList.model_validate_json(payload)
    except SealError as error:
        raise RevocationError(f"the revocation list {path} is not believed: {error}") from error
    except ValidationError as error:
        raise RevocationError(f"the revocation list {path} is malformed") from error
    # Of a key that is there twice only the last would count.
    if found.model_dump_json(by_alias=True).encode() != payload:
        raise RevocationError(f"the revocation list {path} is malformed")
    if found.site != site.name:
        raise RevocationError(f"the revocation list is that of site {found.site!a}")
    if found.sequence < needed:
        raise RevocationError(
            f"the revocation list is number {found.sequence}, but number {needed} "
            "has been seen: an older one was put back"
        )
    digest = hashlib.sha256(data).hexdigest()
    if found.sequence == mark.sequence and digest != mark.sha256:
        raise RevocationError(
            f"there are two different revocation lists with the number {found.sequence}"
        )
    # A reader that may not write here still is protected by the certificate's own number.
    with suppress(InputError):
        _remember(site, found.sequence, digest)
    return found


def publish(
    site: Site,
    signer: Signer,
    trusted: Sequence[SSlibKey],
    now: datetime,
    add: Revocation | None = None,
) -> RevocationList:
    """The current list with ``add`` in it, signed and written where that is news.

    Makes an empty first list where there is none. Raises RevocationError where
    the present list cannot be believed.
    """
    current = load(site, trusted)
    if current is not None and (add is None or current.find(add.id) is not None):
        return current
    revoked = current.revoked if current is not None else ()
    new = RevocationList(
        schema=SCHEMA,
        site=site.name,
        sequence=current.sequence + 1 if current is not None else 1,
        issued_at=to_text(now),
        revoked=(*revoked, add) if add is not None else revoked,
    )
    payload = new.model_dump_json(by_alias=True).encode()
    data = seal(payload, PAYLOAD_TYPE, signer)
    write_whole(list_path(site), data)
    _remember(site, new.sequence, hashlib.sha256(data).hexdigest())
    return new


def _high_water(site: Site) -> _HighWater:
    path = high_water_path(site)
    try:
        facts = json.loads(read_file(path))
        return _HighWater(int(facts["sequence"]), str(facts["sha256"]))
    except FileNotFoundError:
        return _HighWater(0, "")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RevocationError(
            f"the record of the newest revocation list ({path}) cannot be read: {error}"
        ) from error


def _remember(site: Site, sequence: int, digest: str) -> None:
    if sequence > _high_water(site).sequence:
        facts = {"sequence": sequence, "sha256": digest}
        write_whole(high_water_path(site), json.dumps(facts).encode(), 0o600)
