"""What a finished training leaves for reports: ``FOLDER/result.json``."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from trainer.launch import TrainingPlan, TrainResult, plain
from trainer.spec import EpochRecord, LearningRate


@dataclass(frozen=True)
class TrainingRecord:
    """A finished training: its plan, its epochs, how it ended, who admitted it."""

    plan: TrainingPlan
    history: tuple[EpochRecord, ...]
    accuracy: float
    weights_identical: bool
    images_per_s: float
    seconds: float
    transport: str
    certificate_id: str


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
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "result.json"
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
            )
        except (ValueError, KeyError, TypeError):
            continue
    return None
