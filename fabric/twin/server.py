"""The twin's daemon: every device of a site behind its own SSH server on loopback.

Started detached by ``fabric.twin.lifecycle.up``, or in the foreground with
``python -m fabric.twin.server fabric.yaml``. One process, one event loop: the
devices' state needs no locks. A file lock in the twin's folder makes sure that
there is one daemon a site.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import asyncssh
import psutil

from fabric.counters import Counter
from fabric.daemons import hold_lock
from fabric.errors import PaisoarError
from fabric.reach.access import twin_dir, twin_inventory_path
from fabric.site import Site, SwitchSpec, load_site
from fabric.twin.cli.printable import share_printable
from fabric.twin.control import ControlError, Request, serve_control
from fabric.twin.device import EmulatedDevice
from fabric.twin.files import private_folder, write_private
from fabric.twin.host import EmulatedHost
from fabric.twin.keys import client_key, host_key, write_known_hosts
from fabric.twin.switches import emulated_switch

PORTS = "ports.json"
SIGNATURE = "device.sha256"
REPORT_FD = "PAISOAR_TWIN_REPORT_FD"
STOP_TIMEOUT_S = 3.0

OnDevice = Callable[[int, int, str], None]

log = logging.getLogger("paisoar.twin")


def devices_folder(site: Site) -> Path:
    """Where devices keep their state, each in a folder of its name."""
    return twin_dir(site) / "devices"


def signature(site: Site, device: str) -> str:
    """Hash of what a device is: with another one its kept state means nothing."""
    spec = site.devices[device].model_dump(mode="json", exclude={"mgmt", "buffer", "role"})
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()


def site_signature(site: Site) -> str:
    """Hash of all devices and cables."""
    facts = {
        "devices": {name: signature(site, name) for name in site.devices},
        "cables": [cable.model_dump(mode="json") for cable in site.document.cables],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def new_devices(site: Site) -> tuple[str, ...]:
    """Devices that have no kept state, or another device's."""
    return tuple(
        name
        for name in site.devices
        if _read(devices_folder(site) / name / SIGNATURE) != signature(site, name)
    )


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


class _Gate(asyncssh.SSHServer):
    """Lets users in: with the twin's key, or anybody where a device has no shell."""

    def __init__(
        self, device: EmulatedDevice, connections: set[asyncssh.SSHServerConnection]
    ) -> None:
        self.device = device
        self.connections = connections
        self.connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn
        self.connections.add(conn)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self.connection is not None:
            self.connections.discard(self.connection)

    def begin_auth(self, _username: str) -> bool:
        return self.device.login_required


class TwinServer:
    """All devices of a site, listening. Use ``start`` and ``close`` in one event loop."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.folder = private_folder(twin_dir(site))
        self.devices: dict[str, EmulatedDevice] = {}
        self.ports: dict[str, int] = {}
        self.new: tuple[str, ...] = ()
        self.stopping = asyncio.Event()
        self._started_s = time.time()
        self._acceptors: list[asyncssh.SSHAcceptor] = []
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._control: asyncio.Server | None = None

    async def start(self, on_device: OnDevice | None = None) -> None:
        """Build every device, listen for it, and write the inventory at the end."""
        self.new = new_devices(self.site)
        user_key = client_key(self.folder)
        keys = asyncssh.import_authorized_keys(user_key.export_public_key().decode())
        earlier = self._earlier_ports()
        for done, name in enumerate(self.site.devices, start=1):
            device = self._build(name)
            first_host = isinstance(device, EmulatedHost) and not any(
                isinstance(other, EmulatedHost) for other in self.devices.values()
            )
            self.devices[name] = device
            if first_host:
                # It shows whether this machine lets hosts run at all: the others
                # start with their first session.
                await cast(EmulatedHost, device).prove()
            acceptor = await self._listen(device, keys, earlier.get(name, 0))
            self._acceptors.append(acceptor)
            self.ports[name] = acceptor.get_port()
            if on_device is not None:
                on_device(done, len(self.site.devices), name)
            await asyncio.sleep(0)
        write_known_hosts(self.folder, self.ports)
        write_private(self.folder / PORTS, json.dumps(self.ports).encode())
        token = secrets.token_hex(32)
        self._control = await serve_control(token, self._answer)
        control_port = self._control.sockets[0].getsockname()[1]
        inventory = {
            "pid": os.getpid(),
            "control": {"port": control_port, "token": token},
            "devices": {
                name: {"port": self.ports[name], "user": device.user}
                for name, device in self.devices.items()
            },
        }
        write_private(twin_inventory_path(self.site), json.dumps(inventory, indent=1).encode())

    def _build(self, name: str) -> EmulatedDevice:
        folder = devices_folder(self.site) / name
        if name in self.new:
            shutil.rmtree(folder, ignore_errors=True)
        private_folder(folder)
        device: EmulatedDevice
        if isinstance(self.site.devices[name], SwitchSpec):
            device = emulated_switch(name, folder, self.site, self.devices)
        else:
            device = EmulatedHost(name, folder, self.site, self.devices)
        device.save()
        write_private(folder / SIGNATURE, signature(self.site, name).encode())
        return device

    def _earlier_ports(self) -> dict[str, int]:
        try:
            ports = json.loads((self.folder / PORTS).read_text())
        except (OSError, ValueError):
            return {}
        return {str(name): int(port) for name, port in ports.items()}

    async def _listen(
        self, device: EmulatedDevice, keys: asyncssh.SSHAuthorizedKeys, port: int
    ) -> asyncssh.SSHAcceptor:
        async def serve(process: asyncssh.SSHServerProcess[str]) -> None:
            try:
                await device.serve(process)
            except (asyncssh.ConnectionLost, BrokenPipeError, ConnectionResetError):
                log.info("%s: a client went away", device.name)
            except Exception:
                log.exception("%s: a session failed", device.name)
                process.stderr.write(f"{device.name}: internal error, see twin.log\n")
                process.exit(255)

        options: dict[str, Any] = {
            "server_factory": lambda: _Gate(device, self._connections),
            "server_host_keys": [host_key(self.folder, device.name)],
            "process_factory": serve,
            # A device with a shell edits lines by itself, on its own terminal.
            "line_editor": not device.login_required,
            "encoding": "utf-8",
            "errors": "surrogateescape",
            "authorized_client_keys": keys,
            "password_auth": False,
            "kbdint_auth": False,
        }
        if isinstance(device, EmulatedHost):
            options["sftp_factory"] = device.sftp
            # Files and archives are no text: one character is one byte, whole at the end too.
            options["encoding"] = "latin-1"
        try:
            return await asyncssh.listen("127.0.0.1", port, **options)
        except OSError:
            if not port:
                raise
            return await asyncssh.listen("127.0.0.1", 0, **options)

    async def _answer(self, operation: str, request: Request) -> object:
        if operation == "status":
            return self._status()
        if operation == "counters":
            return self._add_counters(request["rows"])
        if operation == "break":
            return self._break(request["kind"], request["device"], request["port"])
        if operation == "stop":
            self.stopping.set()
            return None
        raise ControlError(f"{operation!r} is no operation")

    def _status(self) -> Request:
        process = psutil.Process()
        family = [process, *process.children(recursive=True)]
        rss_bytes = 0
        for member in family:
            with contextlib.suppress(psutil.Error):
                rss_bytes += member.memory_info().rss
        return {
            "pid": process.pid,
            "started_s": self._started_s,
            "rss_bytes": rss_bytes,
            "signature": site_signature(self.site),
            "new": list(self.new),
        }

    def _add_counters(self, rows: list[list[Any]]) -> int:
        by_device: dict[str, list[Counter]] = {}
        try:
            for device, port, name, value, priority in rows:
                counter = Counter(device, port, name, int(value), priority)
                by_device.setdefault(device, []).append(counter)
        except (TypeError, ValueError) as error:
            raise ControlError(f"these are no counters: {error}") from error
        for name, counters in by_device.items():
            if name not in self.devices:
                raise ControlError(f"no device is called {name!r}")
            cabled = {ref.port for ref in self.site.topology.ports_of[name]}
            for counter in counters:
                if counter.port not in cabled:
                    raise ControlError(f"{name} has no cabled port {counter.port!r}")
        for name, counters in by_device.items():
            self.devices[name].add_counters(counters)
        return len(rows)

    def _break(self, kind: str, name: str, port: str) -> str:
        try:
            return self.devices[name].break_(kind, port)
        except (KeyError, ValueError) as error:
            raise ControlError(str(error)) from error

    async def close(self) -> None:
        """End all sessions, save every device, forget the inventory."""
        twin_inventory_path(self.site).unlink(missing_ok=True)
        if self._control is not None:
            self._control.close()
        for acceptor in self._acceptors:
            acceptor.close()
        for connection in list(self._connections):
            connection.abort()
        waiting = [connection.wait_closed() for connection in list(self._connections)]
        if waiting:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(
                    asyncio.gather(*waiting, return_exceptions=True), STOP_TIMEOUT_S
                )
        for device in self.devices.values():
            device.save()
            device.close()


async def run(site: Site, on_device: OnDevice, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM, SIGINT or the control channel says stop."""
    server = TwinServer(site)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stopping.set)
    try:
        await server.start(on_device)
        on_ready()
        log.info("up: %d devices", len(server.devices))
        await server.stopping.wait()
    finally:
        await server.close()
        log.info("down")


def main(arguments: list[str]) -> int:
    """Run in the foreground; the argument is the site's ``fabric.yaml``.

    Progress goes as JSON lines to the descriptor that the environment names, so
    that who started us can show it.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    descriptor = os.environ.pop(REPORT_FD, None)
    report = os.fdopen(int(descriptor), "w", buffering=1) if descriptor else None

    def tell(**facts: object) -> None:
        if report is not None and not report.closed:
            with contextlib.suppress(BrokenPipeError):
                report.write(json.dumps(facts) + "\n")

    def ready() -> None:
        tell(ready=True)
        if report is not None:
            report.close()

    try:
        site = load_site(Path(arguments[0]))
        lock = hold_lock(private_folder(twin_dir(site)))
        if lock is None:
            tell(error="another daemon of this twin is running")
            return 3
        os.set_inheritable(lock.fileno(), False)
        share_printable()
        asyncio.run(run(site, lambda d, t, n: tell(done=d, total=t, device=n), ready))
    except PaisoarError as error:
        tell(error=str(error))
        log.error("%s", error)
        return error.exit_code
    except Exception as error:
        tell(error=f"{type(error).__name__}: {error}")
        log.exception("the twin cannot run")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
