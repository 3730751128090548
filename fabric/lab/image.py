"""What all guests boot from: kernel, first root file system, packages; made once and cached.

It lies in ``$PAISOAR_LAB_CACHE`` (default ``~/.cache/paisoar/lab``), one folder for
each state of the machine that it was made on. A program that uses one holds it locked;
those that nobody holds go when another is made.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import lzma
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fabric.errors import InputError, ToolError
from fabric.lab import modules, packages
from fabric.lab.cpio import Entry, archive
from fabric.lab.plan import guest_file
from fabric.textfile import naming

CACHE = "PAISOAR_LAB_CACHE"
NEEDED_BYTES = 900 * 10**6  # while it is made; a tenth of that stays

RECIPE = 2  # counts up where images are made otherwise than before

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Image:
    """The files of one cached image. ``tree`` goes over the machine's own files."""

    folder: Path

    @property
    def kernel(self) -> Path:
        """The kernel."""
        return self.folder / "kernel"

    @property
    def initrd(self) -> Path:
        """The first root file system, without a guest's own part."""
        return self.folder / "initrd"

    @property
    def tree(self) -> Path:
        """Files of packages that the machine lacks, and the kernel's modules."""
        return self.folder / "tree"

    def hold(self) -> IO[str]:
        """Keep the image from being removed, until the file is closed."""
        held = (self.folder / "held").open("a")
        fcntl.flock(held, fcntl.LOCK_SH)
        return held


def cache_folder() -> Path:
    """Where images lie; not created here."""
    named = os.environ.get(CACHE)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = Path(named or base).expanduser().resolve()
    except RuntimeError as error:
        variable = CACHE if named else "XDG_CACHE_HOME"
        raise InputError(
            f"{variable} names no folder: {named or base}: {error}",
            advice=f"Name one that can be written in {CACHE}.",
        ) from None
    return folder if named else folder / "paisoar" / "lab"


def prepared() -> Image | None:
    """The image for this machine as it is now; None where it is still to be made."""
    image = Image(cache_folder() / _key())
    return image if image.initrd.is_file() else None


def prepare(tell: Tell) -> Image:
    """The image for this machine, made where there is none; ``tell`` hears of each step.

    ToolError where a tool, a package or room on the disk is missing; interrupted, it
    leaves nothing behind.
    """
    image = prepared()
    if image is not None:
        return image
    cache = cache_folder()
    with naming(cache):
        cache.mkdir(parents=True, exist_ok=True)
    tell("waiting for another program that prepares the guests")
    with _locked(cache / "lock"):
        image = prepared()
        if image is not None:
            return image
        _remove_unused(cache)
        _require_room(cache)
        with tempfile.TemporaryDirectory(prefix="new-", dir=cache) as folder:
            made = Image(Path(folder) / "image")
            made.folder.mkdir()
            _make(made, Path(folder), tell)
            made.folder.replace(cache / _key())
    return Image(cache / _key())


def _make(image: Image, scratch: Path, tell: Tell) -> None:
    tell("asking apt what is missing on this machine")
    wanted = packages.missing()
    kernel, version = packages.kernel_package()
    image.tree.mkdir()
    for package in wanted:
        tell(f"downloading {package.partition('=')[0]}")
        packages.unpack(packages.download(package, scratch), image.tree)
    tell(f"downloading the kernel, {version}")
    unpacked = scratch / "kernel"
    packages.unpack(packages.download(kernel, scratch), unpacked)
    tell("picking the kernel's modules")
    modules.index(unpacked, version)
    modules.keep(unpacked, image.tree, version, modules.ALL_MODULES)
    packed = (unpacked / "boot" / f"vmlinuz-{version}").read_bytes()
    image.kernel.write_bytes(unpacked_kernel(packed) or packed)
    early = modules.needed(unpacked, version, modules.EARLY_MODULES)
    packages.fit_to_machine(image.tree)
    tell("writing the first root file system")
    image.initrd.write_bytes(first_root(_busybox(image.tree), early))


def _busybox(tree: Path) -> bytes:
    for folder in ("usr/bin", "bin"):
        for root in (tree, Path("/")):
            path = root / folder / "busybox"
            if path.is_file() and _is_static(path):
                return path.read_bytes()
    raise ToolError("busybox-static holds no busybox that could run by itself")


def _is_static(path: Path) -> bool:
    """Whether a program needs no loader: it does not name one."""
    return b"/ld-linux" not in path.read_bytes()


def first_root(busybox: bytes, early: tuple[Path, ...]) -> bytes:
    """The archive that every guest boots from: busybox, our ``init``, the first modules."""
    loaded = [modules.content(path) for path in early]
    order = "".join(f"{name}\n" for name, _ in loaded).encode()
    entries = [
        Entry("bin", mode=0o755),
        Entry("bin/busybox", busybox, 0o755),
        Entry("init", guest_file("init"), 0o755),
        Entry("early", mode=0o755),
        Entry("early/order", order),
        *(Entry(f"early/{name}", data) for name, data in loaded),
    ]
    return archive(entries)


def unpacked_kernel(image: bytes) -> bytes | None:
    """The kernel proper of a bzImage that was packed with xz; None for any other.

    QEMU starts it as it is (PVH), where unpacking takes an emulated processor ten
    seconds. Source: "The Linux/x86 Boot Protocol" (setup_sects, payload_offset,
    payload_length).
    """
    if image[0x202:0x206] != b"HdrS":
        return None
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = ((image[0x1F1] or 4) + 1) * 512 + offset
    try:
        kernel = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(image[start : start + length])
    except lzma.LZMAError:
        return None
    return kernel if kernel.startswith(b"\x7fELF") else None


def _key() -> str:
    """Hash of what the image depends on: our own recipe and the machine's packages."""
    names = packages.GUEST_PACKAGES
    try:
        installed = subprocess.run(
            ("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n", *names),
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    except FileNotFoundError:
        installed = ""
    release = Path("/etc/os-release")
    recipe = {
        "version": RECIPE,
        "packages": names,
        "modules": modules.ALL_MODULES,
        "early": modules.EARLY_MODULES,
        "init": guest_file("init").decode(),
        "installed": sorted(installed.splitlines()),
        "release": release.read_text() if release.is_file() else "",
    }
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_unused(cache: Path) -> None:
    """Remove what broken-off preparations left, and images that nobody holds."""
    for folder in cache.iterdir():
        if not folder.is_dir():
            continue
        if folder.name.startswith("new-"):
            shutil.rmtree(folder, ignore_errors=True)
            continue
        with contextlib.suppress(OSError), (folder / "held").open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def _require_room(cache: Path) -> None:
    free = shutil.disk_usage(cache).free
    if free < NEEDED_BYTES:
        raise ToolError(
            f"preparing the guests needs {NEEDED_BYTES / 1e6:.0f} MB in {cache}, "
            f"where {free / 1e6:.0f} MB are free",
            advice=f"Make room, or name another folder with {CACHE}.",
        )
