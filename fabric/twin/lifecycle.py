"""Starting, stopping and asking after a site's twin.

``up`` starts the daemon (``fabric.twin.server``) in a session of its own and
waits until every device listens. ``down`` ends it and whatever its sessions
left running, however it ended: the daemon's environment marks every process
that comes from it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabric.daemons import adopt, one_at_a_time, stop_daemon, sweep
from fabric.errors import InputError, ToolError
from fabric.reach.access import INVENTORY, twin_dir, twin_dir_of, twin_inventory_path
from fabric.site import Site, SwitchSpec
from fabric.twin.control import ask
from fabric.twin.faults import place
from fabric.twin.files import private_folder
from fabric.twin.server import REPORT_FD, devices_folder, new_devices, site_signature

MARKER = "PAISOAR_TWIN"
LOG = "twin.log"
TEMPORARY = "tmp"
START_TIMEOUT_S = 60.0

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class TwinDevice:
    """Where one device of the twin listens."""

    name: str
    kind: str
    port: int
    user: str


@dataclass(frozen=True, slots=True)
class TwinStatus:
    """What is known of a site's twin.

    ``new`` names devices that started fresh; ``already_up`` says that ``up``
    found it running; ``seconds`` is how long ``up`` took (0 in a status).
    """

    up: bool
    folder: Path
    pid: int | None = None
    devices: tuple[TwinDevice, ...] = ()
    new: tuple[str, ...] = ()
    already_up: bool = False
    seconds: float = 0.0
    rss_bytes: int = 0

    @property
    def log(self) -> Path:
        """The daemon's log."""
        return self.folder / LOG

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "up": self.up,
            "folder": str(self.folder),
            "pid": self.pid,
            "devices": [
                {"name": d.name, "kind": d.kind, "port": d.port, "user": d.user}
                for d in self.devices
            ],
            "new": list(self.new),
            "already_up": self.already_up,
            "seconds": round(self.seconds, 3),
            "rss_bytes": self.rss_bytes,
        }


def status(site: Site) -> TwinStatus:
    """Whether the twin is up, and where its devices listen."""
    folder = twin_dir(site)
    try:
        facts = ask(site, "status")
        inventory = json.loads(twin_inventory_path(site).read_text())
    except (ToolError, InputError, OSError, ValueError):
        return TwinStatus(up=False, folder=folder)
    devices = tuple(
        TwinDevice(
            name,
            "switch" if isinstance(site.devices.get(name), SwitchSpec) else "host",
            entry["port"],
            entry["user"],
        )
        for name, entry in inventory["devices"].items()
    )
    return TwinStatus(
        up=True,
        folder=folder,
        pid=facts["pid"],
        devices=devices,
        new=tuple(facts["new"]),
        rss_bytes=facts["rss_bytes"],
    )


def up(site: Site, on_progress: Progress | None = None) -> TwinStatus:
    """Start the site's twin and wait until every device listens.

    ``on_progress(done, total, what)`` is called as devices come up. A running
    twin is left alone, unless devices or cables of ``fabric.yaml`` have changed
    since: then it is restarted, and only changed devices start fresh. Raises
    InputError where the site is no twin, ToolError where the daemon cannot start.
    """
    begun = time.monotonic()
    tell = on_progress or (lambda _done, _total, _what: None)
    total = len(site.devices)
    if site.environment != "twin":
        raise InputError(
            f"the site's environment is {site.environment}, not twin",
            file=site.path,
            key="environment",
            advice="Only a twin can be started.",
        )
    folder = twin_dir(site)
    with one_at_a_time(private_folder(folder)):
        running = status(site)
        if running.up:
            if ask(site, "status")["signature"] == site_signature(site):
                tell(total, total, "already up")
                return replace(running, already_up=True)
            tell(0, total, "devices or cables have changed: restarting")
        _down(folder)
        known = any(devices_folder(site).glob("*"))
        for name in new_devices(site) if known else ():
            tell(0, total, f"{name} is new and starts fresh")
        _start(site, folder, tell)
        return replace(status(site), seconds=time.monotonic() - begun)


def _start(site: Site, folder: Path, tell: Progress) -> None:
    temporary = private_folder(folder / TEMPORARY)
    environment = {**os.environ, MARKER: str(folder), "TMPDIR": str(temporary)}
    reader, writer = os.pipe()
    daemon: subprocess.Popen[bytes] | None = None
    try:
        environment[REPORT_FD] = str(writer)
        with (folder / LOG).open("ab") as log:
            daemon = subprocess.Popen(
                # -P: a folder called fabric beside fabric.yaml must not be imported.
                [sys.executable, "-P", "-m", "fabric.twin.server", str(site.path.resolve())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                pass_fds=(writer,),
                start_new_session=True,
            )
        os.close(writer)
        writer = -1
        _follow(site, reader, tell)
    except BaseException:
        if daemon is not None:
            with contextlib.suppress(ProcessLookupError):
                daemon.kill()
            daemon.wait()
        _sweep(folder)
        raise
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
    # The daemon outlives us as a rule; where it does not, stop_daemon waits for it.
    daemon.returncode = 0
    adopt(daemon.pid)


def _follow(site: Site, reader: int, tell: Progress) -> None:
    """Show what the starting daemon reports; ToolError where it gives up."""
    reason = "it ended while starting"
    for report in _reports(reader, time.monotonic() + START_TIMEOUT_S):
        if report.get("ready"):
            return
        if "error" in report:
            reason = str(report["error"])
        else:
            tell(report["done"], report["total"], str(report["device"]))
    raise ToolError(
        f"the twin of {site.path} did not start: {reason}",
        advice=f"See {twin_dir(site) / LOG}.",
    )


def _reports(reader: int, deadline: float) -> Iterator[dict[str, Any]]:
    """JSON lines from a pipe until it closes; ToolError at the deadline."""
    buffer = b""
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise ToolError(f"the twin did not start within {START_TIMEOUT_S:g} s")
        chunk = os.read(reader, 65536)
        if not chunk:
            return
        buffer += chunk
        *lines, buffer = buffer.split(b"\n")
        yield from (json.loads(line) for line in lines)


def down(file: Path) -> None:
    """End the twin of the site of this ``fabric.yaml``; its devices' state stays.

    The file need not be valid any more. Quiet where no twin is up. Works as well
    after the daemon was killed.
    """
    folder = twin_dir_of(file)
    if folder.exists():
        with one_at_a_time(folder):
            _down(folder)


def _down(folder: Path) -> None:
    stop_daemon(folder)
    _sweep(folder)


def _sweep(folder: Path) -> None:
    """Kill what came from the twin's daemon, remove inventory and temporary files."""
    sweep(MARKER, folder)
    (folder / INVENTORY).unlink(missing_ok=True)
    shutil.rmtree(folder / TEMPORARY, ignore_errors=True)


def break_fabric(site: Site, kind: str, device: str | None = None, port: str | None = None) -> str:
    """Inject a fault into the running twin; a sentence that says what was done where.

    Left open, device and port are the first that fit, a leaf's host-facing port
    before others. Raises InputError for an unknown kind, device or port,
    ToolError where the twin is not up.
    """
    name, at = place(site, kind, device, port)
    return str(ask(site, "break", kind=kind, device=name, port=at))
