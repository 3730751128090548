"""The ``fabric.yaml`` that ``paisoar init`` writes: complete, commented, valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from fabric.errors import InputError
from fabric.products import HOST_PORTS, NICS, SWITCHES, NicProduct, SwitchProduct
from fabric.topology import (
    ClosShape,
    PortRef,
    ThreeLevelShape,
    Topology,
    build_clos,
    build_three_level_clos,
)
from fabric.units import format_speed

Known = TypeVar("Known")

# No fixed 100G switch has more; those that init writes have 32 to 36.
MAX_SPINE_PORTS = 64

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
  # xoff is computed from speed, cable length and MTU.{alpha_comment}
  profiles:
    25G:  {{kmin: 100KB, kmax: 400KB, pmax_percent: 20, xoff: 150KB, xon: 140KB{alpha_25g}}}
    100G: {{kmin: 400KB, kmax: 1600KB, pmax_percent: 20, xoff: 600KB, xon: 590KB{alpha_100g}}}

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
  min_bandwidth_fraction: 0.9         # of the wire (ngc_multinode_perf; IETF BMWG draft)
  max_latency_p99_us: 9.0             # what oci-hpc's health check allows its slowest hosts
  min_incast_fraction: 0.9            # of wire and uplinks (as for pairs)
  min_incast_jain: 0.9                # Jain's index (IETF BMWG draft; the limit is our own)
  max_pause_ratio: 0.05               # pause time over wall time (our own)
  max_drops: 0                        # none may be lost (IETF BMWG draft: 0 ppm)
  # mixed, burst, collective, soak: those named here belong to a certificate too.
  extra_suites: []
  min_class_share: 0.9                # of what ETS guarantees (SONiC's test plan: DWRR)
  min_burst_fraction: 0.9             # of what on/off senders can bring at worst
  min_collective_fraction: 0.9        # bus bandwidth over the wire (IETF BMWG draft)
  max_soak_cov: 0.05                  # coefficient of variation (IETF BMWG draft)
  min_soak_ratio: 0.9                 # least over mean bandwidth of a soak
  soak_cycles: 60                     # short runs that a soak chains

"""

_ALPHA = """ Switches that share
  # their buffer dynamically send XOFF at alpha times the free buffer instead, and
  # XON (xoff - xon) below that."""


def starter_yaml(
    shape: ClosShape | ThreeLevelShape,
    *,
    site: str,
    environment: str,
    switch_os: Sequence[str] = ("nxos",),
    nics: Sequence[str] = ("mlx5",),
) -> str:
    """The text of a ``fabric.yaml`` for a Clos of this shape; cores have the role of spines.

    ``switch_os`` names the system of leaves and that of spines (the same where there
    is one). ``nics`` are the NIC families, which take turns from host to host.
    ValueError where no such Clos can be built, InputError for an unknown product.
    """
    switches = [_product(SWITCHES, name, "--switch-os") for name in switch_os]
    families = [_product(NICS, name, "--nic") for name in nics]
    if not 1 <= len(switches) <= 2 or not families:
        raise InputError("name one system, or that of leaves and that of spines", key="--switch-os")
    topology = build_clos(shape) if isinstance(shape, ClosShape) else build_three_level_clos(shape)
    names = _Names(topology, switches[0], switches[-1], families)
    lines = [_head(site, environment, switches) + "devices:"]
    for number, name in enumerate(topology.switches):
        leaf = _is_leaf(name)
        product = names.switch(name)
        facts = (
            "kind: switch",
            f"role: {'leaf' if leaf else 'spine'}",
            f"os: {switch_os[0] if leaf else switch_os[-1]}",
            f"model: {product.leaf_model if leaf else product.spine_model}",
            f"buffer: {product.leaf_buffer if leaf else product.spine_buffer}",
        )
        if environment == "site":
            lines += [f"  {name}:", *(f"    {fact}" for fact in facts)]
        else:
            lines.append(f"  {name}: {{{', '.join(facts)}}}")
        lines += _management(environment, name, number, leading=number == 0)
    for number, name in enumerate(topology.hosts, start=1):
        lines.append(f"  {name}:")
        lines.append("    kind: host")
        lines += _management(
            environment, name, len(topology.switches) + number - 1, leading=number == 1
        )
        lines.append("    nics:")
        for index, port in enumerate(topology.ports_of[name]):
            speed = format_speed(topology.link_of[port].speed_bps)
            address = f"10.{index}.{number // 256}.{number % 256}"
            lines.append(
                f"      {names.port(port).port}: {{family: {nics[names.family(name)]}, "
                f"rdma: {names.nic(name).rdma(index)}, speed: {speed}, address: {address}}}"
            )
    lines.append("")
    lines.append("# One line a cable: both ends, speed, length in metres.")
    lines.append("cables:")
    for link in topology.links:
        lines.append(
            f"  - {{a: '{names.port(link.a)}', b: '{names.port(link.b)}', "
            f"speed: {format_speed(link.speed_bps)}, length_m: {link.length_m:g}}}"
        )
    return "\n".join(lines) + "\n"


def _head(site: str, environment: str, switches: Sequence[SwitchProduct]) -> str:
    alphas = next((product.alphas for product in switches if product.alphas), None)
    return _HEAD.format(
        site=site,
        environment=environment,
        alpha_25g=f", alpha: {alphas[0]:g}" if alphas else "",
        alpha_100g=f", alpha: {alphas[1]:g}" if alphas else "",
        alpha_comment=_ALPHA if alphas else "",
    )


def refuse_impossible(shape: ClosShape) -> None:
    """ValueError, at once, where no leaf or spine has as many ports as this Clos needs."""
    per_leaf = -(-shape.hosts * shape.nics_per_host // shape.leaves)
    if per_leaf > HOST_PORTS:
        needed = -(-shape.hosts * shape.nics_per_host // HOST_PORTS)
        raise ValueError(
            f"a leaf has {HOST_PORTS} ports for hosts, not {per_leaf:,}: "
            f"{shape.hosts:,} hosts need {needed:,} leaves or more"
        )
    if shape.spines:
        down_bps = per_leaf * shape.host_speed_bps
        uplinks = -(-down_bps // (shape.uplink_speed_bps * shape.spines))
        if (ports := shape.leaves * uplinks) > MAX_SPINE_PORTS:
            raise ValueError(
                f"a spine has up to {MAX_SPINE_PORTS} ports, not {ports:,}: "
                "two levels of switches are too few for so many leaves"
            )


def _management(environment: str, name: str, number: int, *, leading: bool) -> list[str]:
    """How a real device is reached, for people to fill in; the first says what it is."""
    if environment != "site":
        return []
    about = [
        "    # How to reach it over SSH, where its name alone does not do: remove the #.",
        "    # Users and passwords also come from the environment: see `paisoar plan --help`.",
    ]
    user = "admin" if name.startswith(("leaf", "spine")) else "root"
    example = f"    # mgmt: {{address: 192.0.2.{number % 254 + 1}, port: 22, user: {user}}}"
    return [*(about if leading else ()), example]


class _Names:
    """What ports of the numbered topology are called on the products that stand there."""

    def __init__(
        self,
        topology: Topology,
        leaf: SwitchProduct,
        spine: SwitchProduct,
        families: Sequence[NicProduct],
    ) -> None:
        self._topology = topology
        self._leaf, self._spine, self._families = leaf, spine, families
        self._host_number = {name: number for number, name in enumerate(topology.hosts)}

    def switch(self, name: str) -> SwitchProduct:
        return self._leaf if _is_leaf(name) else self._spine

    def family(self, host: str) -> int:
        return self._host_number[host] % len(self._families)

    def nic(self, host: str) -> NicProduct:
        return self._families[self.family(host)]

    def port(self, ref: PortRef) -> PortRef:
        if ref.device in self._host_number:
            index = self._topology.ports_of[ref.device].index(ref)
            return PortRef(ref.device, self.nic(ref.device).interface(index))
        number = int(ref.port.rpartition("/")[2])
        product = self.switch(ref.device)
        name = product.leaf_port if _is_leaf(ref.device) else product.spine_port
        return PortRef(ref.device, name(number))


def _is_leaf(switch: str) -> bool:
    return switch.startswith("leaf")


def _product(products: dict[str, Known], name: str, option: str) -> Known:
    if name not in products:
        raise InputError(
            f"{name!r} is not known", key=option, advice=f"Known are: {', '.join(products)}."
        )
    return products[name]
