"""States of devices as bytes, and the hash of bytes: what evidence and certificates keep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from fabric.qos import DeviceQos

STATES_FILE = "states.json"


def sha256(data: bytes) -> str:
    """Hex digest of these bytes."""
    return hashlib.sha256(data).hexdigest()


def states_bytes(states: Mapping[str, DeviceQos]) -> bytes:
    """What every device did, as JSON; :func:`states_from_bytes` reads it back."""
    facts = {name: states[name].to_json() for name in sorted(states)}
    return json.dumps(facts, sort_keys=True, indent=1).encode()


def states_from_bytes(data: bytes) -> dict[str, DeviceQos]:
    """The inverse of :func:`states_bytes`; ValueError on anything else."""
    try:
        facts = json.loads(data)
        return {name: DeviceQos.from_json(fact) for name, fact in facts.items()}
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not the states of devices: {error!r}") from error
