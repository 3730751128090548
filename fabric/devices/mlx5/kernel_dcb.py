"""What ``dcb`` shows of an mlx5 port, for hosts that have no ``mlnx_qos``.

One command with one JSON document a line (iproute2 5.11 and later). The delay of
``dcb pfc`` is mlx5's cable length in metres (``mlx5e_dcbnl_ieee_getpfc`` in Linux
drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from fabric.devices.base import ReadError, TargetPort
from fabric.devices.dcb import text
from fabric.devices.dcb.reading import dcbx_mode
from fabric.devices.mlx5.qos_text import QosText

_KINDS = "pfc ets app buffer dcbx maxrate"


def command(port: TargetPort) -> str:
    """Shows nothing where ``mlnx_qos`` is there, which shows more."""
    show = f"hash mlnx_qos || {{ dcb -V; dcb -j $kind show dev {port.name}; }}"
    return f"for kind in {_KINDS}; do {show}; done 2>/dev/null || true"


@lru_cache(maxsize=256)
def parse(shown: str) -> QosText | None:
    """The port as mlnx_qos would show it; None where no document is of PFC or ETS."""
    documents: dict[str, Any] = {}
    version = ""
    for line in filter(str.strip, shown.splitlines()):
        if line.startswith("dcb utility"):
            version = line
            continue
        try:
            documents |= json.loads(line)
        except (TypeError, ValueError) as error:
            raise ReadError(f"dcb -j: {line[:60]!r} is no JSON object") from error
    if "prio_pfc" not in documents or "tc_tsa" not in documents:
        return None
    whole = json.dumps(documents)
    ets, on = text.ets("dcb -j ets", whole), text.pfc("dcb -j pfc", whole)
    apps = text.dscps("dcb -j app", whole)
    flags = frozenset(
        name.replace("_", "-")
        for name in ("host", "lld_managed", "cee", "ieee", "static")
        if documents.get(name)
    )
    mode = dcbx_mode(flags)
    delay = documents.get("delay")
    rates_bps = text.max_rates_bps(version, documents.get("tc_maxrate"))
    return QosText(
        dcbx=None if mode == "off" else mode,
        trust="dscp" if apps else "pcp",
        dscp_to_priority=dict(apps),
        buffer_bytes=dict(enumerate(documents.get("buffer_size", ()))),
        cable_m=delay if isinstance(delay, int) else None,
        pfc={priority: priority in on for priority in range(8)},
        priority_to_buffer=dict(enumerate(documents.get("prio_buffer", ()))),
        priority_to_class=dict(enumerate(ets.priority_to_class)),
        tsa={
            tc: (kind, share if kind == "ets" else 0)
            for tc, (kind, share) in enumerate(zip(ets.tsa, ets.percent, strict=True))
        },
        max_rate_bps=dict(enumerate(rates_bps or ())),
    )
