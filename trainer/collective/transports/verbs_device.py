"""An RDMA device through pyverbs: opening it, its address, registering memory, connecting.

pyverbs is loaded when it is first needed. Written for Debian's
``python3-pyverbs`` 44; in later releases the constants have moved.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabric.errors import InputError, ToolError
from trainer.collective.engine import address_of
from trainer.collective.settings import PATH_MTUS, NetworkSettings

_INSTALL = (
    "Install the distribution's packages (Debian: apt-get install python3-pyverbs "
    "ibverbs-providers) and make pyverbs visible to this Python, or use the transport tcp."
)
_MODULES = ("addr", "cq", "device", "mr", "pd", "qp", "wr")
CLASS = Path("/sys/class/infiniband")
_MAX_GIDS = 256
_MAPPED_IPV4 = "0000:0000:0000:0000:0000:ffff:"


@dataclass(frozen=True)
class Verbs:
    """pyverbs' classes and constants, found where this release has them."""

    names: dict[str, Any]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (pyverbs has no types)
        try:
            return self.names[name]
        except KeyError:
            raise AttributeError(f"pyverbs has no {name}") from None


def load_verbs() -> Verbs:
    """Import pyverbs; ToolError that says what to install where it is not there."""
    names: dict[str, Any] = {}
    try:
        for module in _MODULES:
            names.update(vars(importlib.import_module(f"pyverbs.{module}")))
        names.update(vars(importlib.import_module("pyverbs.pyverbs_error")))
        try:
            constants = importlib.import_module("pyverbs.enums")
        except ModuleNotFoundError:
            constants = importlib.import_module("pyverbs.libibverbs_enums")
        names.update(vars(constants))
    except ImportError as error:
        raise ToolError(f"pyverbs cannot be loaded: {error}", advice=_INSTALL) from error
    return Verbs(names)


@dataclass(frozen=True)
class Pace:
    """How to wait for a device: so long by polling without a pause, then with naps between."""

    spin_s: float
    nap_s: float


# A NIC works beside the processor. A device of software works on it: whoever polls keeps it
# from what is waited for.
OF_HARDWARE = Pace(500e-6, 100e-6)
OF_SOFTWARE = Pace(0.0, 2e-3)


@dataclass(frozen=True)
class Address:
    """Where a device is reached: its GID, and the index of it in the port's table.

    ``kind`` is what both ends of a connection must have alike: RoCE version and IP version.
    """

    gid: str
    index: int
    kind: str


class Device:
    """An open device with its protection domain; ToolError and InputError say which device."""

    def __init__(self, verbs: Verbs, settings: NetworkSettings) -> None:
        self.verbs = verbs
        self.name = _choose(verbs, settings)
        self.settings = settings
        try:
            self.context = verbs.Context(name=self.name)
            self.pd = verbs.PD(self.context)
        except verbs.PyverbsError as error:
            raise ToolError(
                f"{self.name}: cannot open the device: {error}",
                advice="Look at ibv_devinfo, and at the permissions of /dev/infiniband.",
            ) from error
        port = self._port()
        active = PATH_MTUS[port.active_mtu - verbs.IBV_MTU_256]
        if settings.mtu > active:
            raise InputError(
                f"{self.name} port {settings.port} has an active MTU of {active}, "
                f"{settings.mtu} is asked for",
                key="network.mtu",
                advice="Raise the interface's MTU as paisoar plan shows, or ask for less.",
            )
        self.address = self._address()
        self.pace = OF_SOFTWARE if is_software(self.name) else OF_HARDWARE

    def memory_region(self, memory: np.ndarray, access: int) -> Any:  # noqa: ANN401
        """Register memory (uint8); ToolError that speaks of the memlock limit if it is that."""
        verbs = self.verbs
        try:
            return verbs.MR(self.pd, memory.size, access, address=address_of(memory))
        except verbs.PyverbsRDMAError as error:
            if error.error_code not in (errno.ENOMEM, errno.EAGAIN, errno.EPERM):
                raise ToolError(
                    f"{self.name}: cannot register {memory.size} bytes: {error}"
                ) from error
            soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
            limit = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft} bytes"
            raise ToolError(
                f"{self.name}: cannot register {memory.size} bytes: {error} "
                f"(locked memory of this process is limited to: {limit})",
                advice="Raise it: ulimit -l unlimited, memlock in /etc/security/limits.conf, "
                "LimitMEMLOCK=infinity for a service, --ulimit memlock=-1 for a container.",
            ) from error

    def completion_queue(self, depth: int) -> Any:  # noqa: ANN401 (pyverbs has no types)
        """A queue of so many completions; ToolError where the device has no more."""
        try:
            return self.verbs.CQ(self.context, depth)
        except self.verbs.PyverbsError as error:
            raise self._exhausted(f"a completion queue of {depth}", error) from error

    def queue_pair(self, attributes: Any) -> Any:  # noqa: ANN401 (pyverbs has no types)
        """A queue pair in INIT that the peer may write through; ToolError where there is none."""
        verbs = self.verbs
        try:
            pair = verbs.QP(self.pd, attributes)
            initial = verbs.QPAttr(port_num=self.settings.port)
            initial.qp_access_flags = verbs.IBV_ACCESS_REMOTE_WRITE
            pair.to_init(initial)
        except verbs.PyverbsError as error:
            raise self._exhausted("a queue pair", error) from error
        return pair

    def connect(self, queue_pair: Any, peer: dict[str, Any], number: int, psn: int) -> None:  # noqa: ANN401
        """Bring an initialised queue pair to ready-to-send with the peer's ``number``-th.

        ToolError where the device finds no way to the peer's GID.
        """
        try:
            self._connect(queue_pair, peer, number, psn)
        except self.verbs.PyverbsError as error:
            raise ToolError(
                f"{self.name} port {self.settings.port}, GID index {self.address.index} "
                f"({self.address.gid}) finds no way to {peer['whose']} ({peer['gid']}): {error}",
                advice="Look at ip route get and ip neigh of that address, and at the GID index "
                "on both hosts: --network gid_index=N, or PAISOAR_NETWORK of each host.",
            ) from error

    def _connect(self, queue_pair: Any, peer: dict[str, Any], number: int, psn: int) -> None:  # noqa: ANN401
        verbs, settings = self.verbs, self.settings
        route = verbs.GlobalRoute(
            dgid=verbs.GID(peer["gid"]),
            sgid_index=self.address.index,
            hop_limit=settings.hop_limit,
            traffic_class=settings.traffic_class,
        )
        attributes = verbs.QPAttr(port_num=settings.port)
        attributes.ah_attr = verbs.AHAttr(gr=route, is_global=1, port_num=settings.port)
        attributes.path_mtu = verbs.IBV_MTU_256 + PATH_MTUS.index(settings.mtu)
        attributes.dest_qp_num = peer["numbers"][number]
        attributes.rq_psn = peer["psn"]
        attributes.max_dest_rd_atomic = 1
        attributes.min_rnr_timer = settings.min_rnr_timer
        queue_pair.to_rtr(attributes)
        attributes.sq_psn = psn
        attributes.timeout = settings.timeout
        attributes.retry_cnt = settings.retry_count
        attributes.rnr_retry = settings.rnr_retry
        attributes.max_rd_atomic = 1
        queue_pair.to_rts(attributes)

    def close(self) -> None:
        """Close it; what was made with it is closed before."""
        self.pd.close()
        self.context.close()

    def _port(self) -> Any:  # noqa: ANN401 (pyverbs has no types)
        """The port's attributes; ToolError where it is not there or carries nothing."""
        verbs, number = self.verbs, self.settings.port
        try:
            port = self.context.query_port(number)
        except verbs.PyverbsError as error:
            raise InputError(
                f"{self.name} has no port {number}: {error}",
                key="network.port",
                advice="Look at ibv_devinfo; most devices have port 1 only.",
            ) from error
        if port.state != verbs.IBV_PORT_ACTIVE:
            interface = interface_of(self.name, number)
            known = f" ({interface})" if interface else ""
            raise ToolError(
                f"{self.name} port {number}{known} is {_port_state(verbs, port.state)}, not ACTIVE",
                advice=f"Look at the cable and at ip link show {interface}".rstrip() + ".",
            )
        return port

    def _exhausted(self, what: str, error: Exception) -> ToolError:
        return ToolError(
            f"{self.name} port {self.settings.port}: cannot make {what}: {error}",
            advice="Look at what else uses the device (rdma resource show), and at ulimit -l.",
        )

    def _address(self) -> Address:
        verbs, settings = self.verbs, self.settings
        if settings.gid_index >= 0:
            try:
                entry = self.context.query_gid_ex(settings.port, settings.gid_index)
            except verbs.PyverbsError as error:
                raise InputError(
                    f"{self.name} port {settings.port} has no GID {settings.gid_index}: {error}",
                    key="network.gid_index",
                    advice="Look at show_gids or ibv_devinfo -v.",
                ) from error
            return self._described(entry)
        routable = [
            entry
            for entry in self.context.query_gid_table(_MAX_GIDS)
            if entry.port_num == settings.port and entry.gid_type == verbs.IBV_GID_TYPE_ROCE_V2
        ]
        # An IPv4 address is the one that people have configured on purpose.
        routable.sort(key=lambda e: (e.gid_str().lower().startswith(_MAPPED_IPV4), e.gid_index))
        if not routable:
            raise ToolError(
                f"{self.name} port {settings.port} has no RoCEv2 address",
                advice="Give the interface an IP address, or set network.gid_index.",
            )
        return self._described(routable[-1])

    def _described(self, entry: Any) -> Address:  # noqa: ANN401 (pyverbs has no types)
        gid = entry.gid_str().lower()
        version = "v2" if entry.gid_type == self.verbs.IBV_GID_TYPE_ROCE_V2 else "v1"
        family = "IPv4" if gid.startswith(_MAPPED_IPV4) else "IPv6"
        return Address(gid, entry.gid_index, f"RoCE{version} over {family}")


def is_software(device: str) -> bool:
    """Whether the kernel itself does the device's work: Soft-RoCE.

    Source: Linux drivers/infiniband/sw/rxe/rxe_verbs.c, whose devices alone have a
    ``parent``, the interface that they send through.
    """
    return (CLASS / device / "parent").exists()


def interface_of(device: str, port: int) -> str:
    """The network interface of a device's port, as sysfs shows it; empty where it does not.

    Source: Linux Documentation/ABI/stable/sysfs-class-infiniband, ``gid_attrs/ndevs``.
    """
    folder = CLASS / device / "ports" / str(port) / "gid_attrs" / "ndevs"
    with contextlib.suppress(OSError):
        for entry in sorted(folder.iterdir()):
            # An unused entry cannot be read.
            with contextlib.suppress(OSError):
                return entry.read_text().strip()
    return ""


def _port_state(verbs: Verbs, state: int) -> str:
    # By name: constants of other kinds begin with IBV_PORT_ too.
    known = ("NOP", "DOWN", "INIT", "ARMED", "ACTIVE_DEFER")
    names = (name for name in known if verbs.names.get(f"IBV_PORT_{name}") == state)
    return next(names, f"in state {state}")


def _choose(verbs: Verbs, settings: NetworkSettings) -> str:
    try:
        names = [
            device.name.decode() if isinstance(device.name, bytes) else str(device.name)
            for device in verbs.get_device_list()
        ]
    except verbs.PyverbsError as error:
        raise ToolError(f"there is no RDMA device: {error}", advice=_INSTALL) from error
    if not names:
        raise ToolError(
            "there is no RDMA device",
            advice="Load its driver (mlx5_ib, or rdma_rxe with rdma link add), or use tcp.",
        )
    if settings.device and settings.device not in names:
        raise InputError(
            f"there is no RDMA device {settings.device}",
            key="network.device",
            advice=f"This host has: {', '.join(names)}.",
        )
    if settings.device:
        return settings.device
    for name in names:
        try:
            context = verbs.Context(name=name)
            active = context.query_port(settings.port).state == verbs.IBV_PORT_ACTIVE
            context.close()
        except verbs.PyverbsError:
            continue
        if active:
            return name
    return names[0]
