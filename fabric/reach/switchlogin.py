"""Logging in to a switch over SSH (netmiko): what may fail, and what an engineer does then."""

from __future__ import annotations

import logging
import select
import time
from typing import Any

import netmiko
import paramiko
from netmiko.channel import SSHChannel
from netmiko.exceptions import NetmikoAuthenticationException, NetmikoBaseException
from paramiko import SSHException
from paramiko.hostkeys import InvalidHostKey
from paramiko.ssh_exception import NoValidConnectionsError

from fabric.errors import UnreachableError
from fabric.reach.access import Access
from fabric.reach.sshkeys import check_keys, damaged_key, logging_in, wrong_key

CONNECT_TIMEOUT_S = 15.0
CLOSED = "the switch closed the connection"
SESSION_ERRORS = (NetmikoBaseException, SSHException, OSError, EOFError, ValueError)

# How paramiko says that no SSH came of a connection; its own log would only repeat it.
_NO_SSH = ("No existing session", "Error reading SSH protocol banner")
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class LiveChannel(SSHChannel):  # type: ignore[misc] # netmiko has no types
    """Netmiko's channel, which takes a closed one for silence and waits on; this one says so."""

    def __init__(self, conn: paramiko.Channel, encoding: str) -> None:
        super().__init__(conn, encoding)
        self._ready = select.poll()
        self._ready.register(conn.fileno(), select.POLLIN)

    def wait(self, timeout_s: float) -> None:
        """Return once there is something to read, or the session has ended, or it is time."""
        self._ready.poll(timeout_s * 1000)

    def read_channel(self) -> str:
        """Return what has come, maybe nothing; EOFError where the switch has closed."""
        text = str(super().read_channel())
        if not text and self.remote_conn.closed:
            raise EOFError(CLOSED)
        return text

    def write_channel(self, out_data: str) -> None:
        """Send text; EOFError where the switch has closed."""
        try:
            super().write_channel(out_data)
        except OSError as error:
            raise EOFError(CLOSED) from error


def log_in(device: str, access: Access, netmiko_type: str) -> Any:  # noqa: ANN401 - untyped library
    """Log in and return netmiko's connection; UnreachableError says why that did not succeed."""
    check_keys(device, access)
    doing = logging_in(access)
    begun = time.monotonic()
    try:
        return netmiko.ConnectHandler(
            device_type=netmiko_type,
            host=access.host,
            port=access.port,
            username=access.user,
            password=access.password or "",
            use_keys=access.key_file is not None,
            key_file=str(access.key_file) if access.key_file else None,
            allow_agent=access.key_file is None,
            ssh_strict=True,
            system_host_keys=False,
            alt_host_keys=True,
            alt_key_file=str(access.known_hosts),
            conn_timeout=CONNECT_TIMEOUT_S,
            auth_timeout=CONNECT_TIMEOUT_S,
            banner_timeout=CONNECT_TIMEOUT_S,
            fast_cli=True,
        )
    except NetmikoAuthenticationException as error:
        raise UnreachableError(
            device,
            doing,
            f"refused: {_last_line(error)}",
            advice="Set PAISOAR_SWITCH_USER and PAISOAR_SWITCH_KEY or PAISOAR_SWITCH_PASSWORD.",
        ) from error
    except (InvalidHostKey, *SESSION_ERRORS) as error:
        text = str(error)
        # What is wrong with a known key is a ValueError of several libraries.
        unreadable = isinstance(error, InvalidHostKey | ValueError)
        if unreadable and (damaged := damaged_key(device, access)):
            raise damaged from error
        if "does not match" in text or "not found in known_hosts" in text:
            raise wrong_key(device, access) from error
        cause = error.__context__
        if isinstance(cause, SSHException) and any(word in str(cause) for word in _NO_SSH):
            raise _no_ssh(device, doing, access, time.monotonic() - begun) from error
        if isinstance(cause, NoValidConnectionsError):
            cause = next(iter(cause.errors.values()))
        if isinstance(cause, OSError):
            text = cause.strerror or str(cause) or type(cause).__name__
        raise UnreachableError(device, doing, first_line(text)) from error


def _no_ssh(device: str, doing: str, access: Access, waited_s: float) -> UnreachableError:
    """What took the connection is mute, or says something else than SSH does."""
    mute = waited_s > CONNECT_TIMEOUT_S / 2
    return UnreachableError(
        device,
        doing,
        f"it took the connection and said nothing of SSH for {waited_s:.0f} s"
        if mute
        else "what listens there does not speak SSH",
        advice=f"Try `ssh -p {access.port} {access.user}@{access.host}`: is it the SSH port of "
        f"{device}, and does the device answer on its console?",
    )


def first_line(error: object) -> str:
    """Return the first line that is not empty, or the error's type where it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _last_line(error: object) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
