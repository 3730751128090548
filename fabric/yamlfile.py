"""Reading a YAML file so that every later complaint can name its line.

YAML 1.2 (ruamel.yaml): ``off`` and ``on`` stay words, duplicate keys are
errors.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLWarning
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import CollectionNode, Node
from ruamel.yaml.reader import ReaderError

from fabric.errors import InputError, all_of
from fabric.textfile import read_text

Model = TypeVar("Model", bound=BaseModel)
Location = Sequence[str | int]

# Far more than any site needs; an alias counts as what it stands for.
MAX_DEPTH = 50
MAX_VALUES = 5_000_000
_MAX_SHOWN = 80
_WARNED_LINE = re.compile(r"line (\d+)")
_BRACKETS = re.compile(r"[\[\]{}]")
_NESTED_BLOCKS = re.compile(rf"^ {{{MAX_DEPTH}}}|(?:[-?]\s+){{{MAX_DEPTH}}}", re.MULTILINE)
_ALIASES = re.compile(r"\*[\w-]")
# What pydantic puts behind a key that is itself at fault.
_KEY = "[key]"


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
                # A key that was merged in (<<) has no line of its own here.
                place = (node.lc.data or {}).get(step)
            elif isinstance(node, CommentedSeq) and isinstance(step, int) and step < len(node):
                place = (node.lc.data or {}).get(step)
            else:
                break
            line = place[0] + 1 if place else line
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
        """The document as this pydantic model; InputError holds every fault."""
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            raise all_of(self.faults(error)) from error

    def faults(self, error: ValidationError) -> list[InputError]:
        """What pydantic found in the document, each fault at its place."""
        return [fault for one in error.errors() for fault in self._faults(one)]

    def _faults(self, fault: ErrorDetails) -> Iterator[InputError]:
        location = self._present(fault["loc"])
        if fault["type"] == "placed":
            for at, reason in fault["ctx"]["places"]:
                yield self.error([*location, *at], reason)
            return
        message = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            message = "unknown key"
        elif fault["type"] == "missing":
            message = f"missing key {fault['loc'][-1]!r}"
            location = location[: len(location) - (location[-1:] == [fault["loc"][-1]])]
        elif fault["type"] == "too_short":
            message = (
                f"needs at least {fault['ctx']['min_length']}, has {fault['ctx']['actual_length']}"
            )
        elif not isinstance(fault.get("input"), dict | list):
            message = f"{message} (got {_shown(fault['input'])})"
        yield self.error(location, message)

    def _present(self, location: Location) -> list[str | int]:
        """``location`` without the steps that pydantic adds for unions, tags and keys."""
        node, present = self.data, []
        for step in location:
            try:
                node = node[step]
            except (KeyError, IndexError, TypeError):
                if step == location[-1] and step != _KEY:
                    present.append(step)
                continue
            present.append(step)
        return present


def _shown(value: object) -> str:
    """A value for a message: whole where it is short."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        return "a very large number"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


class _Constructor(RoundTripConstructor):
    """Says of a value that Python cannot hold where it stands."""

    def construct_object(self, node: Node, deep: bool = False) -> Any:  # noqa: ANN401 - any value
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, OverflowError, ArithmeticError) as error:
            reason = str(error).partition(";")[0] or type(error).__name__
            raise ConstructorError(None, None, reason, node.start_mark) from error


def load_yaml(path: Path) -> YamlFile:
    """Read one YAML mapping; InputError where it is missing, malformed or no mapping."""
    text = read_text(path, advice="Write one with `paisoar init`, or name yours with -f.")
    data = _parsed(path, text)
    if not isinstance(data, CommentedMap):
        raise InputError("is not a YAML mapping", file=path, line=1)
    _count_values(path, data, {}, ())
    return YamlFile(path, data)


def _parsed(path: Path, text: str) -> Any:  # noqa: ANN401 - whatever the file holds
    yaml = YAML()
    yaml.Constructor = _Constructor
    try:
        _refuse_depth(path, text)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", YAMLWarning)
            data = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark is not None else None
        problem = (error.problem or "not valid YAML").splitlines()[0]
        if problem.startswith("but ") and error.context:
            problem = f"{error.context}, {problem}"
        raise InputError(problem, file=path, line=line) from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(str(error).splitlines()[0], file=path, line=line) from error
    except YAMLError as error:
        raise InputError(str(error).splitlines()[0], file=path) from error
    if warned:
        words = str(warned[0].message).strip()
        lines = _WARNED_LINE.findall(words)
        raise InputError(words.splitlines()[0], file=path, line=int(lines[-1]) if lines else None)
    return data


def _refuse_depth(path: Path, text: str) -> None:
    """InputError where something is nested deeper than any site's file."""
    if not _may_be_deep(text):
        return
    depth = 0
    for event in YAML().parse(text):
        if isinstance(event, CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise InputError(
                    f"is nested more than {MAX_DEPTH} levels deep",
                    file=path,
                    line=event.start_mark.line + 1,
                )
        elif isinstance(event, CollectionEndEvent):
            depth -= 1


def refuse_bomb(path: Path, text: str) -> None:
    """InputError where the text is YAML that is too deep, or whose aliases stand for too much.

    For files that others parse; says nothing of what is no YAML.
    """
    try:
        _refuse_depth(path, text)
        if not _ALIASES.search(text):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", YAMLWarning)
            documents = list(YAML().compose_all(text))
    except YAMLError:
        return
    _count_values(path, [_plain(node, {}) for node in documents], {}, ())


def _plain(node: object, made: dict[int, object]) -> object:
    """A composed node as lists; what an alias names is the same list again."""
    if id(node) in made or not isinstance(node, CollectionNode):
        return made.get(id(node))
    children: list[object] = []
    made[id(node)] = children
    for child in node.value:
        parts = child if isinstance(child, tuple) else (child,)
        children.extend(_plain(part, made) for part in parts)
    return children


def _may_be_deep(text: str) -> bool:
    """A quick look: whether brackets, indents or dashes go deeper than allowed."""
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return _NESTED_BLOCKS.search(text) is not None


def _count_values(path: Path, node: object, known: dict[int, int], inside: tuple[int, ...]) -> int:
    """How many values this holds once every alias is written out; InputError where too many.

    ``known`` has the counts of what was counted already, ``inside`` what is being counted.
    """
    if not isinstance(node, dict | list):
        return 1
    key = id(node)
    if key in inside:
        raise InputError("an alias stands for something that it is itself a part of", file=path)
    if key not in known:
        values = node.values() if isinstance(node, dict) else node
        known[key] = 1 + sum(_count_values(path, v, known, (*inside, key)) for v in values)
    if known[key] > MAX_VALUES:
        line = getattr(getattr(node, "lc", None), "line", 0) + 1
        raise InputError(
            f"its aliases stand for more than {MAX_VALUES:,} values", file=path, line=line
        )
    return known[key]


def dotted(location: Location) -> str:
    """``('cables', 3, 'a')`` as ``cables[3].a``, in one line whatever the keys hold."""
    text = ""
    for step in location:
        word = str(step) if str(step).isprintable() else repr(step)
        text += f"[{step}]" if isinstance(step, int) else f".{word}" if text else word
    return text
