"""What the fabric did when it was last certified, for those who look for drift."""

from __future__ import annotations

from collections.abc import Mapping

from fabric.errors import GateRefusedError
from fabric.qos import DeviceQos
from fabric.site import Site
from validation.certificates import certificate


def certified_states(site: Site) -> Mapping[str, DeviceQos] | None:
    """States behind the newest certificate that a trusted key signed for this site.

    Whether it has expired meanwhile does not matter here. None where there is none.
    """
    for certificate_id in reversed(certificate.ids(site)):
        try:
            found = certificate.read(site, certificate_id)
        except GateRefusedError:
            continue
        if found.site == site.name:
            return certificate.certified_states(site, found)
    return None
