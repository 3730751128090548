"""Sessions on switches over SSH (netmiko): show commands and configuration lines.

Sessions are kept for the life of the process, so that reading again does not
log in again. ``close_switches`` ends them.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import netmiko
import paramiko
from netmiko.channel import SSHChannel
from netmiko.exceptions import (
    NetmikoAuthenticationException,
    NetmikoBaseException,
    ReadTimeout,
)
from paramiko import SSHException
from paramiko.ssh_exception import NoValidConnectionsError

from fabric.devices.base import Edit
from fabric.errors import RejectedError, UnreachableError
from fabric.reach.access import Access

CONNECT_TIMEOUT_S = 15.0
SHOW_TIMEOUT_S = 60.0
# `checkpoint`, `rollback` and `copy running-config startup-config` take long on real switches.
EXEC_TIMEOUT_S = 180.0
LINE_TIMEOUT_S = 30.0

# Every switch CLI that we speak has it, and it always prints something.
SETTLING_COMMAND = "show version"

# What Junos prints on a line of its own before a prompt.
_CONTEXT = re.compile(r"\{(?:master|backup|linecard|primary|secondary)[^}]*\}|\[edit\]")

_CLOSED = "the switch closed the connection"
# How paramiko says that no SSH came of a connection; its own log would only repeat it.
_NO_SSH = ("No existing session", "Error reading SSH protocol banner")
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_SESSION_ERRORS = (NetmikoBaseException, SSHException, OSError, EOFError, ValueError)


class SwitchSession:
    """One logged-in CLI session. Not for two threads at once.

    Every method raises UnreachableError when the session breaks or falls silent;
    ``doing`` names the command. ``kept`` says that it was idle for some time: it
    may have died meanwhile without the switch being gone.
    """

    settling_command = SETTLING_COMMAND
    # Before the name of the device, and behind it: configuration modes in brackets, and the mark.
    prompt_start = ""
    prompt_end = r"(?:\([^)\r\n]*\))?[>#] ?\s*$"
    # Whether a prompt that ends in ``>`` asks for ``enable``.
    has_enable = True
    line_timeout_s = LINE_TIMEOUT_S

    def __init__(self, device: str, access: Access, netmiko_type: str) -> None:
        self.device = device
        self._access = access
        self._cli = _log_in(device, access, netmiko_type)
        self._channel = _LiveChannel(self._cli.remote_conn, self._cli.encoding)
        self._cli.channel = self._channel
        # What has been read beyond the end of an answer.
        self._rest = ""
        self.kept = False
        self._unprivileged = False
        name = re.escape(str(self._cli.base_prompt))
        # The prompt alone on the last line.
        self._prompt = re.compile(rf"(?:^|[\r\n]){self.prompt_start}{name}{self.prompt_end}")
        self._settle()

    def _settle(self) -> None:
        """Read past the prompts that logging in left on their way.

        Logging in sends lines whose prompts may come late, behind the echo of our
        first command even: that would end its answer before it has begun. So the
        first command is one that always prints something, and its answer ends
        at the first prompt after that. From then on every line has one prompt.
        """
        command = self.settling_command
        with self._answering(command, SHOW_TIMEOUT_S):
            self._cli.write_channel(command + self._cli.RETURN)
            self._until(re.compile(re.escape(command)), SHOW_TIMEOUT_S)
            while not self._answer(SHOW_TIMEOUT_S).strip():
                pass
        if self._unprivileged and self.has_enable:
            # Systems without such a level take this for what it is: nothing to do.
            with self._answering("enable", LINE_TIMEOUT_S):
                self._cli.enable()

    def _answer(self, timeout_s: float) -> str:
        """What comes up to the next prompt, without any prompt line."""
        text = self._until(self._prompt, timeout_s)
        self._unprivileged = text.rstrip().endswith(">")
        lines = str(self._cli.normalize_linefeeds(text)).split("\n")
        return "\n".join(
            line for line in lines if not (self._prompt.match(line) or _CONTEXT.fullmatch(line))
        )

    def _until(self, pattern: re.Pattern[str], timeout_s: float) -> str:
        """What comes up to the end of the first match of ``pattern``.

        Waits for what comes, where netmiko's reading sleeps between looks: most of
        the time of a change would go there, since each line waits for its prompt.
        """
        deadline_s = time.monotonic() + timeout_s
        text, self._rest = self._rest, ""
        while not (found := pattern.search(text)):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise ReadTimeout
            self._channel.wait(left_s)
            text += str(self._cli.read_channel())
        self._rest = text[found.end() :]
        return text[: found.end()]

    def show(self, command: str, *, timeout_s: float = SHOW_TIMEOUT_S) -> str:
        """What the switch prints for an exec command, without echo and prompt.

        What comes before the echo is left over from earlier: no part of the answer.
        """
        with self._answering(command, timeout_s):
            self._cli.write_channel(command + self._cli.RETURN)
            self._until(re.compile(re.escape(command)), timeout_s)
            return self._answer(timeout_s).removeprefix("\n").rstrip("\n")

    def configure(
        self,
        lines: Sequence[str],
        is_error: Callable[[str], bool],
        *,
        insist: bool = True,
        edit: Edit = Edit(),  # noqa: B008 - frozen
    ) -> None:
        """Send configuration lines one by one; the first refused one stops.

        Leaves configuration mode also then. RefusedLineError names the line,
        quotes the answer and counts the lines taken before it. Without
        ``insist``, refused lines are passed over. NotEnteredError where the switch
        refuses to enter configuration mode, RejectedError where it refuses to apply
        what was entered.
        """
        self._enter(edit, is_error)
        refused: RejectedError | None = None
        for number, line in enumerate(lines):
            answer = self.show(line.strip(), timeout_s=self.line_timeout_s)
            if insist and is_error(answer):
                refused = RefusedLineError(self.device, line.strip(), answer.strip(), number)
                break
        for command in () if refused else edit.apply:
            answer = self.show(command, timeout_s=EXEC_TIMEOUT_S)
            if is_error(answer):
                refused = RejectedError(self.device, command, answer.strip())
                break
        for command in edit.discard if refused else ():
            self.show(command, timeout_s=EXEC_TIMEOUT_S)
        self._leave()
        if refused is not None:
            raise refused

    def _enter(self, edit: Edit, is_error: Callable[[str], bool]) -> None:
        if not edit.enter:
            with self._answering("enter configuration mode", LINE_TIMEOUT_S):
                self._cli.config_mode()
            return
        answer = self.show(edit.enter)
        if is_error(answer):
            raise NotEnteredError(self.device, edit.enter, answer.strip())

    def _leave(self) -> None:
        with self._answering("leave configuration mode", LINE_TIMEOUT_S):
            self._cli.exit_config_mode()

    @contextlib.contextmanager
    def _answering(self, doing: str, timeout_s: float) -> Iterator[None]:
        try:
            yield
        except ReadTimeout as error:
            raise UnreachableError(
                self.device, doing, f"no prompt came back within {timeout_s:g} s"
            ) from error
        except _SESSION_ERRORS as error:
            # Paramiko's own says nothing.
            said = _CLOSED if isinstance(error, EOFError) else _first_line(error)
            raise UnreachableError(self.device, doing, f"the session broke: {said}") from error

    @property
    def alive(self) -> bool:
        """Whether the transport still stands, as far as this end knows."""
        transport = self._cli.remote_conn.transport
        return bool(transport.is_active()) and not self._cli.remote_conn.closed

    def close(self) -> None:
        """End the session; never raises."""
        with contextlib.suppress(*_SESSION_ERRORS):
            self._cli.paramiko_cleanup()


class ShellSession(SwitchSession):
    """A session whose command line is bash: there is no configuration mode.

    A line of a change is a command like any other, longer than a terminal's width
    (511 columns are asked for) none may be, or its echo is broken up.
    """

    settling_command = "uname"
    prompt_end = r"[$#] ?\s*$"
    line_timeout_s = EXEC_TIMEOUT_S

    def _enter(self, edit: Edit, is_error: Callable[[str], bool]) -> None:
        pass

    def _leave(self) -> None:
        pass


class BracketSession(SwitchSession):
    """A session on VRP or Comware: prompts are ``<name>``, and ``[name-view]`` while configuring.

    VRP 8 marks the latter with ``~``, or with ``*`` where something is not committed yet.
    """

    settling_command = "display version"
    prompt_start = r"(?:<|\[[~*]?)"
    prompt_end = r"[^<>\[\]\r\n]*[>\]] ?\s*$"
    has_enable = False
    line_timeout_s = EXEC_TIMEOUT_S

    def _enter(self, edit: Edit, is_error: Callable[[str], bool]) -> None:
        command = edit.enter or "system-view"
        answer = self.show(command)
        if is_error(answer):
            raise NotEnteredError(self.device, command, answer.strip())

    def _leave(self) -> None:
        self.show("return", timeout_s=EXEC_TIMEOUT_S)


# netmiko's types that are spoken to otherwise.
_SESSIONS: dict[str, type[SwitchSession]] = {
    "linux": ShellSession,
    "cumulus_linux": ShellSession,
    "huawei_vrpv8": BracketSession,
    "hp_comware": BracketSession,
}


class _LiveChannel(SSHChannel):  # type: ignore[misc] # netmiko has no types
    """Netmiko's channel, which takes a closed one for silence and waits on; this one says so."""

    def __init__(self, conn: paramiko.Channel, encoding: str) -> None:
        super().__init__(conn, encoding)
        self._ready = select.poll()
        self._ready.register(conn.fileno(), select.POLLIN)

    def wait(self, timeout_s: float) -> None:
        """Return once there is something to read, or the session has ended, or it is time."""
        self._ready.poll(timeout_s * 1000)

    def read_channel(self) -> str:
        text = str(super().read_channel())
        if not text and self.remote_conn.closed:
            raise EOFError(_CLOSED)
        return text

    def write_channel(self, out_data: str) -> None:
        try:
            super().write_channel(out_data)
        except OSError as error:
            raise EOFError(_CLOSED) from error


class NotEnteredError(RejectedError):
    """The switch did not go into configuration mode: no line was sent."""


class RefusedLineError(RejectedError):
    """A configuration line that the switch refused; ``sent`` lines were taken before it."""

    def __init__(self, device: str, line: str, answer: str, sent: int) -> None:
        super().__init__(device, line, answer)
        self.sent = sent


def _log_in(device: str, access: Access, netmiko_type: str) -> Any:  # noqa: ANN401 - untyped library
    doing = f"log in over SSH to {access.host}:{access.port} as {access.user}"
    if not access.known_hosts.is_file():
        raise UnreachableError(
            device,
            doing,
            f"there is no file of known host keys {access.known_hosts}",
            advice="Put the switch's key there (ssh-keyscan, checked against the console).",
        )
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
    except _SESSION_ERRORS as error:
        text = str(error)
        cause = error.__context__
        if "does not match" in text or "not found in known_hosts" in text:
            raise UnreachableError(
                device,
                doing,
                f"its host key is not the one in {access.known_hosts}",
                advice="Find out why before you accept a new key.",
            ) from error
        if isinstance(cause, SSHException) and any(word in str(cause) for word in _NO_SSH):
            raise _no_ssh(device, doing, access, time.monotonic() - begun) from error
        if isinstance(cause, NoValidConnectionsError):
            cause = next(iter(cause.errors.values()))
        if isinstance(cause, OSError):
            text = cause.strerror or str(cause) or type(cause).__name__
        raise UnreachableError(device, doing, _first_line(text)) from error


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


def _first_line(error: object) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _last_line(error: object) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


@dataclass
class _Pool:
    """Idle sessions of one process."""

    pid: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    idle: dict[tuple[str, int, str], list[SwitchSession]] = field(default_factory=dict)


_pool = _Pool()


@contextlib.contextmanager
def switch_session(
    device: str, access: Access, netmiko_type: str, *, fresh: bool = False
) -> Iterator[SwitchSession]:
    """A session, kept from before where one is idle; kept afterwards unless it broke.

    ``fresh`` logs in anew. UnreachableError where that does not succeed.
    """
    pool = _process_pool()
    key = (access.host, access.port, access.user)
    session: SwitchSession | None = None
    with pool.lock:
        idle = pool.idle.get(key, [])
        while idle and session is None:
            kept = idle.pop()
            if kept.alive and not fresh:
                session = kept
                session.kept = True
            else:
                kept.close()
    if session is None:
        kind = _SESSIONS.get(netmiko_type, SwitchSession)
        session = kind(device, access, netmiko_type)
    try:
        yield session
    except BaseException:
        # What the session still has to say is unknown: it is not used again.
        session.close()
        raise
    with pool.lock:
        pool.idle.setdefault(key, []).append(session)


def _process_pool() -> _Pool:
    global _pool  # noqa: PLW0603 - sessions do not survive a fork
    if _pool.pid != os.getpid():
        _pool = _Pool()
    return _pool


def close_switches() -> None:
    """End every idle session; the next command logs in again."""
    pool = _process_pool()
    with pool.lock:
        sessions = [session for idle in pool.idle.values() for session in idle]
        pool.idle.clear()
    for session in sessions:
        session.close()


atexit.register(close_switches)
