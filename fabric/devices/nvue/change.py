"""The smallest change from the applied configuration to the intended one.

Lines go into a pending revision and take effect together when it is applied, so
that their order does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabric.devices.base import Change
from fabric.devices.nvue.names import PREFIX
from fabric.devices.nvue.render import intended_tree
from fabric.devices.nvue.tree import Path, Tree, copy, get, leaves, put, remove, to_lines
from fabric.errors import DeviceError
from fabric.qos import DeviceQos

_PROFILES = ("mapping", "egress-scheduler", "congestion-control", "pfc")
_OF_A_PORT = (
    *((kind, "profile") for kind in _PROFILES),
    ("link-pause", "profile"),
    ("pfc-watchdog",),
)
# What NVIDIA's example gives to each where PFC is switched on.
_HALF = "50"

Leaves = dict[Path, str | None]


def change(device: str, applied: Tree, intended: DeviceQos) -> Change:
    """``nv set`` and ``nv unset`` lines, their undoing, and a diff of the paths that change.

    Raises DeviceError where the device has no such port or is in RoCE mode.
    """
    _require(device, applied, intended)
    after = _adopted(applied, intended_tree(intended), intended)
    return Change(
        diff="".join(f"{line}\n" for line in _diff(applied, after)),
        commands=tuple(_commands(applied, after)),
        rollback=tuple(_commands(after, applied)),
    )


def _require(device: str, applied: Tree, intended: DeviceQos) -> None:
    doing = "planning its configuration"
    for port in intended.ports:
        if port.name not in get(applied, "interface"):
            raise DeviceError(
                device,
                doing,
                f"its configuration has no interface {port.name}",
                advice="Correct the cable in fabric.yaml, or configure the port on the switch.",
            )
    if "roce" in get(applied, "qos"):
        raise DeviceError(
            device,
            doing,
            "it is in RoCE mode, which sets maps, buffers and ECN of its own",
            advice="Leave it first: nv unset qos roce, nv config apply.",
        )


def _adopted(applied: Tree, wanted: Tree, intended: DeviceQos) -> Tree:
    """The applied tree with the intended part in the place of ours."""
    tree = copy(applied)
    for port in intended.ports:
        remove(tree, ("interface", port.name, "link", "mtu"))
        for path in _OF_A_PORT:
            remove(tree, ("interface", port.name, "qos", *path))
    remove(tree, ("qos", "egress-queue-mapping", "default-global"))
    for timing in ("polling-interval", "robustness"):
        remove(tree, ("qos", "pfc-watchdog", timing))
    used = _profiles_in_use(tree)
    for kind in _PROFILES:
        for name in list(get(tree, "qos", kind)):
            if name.startswith(PREFIX) and (kind, name) not in used:
                remove(tree, ("qos", kind, name))
    for path, leaf in leaves(wanted):
        put(tree, path, leaf)
    _pools(tree, intended)
    for port in intended.ports:  # a port stays one, whatever it had
        put(tree, ("interface", port.name), None)
    return tree


def _profiles_in_use(tree: Tree) -> set[tuple[str, str]]:
    """Profiles that ports which are not the intent's still use."""
    return {
        (kind, str(row["profile"]))
        for interface in get(tree, "interface").values()
        for kind, row in get(interface, "qos").items()
        if isinstance(row, dict) and "profile" in row
    }


def _pools(tree: Tree, intended: DeviceQos) -> None:
    """PFC needs a lossless pool; one that is there already is left as it is."""
    pools = get(tree, "qos", "traffic-pool")
    if not any(port.pfc_priorities for port in intended.ports) or "default-lossless" in pools:
        return
    for pool in ("default-lossless", "default-lossy"):
        put(tree, ("qos", "traffic-pool", pool, "memory-percent"), _HALF)


def _commands(before: Tree, after: Tree) -> Iterator[str]:
    old, new = dict(leaves(before)), dict(leaves(after))
    gone: dict[Path, None] = {}
    for path in old:
        if not _is_there(after, path):
            gone[_highest(after, path)] = None
    yield from to_lines(((path, None) for path in gone), "nv unset")
    added = [(path, leaf) for path, leaf in new.items() if path not in old or old[path] != leaf]
    yield from to_lines(_together(added))


def _is_there(tree: Tree, path: Path) -> bool:
    return path[-1] in get(tree, *path[:-1])


def _highest(tree: Tree, path: Path) -> Path:
    """The highest branch above a path that is gone with it."""
    for length in range(1, len(path)):
        if not _is_there(tree, path[:length]):
            return path[:length]
    return path


def _together(added: list[tuple[Path, str | None]]) -> Iterator[tuple[Path, str | None]]:
    """DSCPs of one priority in one line; NVUE takes a list there."""
    groups: dict[tuple[Path, Path, str | None], list[str]] = {}
    for path, leaf in added:
        at = path.index("dscp") if "dscp" in path[:-1] and path[0] == "qos" else -1
        if at < 0:
            yield path, leaf
            continue
        groups.setdefault((path[: at + 1], path[at + 2 :], leaf), []).append(path[at + 1])
    for (start, rest, leaf), numbers in groups.items():
        yield (*start, ",".join(numbers), *rest), leaf


def _diff(before: Tree, after: Tree) -> Iterator[str]:
    old, new = dict(leaves(before)), dict(leaves(after))
    gone = [(path, leaf) for path, leaf in old.items() if _differs(path, old, new, after)]
    come = [(path, leaf) for path, leaf in new.items() if _differs(path, new, old, before)]
    lines = [
        *((path, "-", leaf) for path, leaf in _together(gone)),
        *((path, "+", leaf) for path, leaf in _together(come)),
    ]
    for path, sign, leaf in sorted(lines, key=lambda line: (_natural(line[0]), line[1] == "+")):
        yield from to_lines([(path, leaf)], sign)


def _differs(path: Path, here: Leaves, there: Leaves, other: Tree) -> bool:
    """Whether a leaf is another or none on the other side; a branch that grew is neither."""
    if path in there:
        return here[path] != there[path]
    return here[path] is not None or not _is_there(other, path)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    pieces = [piece for part in path for piece in re.findall(r"\d+|\D+", part)]
    return [(0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in pieces]
