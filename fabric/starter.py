"""The ``fabric.yaml`` that ``paisoar init`` writes: complete, commented, valid."""

from __future__ import annotations

from fabric.topology import ClosShape, ThreeLevelShape, build_clos, build_three_level_clos
from fabric.units import format_speed

LEAF_MODEL = "N9K-C93180YC-FX"
SPINE_MODEL = "N9K-C9336C-FX2"

_HEAD = """\
# One RoCEv2 site: what its network must do (intent), what it is made of
# (devices, cables) and what a certificate demands (certify).
# `paisoar check` says whether it makes sense; nothing is touched until
# `paisoar provision`. No passwords here: see `paisoar plan --help`.
schema: paisoar/fabric/v1
site: {site}
# twin: emulated devices on this machine. site: real switches and hosts.
environment: {environment}
# Host-side over fabric-side speed that a leaf may have; 1 is non-blocking.
max_oversubscription: 1.0

intent:
  # Bytes. switch_port and host: IP packets; roce: payload of one RoCE packet.
  mtu: {{switch_port: 9216, host: 9000, roce: 4096}}

  # One number for one class everywhere: PFC priority, switch queue, NIC class.
  classes:
    roce:
      role: roce                      # RDMA: never dropped, ECN-marked
      dscp: [26]
      priority: 3
      lossless: true
      scheduler: {{mode: ets, percent: 50}}
    cnp:
      role: cnp                       # congestion notifications: first in line
      dscp: [48]
      priority: 6
      scheduler: {{mode: strict}}
    tcp:
      role: default                   # everything else: may drop
      priority: 0
      scheduler: {{mode: ets, percent: 50}}

  # Thresholds by port speed. ECN (kmin, kmax, pmax_percent) looks at the egress
  # queue, PFC (xoff, xon) at each ingress port's buffer; the headroom above
  # xoff is computed from speed, cable length and MTU.
  profiles:
    25G:  {{kmin: 100KB, kmax: 400KB, pmax_percent: 20, xoff: 150KB, xon: 140KB}}
    100G: {{kmin: 400KB, kmax: 1600KB, pmax_percent: 20, xoff: 600KB, xon: 590KB}}

  # A queue that stays paused for detect_ms is acted on.
  watchdog: {{action: drop, detect_ms: 200, restore_ms: 400}}

  # Sender rate control on every NIC; the DCQCN paper's values.
  dcqcn:
    min_time_between_cnps_us: 50
    alpha_update_interval_us: 55
    g_of_1024: 1020                   # 1 - g, g = 1/256
    rate_reduce_interval_us: 50
    time_reset_us: 55
    byte_reset: 0                     # off: the timer alone
    fast_recovery_stages: 5
    ai_rate_mbps: 40
    hai_rate_mbps: 50
    min_rate_mbps: 100

certify:
  profile: lossless-dcqcn
  valid_hours: 168
  min_bandwidth_fraction: 0.9
  max_latency_p99_us: 9.0
  min_incast_fraction: 0.9
  min_incast_jain: 0.9
  max_pause_ratio: 0.05
  max_drops: 0

"""


def starter_yaml(shape: ClosShape | ThreeLevelShape, *, site: str, environment: str) -> str:
    """The text of a ``fabric.yaml`` for a Clos of this shape; cores have the role of spines.

    ValueError where no such Clos can be built.
    """
    topology = build_clos(shape) if isinstance(shape, ClosShape) else build_three_level_clos(shape)
    lines = [_HEAD.format(site=site, environment=environment) + "devices:"]
    for name in topology.switches:
        role, model = ("leaf", LEAF_MODEL) if name.startswith("leaf") else ("spine", SPINE_MODEL)
        lines.append(
            f"  {name}: {{kind: switch, role: {role}, os: nxos, model: {model}, buffer: 40MB}}"
        )
    for number, name in enumerate(topology.hosts, start=1):
        lines.append(f"  {name}:")
        lines.append("    kind: host")
        lines.append("    nics:")
        for index, port in enumerate(topology.ports_of[name]):
            speed = format_speed(topology.link_of[port].speed_bps)
            address = f"10.{index}.{number // 256}.{number % 256}"
            lines.append(
                f"      {port.port}: {{family: mlx5, rdma: mlx5_{index}, speed: {speed}, "
                f"address: {address}}}"
            )
    lines.append("")
    lines.append("# One line a cable: both ends, speed, length in metres.")
    lines.append("cables:")
    for link in topology.links:
        lines.append(
            f"  - {{a: '{link.a}', b: '{link.b}', speed: {format_speed(link.speed_bps)}, "
            f"length_m: {link.length_m:g}}}"
        )
    return "\n".join(lines) + "\n"
