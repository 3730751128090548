"""The ``fabric.yaml`` of a lab of its own: hosts with Soft-RoCE around one bridge."""

from __future__ import annotations

import socket

from fabric.errors import ToolError

MIN_HOSTS, MAX_HOSTS = 2, 4
FIRST_PORT, LAST_PORT = 22200, 22999

_HEAD = """\
# A lab: virtual machines with Soft-RoCE on this machine, and one that is their switch.
# `paisoar lab up` starts them; then everything is as at a real site:
# plan, provision, audit, validate, certify, train.
schema: paisoar/fabric/v1
site: {site}
# lab: `paisoar lab` makes the devices below. Results are of the class soft-roce.
environment: lab
max_oversubscription: 1.0

intent:
  # Bytes. switch_port and host: IP packets; roce: payload of one RoCE packet.
  mtu: {{switch_port: 9216, host: 9000, roce: 4096}}

  # Soft-RoCE neither pauses nor obeys pause: the RoCE class is marked by ECN, and lossy.
  classes:
    roce:
      role: roce
      dscp: [26]
      priority: 3
      lossless: false
      scheduler: {{mode: ets, percent: 50}}
    cnp:
      role: cnp
      dscp: [48]
      priority: 6
      scheduler: {{mode: strict}}
    tcp:
      role: default
      priority: 0
      scheduler: {{mode: ets, percent: 50}}

  # The switch sends at a cable's speed, hosts at nine tenths of it, so that queues form
  # where several send to one. A queue pair of rxe has up to 128 packets on the way: one
  # alone, even after a pause of the switch, mostly stays below kmin; two go beyond kmax.
  # xoff and xon are for switches with PFC, which a bridge is not.
  profiles:
    {speed}: {{kmin: 400KB, kmax: 800KB, pmax_percent: 20, xoff: 1MB, xon: 990KB}}

certify:
  profile: lossy-tolerant
  valid_hours: 24
  # No time that an emulated processor takes means anything, nor does its speed: these
  # limits only tell traffic that flows from traffic that does not.
  max_latency_p99_us: 10000000.0
  min_bandwidth_fraction: 0.03
  min_incast_fraction: 0.03
  min_incast_jain: 0.5

devices:
  switch1:
    kind: switch
    role: leaf
    os: bridge
    model: Linux bridge
    buffer: 16MB
    mgmt: {{address: 127.0.0.1, port: {port}, user: root}}
"""
SPEED = "100M"


def lab_yaml(hosts: int, *, site: str = "lab", ports: tuple[int, ...] | None = None) -> str:
    """The text of a ``fabric.yaml`` for a lab of so many hosts.

    ``ports`` are those of SSH on loopback, the switch's first; free ones by default.
    """
    ports = free_ports(hosts + 1) if ports is None else ports
    lines = [_HEAD.format(site=site, speed=SPEED, port=ports[0])]
    for number in range(1, hosts + 1):
        nic = f"{{family: rxe, rdma: rxe0, speed: {SPEED}, address: 10.0.0.{number}}}"
        lines.append(
            f"  host{number}:\n"
            "    kind: host\n"
            f"    mgmt: {{address: 127.0.0.1, port: {ports[number]}, user: root}}\n"
            f"    nics:\n      ens1f0: {nic}\n"
        )
    lines.append("\n# One line a cable: both ends, speed, length in metres.\ncables:\n")
    lines += [
        f"  - {{a: 'switch1:swp{number}', b: 'host{number}:ens1f0', speed: {SPEED}, length_m: 3}}\n"
        for number in range(1, hosts + 1)
    ]
    return "".join(lines)


def free_ports(count: int) -> tuple[int, ...]:
    """The first ports on loopback that nobody listens at. ToolError where there are too few."""
    found: list[int] = []
    for port in range(FIRST_PORT, LAST_PORT + 1):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return tuple(found)
    raise ToolError(f"fewer than {count} ports from {FIRST_PORT} to {LAST_PORT} are free")
