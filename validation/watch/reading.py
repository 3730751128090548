"""The last reading of the fabric, sealed: what lets the gate answer without reading devices.

``.paisoar/watch/reading.dsse.json`` is a DSSE envelope around JSON: for every device
the hash of what it did, or why it did not answer, and the links that were down. It
is signed like a certificate, so that nobody who may not sign opens a gate with it,
and it is good for a short time only: how long, the gate says.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from securesystemslib.signer import Signer

from fabric.site import Site
from validation.certificates.envelope import SealError, open_sealed, seal
from validation.certificates.keys import trusted_keys
from validation.files import read_file, write_whole
from validation.refusal import refused
from validation.times import from_text, to_text

PAYLOAD_TYPE = "application/vnd.paisoar.reading+json"
SCHEMA = "paisoar/reading/v1"
# Clocks of a cluster agree to far less; beyond it, nothing can be said of an age.
MAX_SKEW_S = 5.0
DEFAULT_MAX_AGE_S = 120.0
ADVICE_WATCH = "Is `paisoar watch` running, here or where this folder is shared from?"


def _is_time(text: str) -> str:
    from_text(text)
    return text


Moment = Annotated[str, AfterValidator(_is_time)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SeenDevice(_Strict):
    """One device: the hash of its state, or the error that was its answer.

    ``changes`` says what differs from the certified state, where that is at hand.
    """

    sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
    error: str = ""
    changes: tuple[str, ...] = ()


class DownLink(_Strict):
    """A link that carried nothing; its ends are written ``DEVICE:PORT``."""

    a: str
    b: str
    why: str


class Reading(_Strict):
    """The whole fabric at one time.

    ``started_at`` is when the first device was asked: nothing in it is older.
    ``certificate_id`` is the certificate that it was compared with; neighbours of
    ports whose links are down were taken from there.
    """

    schema_: Annotated[str, Field(alias="schema", pattern=f"^{SCHEMA}$")] = SCHEMA
    site: str
    certificate_id: str
    started_at: Moment
    interval_s: float
    devices: dict[str, SeenDevice]
    down: tuple[DownLink, ...] = ()

    def age_s(self, now: datetime) -> float:
        """Seconds since the first device was asked; negative where that lies ahead."""
        return (now - from_text(self.started_at)).total_seconds()

    def failed(self, devices: Sequence[str]) -> dict[str, str]:
        """Those of these devices of which nothing is known, each with why."""
        seen = {name: self.devices.get(name) for name in devices}
        return {
            name: device.error if device is not None else "it was not read"
            for name, device in seen.items()
            if device is None or device.error or not device.sha256
        }


def watch_dir(site: Site) -> Path:
    """Where the watch keeps what it has seen."""
    return site.state_dir / "watch"


def reading_path(site: Site) -> Path:
    """Where the last reading lies."""
    return watch_dir(site) / "reading.dsse.json"


def write_reading(site: Site, reading: Reading, signer: Signer) -> None:
    """Seal and keep a reading in the place of the last; InputError where that fails."""
    payload = reading.model_dump_json(by_alias=True).encode()
    write_whole(reading_path(site), seal(payload, PAYLOAD_TYPE, signer))


def last_reading(site: Site, now: datetime, max_age_s: float) -> Reading:
    """The last reading, believed and young enough.

    Raises GateRefusedError: ``no-reading``, ``reading-bad``, ``reading-stale``.
    """
    path = reading_path(site)
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise refused(
            "no-reading", f"there is no reading of the fabric ({path}).", advice=ADVICE_WATCH
        ) from None
    except OSError as error:
        raise refused("reading-bad", f"{path} cannot be read: {error.strerror}.") from error
    try:
        payload = open_sealed(data, PAYLOAD_TYPE, trusted_keys(site)).payload
        found = Reading.model_validate_json(payload)
    except (SealError, ValidationError) as error:
        why = str(error).splitlines()[0]
        raise refused(
            "reading-bad", f"the last reading is not believed: {why}.", advice=ADVICE_WATCH
        ) from error
    if found.site != site.name:
        raise refused(
            "reading-bad", f"the last reading is of site {found.site!a}, this is {site.name!a}."
        )
    _young_enough(found, now, max_age_s)
    return found


def _young_enough(found: Reading, now: datetime, max_age_s: float) -> None:
    age_s = found.age_s(now)
    if age_s < -MAX_SKEW_S:
        raise refused(
            "reading-stale",
            f"the last reading is of {found.started_at}, it is {to_text(now)} here: its age "
            "cannot be told.",
            advice="Set the clocks.",
        )
    if age_s > max_age_s:
        raise refused(
            "reading-stale",
            f"the fabric was last read {age_s:.0f} s ago, at most {max_age_s:.0f} s are allowed.",
            advice=ADVICE_WATCH,
        )
