"""Reading a YAML file so that every later complaint can name its line.

YAML 1.2 (ruamel.yaml): ``off`` and ``on`` stay words, duplicate keys are
errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from fabric.errors import InputError

Model = TypeVar("Model", bound=BaseModel)
Location = Sequence[str | int]


@dataclass(frozen=True)
class YamlFile:
    """A parsed YAML document that remembers where each key stands."""

    path: Path
    data: Any

    def line(self, location: Location) -> int:
        """1-based line of the deepest part of ``location`` that the file has."""
        node, line = self.data, 1
        for step in location:
            if isinstance(node, CommentedMap) and step in node:
                line = node.lc.key(step)[0] + 1
            elif isinstance(node, CommentedSeq) and isinstance(step, int) and step < len(node):
                line = node.lc.item(step)[0] + 1
            else:
                break
            node = node[step]
        return line

    def error(self, location: Location, message: str, *, advice: str = "") -> InputError:
        """An :class:`InputError` at this place of the file."""
        return InputError(
            message,
            file=self.path,
            line=self.line(location),
            key=dotted(location),
            advice=advice,
        )

    def validate(self, model: type[Model]) -> Model:
        """The document as this pydantic model; the first fault raises InputError."""
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            fault = error.errors()[0]
            location = [*self._present(fault["loc"]), *fault.get("ctx", {}).get("at", ())]
            message = fault["msg"].removeprefix("Value error, ")
            if fault["type"] == "extra_forbidden":
                message = "unknown key"
            elif fault["type"] == "missing":
                message = f"missing key {fault['loc'][-1]!r}"
                location = location[: len(location) - (location[-1:] == [fault["loc"][-1]])]
            elif fault["type"] != "placed" and not isinstance(fault.get("input"), dict | list):
                message = f"{message} (got {fault['input']!r})"
            raise self.error(location, message) from error

    def _present(self, location: Location) -> list[str | int]:
        """``location`` without the steps that pydantic adds for unions and tags."""
        node, present = self.data, []
        for step in location:
            try:
                node = node[step]
            except (KeyError, IndexError, TypeError):
                if step == location[-1]:
                    present.append(step)
                continue
            present.append(step)
        return present


def load_yaml(path: Path) -> YamlFile:
    """Read one YAML mapping; InputError where it is missing, malformed or no mapping."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            "no such file",
            file=path,
            advice="Write one with `paisoar init`, or name yours with -f.",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from error
    try:
        data = YAML().load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark is not None else None
        problem = (error.problem or "not valid YAML").splitlines()[0]
        raise InputError(problem, file=path, line=line) from error
    except YAMLError as error:
        raise InputError(str(error).splitlines()[0], file=path) from error
    if not isinstance(data, CommentedMap):
        raise InputError("is not a YAML mapping", file=path, line=1)
    return YamlFile(path, data)


def dotted(location: Location) -> str:
    """``('cables', 3, 'a')`` as ``cables[3].a``."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text
