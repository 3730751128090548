"""Debian packages unpacked into a folder, without installing them.

What the machine lacks of them, and of what they need, is asked of apt, which any user
may; nothing on the machine changes. Guests lay the folder over the machine's files.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from fabric.errors import ToolError

# What guests need beside the kernel; whatever the machine has of it is used as it is.
GUEST_PACKAGES = (
    "openssh-server",
    "openssh-sftp-server",
    "systemd",
    "busybox-static",
    "python3",
    "kmod",
    "iproute2",
    "ethtool",
    "iputils-ping",
    "rdma-core",
    "ibverbs-providers",
    "ibverbs-utils",
    "perftest",
    "python3-pyverbs",
)
KERNEL = "linux-image-amd64"

_MISSING = re.compile(r"^Inst (?P<name>\S+) (?:\[[^\]]*\] )?\((?P<version>\S+)", re.MULTILINE)
_IMAGE = re.compile(r"^\s*Depends: (linux-image-(\S+))$", re.MULTILINE)
# On most systems these are links into /usr, which a folder of that name would hide.
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_UPDATE = "As root: apt-get update."


def missing() -> tuple[str, ...]:
    """``name=version`` of every package that the machine lacks. ToolError where apt cannot tell."""
    command = ("-s", "-qq", "install", "--no-install-recommends", *GUEST_PACKAGES)
    shown = apt_get(*command, doing="find out which packages the guests need", advice=_UPDATE)
    return tuple(f"{found['name']}={found['version']}" for found in _MISSING.finditer(shown))


def kernel_package() -> tuple[str, str]:
    """The package of Debian's current kernel, and that kernel's version."""
    shown = _run(("apt-cache", "depends", KERNEL), "look for the guests' kernel", None, _UPDATE)
    found = _IMAGE.search(shown)
    if found is None:
        raise ToolError(f"apt knows no package {KERNEL}", advice=_UPDATE)
    return found[1], found[2]


def download(package: str, folder: Path) -> Path:
    """Fetch one package into a folder; the file's path."""
    before = set(folder.glob("*.deb"))
    apt_get("-qq", "download", package, doing=f"download {package}", folder=folder, advice=_UPDATE)
    return next(path for path in folder.glob("*.deb") if path not in before)


def unpack(file: Path, target: Path) -> None:
    """Unpack a package's files."""
    _run(("dpkg-deb", "-x", str(file), str(target)), f"unpack {file.name}", None, "")


def fit_to_machine(target: Path, root: Path = Path("/")) -> None:
    """Move what lies in ``lib`` and the like below ``usr`` where the machine has them there."""
    for name in _MERGED:
        if (target / name).is_dir() and (root / name).is_symlink():
            shutil.copytree(target / name, target / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(target / name)


def apt_get(*arguments: str, doing: str, advice: str, folder: Path | None = None) -> str:
    """What ``apt-get`` prints. ToolError with its own words where it fails."""
    return _run(("apt-get", *arguments), doing, folder, advice)


def _run(command: tuple[str, ...], doing: str, folder: Path | None, advice: str) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise ToolError(
            f"cannot {doing}: there is no {command[0]} on this machine",
            advice="The lab takes its guests' kernel from Debian: it needs Debian or a relative.",
        ) from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        words = "; ".join(errors[:3]) or done.stderr.strip()[-300:] or f"exit {done.returncode}"
        raise ToolError(f"cannot {doing}: {words}", advice=advice)
    return done.stdout
