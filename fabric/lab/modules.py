"""The kernel's modules that guests need, taken out of a kernel package."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from fabric.errors import ToolError

EARLY_MODULES = ("virtio_pci", "virtio_rng", "9pnet_virtio", "9p", "overlay")
# rxe asks for the CRC by its name, which no index of modules tells.
HOST_MODULES = (
    "configfs",
    "crc32_generic",
    "rdma_rxe",
    "ib_uverbs",
    "rdma_ucm",
    "sch_tbf",
    "tcp_dctcp",
)
SWITCH_MODULES = (
    "bridge",
    "sch_ets",
    "sch_red",
    "sch_tbf",
    "sch_ingress",
    "cls_flower",
    "cls_u32",
    "act_skbedit",
)
ALL_MODULES = tuple(
    dict.fromkeys(
        (*EARLY_MODULES, "virtio_net", *HOST_MODULES, *SWITCH_MODULES, "sch_fq", "autofs4")
    )
)


def index(root: Path, version: str) -> None:
    """Make the index that modprobe looks modules up in. ToolError where depmod fails."""
    _run("depmod", "-b", str(root), version)


def needed(root: Path, version: str, modules: Iterable[str]) -> tuple[Path, ...]:
    """Files of these modules and of those that they need, in the order of loading.

    Modules that are built into the kernel have none. ToolError where one is unknown.
    """
    found: dict[Path, None] = {}
    for module in modules:
        shown = _run("modprobe", "-d", str(root), "-S", version, "--show-depends", module)
        for line in shown.splitlines():
            verb, _, path = line.strip().partition(" ")
            if verb == "insmod":
                found[Path(path.split()[0])] = None
    return tuple(found)


def keep(source: Path, target: Path, version: str, modules: Iterable[str]) -> None:
    """Copy the folder of a kernel's modules with these alone, index made."""
    base = Path("lib/modules") / version
    for path in needed(source, version, modules):
        there = target / path.relative_to(source)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)
    for listing in (source / base).glob("modules.*"):
        if listing.name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            shutil.copyfile(listing, target / base / listing.name)
    index(target, version)


def content(path: Path) -> tuple[str, bytes]:
    """Name and content of a module that the first root file system can load as it is."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return path.stem, lzma.decompress(data)
    return path.name, data


def _run(*command: str) -> str:
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
        )
    except FileNotFoundError:
        raise ToolError(
            f"there is no {command[0]} on this machine",
            advice="As root: apt-get install -y kmod (or: make lab).",
        ) from None
    if done.returncode:
        raise ToolError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
