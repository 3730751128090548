"""A small SSH server for one emulated host, as the twin's daemon runs many."""

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from fabric.twin.host import EmulatedHost


@dataclass
class Served:
    """One host behind a port of loopback, and how to log in."""

    host: EmulatedHost
    port: int
    key: Path
    known_hosts: Path

    def options(self) -> list[str]:
        return [
            *("-F", "none", "-i", str(self.key), "-p", str(self.port), "-l", self.host.user),
            *("-o", f"UserKnownHostsFile={self.known_hosts}", "-o", "IdentitiesOnly=yes"),
            *("-o", "BatchMode=yes", "-o", "LogLevel=ERROR"),
        ]

    def run(
        self, command: str, *, stdin: bytes = b"", tty: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        """One session of the real OpenSSH client."""
        words = ["ssh", *(["-tt"] if tty else []), *self.options(), "127.0.0.1"]
        words += [command] if command else []
        return subprocess.run(words, input=stdin, capture_output=True, timeout=30, check=False)

    def out(self, command: str) -> str:
        """What a command that must work prints."""
        done = self.run(command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout.decode()


@contextlib.contextmanager
def serve(host: EmulatedHost, folder: Path, *, sftp: bool = True) -> Iterator[Served]:
    """Serve the host from a thread of its own until left."""
    folder.mkdir(parents=True, exist_ok=True)
    key = asyncssh.generate_private_key("ssh-ed25519")
    key_path = folder / "id_ed25519"
    key.write_private_key(key_path)
    key_path.chmod(0o600)
    key.write_public_key(folder / "authorized_keys")
    server_key = asyncssh.generate_private_key("ssh-ed25519")
    ready = threading.Event()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = []

    async def main() -> None:
        stop = asyncio.Event()
        async with asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[server_key],
            authorized_client_keys=str(folder / "authorized_keys"),
            process_factory=host.serve,
            sftp_factory=host.sftp if sftp else None,
            line_editor=False,
            encoding="latin-1",
        ) as listener:
            running.append((asyncio.get_running_loop(), stop, listener.get_port()))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(10)
    loop, stop, port = running[0]
    known = folder / "known_hosts"
    public = server_key.export_public_key().decode().strip()
    known.write_text(f"[127.0.0.1]:{port} {public}\n")
    try:
        yield Served(host, port, key_path, known)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        host.close()
