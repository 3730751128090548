"""Applied and pending configurations, and what NVUE checks when one is applied."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fabric.twin.nvue.model import Path

Tree = dict[str, Any]

_KINDS = (
    "mapping", "remark", "egress-scheduler", "congestion-control", "pfc", "link-pause",
    "egress-shaper",
)  # fmt: skip
GLOBAL = "default-global"
_DEFAULT_LOSSY_PERCENT = 100


@dataclass
class Configuration:
    """A tree of names; leaves are text."""

    tree: Tree

    def at(self, *path: str) -> Tree:
        """The branch at a path; empty where there is none."""
        node: Any = self.tree
        for key in path:
            node = node.get(key, {}) if isinstance(node, dict) else {}
        return node if isinstance(node, dict) else {}

    def leaf(self, *path: str) -> str:
        """The leaf at a path; empty where there is none."""
        found = self.at(*path[:-1]).get(path[-1], "")
        return found if isinstance(found, str) else ""

    @property
    def hostname(self) -> str:
        """What the prompt shows."""
        return self.leaf("system", "hostname") or "cumulus"

    def put(self, path: Path, value: str | None) -> None:
        """Set a leaf, or make a branch."""
        node = self.tree
        for key in path[:-1]:
            below = node.get(key)
            if not isinstance(below, dict):
                below = node[key] = {}
            node = below
        if value is None:
            node.setdefault(path[-1], {})
        else:
            node[path[-1]] = value

    def remove(self, path: Path) -> None:
        """Remove what is at a path; branches that only led there go as well."""
        node, trail = self.tree, []
        for key in path[:-1]:
            trail.append((node, key))
            below = node.get(key)
            if not isinstance(below, dict):
                return
            node = below
        node.pop(path[-1], None)
        for parent, key in reversed(trail):
            if parent[key]:
                return
            del parent[key]

    def copy(self) -> Configuration:
        """A copy that shares nothing."""
        return Configuration(copy.deepcopy(self.tree))

    def to_text(self) -> str:
        """As ``nv config show -o json`` prints it."""
        header = {"model": "emulated", "nvue-api-version": "nvue_v1", "version": "5.14.0"}
        return json.dumps([{"header": header}, {"set": self.tree}], indent=2) + "\n"

    def lines(self) -> list[str]:
        """As ``nv config show -o commands`` prints it."""
        return [
            " ".join(["nv set", *path, *([value] if value is not None else [])])
            for path, value in _leaves(self.tree, ())
        ]

    def faults(self) -> Iterator[str]:
        """Why this cannot be applied; nothing where it can."""
        for name in self.at("interface"):
            yield from self._interface(name)
        for profile, below in self.at("qos", "egress-scheduler").items():
            rows = below.get("traffic-class", {}).values()
            if sum(int(row.get("bw-percent", 0)) for row in rows) > 100:
                yield f"qos egress-scheduler {profile}: bw-percent adds up to more than 100"
        for profile, below in self.at("qos", "congestion-control").items():
            for number, row in below.get("traffic-class", {}).items():
                low, high = row.get("min-threshold", "150000"), row.get("max-threshold", "1500000")
                if int(low) > int(high):
                    yield (
                        f"qos congestion-control {profile} traffic-class {number}: min-threshold "
                        "is above max-threshold"
                    )
        yield from self._pools()

    def _interface(self, name: str) -> Iterator[str]:
        qos = self.at("interface", name, "qos")
        for kind in _KINDS:
            profile = qos.get(kind, {}).get("profile")
            if profile not in (None, GLOBAL) and profile not in self.at("qos", kind):
                yield f"interface {name}: there is no qos {kind} profile {profile}"
        paused = "profile" in qos.get("pfc", {}) or bool(self.at("qos", "pfc", GLOBAL))
        if paused and "profile" in qos.get("link-pause", {}):
            yield f"interface {name}: link-pause and pfc cannot be on the same port"
        watched = qos.get("pfc-watchdog")
        if watched is not None and watched.get("state") != "disable" and not paused:
            yield f"interface {name}: pfc-watchdog needs pfc"

    def _pools(self) -> Iterator[str]:
        percents = {
            name: int(below.get("memory-percent", 0))
            for name, below in self.at("qos", "traffic-pool").items()
        }
        percents.setdefault("default-lossy", _DEFAULT_LOSSY_PERCENT)
        if sum(percents.values()) > 100:
            yield "qos traffic-pool: memory-percent adds up to more than 100"
        lossless = percents.get("default-lossless", 0) + percents.get("roce-lossless", 0)
        if not lossless and any(self._paused()):
            yield "qos pfc: there is no memory in a lossless traffic-pool"

    def _paused(self) -> Iterator[str]:
        for name in self.at("interface"):
            profile = self.leaf("interface", name, "qos", "pfc", "profile") or GLOBAL
            if self.at("qos", "pfc", profile, "switch-priority"):
                yield name


def load(text: str) -> Configuration:
    """The configuration of this JSON text."""
    return Configuration(json.loads(text)[1]["set"])


def difference(old: Configuration, new: Configuration) -> list[str]:
    """``nv set`` and ``nv unset`` lines from one to the other, for ``nv config diff``."""
    before, after = set(old.lines()), set(new.lines())
    gone = [line for line in old.lines() if line not in after]
    return [
        *(f"- {line}" for line in gone),
        *(f"+ {line}" for line in new.lines() if line not in before),
    ]


def _leaves(tree: Mapping[str, Any], above: Path) -> Iterator[tuple[Path, str | None]]:
    for key in sorted(tree, key=_natural):
        node = tree[key]
        if isinstance(node, dict) and node:
            yield from _leaves(node, (*above, key))
        else:
            yield (*above, key), None if isinstance(node, dict) else node


def _natural(key: str) -> tuple[str, int]:
    digits = key[len(key.rstrip("0123456789")) :]
    return key[: len(key) - len(digits)], int(digits or 0)
