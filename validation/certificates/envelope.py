"""Signed bytes: DSSE envelopes of one form, so that no byte of the file is free.

DSSE 1.0.2 (secure-systems-lab/dsse, protocol.md) signs payload and payload type;
it leaves the JSON around them, base64 variants and the ``keyid`` open. Here a
file is accepted only if it is exactly what sealing would write: then every
changed byte is refused, not only those under the signature. ``keyid`` never
decides trust: every trusted key is tried.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import (
    FormatError,
    UnverifiedSignatureError,
    VerificationError,
)
from securesystemslib.signer import Signature, Signer, SSlibKey


class SealError(Exception):
    """An envelope that is not believed; ``kind`` says in which way."""

    def __init__(self, kind: Literal["tampered", "wrong-key"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Opened:
    """The bytes that were signed, and the trusted key that signed them."""

    payload: bytes
    key_id: str


def seal(payload: bytes, payload_type: str, signer: Signer) -> bytes:
    """The file's bytes: an envelope around ``payload`` with one signature."""
    envelope = Envelope(payload, payload_type, {})
    envelope.sign(signer)
    return _file_bytes(envelope)


def open_sealed(data: bytes, payload_type: str, trusted: Sequence[SSlibKey]) -> Opened:
    """What was signed. Raises SealError unless a trusted key signed exactly this file."""
    try:
        envelope = Envelope.from_dict(json.loads(data))
        canonical = _file_bytes(envelope)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, FormatError) as error:
        raise SealError("tampered", f"it is no signed envelope ({_short(error)})") from error
    if canonical != data:
        raise SealError("tampered", "its envelope is not in the form in which it was written")
    if envelope.payload_type != payload_type:
        raise SealError("tampered", f"its payload type is {envelope.payload_type!r}")
    if len(envelope.signatures) != 1:
        raise SealError("tampered", f"it has {len(envelope.signatures)} signatures, not one")
    signature = next(iter(envelope.signatures.values()))
    key = _signed_by(envelope, signature, trusted)
    if key is None:
        named = signature.keyid in {key.keyid for key in trusted}
        if named:
            raise SealError("tampered", "its signature does not fit its content")
        raise SealError(
            "wrong-key", f"it is signed by the key {signature.keyid[:12]}, which is not trusted"
        )
    if key.keyid != signature.keyid:
        raise SealError("tampered", "it names another key than the one that signed it")
    return Opened(envelope.payload, key.keyid)


def _signed_by(
    envelope: Envelope, signature: Signature, trusted: Sequence[SSlibKey]
) -> SSlibKey | None:
    pae = envelope.pae()
    for key in trusted:
        try:
            key.verify_signature(Signature(key.keyid, signature.signature), pae)
        except (UnverifiedSignatureError, VerificationError):
            continue
        return key
    return None


def _file_bytes(envelope: Envelope) -> bytes:
    return (json.dumps(envelope.to_dict(), sort_keys=True, indent=1) + "\n").encode()


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:120]
