"""Sites for tests: small Clos fabrics written as ``paisoar init`` writes them."""

from pathlib import Path

from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape


def write_site(folder: Path, shape: ClosShape | None = None, *, environment: str = "twin") -> Path:
    """A valid ``fabric.yaml`` in this folder; 4 hosts, 2 leaves, 1 spine unless said."""
    path = folder / "fabric.yaml"
    path.write_text(starter_yaml(shape or ClosShape(4, 2, 1), site="test", environment=environment))
    return path


def make_site(folder: Path, shape: ClosShape | None = None, *, environment: str = "twin") -> Site:
    """The site of :func:`write_site`."""
    return load_site(write_site(folder, shape, environment=environment))
