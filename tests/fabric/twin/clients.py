"""OpenSSH as a client of the twin: what an operator would type."""

from __future__ import annotations

import subprocess
from typing import Literal, overload

from fabric.reach.access import access_to
from fabric.site import Site


def words(site: Site, device: str, *, user: str = "", with_key: bool = True) -> list[str]:
    """``ssh`` with host keys checked, and no credentials but the twin's own."""
    access = access_to(site, device)
    key = str(access.key_file) if with_key else "none"
    return [
        "ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
        "-o", "IdentityAgent=none", "-o", f"IdentityFile={key}",
        "-o", f"UserKnownHostsFile={access.known_hosts}", "-o", "StrictHostKeyChecking=yes",
        "-p", str(access.port), f"{user or access.user}@{access.host}",
    ]  # fmt: skip


@overload
def ssh(
    site: Site, device: str, command: str, *, wait: Literal[True] = ..., text: str = ...
) -> subprocess.CompletedProcess[str]: ...
@overload
def ssh(
    site: Site, device: str, command: str, *, wait: Literal[False], text: str = ...
) -> subprocess.Popen[bytes]: ...
def ssh(
    site: Site, device: str, command: str, *, wait: bool = True, text: str = ""
) -> subprocess.CompletedProcess[str] | subprocess.Popen[bytes]:
    """Run one command on a device; ``wait=False`` leaves it running."""
    line = [*words(site, device), command]
    if wait:
        return subprocess.run(
            line, capture_output=True, text=True, input=text, timeout=30, check=False
        )
    return subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
