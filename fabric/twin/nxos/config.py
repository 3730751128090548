"""What a switch is configured to do: the data behind its running configuration.

QoS is typed, since the emulator acts on it. Lines that are none of QoS are kept
as text in the places where NX-OS prints them (``lines``, ``blocks``).

The class names of 8-queue mode (``c-8q-nq3``, ``c-out-8q-q3``, ``c-in-q3``) and
the default policies are those of the Cisco Nexus 9000 NX-OS QoS configuration
guide, release 10.5(x).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

DEFAULT_MTU = 1500
JUMBO_MTU = 9216
GROUPS = range(8)
# How names of interfaces begin that forward packets by themselves.
PORTS = ("Ethernet", "port-channel")

NETWORK_QOS_DEFAULT = "default-8q-nq-policy"
QUEUING_OUT_DEFAULT = "default-8q-out-policy"

NETWORK_CLASSES = {"c-8q-nq-default": 0, **{f"c-8q-nq{n}": n for n in range(1, 8)}}
OUT_CLASSES = {"c-out-8q-q-default": 0, **{f"c-out-8q-q{n}": n for n in range(1, 8)}}
IN_CLASSES = {"c-in-q-default": 0, **{f"c-in-q{n}": n for n in range(1, 8)}}
UNIT_BYTES = {"bytes": 1, "kbytes": 1000, "mbytes": 1_000_000}


@dataclass
class ClassMap:
    """``class-map type qos``: which packets belong to a class."""

    match: Literal["match-all", "match-any"]
    dscp: set[int] = field(default_factory=set)
    cos: set[int] = field(default_factory=set)
    precedence: set[int] = field(default_factory=set)
    description: str = ""


@dataclass
class QosClass:
    """Actions of one class in a policy of type qos."""

    qos_group: int | None = None
    dscp: int | None = None
    cos: int | None = None


@dataclass
class QosPolicy:
    """``policy-map type qos``."""

    classes: dict[str, QosClass] = field(default_factory=dict)
    description: str = ""


@dataclass
class NetworkClass:
    """Actions of one class in a policy of type network-qos."""

    mtu: int | None = None
    pause_cos: int | None = None
    pause_receive: bool = False


@dataclass
class NetworkPolicy:
    """``policy-map type network-qos``."""

    classes: dict[str, NetworkClass] = field(default_factory=dict)
    description: str = ""


@dataclass
class Pause:
    """``pause buffer-size N pause-threshold N resume-threshold N``, all in bytes."""

    buffer_size: int
    pause_threshold: int
    resume_threshold: int


@dataclass
class QueuingClass:
    """Actions of one class in a policy of type queuing; texts are as printed."""

    bandwidth: int | None = None
    remaining: int | None = None
    priority: int | None = None
    shape: str = ""
    queue_limit: str = ""
    random_detect: str = ""
    pause: Pause | None = None


@dataclass
class QueuingPolicy:
    """``policy-map type queuing``, of egress or of ingress classes."""

    classes: dict[str, QueuingClass] = field(default_factory=dict)


@dataclass
class Interface:
    """One interface. ``shutdown`` None is the default of its kind.

    ``lines`` maps what can be set once (``description``, ``ip address``, ...)
    to the line as printed.
    """

    lines: dict[str, str] = field(default_factory=dict)
    switchport: bool = True
    shutdown: bool | None = None
    mtu: int = DEFAULT_MTU
    pfc_mode: Literal["auto", "on", "off"] = "auto"
    pfc_send_tlv: bool = False
    watchdog: Literal["on", "on disable-action", "off"] | None = None
    watchdog_multiplier: int | None = None
    flowcontrol_receive: bool = False
    flowcontrol_send: bool = False
    qos_in: str = ""
    queuing_in: str = ""
    queuing_out: str = ""
    no_stats: set[str] = field(default_factory=set)
    channel: int | None = None

    @property
    def is_shut(self) -> bool:
        """Administratively down; a routed port starts that way, a switched one does not."""
        return not self.switchport if self.shutdown is None else self.shutdown


@dataclass
class Watchdog:
    """The global PFC watchdog; None is the default of each value."""

    enabled: Literal["on", "off"] | None = None
    interval_ms: int | None = None
    shutdown_multiplier: int | None = None
    auto_restore: int | None = None
    fixed_restore: int | None = None


@dataclass
class Config:
    """A whole configuration.

    ``features`` and ``lines`` hold global lines in order of entry; ``blocks``
    maps a header such as ``vlan 10`` to the lines below it.
    """

    hostname: str
    interfaces: dict[str, Interface]
    features: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    blocks: dict[str, list[str]] = field(default_factory=dict)
    single_lane_ports: int = 0
    class_maps: dict[str, ClassMap] = field(default_factory=dict)
    qos_policies: dict[str, QosPolicy] = field(default_factory=dict)
    network_policies: dict[str, NetworkPolicy] = field(default_factory=dict)
    queuing_policies: dict[str, QueuingPolicy] = field(default_factory=dict)
    system_qos_in: str = ""
    system_network_qos: str = ""
    system_queuing_in: str = ""
    system_queuing_out: str = ""
    watchdog: Watchdog = field(default_factory=Watchdog)

    def network_policy(self) -> NetworkPolicy:
        """The network-qos policy in force."""
        return self.network_policies.get(self.system_network_qos) or default_network_policy()

    def holder(self, interface: str) -> Interface:
        """Whose policies take effect on an interface: its port channel's, or its own."""
        settings = self.interfaces[interface]
        return self.interfaces.get(f"port-channel{settings.channel}", settings)

    def members(self, channel: str) -> list[str]:
        """The ports of ``port-channel10``."""
        number = channel.removeprefix("port-channel")
        return [name for name, one in self.interfaces.items() if str(one.channel) == number]

    def queuing_policy_out(self, interface: str) -> tuple[str, QueuingPolicy]:
        """Name and contents of the egress queuing policy in force on an interface."""
        name = self.holder(interface).queuing_out or self.system_queuing_out
        policy = self.queuing_policies.get(name)
        return (name, policy) if policy else (QUEUING_OUT_DEFAULT, default_queuing_policy())

    def queuing_policy_in(self, interface: str) -> QueuingPolicy | None:
        """The ingress queuing policy in force on an interface; None for the default."""
        name = self.holder(interface).queuing_in or self.system_queuing_in
        return self.queuing_policies.get(name)

    def pause_cos(self) -> dict[int, int]:
        """CoS that is paused -> qos-group, by the network-qos policy in force."""
        return {
            cls.pause_cos: NETWORK_CLASSES[name]
            for name, cls in sorted(self.network_policy().classes.items())
            if cls.pause_cos is not None
        }

    def users_of(self, kind: str, name: str) -> list[str]:
        """Where a policy is attached: ``system qos`` and interface names."""
        slots = {
            "qos": (self.system_qos_in, ["qos_in"]),
            "network-qos": (self.system_network_qos, []),
            "queuing": (
                name if name in (self.system_queuing_in, self.system_queuing_out) else "",
                ["queuing_in", "queuing_out"],
            ),
        }
        system, attributes = slots[kind]
        users = ["system qos"] if system == name else []
        for interface, settings in self.interfaces.items():
            if any(getattr(settings, attribute) == name for attribute in attributes):
                users.append(interface)
        return users


def default_network_policy() -> NetworkPolicy:
    """The network-qos policy of a factory-new switch: MTU 1500, nothing paused."""
    return NetworkPolicy({name: NetworkClass(mtu=DEFAULT_MTU) for name in NETWORK_CLASSES})


def default_queuing_policy() -> QueuingPolicy:
    """``default-8q-out-policy``: queue 7 strict, everything else in the default queue."""
    classes = {f"c-out-8q-q{n}": QueuingClass(remaining=0) for n in range(6, 0, -1)}
    return QueuingPolicy(
        {
            "c-out-8q-q7": QueuingClass(priority=1),
            **classes,
            "c-out-8q-q-default": QueuingClass(remaining=100),
        }
    )
