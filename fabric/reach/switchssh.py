"""Sessions on switches over SSH (netmiko): show commands and configuration lines.

Sessions are kept for the life of the process, so that reading again does not
log in again. ``close_switches`` ends them.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from netmiko.exceptions import ReadTimeout

from fabric.devices.base import Edit
from fabric.errors import RejectedError, UnreachableError
from fabric.reach.access import Access
from fabric.reach.switchlogin import CLOSED, SESSION_ERRORS, LiveChannel, first_line, log_in

SHOW_TIMEOUT_S = 60.0
# `checkpoint`, `rollback` and `copy running-config startup-config` take long on real switches.
EXEC_TIMEOUT_S = 180.0
LINE_TIMEOUT_S = 30.0

# Every switch CLI that we speak has it, and it always prints something.
SETTLING_COMMAND = "show version"

# What Junos prints on a line of its own before a prompt.
_CONTEXT = re.compile(r"\{(?:master|backup|linecard|primary|secondary)[^}]*\}|\[edit\]")


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
        self._cli = log_in(device, access, netmiko_type)
        self._channel = LiveChannel(self._cli.remote_conn, self._cli.encoding)
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
        except SESSION_ERRORS as error:
            # Paramiko's own says nothing.
            said = CLOSED if isinstance(error, EOFError) else first_line(error)
            raise UnreachableError(self.device, doing, f"the session broke: {said}") from error

    @property
    def alive(self) -> bool:
        """Whether the transport still stands, as far as this end knows."""
        transport = self._cli.remote_conn.transport
        return bool(transport.is_active()) and not self._cli.remote_conn.closed

    def close(self) -> None:
        """End the session; never raises."""
        with contextlib.suppress(*SESSION_ERRORS):
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


class NotEnteredError(RejectedError):
    """The switch did not go into configuration mode: no line was sent."""


class RefusedLineError(RejectedError):
    """A configuration line that the switch refused; ``sent`` lines were taken before it."""

    def __init__(self, device: str, line: str, answer: str, sent: int) -> None:
        super().__init__(device, line, answer)
        self.sent = sent


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
