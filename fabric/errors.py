"""The errors of PAISoar, one tree for every package.

PaisoarError                 anything we raise on purpose; carries the exit code
├── InputError               exit 2: a file, key or option is wrong (file, line, key)
│   └── InputFaultsError     several of them in one file, each an InputError
├── JudgedBadError           exit 1: what was asked about is not good enough
│   └── GateRefusedError     the certificate gate does not open
└── AccessError              exit 3: something did not answer, or answered wrongly
    ├── DeviceError          one device: what was done, what came back
    │   ├── UnreachableError it cannot be reached or logged in to
    │   └── RejectedError    it refused a command
    ├── DevicesError         several devices, each with its own DeviceError
    ├── PeerError            a training rank died, hangs or disagrees
    └── ToolError            a program that we need is missing or failed

Every message says what was being done, to what, what came back, and what to
do next. ``advice`` holds the last part, so that the command line can set it
apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

MAX_SHOWN = 50  # of the faults of one file, for people


class PaisoarError(Exception):
    """Base of all errors that PAISoar raises on purpose."""

    exit_code = 2

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        end = "." if self.advice and self.message[-1:] not in ("", ".", "!", "?", ":") else ""
        return f"{self.message}{end} {self.advice}".strip()


class InputError(PaisoarError):
    """A file or option that we cannot accept, located as exactly as we can.

    ``line`` counts from 1; ``key`` is the dotted path of the offending key.
    ``faults`` are all that is wrong: this one alone, unless there are several.
    """

    exit_code = 2
    faults: tuple[InputError, ...]

    def __init__(
        self,
        message: str,
        *,
        file: Path | str | None = None,
        line: int | None = None,
        key: str = "",
        advice: str = "",
    ) -> None:
        where = ":".join(str(part) for part in (file, line) if part is not None)
        parts = [part for part in (where, key, message) if part]
        super().__init__(": ".join(parts), advice=advice)
        self.file = file
        self.line = line
        self.key = key
        self.reason = message
        self.faults = (self,)


class InputFaultsError(InputError):
    """Several faults of one file, ordered by line; located at the first of them."""

    def __init__(self, faults: Sequence[InputError]) -> None:
        first = faults[0]
        super().__init__(
            first.reason, file=first.file, line=first.line, key=first.key, advice=first.advice
        )
        lines = [f"  {fault.message}" for fault in faults[:MAX_SHOWN]]
        if len(faults) > MAX_SHOWN:
            lines.append(f"  and {len(faults) - MAX_SHOWN} more; --json has them all")
        self.message = "\n".join((f"{len(faults)} mistakes", *lines))
        self.args = (self.message,)
        self.faults = tuple(faults)


def all_of(faults: Sequence[InputError]) -> InputError:
    """The one fault, or all of them ordered by line as one error."""
    if len(faults) == 1:
        return faults[0]
    return InputFaultsError(sorted(faults, key=lambda fault: fault.line or 0))


class JudgedBadError(PaisoarError):
    """The command worked; what it judged is not good enough."""

    exit_code = 1


class GateRefusedError(JudgedBadError):
    """The certificate gate does not open; ``reason`` is a short stable word."""

    def __init__(self, message: str, *, reason: str, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.reason = reason


class AccessError(PaisoarError):
    """A device, peer or tool did not answer, or answered with a failure."""

    exit_code = 3


class DeviceError(AccessError):
    """One device failed: what was being done and what came back."""

    def __init__(self, device: str, doing: str, answer: str, *, advice: str = "") -> None:
        super().__init__(f"{device}: {doing}: {answer}", advice=advice)
        self.device = device
        self.doing = doing
        self.answer = answer


class UnreachableError(DeviceError):
    """A device cannot be reached, or does not let us in."""


class RejectedError(DeviceError):
    """A device refused a command; ``doing`` names it, ``answer`` quotes it."""


class DevicesError(AccessError):
    """Several devices failed; the others' results stay usable.

    ``failed`` maps each device's name to its own error.
    """

    def __init__(self, doing: str, failed: Mapping[str, PaisoarError]) -> None:
        lines = [f"{doing}: {len(failed)} of the devices failed"]
        lines += [f"  {error.message}" for _, error in sorted(failed.items())]
        super().__init__("\n".join(lines))
        self.failed = dict(failed)


class PeerError(AccessError):
    """A training rank died, hangs or disagrees with the others."""


class ToolError(AccessError):
    """A program that we need is missing or failed."""
