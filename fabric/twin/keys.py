"""SSH keys of a twin or lab: one for its users, one for each device, and ``known_hosts``.

Ed25519, written once under its folder and used again: generating keys is
what would make starting slow, and a host key that changes would rightly be
refused by clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import asyncssh

from fabric.errors import InputError
from fabric.twin.files import write_private

CLIENT_KEY = "id_ed25519"
KNOWN_HOSTS = "known_hosts"
HOST_KEYS = "host_keys"
ALGORITHM = "ssh-ed25519"


def client_key(folder: Path, comment: str = "paisoar-twin") -> asyncssh.SSHKey:
    """The key that opens every device of this folder; its public half beside it."""
    key = _key(folder / CLIENT_KEY, comment)
    write_private(folder / f"{CLIENT_KEY}.pub", key.export_public_key())
    return key


def host_key(folder: Path, device: str) -> asyncssh.SSHKey:
    """The host key of one device."""
    return _key(folder / HOST_KEYS / device, device)


def _key(path: Path, comment: str) -> asyncssh.SSHKey:
    if path.exists():
        try:
            return asyncssh.read_private_key(path)
        except asyncssh.KeyImportError as error:
            raise InputError(
                f"is no private key: {error}",
                file=str(path),
                advice="Remove it: the next start makes a new one.",
            ) from None
    key = asyncssh.generate_private_key(ALGORITHM, comment=comment)
    write_private(path, key.export_private_key())
    return key


def write_known_hosts(folder: Path, ports: Mapping[str, int]) -> None:
    """``known_hosts`` for all devices, in OpenSSH's format for ports other than 22."""
    lines = []
    for device, port in ports.items():
        public = host_key(folder, device).export_public_key().decode().split()
        for host in ("127.0.0.1", "localhost"):
            lines.append(f"[{host}]:{port} {public[0]} {public[1]}\n")
    write_private(folder / KNOWN_HOSTS, "".join(lines).encode())
