"""Folders of saved outputs: a fabric that is right, and ways to spoil its files."""

from pathlib import Path

from fabric.audit import audit
from fabric.saved.layout import save_outputs
from fabric.saved.offline import SavedFabric, read_folder
from fabric.saved.sample import sample_outputs
from fabric.site import Site
from tests.sites import make_site


def saved(folder: Path) -> tuple[Site, Path]:
    """A site, and its outputs in ``folder/outputs``."""
    site = make_site(folder)
    path = folder / "outputs"
    save_outputs(path, {name: sample_outputs(site, name, ports=54) for name in site.devices})
    return site, path


def edit(path: Path, old: str, new: str, count: int = -1) -> None:
    text = path.read_text()
    assert old in text, f"{path}: no {old!r}"
    path.write_text(text.replace(old, new, count))


def judged(fabric: SavedFabric):
    return audit(
        fabric.site,
        fabric.states,
        fabric.intended,
        outputs=fabric.outputs,
        counters=fabric.counters,
    )


def found(path: Path) -> set[tuple[str, str]]:
    """(rule, device) of every finding in the folder."""
    return {(f.rule, f.device) for f in judged(read_folder(path)).findings}
