"""How the change of one device ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

OutcomeState = Literal["unchanged", "done", "would-change", "rolled-back", "untouched", "failed"]
_STATES = get_args(OutcomeState)
# Begins the detail of a failure before the first line or file.
NOTHING_SENT = "nothing was sent"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one device's change, and in ``detail`` why, or what is left.

    - ``unchanged``: it did what it should before we came.
    - ``done``: changed and verified by reading it back.
    - ``would-change``: this was a check, and nothing was sent.
    - ``rolled-back``: the change failed; the device does what it did before.
    - ``untouched``: nothing was sent, since the run stopped before its turn.
    - ``failed``: anything else; ``detail`` says what is left on the device.

    ``unreachable`` is set where the cause is that the device did not answer.
    """

    state: OutcomeState
    detail: str = ""
    unreachable: bool = False

    @property
    def good(self) -> bool:
        """The device does what it should."""
        return self.state in ("unchanged", "done")

    @property
    def may_have_changed(self) -> bool:
        """Something of the change may be on the device, or is."""
        if self.state == "failed":
            return not self.detail.startswith(NOTHING_SENT)
        return self.state == "done"

    def __str__(self) -> str:
        return f"{self.state}: {self.detail}" if self.detail else self.state


def outcome_from_json(data: Mapping[str, Any]) -> Outcome:
    """The inverse of ``dataclasses.asdict``; ValueError on other data."""
    state = str(data.get("state"))
    if state not in _STATES:
        raise ValueError(f"{state!r} is no outcome of a device")
    return Outcome(
        cast(OutcomeState, state),
        str(data.get("detail", "")),
        bool(data.get("unreachable", False)),
    )
