"""Starting, stopping and asking after a site's twin.

``up`` starts the daemon (``fabric.twin.server``) in a session of its own and
waits until every device listens. ``down`` ends it and whatever its sessions
left running, however it ended: the daemon's environment marks every process
that comes from it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from fabric.access import INVENTORY, twin_dir, twin_dir_of, twin_inventory_path
from fabric.errors import InputError, ToolError
from fabric.site import Site, SwitchSpec
from fabric.twin.control import ask
from fabric.twin.faults import place
from fabric.twin.files import private_folder
from fabric.twin.server import LOCK, REPORT_FD, devices_folder, new_devices, site_signature

MARKER = "PAISOAR_TWIN"
LOG = "twin.log"
TEMPORARY = "tmp"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0

Progress = Callable[[int, int, str], None]

_children: set[int] = set()  # pids of daemons that this process has started


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
    with _one_at_a_time(folder):
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


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one ``up`` or ``down`` of the twin of this folder run at a time."""
    with (private_folder(folder) / "lifecycle.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
    # The daemon outlives us as a rule; where it does not, _reap waits for it.
    daemon.returncode = 0
    _children.add(daemon.pid)


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
        with _one_at_a_time(folder):
            _down(folder)


def _down(folder: Path) -> None:
    _reap()
    pid = _daemon_pid(folder)
    if pid is not None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            if _ended(pid, STOP_TIMEOUT_S):
                break
    _sweep(folder)


def _daemon_pid(folder: Path) -> int | None:
    """The pid of the daemon that holds the twin's lock; None where none does."""
    try:
        with (folder / LOCK).open("r+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read().strip()
                return int(text) if text else None
    except FileNotFoundError:
        pass
    return None


def _reap() -> None:
    """Wait for daemons of ours that have ended by themselves, or were killed."""
    for pid in tuple(_children):
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            ended = True
        if ended:
            _children.discard(pid)


def _ended(pid: int, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        # As our own child it stays a zombie until we wait for it.
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                return True
        except ChildProcessError:
            with contextlib.suppress(psutil.NoSuchProcess):
                if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                    time.sleep(0.02)
                    continue
            return True
        time.sleep(0.02)
    return False


def _sweep(folder: Path) -> None:
    """Kill what came from the twin's daemon, remove inventory and temporary files."""
    ours = psutil.Process().pid
    left: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != ours and process.environ().get(MARKER) == str(folder):
                process.kill()
                left.append(process)
    psutil.wait_procs(left, timeout=STOP_TIMEOUT_S)
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
