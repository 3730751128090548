"""CONFIG_DB, and what the switch's daemons do when it changes.

Redis takes whatever it is given; ``buffermgrd`` answers a change of PFC with a
buffer profile of its own (sonic-swss cfgmgr/buffermgr.cpp, traditional model).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Row = dict[str, str]

# speed in Mb/s, cable -> size, xon, xoff, dynamic threshold, as in a platform's
# pg_profile_lookup.ini; the numbers are our own.
PG_PROFILES: dict[tuple[str, str], tuple[str, str, str, str]] = {
    (speed, cable): ("18432", "18432", str(headroom * length), "-3")
    for speed, headroom in (("25000", 40_000), ("100000", 90_000), ("400000", 300_000))
    for cable, length in (("5m", 1), ("40m", 2), ("300m", 6))
}
NO_CABLE = "0m"


@dataclass
class ConfigDb:
    """Rows by ``TABLE|KEY``."""

    rows: dict[str, Row]

    def table(self, name: str) -> dict[str, Row]:
        """Rows of a table by key."""
        start = f"{name}|"
        return {key[len(start) :]: row for key, row in self.rows.items() if key.startswith(start)}

    def get(self, name: str, key: str, field: str) -> str | None:
        """One field; None where it is not set."""
        return self.rows.get(f"{name}|{key}", {}).get(field)

    @property
    def hostname(self) -> str:
        """What the prompt shows."""
        return self.get("DEVICE_METADATA", "localhost", "hostname") or "sonic"

    def write(self, key: str, fields: Mapping[str, str]) -> int:
        """Set fields of a row; how many are new."""
        row = self.rows.setdefault(key, {})
        new = sum(field not in row for field in fields)
        paused = row.get("pfc_enable")
        row.update(fields)
        if key.startswith("PORT_QOS_MAP|") and row.get("pfc_enable") != paused:
            self._pfc_changed(key.partition("|")[2], row.get("pfc_enable", ""))
        return new

    def remove_fields(self, key: str, fields: Sequence[str]) -> int:
        """Remove fields; a row without any is gone. How many there were."""
        row = self.rows.get(key, {})
        removed = sum(row.pop(field, None) is not None for field in fields)
        if removed and not row:
            del self.rows[key]
        return removed

    def remove(self, key: str) -> int:
        """Remove a row; 1 where it was there."""
        return int(self.rows.pop(key, None) is not None)

    def _pfc_changed(self, port: str, priorities: str) -> None:
        """Buffermgrd gives the lossless groups of a port the profile of its speed and cable."""
        cable = next(
            (row[port] for row in self.table("CABLE_LENGTH").values() if port in row), NO_CABLE
        )
        speed = self.get("PORT", port, "speed") or ""
        found = PG_PROFILES.get((speed, cable))
        if cable == NO_CABLE or found is None or not priorities:
            return
        name = f"pg_lossless_{speed}_{cable}_profile"
        size, xon, xoff, threshold = found
        self.rows.setdefault(
            f"BUFFER_PROFILE|{name}",
            {
                "pool": "ingress_lossless_pool",
                "size": str(int(size) + int(xoff)),
                "xon": xon,
                "xoff": xoff,
                "dynamic_th": threshold,
            },
        )
        for span in _spans([int(number) for number in priorities.split(",")]):
            self.rows[f"BUFFER_PG|{port}|{span}"] = {"profile": name}

    def to_text(self) -> str:
        """As ``sonic-cfggen -d --print-data`` prints it: tables, keys, fields."""
        tables: dict[str, dict[str, Row]] = {}
        for key, row in self.rows.items():
            name, _, rest = key.partition("|")
            shown = {field: value for field, value in row.items() if field != "NULL"}
            tables.setdefault(name, {})[rest] = shown
        return json.dumps(tables, indent=4, sort_keys=True) + "\n"


def load(text: str) -> ConfigDb:
    """The database of this JSON text."""
    rows = {}
    for name, table in json.loads(text).items():
        for key, row in table.items():
            rows[f"{name}|{key}"] = dict(row) or {"NULL": "NULL"}
    return ConfigDb(rows)


def _spans(numbers: list[int]) -> list[str]:
    """``3`` and ``4`` are one group of keys, ``3-4``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [str(low) if low == high else f"{low}-{high}" for low, high in runs]
