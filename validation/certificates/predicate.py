"""What a certificate states: the predicate of its in-toto Statement, strictly typed.

``docs/certificate.md`` describes every field. The type's URI is a name and is
never fetched; a change that older readers would misread gets a new number.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self

from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import STATEMENT_TYPE_URI, Statement
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fabric.site import EvidenceClass
from validation.certificates.fingerprint import Fingerprint
from validation.criteria import Verdict
from validation.times import from_text

PREDICATE_TYPE = "https://paisoar.dev/fabric-certificate/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
CERTIFICATE_ID = "^cert-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}$"


def _is_time(text: str) -> str:
    from_text(text)
    return text


Moment = Annotated[str, AfterValidator(_is_time)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CertifiedNic(_Strict):
    """One NIC port in scope."""

    host: str
    port: str
    rdma: str
    address: str
    speed_bps: int


class CertifiedSwitch(_Strict):
    """One switch in scope, as it named itself when it was read."""

    name: str
    os: str
    model: str
    serial: str
    firmware: str


class Scope(_Strict):
    """What the certificate is about. ``links`` are written ``DEVICE:PORT - DEVICE:PORT``."""

    site: str
    environment: str
    hosts: tuple[str, ...]
    nics: tuple[CertifiedNic, ...]
    switches: tuple[CertifiedSwitch, ...]
    links: tuple[str, ...]


class Profile(_Strict):
    """The profile with its thresholds, as they stood in ``fabric.yaml``."""

    name: str
    thresholds: dict[str, int | float]


class Coverage(_Strict):
    """What a suite had to visit, and what it visited."""

    suite: str
    what: str
    expected: int
    seen: int


class CheckSummary(_Strict):
    """All checks of one id: the worst value, and how many were judged how."""

    id: str
    verdict: Verdict
    passed: int
    skipped: int
    worst: float | None
    worst_subject: str
    limit: float | None
    unit: str
    bound: str
    skip_reasons: tuple[str, ...]
    evidence_sha256: tuple[Sha256, ...]


class CertifiedFingerprint(_Strict):
    """The fabric's fingerprint, device by device."""

    sha256: Sha256
    per_device: dict[str, Sha256]
    intent_sha256: Sha256
    cabling_sha256: Sha256

    def value(self) -> Fingerprint:
        """As the fingerprint module has it; ValueError where the total does not fit."""
        return Fingerprint.from_json(self.model_dump())


class Tool(_Strict):
    """What measured and signed."""

    name: Literal["paisoar"]
    version: str


class Run(_Strict):
    """The validation run behind the certificate."""

    id: str
    started_at: Moment
    finished_at: Moment
    site_sha256: Sha256
    probe: str
    versions: dict[str, str]


class Predicate(_Strict):
    """Everything that a certificate states."""

    id: Annotated[str, Field(pattern=CERTIFICATE_ID)]
    issued_at: Moment
    not_before: Moment
    not_after: Moment
    issuer_key_id: str
    tool: Tool
    evidence_class: EvidenceClass
    simulated: bool
    scope: Scope
    profile: Profile
    run: Run
    coverage: tuple[Coverage, ...]
    checks: tuple[CheckSummary, ...]
    fingerprint: CertifiedFingerprint
    revocation_sequence: Annotated[int, Field(ge=1)]


class _Subject(_Strict):
    name: str
    digest: dict[Literal["sha256"], Sha256]


class FabricStatement(_Strict):
    """The whole in-toto Statement v1."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[tuple[_Subject, ...], Field(min_length=1, max_length=1)]
    predicate_type: Annotated[
        Literal["https://paisoar.dev/fabric-certificate/v1"], Field(alias="predicateType")
    ]
    predicate: Predicate

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        total = self.predicate.fingerprint.value().sha256
        if self.subject[0].digest["sha256"] != total:
            raise ValueError("the subject is not the fabric of the fingerprint")
        if self.predicate.simulated != (self.predicate.evidence_class == "simulated"):
            raise ValueError("simulated contradicts the evidence class")
        return self


def statement_bytes(predicate: Predicate) -> bytes:
    """The payload to sign. Raises ValueError where it is no valid in-toto Statement."""
    document: dict[str, Any] = {
        "_type": STATEMENT_TYPE_URI,
        "subject": [
            {
                "name": f"fabric/{predicate.scope.site}",
                "digest": {"sha256": predicate.fingerprint.sha256},
            }
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate.model_dump(mode="json"),
    }
    payload = (
        FabricStatement.model_validate_json(json.dumps(document))
        .model_dump_json(by_alias=True)
        .encode()
    )
    _check_in_toto(payload)
    return payload


def parse_statement(payload: bytes) -> Predicate:
    """What the signed bytes state. Raises ValueError where they are no such statement."""
    statement = FabricStatement.model_validate_json(payload)
    _check_in_toto(payload)
    return statement.predicate


def _check_in_toto(payload: bytes) -> None:
    try:
        message = json_format.Parse(payload, statement_pb2.Statement())
    except json_format.ParseError as error:
        raise ValueError(f"not an in-toto Statement: {error}") from error
    Statement.copy_from_pb(message).validate()
