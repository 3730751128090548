"""Answers of EOS switches, in the vendor's formats with names and numbers of our own.

Formats: the running configuration as aristanetworks/avd generates it (scenario
``qos``) and the Gaudi networking guide (``ingress headroom``); ``show
priority-flow-control`` of EOS 4.36; JSON as in ``fabric.devices.eos.counters``.
"""

from __future__ import annotations

import json
from pathlib import Path

RUNNING = (Path(__file__).parent / "fixtures" / "running-config.txt").read_text()

PFC = """\
The hardware supports PFC on priorities 0 1 2 3 4 5 6 7

Port           Enabled  Priorities  Active  Note
-------------- -------- ----------- ------- -------------
Et1            Yes      3           Yes     DCBX disabled
Et2            No                   No
Ethernet3/1    Yes      5           No      Not negotiated
Ethernet3/2    No                   No
Ethernet5/2/1  Yes      3 4         Yes
"""

VERSION = json.dumps(
    {"mfgName": "Arista", "modelName": "DCS-7050CX3-32S", "version": "4.30.1F", "uptime": 12.5}
    | {"serialNumber": "JPE21263009", "hardwareRevision": "11.10"},
    indent=4,
)
LLDP = json.dumps(
    {
        "tablesInserts": 4,
        "lldpNeighbors": [
            {"port": "Ethernet1", "neighborDevice": "spine-1", "neighborPort": "Ethernet3/1"},
            {"port": "Et3/1", "neighborDevice": "gpu-17", "neighborPort": "ens1f0np0", "ttl": 120},
            {"port": "Management1", "neighborDevice": "oob", "neighborPort": "Ethernet9"},
            {"port": "Ethernet2", "neighborDevice": "", "neighborPort": "0c42.a1dd.beef"},
        ],
    }
)


def outputs(**changed: str | None) -> dict[str, str]:
    """The answers above; ``name=None`` is a command that was refused."""
    found = {
        "running": ("show running-config", RUNNING),
        "startup": ("show startup-config", RUNNING.replace("show running", "show startup")),
        "pfc": ("show priority-flow-control", PFC),
        "version": ("show version | json", VERSION),
        "lldp": ("show lldp neighbors | json", LLDP),
    }
    texts = {command: changed.get(name, text) for name, (command, text) in found.items()}
    return {command: text for command, text in texts.items() if text is not None}
