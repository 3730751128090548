"""A login to an emulated shell: prompt, becoming root, running programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fabric.twin.shell.language import Pipeline, SyntaxRefusedError, parse

FAILED = 1
USAGE = 2
NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program, or a line, printed, and its exit status."""

    text: str = ""
    status: int = 0

    @property
    def accepted(self) -> bool:
        """Whether it succeeded."""
        return self.status == 0


@dataclass(frozen=True, slots=True)
class Call:
    """How a program was started: its words, as whom, and what came through a pipe."""

    words: tuple[str, ...]
    root: bool = False
    stdin: str | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words behind the program's name."""
        return self.words[1:]


Program = Callable[[Call], Answer]


class Shell:
    """bash, as whoever logged in, on a host of this name (``cli.terminal.Session``).

    ``context`` stands behind the name in the prompt: Cumulus shows a VRF there.
    """

    more = ""  # never pauses

    def __init__(
        self,
        user: str,
        hostname: Callable[[], str],
        programs: Mapping[str, Program],
        *,
        context: str = "",
    ) -> None:
        self._user = user
        self._context = context
        self._hostname = hostname
        self._programs = programs
        self._root = 0
        self.closed = False
        self.length = 0
        self.width = 80

    @property
    def prompt(self) -> str:
        """``admin@leaf1:~$ ``; as root ``root@leaf1:/home/admin# ``."""
        host = f"{self._hostname()}{self._context}"
        if self._root or self._user == "root":
            home = "~" if self._user == "root" else f"/home/{self._user}"
            return f"root@{host}:{home}# "
        return f"{self._user}@{host}:~$ "

    def execute(self, line: str, *, interactive: bool = False) -> Answer:  # noqa: ARG002 - the same
        """Carry out a line."""
        try:
            pipelines = parse(line)
        except SyntaxRefusedError as error:
            return Answer(f"-bash: {error}\n", USAGE)
        texts, status = [], 0
        for pipeline in pipelines:
            if (pipeline.joint == "&&" and status) or (pipeline.joint == "||" and not status):
                continue
            answer = self._pipeline(pipeline)
            texts.append("" if pipeline.silent else answer.text)
            status = answer.status
            if self.closed:
                break
        return Answer("".join(texts), status)

    def _pipeline(self, pipeline: Pipeline) -> Answer:
        answer = Answer()
        stdin: str | None = None
        for words in pipeline.programs:
            answer = self._run(Call(tuple(words), bool(self._root) or self._user == "root", stdin))
            stdin = answer.text
        return answer

    def _run(self, call: Call) -> Answer:
        name = call.words[0]
        if name == "sudo":
            return self._sudo(call)
        if name in ("exit", "logout"):
            return self._leave()
        program = self._programs.get(name)
        if program is None:
            return Answer(f"-bash: {name}: command not found\n", NOT_FOUND)
        return program(call)

    def _sudo(self, call: Call) -> Answer:
        words = tuple(word for word in call.arguments if word != "-n")
        if not words:
            return Answer("usage: sudo -h | -K | -k | -V\nusage: sudo [-n] command\n", FAILED)
        if words in (("-s",), ("-i",), ("su",), ("bash",)):
            self._root += 1
            return Answer()
        if words[0].startswith("-"):
            return Answer(f"sudo: invalid option -- '{words[0][1:2]}'\n", FAILED)
        if words[0] not in self._programs:
            return Answer(f"sudo: {words[0]}: command not found\n", FAILED)
        return self._run(replace(call, words=words, root=True))

    def _leave(self) -> Answer:
        if self._root:
            self._root -= 1
            return Answer("exit\n")
        self.closed = True
        return Answer("logout\n")

    def help(self, line: str) -> list[str]:
        """Programs that begin so; for TAB."""
        return sorted(name for name in self._programs if name.startswith(line))

    def end(self) -> None:
        """There is no mode to leave."""
