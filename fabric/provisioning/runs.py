"""Run folders: what a provisioning or roll-back run leaves under ``.paisoar/runs/ID``.

``plan.json`` is what the run carried out, ``result.json`` how it ended on each
device, ``inventory.json`` and ``artifacts/`` are Ansible's. None holds a secret.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast, get_args

from fabric.errors import (
    AccessError,
    DeviceError,
    DevicesError,
    InputError,
    PaisoarError,
    ToolError,
)
from fabric.provisioning.outcome import Outcome, outcome_from_json
from fabric.provisioning.planfile import write_private
from fabric.site import Site

SCHEMA = "paisoar/run/v1"
_ID = re.compile(r"\d{8}-\d{4}-[0-9a-f]{4}")

RunKind = Literal["provision", "rollback", "check"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended, device by device.

    ``of`` is the plan that a provisioning run carried out or checked, or the run
    that a roll-back took back. ``stopped`` says why not every device had its turn;
    ``ended_at`` is empty for a run that never came to its end. ``unkept`` says why
    the result is not on the disk.
    """

    run_id: str
    kind: RunKind
    site: str
    of: str
    started_at: str
    ended_at: str
    devices: dict[str, Outcome]
    interrupted: bool = False
    stopped: str = ""
    unkept: str = ""

    @property
    def failed(self) -> dict[str, Outcome]:
        """Devices whose change failed, rolled back or not."""
        return {
            name: outcome
            for name, outcome in self.devices.items()
            if outcome.state in ("failed", "rolled-back")
        }

    @property
    def good(self) -> bool:
        """Every device does what it should."""
        return all(outcome.good for outcome in self.devices.values())

    @property
    def error(self) -> PaisoarError | None:
        """What a command ends with; None where every device is as it should be, or was checked."""
        doing = "roll back" if self.kind == "rollback" else self.kind
        if self.failed:
            return DevicesError(
                doing,
                {name: DeviceError(name, doing, str(out)) for name, out in self.failed.items()},
            )
        if not self.good and (self.stopped or self.kind != "check"):
            return AccessError(f"{doing}: {self.stopped or 'not every device had its turn'}")
        if self.unkept:
            return ToolError(f"{doing}: {self.unkept}")
        return None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, as ``result.json`` and ``--json`` have them."""
        return {"schema": SCHEMA, **dataclasses.asdict(self)}


def new_id(now: datetime | None = None) -> str:
    """An ID for a run: UTC time and four random digits."""
    return f"{now or datetime.now(UTC):%Y%m%d-%H%M}-{secrets.token_hex(2)}"


def run_folder(site: Site, run_id: str) -> Path:
    """The folder of this run; InputError where this is no run's ID."""
    if not _ID.fullmatch(run_id):
        raise InputError(
            f"{run_id!r} is not the ID of a run; one looks like 20261201-0412-ab12",
            advice="`paisoar provision` says it; the folders of .paisoar/runs are called by it.",
        )
    return site.state_dir / "runs" / run_id


def save_result(site: Site, result: RunResult) -> None:
    """Write ``result.json`` of this run."""
    path = run_folder(site, result.run_id) / "result.json"
    write_private(path, json.dumps(result.to_json(), indent=1) + "\n")


def load_result(site: Site, run_id: str) -> RunResult:
    """The result of this run; InputError where there is none or it cannot be read."""
    path = run_folder(site, run_id) / "result.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"there is no run {run_id}", file=path, advice="Look into .paisoar/runs."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from error
    try:
        if data["schema"] != SCHEMA or data["kind"] not in get_args(RunKind):
            raise ValueError(f"schema {data['schema']!r}, kind {data['kind']!r}")
        return RunResult(
            run_id=str(data["run_id"]),
            kind=cast(RunKind, data["kind"]),
            site=str(data["site"]),
            of=str(data["of"]),
            started_at=str(data["started_at"]),
            ended_at=str(data["ended_at"]),
            devices={str(k): outcome_from_json(v) for k, v in data["devices"].items()},
            interrupted=bool(data["interrupted"]),
            stopped=str(data["stopped"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"is no result of a run: {error}", file=path) from error


def run_ids(site: Site) -> tuple[str, ...]:
    """The IDs of the site's runs, in the order in which they began."""
    runs = [path for path in (site.state_dir / "runs").glob("*") if _ID.fullmatch(path.name)]
    begun = {path: _begun_at_ns(path) for path in runs}
    return tuple(path.name for path in sorted(runs, key=lambda path: (begun[path], path.name)))


def _begun_at_ns(folder: Path) -> int:
    # The plan is the first thing that a run writes, and is not written again.
    with contextlib.suppress(OSError):
        return (folder / "plan.json").stat().st_mtime_ns
    return 0


def latest_run(site: Site) -> str:
    """The ID of the latest run; InputError where there is none."""
    if not (runs := run_ids(site)):
        raise InputError(f"there is no run in {site.state_dir / 'runs'}")
    return runs[-1]
