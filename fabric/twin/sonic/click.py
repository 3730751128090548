"""Command groups as the Python library click, which SONiC's CLI is made with, refuses them.

Commands may be abbreviated (sonic-utilities utilities_common/cli.py,
AbbreviationGroup); the texts are those of click 7, which SONiC pins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fabric.twin.shell.session import USAGE, Answer

Handler = Callable[[Sequence[str]], Answer]


class UsageError(Exception):
    """Words that a command does not take."""


@dataclass(frozen=True)
class Command:
    """A command: how many arguments it takes, which flags, and what it does.

    ``arguments`` name the mandatory ones, ``optional`` how many more there may be.
    The handler is given the arguments and flags, flags first.
    """

    run: Handler
    arguments: tuple[str, ...] = ()
    optional: int = 0
    flags: tuple[str, ...] = ()


Group = Mapping[str, "Command | Group"]


def dispatch(name: str, group: Group, words: Sequence[str]) -> Answer:
    """Carry out ``words`` below a group, or say what is wrong with them."""
    path = name
    node: Command | Group = group
    rest = list(words)
    try:
        while not isinstance(node, Command):
            if not rest:
                return Answer(_help(path, node))
            word = rest.pop(0)
            if word.startswith("-"):
                raise UsageError(f"no such option: {word}")
            chosen = _choose(node, word)
            path, node = f"{path} {chosen}", node[chosen]
        return _run(node, rest)
    except UsageError as error:
        shape = "[OPTIONS]" if isinstance(node, Command) else "[OPTIONS] COMMAND [ARGS]..."
        names = "".join(f" {n}" for n in node.arguments) if isinstance(node, Command) else ""
        usage = f'Usage: {path} {shape}{names}\nTry "{path} -h" for help.\n\nError: {error}\n'
        return Answer(usage, USAGE)


def _choose(group: Group, word: str) -> str:
    if word in group:
        return word
    matches = sorted(name for name in group if name.startswith(word.lower()))
    if not matches:
        raise UsageError(f'No such command "{word}".')
    if len(matches) > 1:
        raise UsageError(f"Too many matches: {', '.join(matches)}")
    return matches[0]


def _run(command: Command, words: Sequence[str]) -> Answer:
    flags = [word for word in words if word.startswith("-")]
    arguments = [word for word in words if not word.startswith("-")]
    for flag in flags:
        if flag not in command.flags:
            raise UsageError(f"no such option: {flag}")
    if len(arguments) < len(command.arguments):
        raise UsageError(f'Missing argument "{command.arguments[len(arguments)]}".')
    extra = arguments[len(command.arguments) + command.optional :]
    if extra:
        some = "s" if len(extra) > 1 else ""
        raise UsageError(f"Got unexpected extra argument{some} ({' '.join(extra)})")
    return command.run([*flags, *arguments])


def _help(path: str, group: Group) -> str:
    commands = "".join(f"  {name}\n" for name in sorted(group))
    return f"Usage: {path} [OPTIONS] COMMAND [ARGS]...\n\nCommands:\n{commands}"
