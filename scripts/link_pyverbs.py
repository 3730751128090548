#!/usr/bin/env python3
"""Make the distribution's pyverbs visible in the virtual environment that runs this.

    .venv/bin/python scripts/link_pyverbs.py [FOLDER]

Links the folder ``pyverbs`` alone (FOLDER, or where distributions put it) into the
environment's site-packages. Its extension modules fit one version of Python: another
is refused. Exit status: 0 linked, 2 wrong use, 3 something is missing, which is said.
"""

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

# Debian and Ubuntu, then Fedora and RHEL.
_PLACES = ("/usr/lib/python3/dist-packages", "/usr/lib64/python3*/site-packages")
_INSTALL = (
    "install the distribution's packages as root "
    "(Debian, Ubuntu: apt-get install rdma-core ibverbs-providers python3-pyverbs; "
    "Fedora, RHEL: dnf install rdma-core libibverbs python3-pyverbs)"
)


class Refused(Exception):  # noqa: N818 (it is no error of this program)
    """Why nothing was linked; ``code`` is the exit status."""

    def __init__(self, text: str, code: int = 3) -> None:
        super().__init__(text)
        self.code = code


def find(places: Sequence[str] = _PLACES) -> Path:
    """The distribution's folder; one that fits this Python before others."""
    found = [
        folder
        for place in places
        for folder in sorted(Path("/").glob(f"{place.lstrip('/')}/pyverbs"))
        if (folder / "__init__.py").is_file()
    ]
    if not found:
        raise Refused(f"there is no pyverbs in {' or '.join(places)}: {_INSTALL}")
    return next((folder for folder in found if fits(folder)), found[0])


def fits(folder: Path) -> bool:
    """Whether the extension modules are built for this Python."""
    return any(folder.glob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"))


def link(folder: Path, site_packages: Path) -> str:
    """Link the folder; what was done, in words. Refused where it does not fit."""
    if not fits(folder):
        built = sorted({file.name.partition(".")[2] for file in folder.glob("*.so")})
        raise Refused(
            f"{folder} has modules for {', '.join(built) or 'no Python at all'}, this Python "
            f"({sys.executable}) loads {sysconfig.get_config_var('EXT_SUFFIX')}: make .venv with "
            "the distribution's own python3 (PYTHON=/usr/bin/python3 make setup), "
            "or install the pyverbs of this one"
        )
    place = site_packages / "pyverbs"
    if place.is_symlink():
        if place.resolve() == folder.resolve():
            return f"{place} is linked to {folder} already"
        place.unlink()
    elif place.exists():
        raise Refused(f"{place} is there and no link: pip uninstall pyverbs, then again")
    place.symlink_to(folder)
    return f"{place} -> {folder}"


def load() -> None:
    """Load it in a process of its own; Refused with the loader's words."""
    # All that the trainer loads; the first needs libibverbs.
    code = "import pyverbs.device, pyverbs.qp, pyverbs.wr, pyverbs.cq, pyverbs.mr, pyverbs.pd"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)  # noqa: PLW1510
    if done.returncode:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise Refused(f"pyverbs is linked and does not load: {last}; {_INSTALL}")


def main(words: Sequence[str]) -> int:
    """Link, load, and say what was done or what is missing."""
    try:
        if len(words) > 1 or any(word.startswith("-") for word in words):
            raise Refused(__doc__ or "", 2)
        if sys.prefix == sys.base_prefix:
            raise Refused("run this with the environment's Python: .venv/bin/python", 2)
        said = link(Path(words[0]) if words else find(), Path(sysconfig.get_paths()["purelib"]))
        load()
    except Refused as refused:
        print(f"link_pyverbs: {refused}", file=sys.stderr)
        return refused.code
    print(f"link_pyverbs: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
