"""What the launcher of a training job tells its ranks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.spec import LearningRate, TrainingPlan


@dataclass(frozen=True)
class JobOrders:
    """The same for every rank. ``gate_pass``, as plain values, goes into checkpoints.

    ``checkpoint_every`` counts steps; 0: at the end of each epoch.
    """

    plan: TrainingPlan
    checkpoint_folder: Path | None
    resume: bool
    check_every: int
    gate_pass: dict[str, Any] | None
    checkpoint_every: int = 0
    timeline: bool = False

    def payload(self) -> dict[str, Any]:
        """As JSON."""
        folder = str(self.checkpoint_folder) if self.checkpoint_folder else None
        return {**asdict(self), "checkpoint_folder": folder}

    @classmethod
    def from_payload(cls, payload: dict[str, Any]) -> JobOrders:
        """Read what :meth:`payload` gave."""
        plan = dict(payload["plan"])
        plan["learning_rate"] = LearningRate(**plan["learning_rate"])
        folder = payload["checkpoint_folder"]
        return cls(
            TrainingPlan(**plan),
            Path(folder) if folder else None,
            payload["resume"],
            payload["check_every"],
            payload["gate_pass"],
            payload.get("checkpoint_every", 0),
            payload.get("timeline", False),
        )
