"""An NVUE configuration as a tree, and as the paths that ``nv set`` takes.

``nv config show -o json`` prints a list whose ``set`` member is the tree; keys may
stand for several (``swp1-4,swp6``, ``2,6``). Source: CumulusNetworks/docs,
"NVIDIA User Experience - NVUE"; public startup files.
"""

from __future__ import annotations

import copy as copying
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fabric.devices.base import ReadError

Tree = dict[str, Any]
Path = tuple[str, ...]

_SPAN = re.compile(r"(?P<start>[A-Za-z_.]*(?:\d+s)?)(?P<low>\d+)(?:-(?P<high>\d+))?")
# Below these keys stand names or numbers that NVUE may put together.
_LISTED = {"interface", "traffic-class", "switch-priority", "dscp", "pcp"}


def parse(text: str, command: str) -> Tree:
    """The configuration of a JSON answer, every key standing for itself.

    Raises ReadError where it is none.
    """
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=len(text))
    try:
        data, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError as error:
        raise ReadError(f"'{command}' printed no JSON: {error}") from error
    parts = data if isinstance(data, list) else [data]
    tree: Tree = {}
    for part in parts:
        if not isinstance(part, dict):
            raise ReadError(f"'{command}' printed no configuration")
        merge(tree, _expanded(part.get("set", {}), ""))
    return tree


def merge(tree: Tree, other: Mapping[str, Any]) -> None:
    """Put ``other`` over ``tree``."""
    for key, value in other.items():
        if isinstance(value, Mapping) and isinstance(tree.get(key), dict):
            merge(tree[key], value)
        else:
            tree[key] = copying.deepcopy(value)


def _expanded(node: Any, above: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(node, list):  # a collection: its members are keys
        node = {str(member): {} for member in node}
    if not isinstance(node, dict):
        return "" if node is None else str(node)
    found: Tree = {}
    for key, value in node.items():
        below = _expanded(value, str(key))
        for name in expand(str(key)) if above in _LISTED else (str(key),):
            merge(found, {name: below})
    return found


def expand(key: str) -> tuple[str, ...]:
    """Names of ``swp1-4,swp6`` or numbers of ``2,6``; the key itself for anything else."""
    names: list[str] = []
    for part in key.split(","):
        match = _SPAN.fullmatch(part)
        if match is None:
            return (key,)
        low = int(match["low"])
        names += [f"{match['start']}{n}" for n in range(low, int(match["high"] or low) + 1)]
    return tuple(names)


def get(tree: Mapping[str, Any], *path: str) -> Tree:
    """What is below a path; empty where nothing is."""
    node: Any = tree
    for key in path:
        node = node.get(key, {}) if isinstance(node, Mapping) else {}
    return node if isinstance(node, dict) else {}


def value(tree: Mapping[str, Any], *path: str) -> str:
    """The leaf at a path; empty where there is none."""
    found = get(tree, *path[:-1]).get(path[-1], "")
    return "" if isinstance(found, dict) else str(found)


def integer(tree: Mapping[str, Any], *path: str) -> int | None:
    """The number at a path, None where there is none; ReadError where it is no number."""
    text = value(tree, *path)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise ReadError(f"{' '.join(path)} is {text!r}, no number")
    return int(text)


def leaves(tree: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, str | None]]:
    """Every leaf with its value, and every empty branch with None."""
    for key, node in tree.items():
        if isinstance(node, dict) and node:
            yield from leaves(node, (*above, key))
        else:
            yield (*above, key), None if isinstance(node, dict) else str(node)


def put(tree: Tree, path: Path, leaf: str | None) -> None:
    """Set a leaf, or an empty branch for None."""
    node = tree
    for key in path[:-1]:
        below = node.get(key)
        if not isinstance(below, dict):
            below = node[key] = {}
        node = below
    if leaf is None:
        node.setdefault(path[-1], {})
    else:
        node[path[-1]] = leaf


def remove(tree: Tree, path: Path) -> None:
    """Remove what is at a path, and branches that are empty then."""
    nodes = [tree]
    for key in path[:-1]:
        below = nodes[-1].get(key)
        if not isinstance(below, dict):
            return
        nodes.append(below)
    if path[-1] not in nodes[-1]:
        return
    del nodes[-1][path[-1]]
    for node, key in zip(nodes[-2::-1], path[-2::-1], strict=False):
        if node[key]:
            return
        del node[key]


def copy(tree: Tree) -> Tree:
    """A copy that shares nothing."""
    return copying.deepcopy(tree)


def to_lines(paths: Iterable[tuple[Path, str | None]], verb: str = "nv set") -> Iterator[str]:
    """``nv set`` lines, as ``nv config show -o commands`` prints them."""
    for path, leaf in paths:
        yield " ".join([verb, *path, *([] if leaf is None else [leaf])])


def to_text(tree: Tree) -> str:
    """JSON as ``nv config show -o json`` prints it."""
    return json.dumps([{"header": {"nvue-api-version": "nvue_v1"}}, {"set": tree}], indent=4) + "\n"


def sha256(tree: Tree) -> str:
    """Hash of what the tree holds, whatever the order."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()
