"""The lists of a NetBox export, however the API's answers were kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabric.errors import InputError
from fabric.textfile import read_text

Item = Mapping[str, Any]
_NAMES = ("devices", "cables", "interfaces")


@dataclass
class Lists:
    """Everything that the files hold; ``files`` says where each list was."""

    devices: list[Item] = field(default_factory=list)
    cables: list[Item] = field(default_factory=list)
    interfaces: list[Item] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)


def slug(value: Any) -> str:  # noqa: ANN401 - JSON
    """The word of an object, a choice or a text: ``{"slug": "leaf"}``, ``{"value": "m"}``."""
    if isinstance(value, Mapping):
        return str(value.get("slug") or value.get("value") or value.get("name") or "")
    return str(value or "")


def read_lists(path: Path, into: Lists) -> None:
    """Add what this file holds. InputError where it is no export, or not all of one."""
    data = _parsed(path)
    if isinstance(data, Mapping) and "_meta" in data:
        raise InputError(
            "is the answer of `ansible-inventory --list`, which Ansible itself does not read",
            file=path,
            advice="Name the inventory, or write it with `ansible-inventory --list --yaml`.",
        )
    named = isinstance(data, Mapping) and any(name in data for name in _NAMES)
    for name in _NAMES if named else ("",):
        items = _items(path, name, data.get(name, []) if named else data)
        if items or name == "devices":
            kind = name or _kind(path, items)
            getattr(into, kind).extend(items)
            into.files.setdefault(kind, path)


def _parsed(path: Path) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"is no JSON: {error.msg}", file=path, line=error.lineno) from error
    except RecursionError:
        raise InputError("is no export: it is nested too deeply", file=path) from None
    except ValueError as error:  # a number of more digits than Python reads
        reason = str(error).partition(";")[0]
        raise InputError(f"is no export: {reason}", file=path) from error


def _items(path: Path, name: str, value: Any) -> list[Item]:  # noqa: ANN401 - JSON
    """A list, a page with ``results``, or a list of pages."""
    pages = [value] if isinstance(value, Mapping) else value
    if not isinstance(pages, list) or not all(isinstance(page, Mapping) for page in pages):
        raise InputError(
            f"is not as NetBox exports it: {name or 'it'} is no list of objects",
            file=path,
            key=name,
        )
    found: list[Item] = []
    counts = []
    for page in pages:
        if "results" not in page:
            if page is value:
                raise InputError("has no devices", file=path, advice=_ADVICE)
            found.append(page)
            continue
        results = page["results"]
        if not isinstance(results, list) or not all(isinstance(one, Mapping) for one in results):
            raise InputError(
                "is not as NetBox exports it: results is no list of objects", file=path
            )
        found += results
        counts += [page["count"]] if isinstance(page.get("count"), int) else []
    if counts and len(found) < max(counts):
        raise InputError(
            f"holds {len(found)} of {max(counts)} {name or 'objects'}: the API answers in pages",
            file=path,
            advice="Ask for all at once (?limit=0), or keep every page in one list.",
        )
    return found


_ADVICE = "One object with the lists devices, cables and interfaces, or a file for each."


def _kind(path: Path, items: list[Item]) -> str:
    """What a bare list is of, by the first of its objects."""
    first = items[0]
    if "a_terminations" in first or "termination_a_type" in first:
        return "cables"
    if "device_type" in first or ("device" not in first and "name" in first):
        return "devices"
    if "device" in first and "name" in first:
        return "interfaces"
    raise InputError(
        "is not as NetBox exports it: its objects are no devices, cables or interfaces",
        file=path,
        advice=_ADVICE,
    )
