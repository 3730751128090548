"""A PostgreSQL of our own: made in a temporary folder, on a loopback port, ended with the tests."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

PASSWORD = f"pw-{secrets.token_hex(8)}"
USER = "paisoar"


def programs():
    """The folder of initdb and pg_ctl; None where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


class Server:
    """One server. PostgreSQL refuses to run as root, who starts it as ``postgres``."""

    def __init__(self, binaries):
        self._binaries = binaries
        # Not below the tests' own folder, which no other user may enter.
        self.folder = Path(tempfile.mkdtemp(prefix="paisoar-pg-", dir="/tmp"))
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(self.folder, "postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def url(self):
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self):
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if self._as:
            shutil.chown(secret, "postgres")
        data = self.folder / "data"
        self._run(
            "initdb",
            *("-D", data, "-U", USER, f"--pwfile={secret}"),
            *("--auth=scram-sha-256", "--no-sync", "--locale=C", "--encoding=UTF8"),
        )
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -c fsync=off"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", data, "-w", "-t", "120", "-l", log, "-o", options, "start")

    def stop(self):
        try:
            self._run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program, *arguments):
        done = subprocess.run(
            [*self._as, self._binaries / program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
