"""Starting, stopping and asking after a site's lab.

``up`` prepares the guests' image once, starts a keeper (``fabric.lab.keeper``) in a
session of its own and waits until every guest lets us in. ``down`` ends it and
whatever it started, however it ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from fabric.daemons import adopt, daemon_pid, one_at_a_time, stop_daemon, sweep
from fabric.errors import ToolError
from fabric.lab.files import KEEPER, LOG, SSH_CONFIG, STATE, console_name, initrd_name, last_lines
from fabric.lab.image import Image, prepare
from fabric.lab.plan import Guest, Sizes, boot_archive, guests_of, signature
from fabric.lab.qemu import accelerator, command, require_qemu
from fabric.reach.access import access_to, lab_dir_of
from fabric.reach.hostssh import close_hosts, run_on_host
from fabric.site import Site
from fabric.twin.files import private_folder, write_private
from fabric.twin.keys import client_key, host_key, write_known_hosts

MARKER = "PAISOAR_LAB"
# Under software emulation, on a busy machine: a minute is usual, not an error.
BOOT_TIMEOUT_S = 600.0
# What QEMU takes beside what the guest has: mostly translated code.
OVERHEAD_MIB = 350
IMAGE_STEPS = 4
# -P: a folder called fabric beside fabric.yaml must not be imported.
_KEEPER = (sys.executable, "-P", "-m", "fabric.lab.keeper")

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class LabGuest:
    """One guest: ``state`` is starting, booted, ready or ended; ``reason`` says why it ended."""

    name: str
    kind: str
    port: int
    state: str
    console: Path
    reason: str = ""
    rss_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LabStatus:
    """What is known of a site's lab.

    ``already_up`` says that ``up`` found it running; ``seconds`` is how long ``up``
    took (0 in a status).
    """

    up: bool
    folder: Path
    guests: tuple[LabGuest, ...] = ()
    accelerator: str = ""
    already_up: bool = False
    seconds: float = 0.0

    @property
    def ssh_config(self) -> Path:
        """A file for ``ssh -F`` that knows every guest by its name."""
        return self.folder / SSH_CONFIG

    @property
    def healthy(self) -> bool:
        """Whether every guest is ready."""
        return self.up and all(guest.state == "ready" for guest in self.guests)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "up": self.up,
            "folder": str(self.folder),
            "ssh_config": str(self.ssh_config),
            "accelerator": self.accelerator,
            "already_up": self.already_up,
            "seconds": round(self.seconds, 3),
            "guests": [
                {
                    "name": guest.name,
                    "kind": guest.kind,
                    "port": guest.port,
                    "state": guest.state,
                    "reason": guest.reason,
                    "console": str(guest.console),
                    "rss_bytes": guest.rss_bytes,
                }
                for guest in self.guests
            ],
        }


def status(site: Site) -> LabStatus:
    """Whether the lab is up, and how its guests are."""
    folder = lab_dir_of(site.path)
    state = _state(folder)
    if state is None:
        return LabStatus(up=False, folder=folder)
    kinds = {name: device.kind for name, device in site.devices.items()}
    guests = tuple(
        LabGuest(
            name=name,
            kind=kinds.get(name, "host"),
            port=facts["port"],
            state=facts["state"],
            console=folder / console_name(name),
            reason=facts["reason"],
            rss_bytes=_rss_bytes(facts["pid"]),
        )
        for name, facts in state["guests"].items()
    )
    return LabStatus(up=True, folder=folder, guests=guests, accelerator=state["accelerator"])


def _state(folder: Path) -> dict[str, Any] | None:
    if daemon_pid(folder) is None:
        return None
    path = folder / STATE
    try:
        state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        complete = {"signature", "accelerator"} <= state.keys() and all(
            {"port", "pid", "state", "reason"} <= facts.keys() for facts in state["guests"].values()
        )
    except FileNotFoundError:
        # The keeper has started no guest yet.
        return None
    except (ValueError, KeyError, AttributeError, TypeError):
        complete = False
    if not complete:
        raise ToolError(
            f"a keeper runs, but {path} does not tell its guests: the file is damaged",
            advice="End the lab and start it anew: paisoar lab down, then paisoar lab up.",
        )
    return state


def _rss_bytes(pid: int) -> int:
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def up(site: Site, on_progress: Progress | None = None, sizes: Sizes | None = None) -> LabStatus:
    """Start the site's lab and wait until every guest lets us in.

    ``on_progress(done, total, what)`` is called as things are prepared and guests come
    up. A lab that runs as it should is left alone; one that has lost a guest is started
    anew. Raises InputError where the site is no lab, ToolError where a lab runs with other
    sizes or guests, something is missing on this machine or a guest does not come up.
    """
    begun = time.monotonic()
    guests = guests_of(site, sizes or Sizes())
    steps = _Steps(on_progress, IMAGE_STEPS + len(guests))
    folder = private_folder(lab_dir_of(site.path))
    with one_at_a_time(folder):
        version = require_qemu()
        known = _state(folder)
        running = status(site)
        if known is not None and running.healthy:
            if known["signature"] != signature(guests):
                raise ToolError(
                    "the lab is up with other sizes, or with guests of an earlier fabric.yaml; "
                    "a new start would lose what is set on them",
                    advice="Give the options it was started with, or end it first: "
                    "paisoar lab down, then paisoar lab up.",
                )
            steps.finish("already up")
            return replace(running, already_up=True)
        _down(folder)
        _require_memory(guests)
        _require_ports(site, guests)
        image = prepare(steps.during(0))
        with image.hold():
            steps.reach(IMAGE_STEPS - 1, "trying what accelerates guests")
            accel = accelerator(image, version)
            steps.reach(IMAGE_STEPS, "starting the guests")
            _write_files(folder, guests, image)
            _start(site, folder, _order(guests, image, accel), steps)
        return replace(status(site), seconds=time.monotonic() - begun)


class _Steps:
    """Progress that counts the image's steps as a few, and each guest as one."""

    def __init__(self, on_progress: Progress | None, total: int) -> None:
        self._tell = on_progress or (lambda _done, _total, _what: None)
        self._total = total

    def reach(self, done: int, what: str) -> None:
        self._tell(done, self._total, what)

    def during(self, done: int) -> Callable[[str], None]:
        return lambda what: self.reach(done, what)

    def finish(self, what: str) -> None:
        self.reach(self._total, what)


def _require_memory(guests: tuple[Guest, ...]) -> None:
    needed = sum(guest.memory_mib + OVERHEAD_MIB for guest in guests)
    free = psutil.virtual_memory().available // 2**20
    if free < needed:
        raise ToolError(
            f"{len(guests)} guests need {needed} MiB of memory, {free} MiB are available",
            advice="Use fewer hosts, or less memory for each: --host-memory and --switch-memory.",
        )


def _require_ports(site: Site, guests: tuple[Guest, ...]) -> None:
    for guest in guests:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", guest.port))
            except OSError as error:
                raise ToolError(
                    f"{guest.name}: port {guest.port} on loopback cannot be had: {error.strerror}",
                    advice=f"Write another one in {site.path}, devices.{guest.name}.mgmt.port, "
                    "or take the lab down that has it.",
                ) from None


def _write_files(folder: Path, guests: tuple[Guest, ...], image: Image) -> None:
    """Keys, ``known_hosts``, ``ssh_config`` and what each guest boots from."""
    authorized = client_key(folder, "paisoar-lab").export_public_key()
    write_known_hosts(folder, {guest.name: guest.port for guest in guests})
    write_private(folder / SSH_CONFIG, _ssh_config(folder, guests).encode())
    first = image.initrd.read_bytes()
    addresses = {
        guest.name: nic.address for guest in guests for nic in guest.nics[:1] if nic.address
    }
    for guest in guests:
        keys = {
            "host_key": host_key(folder, guest.name).export_private_key(),
            "authorized_keys": authorized,
        }
        write_private(
            folder / initrd_name(guest.name), first + boot_archive(guest, addresses, keys)
        )
        (folder / console_name(guest.name)).unlink(missing_ok=True)


def _ssh_config(folder: Path, guests: tuple[Guest, ...]) -> str:
    quoted = str(folder).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    lines = []
    for guest in guests:
        lines += [f"Host {guest.name}", "  HostName 127.0.0.1", f"  Port {guest.port}"]
    lines += [
        "Host *",
        "  User root",
        f'  IdentityFile "{quoted}/id_ed25519"',
        "  IdentitiesOnly yes",
        f'  UserKnownHostsFile "{quoted}/known_hosts"',
        "  GlobalKnownHostsFile none",
        "  StrictHostKeyChecking yes",
    ]
    return "\n".join(lines) + "\n"


def _order(guests: tuple[Guest, ...], image: Image, accel: str) -> dict[str, Any]:
    return {
        "signature": signature(guests),
        "accelerator": accel,
        "image": str(image.folder),
        "guests": [
            {
                "name": guest.name,
                "port": guest.port,
                "command": command(guest, image, accel),
                "wires": [nic.wire for nic in guest.nics if nic.wire and nic.listens],
            }
            for guest in guests
        ],
    }


def _start(site: Site, folder: Path, order: dict[str, Any], steps: _Steps) -> None:
    write_private(folder / KEEPER, json.dumps(order, indent=1).encode())
    ours, theirs = socket.socketpair()
    keeper: subprocess.Popen[bytes] | None = None
    try:
        with ours, (folder / LOG).open("ab") as log:
            with theirs:
                keeper = subprocess.Popen(
                    (*_KEEPER, str(folder), str(theirs.fileno())),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, MARKER: str(folder)},
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            _follow(folder, order, ours, steps)
            _log_in(site, order)
            ours.sendall(b"stay")
    except BaseException:
        if keeper is not None:
            with contextlib.suppress(ProcessLookupError):
                keeper.terminate()
            keeper.wait()
        _down(folder)
        raise
    # The keeper outlives us as a rule; where it does not, stop_daemon waits for it.
    keeper.returncode = 0
    adopt(keeper.pid)


def _follow(folder: Path, order: dict[str, Any], ours: socket.socket, steps: _Steps) -> None:
    """Show what the keeper reports until all guests are ready; ToolError where one is not."""
    waiting = [guest["name"] for guest in order["guests"]]
    count = len(waiting)
    for report in _reports(ours, time.monotonic() + BOOT_TIMEOUT_S):
        if report is None:
            raise _not_up(folder, waiting[0], f"it is not up after {BOOT_TIMEOUT_S:g} s")
        if "error" in report:
            raise ToolError(f"the lab did not start: {report['error']}")
        name = report["guest"]
        if report["state"] == "ended":
            raise _not_up(folder, name, report["reason"])
        if report["state"] == "ready":
            waiting.remove(name)
            steps.reach(IMAGE_STEPS + count - len(waiting), f"{name} is up")
        if not waiting:
            return
    raise ToolError("the lab did not start: its keeper was ended", advice=f"See {folder / LOG}.")


def _reports(ours: socket.socket, deadline: float) -> Iterator[dict[str, Any] | None]:
    """JSON lines until the socket closes; None at the deadline."""
    buffer = b""
    while True:
        ours.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            chunk = ours.recv(65536)
        except TimeoutError:
            yield None
            return
        if not chunk:
            return
        buffer += chunk
        *lines, buffer = buffer.split(b"\n")
        yield from (json.loads(line) for line in lines)


def _not_up(folder: Path, guest: str, reason: str) -> ToolError:
    console = folder / console_name(guest)
    said = last_lines(console) or last_lines(folder / LOG)
    shown = "".join(f"\n  | {line}" for line in said)
    return ToolError(f"{guest} did not come up: {reason}", advice=f"{console} ends with:{shown}")


def _log_in(site: Site, order: dict[str, Any]) -> None:
    """Prove that every guest lets us in and is who it should be."""
    try:
        waiting = {
            guest["name"]: run_on_host(guest["name"], access_to(site, guest["name"]), ["hostname"])
            for guest in order["guests"]
        }
        for name, future in waiting.items():
            answer = future.result()["hostname"]
            if answer.stdout.strip() != name:
                raise ToolError(f"{name}: the guest at its port says: {answer.complaint}")
    finally:
        close_hosts()


def down(file: Path) -> None:
    """End the lab of the site of this ``fabric.yaml``; console logs and keys stay.

    The file need not be valid any more. Quiet where no lab is up. Breaks off an ``up``
    that waits for its guests.
    """
    folder = lab_dir_of(file)
    if folder.exists():
        with one_at_a_time(folder, lambda: stop_daemon(folder)):
            _down(folder)


def _down(folder: Path) -> None:
    stop_daemon(folder)
    sweep(MARKER, folder)
    for pattern in ("*.sock", "*.initrd", STATE, KEEPER):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def running(
    site: Site, on_progress: Progress | None = None, sizes: Sizes | None = None
) -> Iterator[LabStatus]:
    """The site's lab, up within the block and down after it."""
    try:
        yield up(site, on_progress, sizes)
    finally:
        down(site.path)
