"""From an intended state to the rows of CONFIG_DB that the intent owns.

Field names and values: sonic-net/sonic-buildimage src/sonic-yang-models and
files/build_templates/qos_config.j2. Priority, traffic class, queue and priority
group of a lossless class are one number; lossy classes share one priority group.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabric.devices.sonic.database import Row, Tables
from fabric.devices.sonic.names import content_name
from fabric.devices.sonic.normalise import normalise, require_expressible
from fabric.qos import PRIORITY_COUNT, DeviceQos, Ecn, IngressBuffer, PortQos, Queue

# Where it is not known what the switch calls it; every platform of
# sonic-buildimage that has lossless traffic calls it so.
LOSSLESS_POOL = "ingress_lossless_pool"


def intended_tables(intended: DeviceQos, pool: str = LOSSLESS_POOL) -> Tables:
    """Every row and field that the intent owns on this device.

    ``pool`` is the buffer pool that lossless priority groups take from. Raises
    InputError for what SONiC cannot express at all.
    """
    require_expressible(intended)
    tables: Tables = {}
    for port in normalise(intended).ports:
        _port(tables, port, pool)
    return tables


def _port(tables: Tables, port: PortQos, pool: str) -> None:
    tables.setdefault("PORT", {})[port.name] = {"mtu": str(port.mtu_bytes)}
    maps = {
        "dscp_to_tc_map": _define(tables, "DSCP_TO_TC_MAP", "DSCP", _map(port.dscp_to_priority)),
        "tc_to_queue_map": _define(tables, "TC_TO_QUEUE_MAP", "TC", _map(port.priority_to_class)),
        "tc_to_pg_map": _define(tables, "TC_TO_PRIORITY_GROUP_MAP", "PG", _groups(port)),
        "pfc_to_queue_map": _define(
            tables, "MAP_PFC_PRIORITY_TO_QUEUE", "PFC", _map(port.priority_to_class)
        ),
    }
    if port.pfc_priorities:
        maps["pfc_enable"] = ",".join(map(str, port.pfc_priorities))
        if port.watchdog:
            maps["pfcwd_sw_enable"] = maps["pfc_enable"]
    tables.setdefault("PORT_QOS_MAP", {})[port.name] = maps
    for queue in port.queues:
        row = _queue(tables, queue)
        if row:
            tables.setdefault("QUEUE", {})[f"{port.name}|{queue.traffic_class}"] = row
    for buffer in port.ingress_buffers:
        name = _define(tables, "BUFFER_PROFILE", "BUF", _profile(buffer, pool))
        tables.setdefault("BUFFER_PG", {})[f"{port.name}|{buffer.priority}"] = {"profile": name}
    if port.watchdog:
        tables.setdefault("PFC_WD", {})[port.name] = {
            "action": port.watchdog.action,
            "detection_time": str(port.watchdog.detect_ms),
            "restoration_time": str(port.watchdog.restore_ms),
        }


def _map(values: Sequence[int]) -> Row:
    return {str(number): str(value) for number, value in enumerate(values)}


def _groups(port: PortQos) -> Row:
    """Lossless priorities have a group of their number, all others share the lowest free one."""
    lossless = {buffer.priority for buffer in port.ingress_buffers}
    shared = min(set(range(PRIORITY_COUNT)) - lossless)
    return {
        str(priority): str(priority if priority in lossless else shared)
        for priority in range(PRIORITY_COUNT)
    }


def _queue(tables: Tables, queue: Queue) -> Row:
    row: Row = {}
    if queue.scheduler.mode == "strict":
        row["scheduler"] = _define(tables, "SCHEDULER", "SCHED", {"type": "STRICT"})
    elif queue.scheduler.percent:
        scheduler = {"type": "DWRR", "weight": str(queue.scheduler.percent)}
        row["scheduler"] = _define(tables, "SCHEDULER", "SCHED", scheduler)
    if queue.ecn:
        row["wred_profile"] = _define(tables, "WRED_PROFILE", "ECN", _wred(queue.ecn))
    return row


def _wred(ecn: Ecn) -> Row:
    row = {"ecn": "ecn_all"}
    for color in ("green", "yellow", "red"):
        row[f"wred_{color}_enable"] = "true"
        row[f"{color}_min_threshold"] = str(ecn.kmin_bytes)
        row[f"{color}_max_threshold"] = str(ecn.kmax_bytes)
        row[f"{color}_drop_probability"] = str(ecn.pmax_percent)
    return row


def _profile(buffer: IngressBuffer, pool: str) -> Row:
    """``size`` is reserved and holds the headroom ``xoff``, as SAI defines them.

    Dynamic: XON is sent below the larger of ``xon`` and the threshold less
    ``xon_offset``. Static: nothing of the shared pool (``static_th`` 0; that 0 means
    none is unverified). Source: sonic-buffer-profile.yang; saibuffer.h.
    """
    row = {
        "pool": pool,
        "size": str(buffer.size_bytes),
        "xoff": str(buffer.size_bytes - buffer.xoff_bytes),
    }
    if buffer.alpha is None:
        return {**row, "xon": str(buffer.xon_bytes), "static_th": "0"}
    return {
        **row,
        "xon": str(buffer.xoff_bytes),
        "xon_offset": str(buffer.xoff_bytes - buffer.xon_bytes),
        "dynamic_th": str(dynamic_th(buffer.alpha)),
    }


def dynamic_th(alpha: float) -> int:
    """Logarithm of a power of two."""
    return round(alpha).bit_length() - 1 if alpha >= 1 else -(round(1 / alpha).bit_length() - 1)


def _define(tables: Tables, table: str, kind: str, row: Row) -> str:
    """Add a row of this content, once, and return its name."""
    name = content_name(kind, row)
    tables.setdefault(table, {})[name] = row
    return name
