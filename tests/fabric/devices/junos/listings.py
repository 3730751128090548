"""Answers of Junos switches, in the vendor's formats with names and numbers of our own.

Formats: statements of the QFX guides and Apstra's configlets for GPU fabrics; show
commands, public captures of QFX and ACX switches and fixtures of
networktocode/ntc-templates.
"""

from __future__ import annotations

from pathlib import Path

CONFIGURATION = (Path(__file__).parent / "fixtures" / "configuration.txt").read_text()

COMMIT = """\
0   2026-11-30 10:11:12 UTC by admin via cli
    commit confirmed, rollback in the afternoon
1   2026-11-29 08:00:00 UTC by root via other
"""
PENDING = COMMIT.replace("via cli\n", "via cli commit confirmed, rollback in 9mins\n")

VERSION = """\
fpc0:
--------------------------------------------------------------------------
Hostname: leaf-1
Model: qfx5120-48y-8c
Junos: 21.4R3-S4.9 flex
JUNOS OS Kernel 64-bit FLEX [20230413.f0ba1d5_builder_stable_12_214]
JUNOS OS libs [20230413.f0ba1d5_builder_stable_12_214]
"""

HARDWARE = """\
Hardware inventory:
Item             Version  Part number  Serial number     Description
Chassis                                XH3120370123      QFX5120-48Y-8C
Pseudo CB 0
Routing Engine 0          BUILTIN      BUILTIN           RE-QFX5120-48Y-8C
"""

INTERFACES = """\
Physical interface: et-0/0/0, Enabled, Physical link is Up
  Interface index: 652, SNMP ifIndex: 515
  Description: to gpu-17
  Link-level type: Ethernet, MTU: 9014, LAN-PHY mode, Speed: 25Gbps, BPDU Error: None,
  Loopback: Disabled, Source filtering: Disabled, Flow control: Disabled, Media type: Fiber
  Current address: 80:AC:ac:01:02:03, Hardware address: 80:ac:ac:01:02:03
  Last flapped   : 2026-11-30 10:00:00 UTC (1d 02:00 ago)
  Ethernet FEC Mode  :                 FEC108
  Ethernet FEC statistics              Errors
    FEC Corrected Errors                    0

  Logical interface et-0/0/0.0 (Index 552) (SNMP ifIndex 520)
    Protocol inet, MTU: 9000

Physical interface: et-0/0/1, Administratively down, Physical link is Down
  Link-level type: Ethernet, MTU: 9216, LAN-PHY mode, Speed: 100Gbps, Loopback: Disabled,
  Ethernet FEC Mode  :                   NONE

Physical interface: et-0/0/4:1, Enabled, Physical link is Up
  Link-level type: Ethernet, MTU: 1514, LAN-PHY mode, Speed: 25Gbps, Loopback: Disabled,
  Ethernet FEC Mode  :                  FEC74

Physical interface: et-0/0/4:2, Enabled, Physical link is Up
  Link-level type: Ethernet, MTU: 1514, LAN-PHY mode, Loopback: Disabled,

Physical interface: et-0/0/5, Enabled, Physical link is Down
  Link-level type: Ethernet, MTU: 1514, Speed: 100Gbps

Physical interface: em0, Enabled, Physical link is Up
  Type: Ethernet, Link-level type: Ethernet, MTU: 1514, Speed: 1000mbps

Physical interface: irb, Enabled, Physical link is Up
"""

LLDP = """\
Local Interface    Parent Interface    Chassis Id          Port info          System Name
et-0/0/0           -                   0c:42:a1:00:00:01   ens1f0np0          gpu-17
et-0/0/48.0        ae0.0               80:ac:ac:00:00:02   et-0/0/3           spine-1.example
xe-0/0/9           -                   80:ac:ac:00:00:03   to leaf 9          leaf-9
em0                -                   80:ac:ac:00:00:04   ge-0/0/40          oob
"""


def outputs(**changed: str | None) -> dict[str, str]:
    """The answers above; ``name=None`` is a command that was refused."""
    found = {
        "configuration": ("show configuration | display set", CONFIGURATION),
        "commit": ("show system commit", COMMIT),
        "version": ("show version", VERSION),
        "hardware": ("show chassis hardware", HARDWARE),
        "interfaces": ("show interfaces", INTERFACES),
        "lldp": ("show lldp neighbors", LLDP),
    }
    texts = {command: changed.get(name, text) for name, (command, text) in found.items()}
    return {command: text for command, text in texts.items() if text is not None}
