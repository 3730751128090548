"""Runs as pandas frames, for reports. Every frame says its evidence class.

An empty frame has its columns and means that nothing of the kind was measured.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from fabric.counters import COUNTER_NAMES
from fabric.errors import InputError
from fabric.site import Site
from fabric.topology import PortRef
from validation.criteria import jain, payload_bps
from validation.judgement.paths import IDLE_PACKETS, uplinks
from validation.results.result import ValidationRun
from validation.results.store import file_name
from validation.results.tables import read_table

CHECK_COLUMNS = (
    "suite",
    "check",
    "subject",
    "value",
    "limit",
    "unit",
    "verdict",
    "reason",
    "device",
    "port",
    "evidence_sha256",
)


def checks_frame(run: ValidationRun) -> pd.DataFrame:
    """All checks: suite, check, subject, value, limit, unit, verdict, reason, device, port, ..."""
    rows = [{**check.to_json(), "check": check.id.partition(".")[2]} for check in run.all_checks]
    return _tagged(run, pd.DataFrame(rows, columns=list(CHECK_COLUMNS)))


def coverage_frame(run: ValidationRun) -> pd.DataFrame:
    """suite, what, expected, run: what each suite had to visit, and what it visited."""
    rows = [
        (suite.name, what, count, suite.seen.get(what, 0))
        for suite in run.suites
        for what, count in suite.expected.items()
    ]
    return _tagged(run, pd.DataFrame(rows, columns=["suite", "what", "expected", "run"]))


def bandwidth_frame(run: ValidationRun) -> pd.DataFrame:
    """source, target, goodput_gbps: one row a direction of a pair, the median of repetitions."""
    flows = _read(run, "bandwidth", "flows", ["step", "source", "target", "goodput_bps"])
    in_round = flows.pop("step").astype(str).str.startswith("round")
    flows = flows[in_round].reset_index(drop=True)
    flows["goodput_gbps"] = flows.pop("goodput_bps") / 1e9
    if flows.empty:
        return _tagged(run, flows)
    return _tagged(run, flows.groupby(["source", "target"], sort=False, as_index=False).median())


def latency_frame(run: ValidationRun) -> pd.DataFrame:
    """source, target, p50_us, p99_us, max_us: one row a pair that answered."""
    return _latency_of(run, "latency", "roce")


def tcp_latency_frame(run: ValidationRun) -> pd.DataFrame:
    """The same of plain TCP, from the suite ``tcp``; empty on a twin, which has no TCP stack."""
    return _latency_of(run, "tcp", "default")


def _latency_of(run: ValidationRun, suite: str, role: str) -> pd.DataFrame:
    columns = ["source", "target", "p50_us", "p99_us", "max_us"]
    flows = _read(run, suite, "flows", ["role", *columns])
    ours = flows[flows["role"].astype(str) == role]
    return _tagged(run, ours[columns].dropna(ignore_index=True))


def soak_frame(run: ValidationRun) -> pd.DataFrame:
    """cycle, pattern, host, goodput_gbps: one row a host and cycle of a soak, in order."""
    flows = _read(run, "soak", "flows", ["step", "source", "goodput_bps"])
    names = flows["step"].astype(str).str.extract(r"^cycle(\d+)-(.*)$")
    rows = pd.DataFrame(
        {
            "cycle": names[0].astype("int64"),
            "pattern": names[1],
            "host": flows["source"].astype(str),
            "goodput_gbps": flows["goodput_bps"] / 1e9,
        }
    )
    grouped = rows.groupby(["cycle", "pattern", "host"], sort=False, as_index=False)
    return _tagged(run, pd.DataFrame(grouped["goodput_gbps"].sum()))


def incast_frame(site: Site, run: ValidationRun) -> pd.DataFrame:
    """step, receiver, senders, fraction, jain: one row a receiver and step.

    ``fraction`` is of the payload that the receiver's wire can carry.
    """
    flows = _read(run, "incast", "flows", ["step", "source", "target", "goodput_bps"])
    rows = []
    for (step, receiver), group in flows.groupby(["step", "target"], sort=False):
        link = site.topology.link_of[PortRef.parse(str(receiver))]
        wire = payload_bps(link.speed_bps, site.intent.mtu.roce)
        shares = group["goodput_bps"].to_numpy()
        rows.append((step, receiver, len(shares), float(np.sum(shares)) / wire, jain(list(shares))))
    columns = ["step", "receiver", "senders", "fraction", "jain"]
    return _tagged(run, pd.DataFrame(rows, columns=columns))


def senders_frame(run: ValidationRun) -> pd.DataFrame:
    """time_us, sender, goodput_gbps, receiver: over time, for the incast with the most senders."""
    columns = ["step", "source", "target", "time_us", "goodput_bps"]
    series = _read(run, "incast", "series", columns)
    step = _busiest(series)
    series = series[(series["step"] == step[0]) & (series["target"] == step[1])]
    frame = pd.DataFrame(
        {
            "time_us": series["time_us"],
            "sender": series["source"],
            "goodput_gbps": series["goodput_bps"] / 1e9,
            "receiver": series["target"],
        }
    )
    return _tagged(run, frame.reset_index(drop=True))


def queues_frame(run: ValidationRun) -> pd.DataFrame:
    """time_us, port, queue_bytes: egress queues during that same incast."""
    flows = _read(run, "incast", "series", ["step", "source", "target"])
    columns = ["step", "device", "port", "time_us", "queue_bytes"]
    queues = _read(run, "incast", "queues", columns)
    queues = queues[queues["step"] == _busiest(flows)[0]]
    frame = pd.DataFrame(
        {
            "time_us": queues["time_us"],
            "port": queues["device"] + ":" + queues["port"],
            "queue_bytes": queues["queue_bytes"],
        }
    )
    return _tagged(run, frame.reset_index(drop=True))


def counters_frame(run: ValidationRun) -> pd.DataFrame:
    """suite, device, port, priority, counter, before, after, delta, about: what moved."""
    parts = [_moved(run, suite.name) for suite in run.suites if "counters" in suite.files]
    columns = ["suite", "device", "port", "priority", "counter", "before", "after", "delta"]
    frame = pd.concat(parts) if parts else pd.DataFrame(columns=columns)
    frame["about"] = frame["counter"].map(COUNTER_NAMES)
    return _tagged(run, frame.reset_index(drop=True))


def uplinks_frame(site: Site, run: ValidationRun) -> pd.DataFrame:
    """suite, device, port, peer, peer_port, packets, share, carried: ways between switches.

    One row a suite and way whose sender counts packets. ``share`` is of all that its switch
    sent to others; ``carried`` says that it was more than idle links carry: ECMP's coverage.
    """
    rows = []
    for suite in run.suites:
        if "counters" not in suite.files:
            continue
        moved = _sent(run, suite.name)
        totals: Counter[str] = Counter()
        ways = [(port, moved[port]) for port in uplinks(site) if port in moved]
        for port, packets in ways:
            totals[port.device] += packets
        for port, packets in ways:
            share = packets / totals[port.device] if totals[port.device] else 0.0
            carried = packets > IDLE_PACKETS
            rows.append((suite.name, *port, *site.topology.peer(port), packets, share, carried))
    columns = ["suite", "device", "port", "peer", "peer_port", "packets", "share", "carried"]
    return _tagged(run, pd.DataFrame(rows, columns=columns))


def _sent(run: ValidationRun, suite: str) -> dict[PortRef, int]:
    """Packets that each port sent during a suite; one that shows none, or went back, is absent."""
    raw = _read(run, suite, "counters", ["moment", "device", "port", "name", "value"])
    raw = raw[raw["name"] == "tx_packets"].dropna(subset=["value"])
    sides = {
        moment: {
            PortRef(str(device), str(port)): int(value)
            for device, port, value in zip(rows["device"], rows["port"], rows["value"], strict=True)
        }
        for moment, rows in raw.groupby("moment")
    }
    before, after = sides.get("before", {}), sides.get("after", {})
    return {
        port: value - before[port]
        for port, value in after.items()
        if port in before and value >= before[port]
    }


def pauses_frame(run: ValidationRun) -> pd.DataFrame:
    """device, port, pause_frames: PFC frames sent by each port over the whole run."""
    moved = counters_frame(run)
    sent = moved[moved["counter"] == "tx_pause_frames"]
    frame = sent.rename(columns={"delta": "pause_frames"})
    totals = frame.groupby(["device", "port"], as_index=False, sort=False)[["pause_frames"]].sum()
    return _tagged(run, totals)


def _moved(run: ValidationRun, suite: str) -> pd.DataFrame:
    columns = ["moment", "device", "port", "name", "priority", "value"]
    raw = _read(run, suite, "counters", columns).dropna(subset=["value"])
    raw["priority"] = raw["priority"].astype("Int64").fillna(-1)
    raw["value"] = raw["value"].astype("int64")
    wide = raw.pivot_table(
        index=["device", "port", "priority", "name"],
        columns="moment",
        values="value",
        aggfunc="last",
    ).reset_index()
    for moment in ("before", "after"):
        if moment not in wide:
            wide[moment] = np.nan
    wide = wide.rename(columns={"name": "counter"}).rename_axis(columns=None)
    wide["delta"] = wide["after"] - wide["before"]
    wide["priority"] = wide["priority"].mask(wide["priority"] < 0)
    wide["suite"] = suite
    wide = wide[wide["delta"] != 0]
    columns = ["suite", "device", "port", "priority", "counter", "before", "after", "delta"]
    return pd.DataFrame(wide[columns])


def _busiest(series: pd.DataFrame) -> tuple[str, str]:
    """Step and receiver with the most senders; the first of equals."""
    if series.empty:
        return "", ""
    pairs = series[["step", "target", "source"]].drop_duplicates()
    counts = Counter(zip(pairs["step"], pairs["target"], strict=True))
    step, target = max(counts, key=counts.__getitem__)
    return str(step), str(target)


def _read(run: ValidationRun, suite: str, kind: str, columns: list[str]) -> pd.DataFrame:
    result = run.suite(suite)
    path = run.folder / file_name(suite, kind)
    if result is None or kind not in result.files or not Path(path).exists():
        return pd.DataFrame(columns=columns)
    try:
        frame: pd.DataFrame = read_table(path, columns).to_pandas(use_threads=False)
    except (pa.ArrowException, ValueError, KeyError, OSError) as error:
        what = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"no such table of evidence: {what}", file=path) from error
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            frame[name] = frame[name].astype("str")
    return frame


def _tagged(run: ValidationRun, frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(evidence_class=run.evidence_class)
