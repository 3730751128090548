"""What trainings leave for reports: ``JOB/result.json``, and the gate's last refusal."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from fabric.errors import GateRefusedError
from trainer.launch import TrainingPlan, TrainResult, plain
from trainer.spec import EpochRecord, LearningRate

_REFUSAL: Final = "refused.json"


@dataclass(frozen=True)
class TrainingRecord:
    """A finished training: its plan, its epochs, how it ended, who admitted it.

    ``evidence_class`` is that of the certificate, as the gate saw it.
    """

    plan: TrainingPlan
    history: tuple[EpochRecord, ...]
    accuracy: float
    weights_identical: bool
    images_per_s: float
    seconds: float
    transport: str
    certificate_id: str
    evidence_class: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the gate did not let the last job in; ``reason`` is the gate's short word."""

    at: datetime
    reason: str
    message: str
    advice: str


def job_folder(jobs: Path, at: datetime) -> Path:
    """A folder of a job's own, also where another starts in the same second; not yet made."""
    return jobs / f"{at:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def save_training(folder: Path, plan: TrainingPlan, result: TrainResult) -> Path:
    """Write ``result.json`` into a job's folder, whole or not at all."""
    data = {
        "plan": asdict(plan),
        "history": [asdict(record) for record in result.history],
        "accuracy": result.accuracy,
        "weights_identical": result.weights_identical,
        "images_per_s": result.images_per_s,
        "seconds": result.seconds,
        "transport": result.transport,
        "gate_pass": plain(result.gate_pass),
    }
    return _write(folder / "result.json", data)


def save_refusal(folder: Path, error: GateRefusedError, at: datetime) -> Path:
    """Keep why the gate refused a job, in the folder of all jobs."""
    said = {"reason": error.reason, "message": error.message, "advice": error.advice}
    return _write(folder / _REFUSAL, {"at": at.isoformat(), **said})


def forget_refusal(folder: Path) -> None:
    """The gate has opened: what it said before holds no more."""
    (folder / _REFUSAL).unlink(missing_ok=True)


def load_refusal(folder: Path) -> Refusal | None:
    """The gate's last word where that was a refusal; else None."""
    try:
        data = json.loads((folder / _REFUSAL).read_text(encoding="utf-8"))
        return Refusal(
            datetime.fromisoformat(data["at"]), data["reason"], data["message"], data["advice"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, data: dict[str, Any]) -> Path:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path)  # noqa: PTH105 - says that it is atomic
    return path


def load_latest_training(folder: Path) -> TrainingRecord | None:
    """The newest finished job below this folder; None where there is none."""
    paths = sorted(folder.glob("*/result.json"), key=lambda path: path.stat().st_mtime_ns)
    for path in reversed(paths):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            plan = dict(data["plan"])
            plan["learning_rate"] = LearningRate(**plan["learning_rate"])
            return TrainingRecord(
                plan=TrainingPlan(**plan),
                history=tuple(EpochRecord(**record) for record in data["history"]),
                accuracy=data["accuracy"],
                weights_identical=data["weights_identical"],
                images_per_s=data["images_per_s"],
                seconds=data["seconds"],
                transport=data["transport"],
                certificate_id=data["gate_pass"]["certificate_id"],
                evidence_class=data["gate_pass"]["evidence_class"],
            )
        except (ValueError, KeyError, TypeError):
            continue
    return None
