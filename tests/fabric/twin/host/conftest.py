import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabric.site import Site
from fabric.twin.host import EmulatedHost
from fabric.twin.host.image import binds
from fabric.twin.host.namespace import Namespace
from fabric.twin.host.stand_ins.registers import settle
from tests.sites import make_site

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


@pytest.fixture
def host(tmp_path: Path, site: Site) -> Iterator[EmulatedHost]:
    host = EmulatedHost("host1", tmp_path / "devices/host1", site)
    yield host
    host.close()


@pytest.fixture
def shell(tmp_path: Path, host: EmulatedHost) -> Iterator[Shell]:
    """Runs a command inside the host as a session does, without SSH."""
    folder = tmp_path / "devices/host1"
    namespace = Namespace("host1", binds(folder))
    environment = {"HOME": str(folder / "home"), "PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/bin"}

    def run(command: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [*namespace.command, "sh", "-c", command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        settle(host._host)
        return done

    yield run
    namespace.close()


@pytest.fixture
def out(shell: Shell) -> Callable[[str], str]:
    """What a command that must succeed prints."""

    def run(command: str) -> str:
        done = shell(command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    return run
