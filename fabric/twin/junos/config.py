"""A configuration: statements in the order of printing, and what a commit checks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabric.twin.cli.values import tokenize
from fabric.twin.junos import schema
from fabric.twin.junos.schema import Statement

_TOP = (
    *("version", "system", "chassis", "interfaces", "snmp"),
    *("class-of-service", "routing-options", "protocols", "vlans"),
)
COS = "class-of-service"
_CNP = "congestion-notification-profile"


class Config:
    """Statements that can be set and deleted."""

    def __init__(self) -> None:
        self._held: dict[Statement, Statement] = {}

    def copy(self) -> Config:
        """An independent configuration with the same statements."""
        other = Config()
        other._held = dict(self._held)
        return other

    def __iter__(self) -> Iterator[Statement]:
        return iter(self._held.values())

    def set(self, line: str) -> None:
        """Take a statement, without ``set``; RefusedError where the grammar has none such."""
        leaf, match = schema.parse(tokenize(line), len(line))
        for statement in schema.statements(leaf, match):
            key = statement[: len(statement) - leaf.values] if leaf.values else statement
            if statement[:3] == (COS, "forwarding-classes", "class") and len(statement) > 4:
                key = (*statement[:4], "queue-num")
            self._held[key] = statement
            self._drop_bare(statement)

    def _drop_bare(self, statement: Statement) -> None:
        """What has something below it is not printed by itself."""
        for length in range(1, len(statement)):
            above = statement[:length]
            if self._held.get(above) == above:
                del self._held[above]

    def delete(self, path: Statement) -> bool:
        """Forget everything below this path; False where there was nothing."""
        keys = [key for key, held in self._held.items() if held[: len(path)] == path]
        for key in keys:
            del self._held[key]
        for start, length in schema.ENTRIES:
            entry = path[:length]
            deeper = len(path) > length and path[: len(start)] == start
            if keys and deeper and not self.under(*entry) and entry not in self._held:
                self._held[entry] = entry
        return bool(keys)

    def under(self, *path: str) -> list[Statement]:
        """What stands behind this path in every statement that begins with it."""
        held = self._held.values()
        return [s[len(path) :] for s in held if s[: len(path)] == path and len(s) > len(path)]

    def value(self, *path: str) -> str:
        """The word behind this path; empty where there is none."""
        return next((rest[0] for rest in self.under(*path)), "")

    def has(self, *path: str) -> bool:
        """Whether there is this statement, or one below it."""
        return any(s[: len(path)] == path for s in self._held.values())

    @property
    def hostname(self) -> str:
        """The switch's name."""
        return self.value("system", "host-name") or "Amnesiac"

    def text(self) -> str:
        """``show configuration | display set``."""
        ordered = sorted(self._held.values(), key=_key)
        return "".join(f"set {' '.join(statement)}\n" for statement in ordered)


def _key(statement: Statement) -> tuple[int, list[list[object]]]:
    top = _TOP.index(statement[0]) if statement[0] in _TOP else len(_TOP)
    words: list[list[object]] = []
    for word in statement:
        parts = [part for part in re.split(r"(\d+)", word) if part]
        words.append([(1, int(p)) if p.isdecimal() else (0, p) for p in parts])
    return top, words


def load(text: str, config: Config) -> Config:
    """Fill ``config`` from set lines; ValueError that quotes a line that is none."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            config.set(line.strip().removeprefix("set "))
        except Exception as error:
            raise ValueError(f"line {number}: {line.strip()!r}: {error}") from error
    return config


def check(config: Config) -> list[str]:
    """What a commit refuses, as lines of its answer; empty where it commits."""
    return [*_references(config), *_queues(config), *_rates(config), *_profiles(config)]


def _failure(where: str, what: str, why: str) -> list[str]:
    return [f"[edit {where}]", f"  '{what}'", f"    {why}"]


def _references(config: Config) -> Iterator[str]:
    """Objects that are used must be there."""
    attached = (("scheduler-map", "scheduler-maps"), (_CNP, _CNP))
    for row in config.under(COS, "interfaces"):
        words = list(row[1:])
        if words[:1] == ["unit"]:
            words = words[2:]
        for statement, kind in attached:
            if words[:1] == [statement] and not config.has(COS, kind, words[1]):
                yield from _failure(
                    f"{COS} interfaces {row[0]}", " ".join(words), f"{words[1]} is not defined"
                )
        classifier = words[2] if words[:2] == ["classifiers", "dscp"] else "default"
        if classifier != "default" and not config.has(COS, "classifiers", "dscp", classifier):
            yield from _failure(
                f"{COS} interfaces {row[0]}", " ".join(words), f"{classifier} is not defined"
            )
    for name, *rest in config.under(COS, "scheduler-maps"):
        if rest[2:3] == ["scheduler"] and not config.has(COS, "schedulers", rest[3]):
            where = f"{COS} scheduler-maps {name}"
            yield from _failure(where, " ".join(rest), f"scheduler {rest[3]} is not defined")
    for name, *rest in config.under(COS, "schedulers"):
        if rest[:1] == ["drop-profile-map"] and not config.has(COS, "drop-profiles", rest[-1]):
            where = f"{COS} schedulers {name}"
            yield from _failure(where, " ".join(rest), f"drop-profile {rest[-1]} is not defined")
    yield from _class_references(config)


def _class_references(config: Config) -> Iterator[str]:
    classes = {row[0] for row in config.under(COS, "forwarding-classes", "class")}
    classes |= {"best-effort", "fcoe", "no-loss", "network-control"} if not classes else set()
    for kind in ("scheduler-maps", "classifiers"):
        for row in config.under(COS, kind):
            name = row[row.index("forwarding-class") + 1] if "forwarding-class" in row else ""
            if name and name not in classes:
                where = f"{COS} {kind} {row[1 if kind == 'classifiers' else 0]}"
                yield from _failure(
                    where, f"forwarding-class {name}", "forwarding-class is not defined"
                )


def _queues(config: Config) -> Iterator[str]:
    """All classes of a queue are lossless, or none is; six queues may be."""
    lossless: dict[str, bool] = {}
    where = f"{COS} forwarding-classes"
    for name, *rest in config.under(COS, "forwarding-classes", "class"):
        if rest[:1] != ["queue-num"]:
            yield from _failure(where, f"class {name}", "Missing mandatory statement: 'queue-num'")
            continue
        no_loss = "no-loss" in rest
        if lossless.setdefault(rest[1], no_loss) != no_loss:
            why = f"forwarding classes of queue {rest[1]} must all be lossless or lossy"
            yield from _failure(where, f"class {name}", why)
    if sum(lossless.values()) > 6:
        yield from _failure(where, "no-loss", "more than 6 lossless queues")


def _rates(config: Config) -> Iterator[str]:
    """The shares of a port are 100 percent at most."""
    for name in dict.fromkeys(row[0] for row in config.under(COS, "scheduler-maps")):
        rows = config.under(COS, "scheduler-maps", name)
        shares = [
            int(config.value(COS, "schedulers", row[-1], "transmit-rate", "percent") or 0)
            for row in rows
        ]
        if sum(shares) > 100:
            why = f"total bandwidth allocation exceeds 100 percent ({sum(shares)})"
            yield from _failure(f"{COS} scheduler-maps", name, why)


def _profiles(config: Config) -> Iterator[str]:
    """DSCP and IEEE 802.1p must not both pause in one profile."""
    for name in dict.fromkeys(row[0] for row in config.under(COS, _CNP)):
        kinds = {row[0] for row in config.under(COS, _CNP, name, "input")}
        if {"dscp", "ieee-802.1"} <= kinds:
            why = "dscp and ieee-802.1 cannot be configured together"
            yield from _failure(f"{COS} {_CNP} {name}", "input", why)
