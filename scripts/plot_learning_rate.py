"""Draw ``docs/learning-rate.svg``: ``smooth_exponential_decay`` beside a straight warm-up."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "paisoar"
mpl.rcParams["svg.fonttype"] = "none"

from matplotlib import pyplot as plt  # noqa: E402 - after its backend was chosen

from trainer.learning_rate import SmoothExponentialDecay  # noqa: E402

STEPS_PER_EPOCH = 100
EPOCHS = 20


def draw(path: Path) -> None:
    """Write the figure; the same bytes for the same code and matplotlib."""
    rate = SmoothExponentialDecay(
        0.01, 0.4, warmup_steps=5 * STEPS_PER_EPOCH, decay_rate=0.6, decay_steps=3 * STEPS_PER_EPOCH
    )
    steps = range(EPOCHS * STEPS_PER_EPOCH)
    epochs = [step / STEPS_PER_EPOCH for step in steps]
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    axes.plot(epochs, [rate(step) for step in steps], label="smooth_exponential_decay")
    axes.plot([0, 5], [0.01, 0.4], "--", color="grey", linewidth=1, label="straight warm-up")
    axes.set(xlabel="epoch", ylabel="learning rate", xlim=(0, EPOCHS), ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/learning-rate.svg"))
