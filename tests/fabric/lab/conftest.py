"""A lab whose guests are stand-ins: everything but QEMU and the kernel is real."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabric.lab import down, image
from fabric.lab.starter import lab_yaml
from fabric.site import Site, load_site


def program(folder: Path, name: str, text: str) -> Path:
    """A program that is found on PATH where the folder is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def own_ports(count: int) -> tuple[int, ...]:
    """Ports that the system gives to nobody else meanwhile."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = tuple(server.getsockname()[1] for server in held)
    for server in held:
        server.close()
    return ports


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of our own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(image.CACHE, str(folder))
    return folder


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """QEMU is a stand-in, and the image that it starts has been prepared."""
    standin = Path(__file__).with_name("standin.py")
    folder = tmp_path / "bin"
    program(folder, "qemu-system-x86_64", f'#!/bin/sh\nexec {sys.executable} {standin} "$@"\n')
    monkeypatch.setenv("PATH", f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin")
    made = image.Image(cache / image._key())
    made.tree.mkdir(parents=True)
    made.kernel.write_bytes(b"kernel")
    made.initrd.write_bytes(b"initrd")
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A lab of two hosts, down afterwards however the test ends."""
    file = tmp_path / "site" / "fabric.yaml"
    file.parent.mkdir()
    file.write_text(lab_yaml(2, ports=own_ports(3)))
    yield load_site(file)
    down(file)
