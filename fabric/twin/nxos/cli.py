"""One session's place in the command tree, and how a line is carried out there.

NX-OS looks for a command in the current mode, then in the modes above it, and
last among the exec commands, which work in every configuration mode. Several
commands may stand in one line, parted by `` ; ``. A command that cannot be
parsed is answered with a caret under the offending word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fabric.twin.cli.grammar import RefusedError
from fabric.twin.cli.modal import Answer, CliError, Commands, Frame, ModalCli
from fabric.twin.cli.values import Token
from fabric.twin.nxos.config import Config

if TYPE_CHECKING:
    from fabric.twin.nxos.switch import EmulatedSwitch

__all__ = ["CONFIG", "EXEC", "Answer", "Cli", "CliError", "command", "load"]

EXEC = "exec"
CONFIG = "config"

# Whether what a mode configures is still there: another session may have removed it.
_ALIVE: dict[str, Callable[[Config, tuple[str, ...]], bool]] = {
    "config-if": lambda config, target: all(name in config.interfaces for name in target),
    "config-cmap-qos": lambda config, target: target[0] in config.class_maps,
    "config-pmap-qos": lambda config, target: target[0] in config.qos_policies,
    "config-pmap-c-qos": lambda config, target: target[1] in config.qos_policies[target[0]].classes,
    "config-pmap-nqos": lambda config, target: target[0] in config.network_policies,
    "config-pmap-nqos-c": lambda config, target: (
        target[1] in config.network_policies[target[0]].classes
    ),
    "config-pmap-que": lambda config, target: target[0] in config.queuing_policies,
    "config-pmap-c-que": lambda config, target: (
        target[1] in config.queuing_policies[target[0]].classes
    ),
}

command = Commands()


class Cli(ModalCli):
    """A command-line session. Without a switch it only loads configuration text."""

    commands = command

    def __init__(self, switch: EmulatedSwitch | None, config: Config | None = None) -> None:
        super().__init__()
        self._switch = switch
        self._config = config

    @property
    def switch(self) -> EmulatedSwitch:
        """The switch that this session is logged in to."""
        assert self._switch is not None
        return self._switch

    @property
    def config(self) -> Config:
        """The configuration that this session works on."""
        return self.switch.config if self._config is None else self._config

    @property
    def prompt(self) -> str:
        """``leaf1(config-if)# ``, as NX-OS prints it."""
        if not self.stack:
            return f"{self.config.hostname}# "
        mode = self.frame.mode
        if mode == "config-if" and len(self.frame.target) > 1:
            mode = "config-if-range"
        return f"{self.config.hostname}({mode})# "

    @property
    def everywhere(self) -> tuple[str, ...]:
        """Exec commands, except while a configuration is loaded."""
        return () if self._switch is None else (EXEC,)

    def parts(self, line: str) -> Sequence[str]:
        """Several commands may stand in one line."""
        return line.split(" ; ")

    def refusal(self, error: RefusedError, tokens: Sequence[Token], offset: int) -> str:  # noqa: ARG002
        """A caret under the offending word; it is shifted by the prompt."""
        return f"{' ' * (offset + error.column)}^\n{error.message}"

    def complaint(self, error: CliError) -> str:
        """``ERROR: ...``."""
        return f"ERROR: {error}"

    def configured(self) -> None:
        """Tell the switch, where there is one."""
        if self._switch is not None:
            self._switch.configured()

    def before(self) -> None:
        """Leave the modes of what another session has removed."""
        for depth, frame in enumerate(self.stack):
            alive = _ALIVE.get(frame.mode)
            if alive is not None and not alive(self.config, frame.target):
                del self.stack[depth:]
                return


def load(text: str, config: Config) -> Config:
    """Fill ``config`` from configuration text, as a switch does when it boots.

    Indentation says which mode a line belongs to. Raises ValueError that
    quotes the line that the grammar does not accept.
    """
    cli = Cli(None, config)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith(("!", "version ")):
            continue
        indent = len(line) - len(line.lstrip())
        cli.stack = (cli.stack or [Frame(CONFIG)])[: indent // 2 + 1]
        answer = cli.execute(line.strip())
        if not answer.accepted:
            raise ValueError(f"line {number}: {line.strip()!r}: {answer.text.strip()}")
    return config
