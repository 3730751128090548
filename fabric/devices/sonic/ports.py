"""What CONFIG_DB's tables make of one port."""

from __future__ import annotations

from fabric.devices.sonic.database import Row, Tables, cells, integer, numbers, reference
from fabric.devices.sonic.normalise import shares
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    Ecn,
    IngressBuffer,
    PortQos,
    Queue,
    Scheduler,
    Trust,
    Watchdog,
)
from fabric.unread import Fact, lacking

# The MTU of a port that has none in CONFIG_DB. Source: sonic-swss portsyncd, orchagent.
DEFAULT_MTU = 9100
# Marks of green packets, which all are that no meter has coloured.
_GREEN = {"ecn_green", "ecn_green_yellow", "ecn_green_red", "ecn_all"}
# Fields of SCHEDULER: what is granted, and what is allowed at most.
_SHAPES = {"cir", "pir"}
_DYNAMIC = "NULL"  # profile of a group whose buffer the switch computes by itself


class PortReader:
    """Reads ports one by one; what the tables do not tell goes to ``unread``."""

    def __init__(self, tables: Tables, unread: list[str]) -> None:
        self._tables = tables
        self._unread = unread

    def port(self, name: str) -> PortQos:
        """What this port does."""
        row = self._tables["PORT"][name]
        maps = self._tables.get("PORT_QOS_MAP", {}).get(name, {})
        held = integer(row, "mtu", f"PORT|{name}")
        mtu = DEFAULT_MTU if held is None else held
        return PortQos(
            name=name,
            mtu_bytes=mtu,
            trust=self._trust(maps),
            dscp_to_priority=self._dscps(maps),
            priority_to_class=self._map(maps, "tc_to_queue_map", "TC_TO_QUEUE_MAP"),
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=numbers(maps.get("pfc_enable", "")),
            link_pause=False,
            queues=self._queues(name, maps),
            ingress_buffers=self._buffers(name, maps),
            watchdog=self._watchdog(name, maps),
        )

    def _row(self, table: str, name: str) -> Row:
        return self._tables.get(table, {}).get(reference(name), {})

    def _global_dscp_map(self) -> str:
        """The switch's own map, for ports that have none."""
        return self._tables.get("PORT_QOS_MAP", {}).get("global", {}).get("dscp_to_tc_map", "")

    def _trust(self, maps: Row) -> Trust:
        if maps.get("dscp_to_tc_map") or self._global_dscp_map():
            return "dscp"
        return "pcp" if maps.get("dot1p_to_tc_map") else "none"

    def _dscps(self, maps: Row) -> tuple[int, ...]:
        """DSCPs that the map does not name are traffic class 0, as without a map."""
        name = maps.get("dscp_to_tc_map", "") or self._global_dscp_map()
        found, where = self._row("DSCP_TO_TC_MAP", name), f"DSCP_TO_TC_MAP|{reference(name)}"
        return tuple(integer(found, str(dscp), where) or 0 for dscp in range(DSCP_COUNT))

    def _map(self, maps: Row, field: str, table: str) -> tuple[int, ...]:
        """A map of the eight traffic classes; the identity where the port has none."""
        name = maps.get(field, "")
        found, where = self._row(table, name), f"{table}|{reference(name)}"
        results = (integer(found, str(number), where) for number in range(PRIORITY_COUNT))
        return tuple(n if result is None else result for n, result in enumerate(results))

    def _queues(self, port: str, maps: Row) -> tuple[Queue, ...]:
        rows = cells(self._tables.get("QUEUE", {}), port)
        weights: dict[int, int] = {}
        strict = set()
        limits = {}
        if _SHAPES & set(self._row("SCHEDULER", maps.get("scheduler", ""))):
            self._unread.append(lacking(port, Fact.RATE, "SCHEDULER shapes it", "the port"))
        for number in range(PRIORITY_COUNT):
            scheduler = self._row("SCHEDULER", rows.get(number, {}).get("scheduler", ""))
            limits[number] = self._limit_bps(port, number, scheduler)
            if scheduler.get("type") == "STRICT":
                strict.add(number)
            else:
                weight = integer(scheduler, "weight", f"scheduler of {port}|{number}")
                weights[number] = (1 if weight is None else weight) if scheduler else 0
        percents = shares(weights)
        return tuple(
            Queue(
                number,
                Scheduler("strict") if number in strict else Scheduler("ets", percents[number]),
                self._ecn(port, number, rows.get(number, {})),
                max_rate_bps=limits[number],
            )
            for number in range(PRIORITY_COUNT)
        )

    def _limit_bps(self, port: str, number: int, scheduler: Row) -> int:
        """What the queue may send at most; 0 for its port's speed and more.

        In bytes a second unless it is metered by packets (sonic-net/SONiC
        doc/qos/scheduler/SONiC_QoS_Scheduler_Shaper.md, 3.2.1 and 3.4).
        """
        if "cir" in scheduler or scheduler.get("meter_type", "bytes") != "bytes":
            if _SHAPES & set(scheduler):
                why = "SCHEDULER shapes it"
                self._unread.append(lacking(port, Fact.RATE, why, f"queue {number}"))
            return 0
        rate = integer(scheduler, "pir", f"scheduler of {port}|{number}") or 0
        speed_mbps = integer(self._tables["PORT"][port], "speed", f"PORT|{port}")
        enough = speed_mbps is not None and rate * 8 >= speed_mbps * 10**6
        return 0 if enough else rate * 8

    def _ecn(self, port: str, number: int, row: Row) -> Ecn | None:
        profile = self._row("WRED_PROFILE", row.get("wred_profile", ""))
        if profile.get("ecn") not in _GREEN:
            return None
        start, enabled = ("ecn_green_", True)
        if "ecn_green_min_threshold" not in profile:
            start, enabled = "green_", profile.get("wred_green_enable") == "true"
        probability = "mark_probability" if start == "ecn_green_" else "drop_probability"
        where = f"WRED_PROFILE|{reference(row.get('wred_profile', ''))}"
        low, high = (integer(profile, f"{start}{end}_threshold", where) for end in ("min", "max"))
        if not enabled or low is None or high is None:
            if enabled:
                why = f"{where} has no thresholds"
                self._unread.append(lacking(port, Fact.ECN, why, f"queue {number}"))
            return None
        percent = integer(profile, start + probability, where)
        return Ecn(low, high, 100 if percent is None else percent)

    def _buffers(self, port: str, maps: Row) -> tuple[IngressBuffer, ...]:
        rows = cells(self._tables.get("BUFFER_PG", {}), port)
        groups = self._map(maps, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP")
        paused = numbers(maps.get("pfc_enable", ""))
        found = []
        for priority in range(PRIORITY_COUNT):
            name = rows.get(groups[priority], {}).get("profile", "")
            profile = self._row("BUFFER_PROFILE", name)
            buffer = self._buffer(priority, profile, f"BUFFER_PROFILE|{reference(name)}")
            if buffer is not None:
                found.append(buffer)
            elif priority in paused and name in ("", _DYNAMIC):
                why = "buffermgrd computes it"
                self._unread.append(lacking(port, Fact.BUFFER, why, f"of priority {priority}"))
        return tuple(found)

    def _buffer(self, priority: int, profile: Row, where: str) -> IngressBuffer | None:
        """The buffer of a lossless group, which has headroom; None for a lossy one.

        ``size`` holds the headroom, but on platforms whose ``size`` is smaller
        than it (pg_profile_lookup.ini of the Arista 7060 and the Dell S6000
        show both).
        """
        held = {
            name: integer(profile, name, where)
            for name in ("xoff", "size", "xon", "xon_offset", "dynamic_th", "static_th")
        }
        headroom, size, xon = (held[name] or 0 for name in ("xoff", "size", "xon"))
        if not headroom:
            return None
        reserved = size - headroom if size >= headroom else size
        if held["dynamic_th"] is not None:
            if held["xon_offset"] is not None:
                xon = reserved - held["xon_offset"]
            alpha: float | None = 2.0 ** held["dynamic_th"]
            xon = max(0, min(xon, reserved))
        else:
            reserved += held["static_th"] or 0
            alpha = None
        return IngressBuffer(priority, reserved + headroom, reserved, xon, alpha)

    def _watchdog(self, port: str, maps: Row) -> Watchdog | None:
        """Guards a port whose lossless priorities it watches; ``alert`` only writes a log."""
        row = self._tables.get("PFC_WD", {}).get(port)
        action = (row or {}).get("action", "drop")
        watched = maps.get("pfcwd_sw_enable", maps.get("pfc_enable", ""))
        if row is None or not set(numbers(maps.get("pfc_enable", ""))) <= set(numbers(watched)):
            return None
        if action == "alert":
            self._unread.append(f"watchdog of {port}: it only writes a log (action alert)")
            return None
        return Watchdog(
            integer(row, "detection_time", f"PFC_WD|{port}"),
            integer(row, "restoration_time", f"PFC_WD|{port}"),
            "forward" if action == "forward" else "drop",
        )
