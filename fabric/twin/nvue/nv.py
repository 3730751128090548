"""The program ``nv``.

Sources: CumulusNetworks/docs, nvue-reference "Config and Action Commands", "NVIDIA
User Experience - NVUE". What NVUE says of a path that it does not know begins with
``Invalid Command``, of a value with ``Error:`` (wording unverified).
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from fabric.twin.nvue import show
from fabric.twin.nvue.configuration import Configuration, difference
from fabric.twin.nvue.model import RefusedError, resolve
from fabric.twin.shell.session import FAILED, Answer, Call

if TYPE_CHECKING:
    from fabric.twin.nvue.switch import EmulatedSwitch

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "": 60}
_DEFAULT_CONFIRM = "10m"


class NvCommand:
    """``nv`` of one switch."""

    def __init__(self, switch: EmulatedSwitch) -> None:
        self._switch = switch

    def __call__(self, call: Call) -> Answer:
        """Carry out one command."""
        self._switch.expire()
        words = list(call.arguments)
        try:
            if words[:1] == ["set"]:
                return self._edit(words[1:], value=True)
            if words[:1] == ["unset"]:
                return self._edit(words[1:], value=False)
            if words[:1] == ["config"]:
                return self._config(words[1:])
            if words[:1] == ["show"]:
                return self._show(words[1:])
        except RefusedError as error:
            return Answer(f"Error: {error}\n", FAILED)
        return _unknown(words)

    def _edit(self, words: Sequence[str], *, value: bool) -> Answer:
        if not words:
            return _unknown(["set" if value else "unset"])
        paths = list(resolve(words, value=value))
        for path, leaf in paths:
            self._known_interface(path)
            if value:
                self._switch.pending.put(path, leaf)
            else:
                self._switch.pending.remove(path)
        return Answer()

    def _known_interface(self, path: Sequence[str]) -> None:
        is_port = len(path) > 1 and path[0] == "interface" and path[1].startswith("swp")
        if is_port and not self._switch.has_port(path[1]):
            raise RefusedError(f"{path[1]} is not a port of this switch")

    def _config(self, words: Sequence[str]) -> Answer:
        verb, rest = (words[0], list(words[1:])) if words else ("", [])
        if verb == "apply":
            return self._apply(rest)
        if verb == "detach" and not rest:
            self._switch.detach()
            return Answer()
        if verb == "save" and rest in ([], ["-y"]):
            self._switch.save_startup()
            return Answer(f"saved [rev_id: {self._switch.revision}]\n")
        if verb == "show":
            return self._shown(rest)
        if verb == "diff" and not rest:
            return self._lines(difference(self._switch.config, self._switch.pending))
        if verb == "history" and not rest:
            numbers = sorted(self._switch.checkpoints, key=int, reverse=True)
            return self._lines([f"{number}  CLI  cumulus  Config update" for number in numbers])
        return _unknown(["config", *words])

    def _lines(self, lines: Sequence[str]) -> Answer:
        return Answer("".join(f"{line}\n" for line in lines))

    def _apply(self, words: list[str]) -> Answer:
        while "-y" in words or "--assume-yes" in words:
            words.remove("-y" if "-y" in words else "--assume-yes")
        if words in (["--confirm-yes"], ["--confirm-no"], ["--confirm-status"]):
            return self._confirmed(words[0].removeprefix("--confirm-"))
        seconds = None
        if "--confirm" in words:
            at = words.index("--confirm")
            timer = words[at + 1] if len(words) > at + 1 else _DEFAULT_CONFIRM
            match = re.fullmatch(r"(\d+)([smh]?)", timer)
            if match is None:
                raise RefusedError(f"{timer!r} is not a time")
            seconds = int(match[1]) * _UNITS_S[match[2]]
            del words[at : at + 2]
        if len(words) > 1:
            return _unknown(["config", "apply", *words])
        target = self._revision(words[0]) if words else self._switch.pending
        if self._switch.awaiting is not None:
            return Answer("Error: a configuration awaits confirmation\n", FAILED)
        faults = list(target.faults())
        if faults:
            text = "".join(f"  {fault}\n" for fault in faults)
            return Answer(f"Invalid config [rev_id: {self._switch.revision + 1}]\n{text}", FAILED)
        self._switch.apply(target, seconds)
        return Answer(f"applied [rev_id: {self._switch.revision}]\n")

    def _confirmed(self, answer: str) -> Answer:
        if self._switch.awaiting is None:
            return Answer("Error: no configuration awaits confirmation\n", FAILED)
        if answer == "status":
            return Answer(f"{int(self._switch.awaiting.left_s)} seconds left\n")
        self._switch.confirm(keep=answer == "yes")
        word = "confirmed" if answer == "yes" else "applied"
        return Answer(f"{word} [rev_id: {self._switch.revision}]\n")

    def _revision(self, name: str) -> Configuration:
        found = self._switch.revisions().get(name)
        if found is None:
            raise RefusedError(f"Unknown revision {name}")
        return found

    def _shown(self, words: list[str]) -> Answer:
        options = {"-r": "applied", "-o": "yaml"}
        while words:
            if len(words) < 2 or words[0] not in options:
                return _unknown(["config", "show", *words])
            options[words[0]] = words[1]
            del words[:2]
        found = self._revision(options["-r"])
        if options["-o"] == "commands":
            return self._lines(found.lines())
        if options["-o"] == "json":
            return Answer(found.to_text())
        if options["-o"] == "yaml":
            return Answer(_yaml(json.loads(found.to_text())))
        raise RefusedError(f"argument -o: invalid choice: {options['-o']!r}")

    def _show(self, words: list[str]) -> Answer:
        as_json = words[-2:] == ["-o", "json"]
        path = words[:-2] if as_json else words
        data = self._data(path)
        if data is None:
            return _unknown(["show", *words])
        if as_json:
            return Answer(json.dumps(data, indent=2) + "\n")
        return Answer(_yaml(data))

    def _data(self, path: list[str]) -> dict[str, Any] | None:
        switch = self._switch
        if path == ["system"]:
            return show.system(switch)
        if path == ["platform", "hardware"]:
            return show.hardware(switch)
        if path == ["interface", "counters"]:
            return show.counters(switch)
        if len(path) > 2 and path[0] == "interface":
            if not switch.has_port(path[1]):
                raise RefusedError(f"The requested item does not exist: interface {path[1]}")
            if path[2:] == ["counters", "qos"]:
                return show.qos_counters(switch, path[1])
            if path[2:] == ["qos", "pfc-watchdog"]:
                return show.watchdog(switch, path[1])
        return None


def _unknown(words: Sequence[str]) -> Answer:
    return Answer(f"Invalid Command: {' '.join(words)}\n", FAILED)


def _yaml(data: object) -> str:
    out = io.StringIO()
    YAML().dump(data, out)
    return out.getvalue()
