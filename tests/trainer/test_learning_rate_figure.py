import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_figure_of_the_documentation_is_what_the_schedule_draws(tmp_path):
    script = ROOT / "scripts" / "plot_learning_rate.py"
    drawn = tmp_path / "drawn.svg"
    subprocess.run([sys.executable, str(script), str(drawn)], check=True, cwd=ROOT)

    def curves(path):
        # The paths alone: styles and fonts may differ between releases of matplotlib.
        text = path.read_text()
        return [part.split('"')[0] for part in text.split('<path d="')[1:] if part.count("L") > 20]

    assert curves(drawn)
    assert curves(drawn) == curves(ROOT / "docs" / "learning-rate.svg")
    assert "learning-rate.svg" in (ROOT / "docs" / "training.md").read_text()
