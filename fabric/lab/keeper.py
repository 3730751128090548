"""The lab's daemon: parent of all guests of a site; where it ends, they end.

Started by ``fabric.lab.lifecycle.up`` with one end of a socket. It reports over it as
JSON lines, and goes on alone once it hears ``stay``; a socket that closes before
means that who started it has died, and the guests go with it. Its order of work,
``keeper.json``, says what to run; ``state.json`` says what has become of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from fabric.daemons import hold_lock
from fabric.lab.files import (
    KEEPER,
    READY,
    STATE,
    console_name,
    failure_in,
    initrd_name,
    tail_of,
)

WIRES_TIMEOUT_S = 30.0
STARTING_PAUSE_S = 0.25
PAUSE_S = 2.0
END_TIMEOUT_S = 3.0
BANNER_TIMEOUT_S = 5.0


@dataclass
class _Running:
    """A guest that was started. ``state`` is starting, booted, ready or ended."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    state: str = "starting"
    reason: str = ""

    def facts(self) -> dict[str, Any]:
        return {
            "port": self.port,
            "pid": self.process.pid,
            "state": self.state,
            "reason": self.reason,
        }


@dataclass
class Keeper:
    """Starts guests, watches them, and ends them all together."""

    folder: Path
    order: dict[str, Any]
    caller: socket.socket | None
    stopping: bool = False
    guests: list[_Running] = field(default_factory=list)

    def run(self) -> None:
        """Until it is told to stop, its caller dies while guests start, or all guests ended."""
        try:
            self._start()
            while not self.stopping:
                self._look()
                if all(guest.state == "ended" for guest in self.guests):
                    break
                self._wait()
        finally:
            self._end()

    def _start(self) -> None:
        for entry in self.order["guests"]:
            for wire in entry["wires"]:
                (self.folder / wire).unlink(missing_ok=True)
            try:
                process = subprocess.Popen(
                    # The kernel ends a guest whose keeper was killed.
                    ["setpriv", "--pdeathsig", "KILL", "--", *entry["command"]],
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                )
            except OSError as error:
                self._tell(error=f"{error.filename} (util-linux) cannot be run: {error.strerror}")
                raise
            self.guests.append(_Running(entry["name"], entry["port"], process))
            self._await_wires(process, entry["wires"])
        self._save()

    def _await_wires(self, process: subprocess.Popen[bytes], wires: list[str]) -> None:
        deadline = time.monotonic() + WIRES_TIMEOUT_S
        while not all((self.folder / wire).exists() for wire in wires):
            if process.poll() is not None or time.monotonic() > deadline or self.stopping:
                return
            time.sleep(0.02)

    def _look(self) -> None:
        changed = False
        for guest in self.guests:
            before = guest.state
            self._step(guest)
            if guest.state != before:
                changed = True
                self._tell(guest=guest.name, state=guest.state, reason=guest.reason)
        if changed:
            self._save()

    def _step(self, guest: _Running) -> None:
        if guest.state == "ended":
            return
        console = self.folder / console_name(guest.name)
        if guest.process.poll() is not None:
            guest.state = "ended"
            said = failure_in(console)
            guest.reason = said or f"its QEMU ended ({_how(guest.process.returncode)})"
        elif guest.state == "starting" and READY in tail_of(console):
            guest.state = "booted"
        if guest.state == "booted" and _greets(guest.port):
            guest.state = "ready"

    def _wait(self) -> None:
        starting = any(guest.state in ("starting", "booted") for guest in self.guests)
        pause_s = STARTING_PAUSE_S if self.caller or starting else PAUSE_S
        if self.caller is None:
            time.sleep(pause_s)
            return
        readable, _, _ = select.select([self.caller], [], [], pause_s)
        if not readable:
            return
        with contextlib.suppress(OSError):
            if self.caller.recv(64).startswith(b"stay"):
                self.caller.close()
                self.caller = None
                return
        self.stopping = True

    def _tell(self, **facts: object) -> None:
        if self.caller is not None:
            # Where the caller has died, reading says so.
            with contextlib.suppress(OSError):
                self.caller.sendall(json.dumps(facts).encode() + b"\n")

    def _save(self) -> None:
        document = {
            "signature": self.order["signature"],
            "accelerator": self.order["accelerator"],
            "guests": {guest.name: guest.facts() for guest in self.guests},
        }
        fresh = self.folder / f".{STATE}.new"
        fresh.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self.folder / STATE)

    def _end(self) -> None:
        for guest in self.guests:
            with contextlib.suppress(ProcessLookupError):
                guest.process.terminate()
        deadline = time.monotonic() + END_TIMEOUT_S
        for guest in self.guests:
            try:
                guest.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                guest.process.kill()
                guest.process.wait()
        for entry in self.order["guests"]:
            for name in (*entry["wires"], initrd_name(entry["name"])):
                (self.folder / name).unlink(missing_ok=True)
        (self.folder / STATE).unlink(missing_ok=True)


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _greets(port: int) -> bool:
    """Whether an SSH server answers: QEMU accepts connections before the guest does."""
    try:
        with socket.create_connection(("127.0.0.1", port), BANNER_TIMEOUT_S) as connection:
            connection.settimeout(BANNER_TIMEOUT_S)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def main(arguments: list[str]) -> int:
    """The arguments are the lab's folder and the descriptor of the socket."""
    folder = Path(arguments[0])
    caller = socket.socket(fileno=int(arguments[1]))
    lock = hold_lock(folder)
    if lock is None:
        caller.sendall(json.dumps({"error": "another keeper of this lab is running"}).encode())
        return 3
    order = json.loads((folder / KEEPER).read_text(encoding="utf-8"))
    keeper = Keeper(folder, order, caller)

    def stop(_number: int, _frame: FrameType | None) -> None:
        keeper.stopping = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    with lock, (Path(order["image"]) / "held").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        keeper.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
