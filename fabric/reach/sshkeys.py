"""The keys of a login over SSH: known host keys, and the user's own.

What is said where one of them cannot be used is the same for switches and hosts,
whichever library logs in.
"""

from __future__ import annotations

import asyncssh
import paramiko
from paramiko import SSHException
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from fabric.errors import UnreachableError
from fabric.reach.access import Access


def logging_in(access: Access) -> str:
    """What is being done, for errors."""
    return f"log in over SSH to {access.host}:{access.port} as {access.user}"


def _advice(device: str) -> str:
    return f"Put {device}'s key there (ssh-keyscan, checked against its console)."


def check_keys(device: str, access: Access) -> None:
    """UnreachableError where there are no known host keys, or the user's cannot be used."""
    if not access.known_hosts.is_file():
        raise UnreachableError(
            device,
            logging_in(access),
            f"there is no file of known host keys {access.known_hosts}",
            advice=_advice(device),
        )
    if access.key_file is None:
        return
    try:
        asyncssh.read_private_key(access.key_file)
    except OSError as error:
        why = error.strerror or str(error)
    except ValueError as error:
        why = str(error)
    else:
        return
    raise UnreachableError(
        device,
        logging_in(access),
        f"the private key {access.key_file} cannot be used: {why}",
        advice="It must be there, and have no passphrase; one that has one goes into an SSH agent "
        "(ssh-add), and PAISOAR_SWITCH_KEY or PAISOAR_HOST_KEY stays unset.",
    )


def damaged_key(device: str, access: Access) -> UnreachableError | None:
    """The error that a line of the file cannot be read; None where all can."""
    number = _damaged_line(access)
    if not number:
        return None
    return UnreachableError(
        device,
        logging_in(access),
        f"{access.known_hosts}, line {number}: what stands there is no host key",
        advice="Take the line out, or put the key there anew (ssh-keyscan, checked against the "
        "console).",
    )


def wrong_key(device: str, access: Access) -> UnreachableError:
    """The error that the device's key is not in the file, or another one is."""
    try:
        known = _has_key(access)
    except (InvalidHostKey, SSHException, ValueError, OSError):
        known = False
    if known:
        return UnreachableError(
            device,
            logging_in(access),
            f"its host key is not the one in {access.known_hosts}",
            advice="Find out why before you accept a new key: the device may have been replaced, "
            "or something else may answer at its address.",
        )
    damaged = damaged_key(device, access)
    return damaged or UnreachableError(
        device,
        logging_in(access),
        f"its host key is not in {access.known_hosts}",
        advice=_advice(device),
    )


def _has_key(access: Access) -> bool:
    name = (
        access.host if access.port == paramiko.config.SSH_PORT else f"[{access.host}]:{access.port}"
    )
    return bool(paramiko.HostKeys(str(access.known_hosts)).lookup(name))


def _damaged_line(access: Access) -> int:
    """The number of the first line that cannot be read; 0 where all can."""
    lines = access.known_hosts.read_text(errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.strip().startswith("#"):
            try:
                asyncssh.import_known_hosts(line)
                HostKeyEntry.from_line(line.strip(), number)
            except SSHException:
                continue  # paramiko passes over these
            except (InvalidHostKey, ValueError):
                return number
    return 0
