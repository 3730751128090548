"""Readings as the watch keeps them, of a fake fabric."""

from datetime import timedelta

from fabric.errors import GateRefusedError
from validation.certificates.certificate import certified_states, read
from validation.certificates.keys import signer
from validation.times import utc_now
from validation.watch.compare import reading_of
from validation.watch.reading import write_reading


def keep_reading(fabric, *, age_s=0.0, with_signer=None):
    """Seal what the fabric does now as if it had been read so many seconds ago."""
    site = fabric.site
    try:
        found = read(site)
    except GateRefusedError:
        found = None
    read_now = fabric.read_states(site)
    reading = reading_of(
        site,
        found,
        certified_states(site, found) if found else {},
        read_now.states,
        {name: str(error) for name, error in read_now.failed.items()},
        utc_now() - timedelta(seconds=age_s),
        30.0,
    )
    write_reading(site, reading, with_signer or signer(site))
    return reading
