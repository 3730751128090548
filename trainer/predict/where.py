"""Which fabric a prediction runs on: the site's, or a Clos of the asked numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabric.errors import InputError
from fabric.qos import DeviceQos
from fabric.sim.flowlevel.clos import links_of
from fabric.sim.flowlevel.memory import check_memory
from fabric.sim.flowlevel.network import network_of_site
from fabric.site import Site
from fabric.topology import PortRef
from fabric.units import format_speed, parse_speed_bps
from trainer.predict.clos import clos_network, shape_of
from trainer.predict.rates import MAX_FLOWS, Fabric, LossyPort, Order, fabric_of

DEFAULT_NIC = "25G"
ORDERS = ("fabric", "scattered")


@dataclass(frozen=True)
class Wanted:
    """The options that are about the fabric. ``nic`` and ``oversubscription``: None if not given.

    ``clos`` asks for a Clos even where there is a site.
    """

    nic: str | None = None
    oversubscription: float | None = None
    clos: bool = False
    order: str = "fabric"
    lossy_port: str | None = None
    loss: float = 1e-4

    def nic_bps(self) -> int:
        """The NIC's speed; InputError where it is none."""
        try:
            return parse_speed_bps(self.nic or DEFAULT_NIC)
        except ValueError as error:
            raise InputError(f"--nic: {error}") from error

    def lossy(self) -> LossyPort | None:
        """The port that loses packets, if one was named; InputError where it is no port."""
        if self.lossy_port is None:
            return None
        try:
            return LossyPort(PortRef.parse(self.lossy_port), self.loss)
        except ValueError as error:
            raise InputError(f"--lossy-port: {error}") from error

    def ordered(self) -> Order:
        """How ranks are dealt to hosts; InputError where it is no such way."""
        if self.order == "fabric":
            return "fabric"
        if self.order == "scattered":
            return "scattered"
        raise InputError(f"--order {self.order}: not known", advice=f"One of {ORDERS}.")

    @property
    def elsewhere(self) -> bool:
        """Whether the options describe a Clos, whatever site there is."""
        return self.clos or self.oversubscription is not None

    def fits(self, site: Site) -> bool:
        """Whether this site is what the options describe."""
        if self.elsewhere:
            return False
        speeds = {site.topology.link_of[end].speed_bps for end in site.topology.endpoints}
        return self.nic is None or speeds == {self.nic_bps()}


def site_fabric(site: Site, states: Mapping[str, DeviceQos], wanted: Wanted) -> Fabric:
    """The site, its devices set as ``states`` say."""
    check_memory(len(site.topology.links), MAX_FLOWS)
    return fabric_of(
        f"site {site.name} ({site.path.name})",
        network_of_site(site, states),
        site.intent.roce.dscp[0],
        order=wanted.ordered(),
        lossy=wanted.lossy(),
    )


def clos_fabric(hosts: int, wanted: Wanted) -> Fabric:
    """A Clos of at least so many hosts; the first of them train."""
    nic_bps = wanted.nic_bps()
    ratio = 1.0 if wanted.oversubscription is None else wanted.oversubscription
    shape = shape_of(max(hosts, 2), nic_bps, ratio)
    check_memory(links_of(shape), MAX_FLOWS)
    network, intent = clos_network(shape)
    leaves = shape.pods * shape.leaves_per_pod
    built = shape.hosts_per_leaf * nic_bps / (shape.spines_per_pod * shape.uplink_speed_bps)
    name = (
        f"a Clos of {leaves} {'leaf' if leaves == 1 else 'leaves'} with {shape.hosts_per_leaf} "
        f"hosts at {format_speed(nic_bps)}, {shape.spines_per_pod} uplinks of "
        f"{format_speed(shape.uplink_speed_bps)} each ({max(built, 1):.3g}:1)"
    )
    return fabric_of(
        name,
        network,
        intent.roce.dscp[0],
        hosts=max(hosts, 2),
        order=wanted.ordered(),
        lossy=wanted.lossy(),
    )
