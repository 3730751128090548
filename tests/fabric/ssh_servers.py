"""Real SSH servers on loopback for tests: an emulated switch's CLI, or a plain shell."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

Handler = Callable[["asyncssh.SSHServerProcess[str]"], Awaitable[None]]


@dataclass
class SshServers:
    """Servers in one background event loop; ``known_hosts`` knows all their keys."""

    folder: Path
    password: str | None = None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    ports: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.user_key = asyncssh.generate_private_key("ssh-ed25519")
        self.key_file = self.folder / "id_test"
        self.user_key.write_private_key(str(self.key_file))
        self.key_file.chmod(0o600)
        self.known_hosts = self.folder / "known_hosts"
        self.known_hosts.write_text("")
        self._servers: dict[str, asyncssh.SSHAcceptor] = {}
        self._connections: dict[str, list[asyncssh.SSHServerConnection]] = {}
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, work):
        async def done():
            return await work

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(30)

    def add(self, name: str, handler: Handler, *, port: int = 0) -> int:
        """Serve one device; returns its port."""
        servers = self
        connections = self._connections.setdefault(name, [])

        class Server(asyncssh.SSHServer):
            def connection_made(self, conn):
                connections.append(conn)

            def begin_auth(self, username):
                return True

            def password_auth_supported(self):
                return servers.password is not None

            def validate_password(self, username, password):
                return password == servers.password

            def public_key_auth_supported(self):
                return servers.password is None

            def validate_public_key(self, username, key):
                return key == servers.user_key.convert_to_public()

        acceptor = self.call(
            asyncssh.create_server(
                Server,
                "127.0.0.1",
                port,
                server_host_keys=[self.host_key],
                process_factory=handler,
            )
        )
        self._servers[name] = acceptor
        self.ports[name] = acceptor.get_port()
        public = self.host_key.export_public_key().decode().strip()
        with self.known_hosts.open("a") as file:
            file.write(f"[127.0.0.1]:{self.ports[name]} {public}\n")
        return self.ports[name]

    def abort(self, name: str, forever: bool = False) -> None:
        """As ``drop`` or, ``forever``, ``kill``, from within the loop."""
        if forever:
            self._servers[name].close()
        for connection in self._connections[name]:
            connection.abort()
        self._connections[name].clear()

    def drop(self, name: str) -> None:
        """Break every connection to this device; new ones are accepted."""

        async def drop():
            self.abort(name)

        self.call(drop())

    def kill(self, name: str) -> None:
        """The device goes away: no connection stays, none is accepted."""

        async def kill():
            self.abort(name, forever=True)

        self.call(kill())

    def close(self) -> None:
        async def stop():
            for server in self._servers.values():
                server.close()
            for connections in self._connections.values():
                for connection in connections:
                    connection.abort()
            await asyncio.sleep(0.05)
            others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self.call(stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


async def shell(process: asyncssh.SSHServerProcess[str]) -> None:
    """What sshd does with a command: ``/bin/sh -c``, input, output and all."""
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command or "exit 1",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    # A client that sends nothing need not close its input: only these read it.
    reads = "sh -s" in (process.command or "")
    try:
        out, err = await child.communicate((await process.stdin.read()).encode() if reads else b"")
    finally:
        if child.returncode is None:
            child.kill()
            await child.communicate()
    process.stdout.write(out.decode())
    process.stderr.write(err.decode())
    process.exit(child.returncode or 0)


@contextlib.contextmanager
def ssh_servers(folder: Path, password: str | None = None) -> Iterator[SshServers]:
    """Servers that end with the block."""
    servers = SshServers(folder, password)
    try:
        yield servers
    finally:
        servers.close()
