"""The files of an emulated host, as stand-ins and the twin's daemon share them.

``nics/IF/facts`` what the hardware is; ``nics/IF/state`` what a real NIC keeps
in firmware and driver and shows through netlink only; ``nics/IF/registers`` the
last good value of each sysfs file; ``nics/IF/counters`` what ``ethtool -S``
prints. ``sys/`` is what the host sees as ``/sys``, ``etc/`` as ``/etc``, ``run/``
as ``/run``. All are lines of a name and values, so that reading costs little.
"""

from __future__ import annotations

import fcntl
import os

PRIORITIES = 8
DSCPS = 64


def read_text(path: str) -> str:
    """The text of a file; empty where there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def write_text(path: str, text: str) -> None:
    """Overwrite a file in place, so that hard links and bind mounts stay."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def replace_text(path: str, text: str, scratch: str = "") -> None:
    """Replace a file at once: a reader sees the old text or the new one.

    ``scratch`` is where the new one is written first, beside ``path`` unless told.
    """
    temporary = f"{scratch or path}.{os.getpid()}"
    write_text(temporary, text)
    os.replace(temporary, path)


def read_pairs(path: str) -> dict[str, str]:
    """Lines ``NAME VALUE...`` of a file, in its order."""
    pairs = {}
    for line in read_text(path).splitlines():
        name, _, value = line.partition(" ")
        pairs[name] = value
    return pairs


def write_pairs(path: str, pairs: dict[str, str]) -> None:
    """The inverse of :func:`read_pairs`."""
    replace_text(path, "".join(f"{name} {value}\n" for name, value in pairs.items()))


class Host:
    """One host's folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.sys = f"{folder}/sys"
        self.etc = f"{folder}/etc"
        self.run = f"{folder}/run"

    def nics(self) -> list[Nic]:
        """Its NIC ports in the order of their interface index."""
        names = os.listdir(f"{self.folder}/nics")
        nics = [Nic(self, name) for name in names]
        return sorted(nics, key=lambda nic: int(nic.facts["index"]))

    def nic(self, name: str) -> Nic | None:
        """The port of this interface name; None where there is none."""
        if not name or "/" in name or not os.path.isdir(f"{self.folder}/nics/{name}"):
            return None
        return Nic(self, name)


class Nic:
    """One NIC port. ``facts``: index, rdma, pci, mac, address, speed_mbps, firmware, ..."""

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.name = name
        self.folder = f"{host.folder}/nics/{name}"
        self.facts = read_pairs(f"{self.folder}/facts")
        self.net = f"{host.sys}/class/net/{name}"
        self.verbs = f"{host.sys}/class/infiniband/{self.facts['rdma']}"

    @property
    def family(self) -> str:
        """The NIC family as ``fabric.yaml`` names it; older hosts name none and have mlx5."""
        return self.facts.get("family", "mlx5")

    @property
    def mtu(self) -> int:
        """MTU in bytes, as ``/sys/class/net/IF/mtu`` holds it now."""
        text = read_text(f"{self.net}/mtu").strip()
        return int(text) if text.isdigit() else 1500

    def state(self) -> NicState:
        """What firmware and driver hold now."""
        return NicState(read_text(f"{self.folder}/state"))

    def edit(self) -> Edit:
        """The state, locked against other sessions, written back when left."""
        return Edit(self.folder)


class NicState:
    """What a NIC keeps in firmware and driver; every value is a list of integers.

    ``dcbx_os``: whether the host decides. ``carrier``: whether the far end's port works.
    Factory defaults are a ConnectX's: DCBX in
    firmware, PCP trusted (an empty table of DSCPs; the firmware's own map is
    dscp >> 3), link pause on both ways, PFC off, one receive buffer, every class by the
    vendor's arbiter, priorities 0 and 1 in
    classes 1 and 0 (Linux drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c,
    mlx5e_ets_init; the same in AT&T's printed sample of mlnx_qos).
    """

    def __init__(self, text: str = "") -> None:
        self.dcbx_os = [0]
        # DSCP, priority, DSCP, priority, ...: the newest entry first, as the kernel lists them.
        self.apps: list[int] = []
        self.firmware_map = [dscp >> 3 for dscp in range(DSCPS)]
        self.default_priority: list[int] = []
        self.pfc = [0] * PRIORITIES
        self.cable_len = [7]
        self.buffer_size = [156096, 0, 0, 0, 0, 0, 0, 0]
        self.max_buffer = [1027728]
        self.prio2buffer = [0] * PRIORITIES
        self.lossy = [0, 1, 1, 1, 1, 1, 1, 1]
        self.manual_buffer = [0]
        self.prio_tc = [1, 0, 2, 3, 4, 5, 6, 7]
        self.tsa = [255] * PRIORITIES
        self.tc_bw = [0] * PRIORITIES
        self.maxrate_kbps = [0] * PRIORITIES
        self.rx_pause = [1]
        self.tx_pause = [1]
        self.admin_up = [1]
        self.carrier = [1]
        self.willing = [0]
        self.ets_set = [0]
        for line in text.splitlines():
            name, *values = line.split()
            setattr(self, name, [int(value) for value in values])

    def text(self) -> str:
        """The state as ``NicState(text)`` reads it."""
        return "".join(
            f"{name} {' '.join(str(value) for value in values)}\n"
            for name, values in vars(self).items()
        )

    def app_table(self) -> list[tuple[int, int]]:
        """(DSCP, priority) entries, the newest first."""
        return list(zip(self.apps[::2], self.apps[1::2], strict=True))

    def set_app_table(self, table: list[tuple[int, int]]) -> None:
        """The inverse of :meth:`app_table`."""
        self.apps = [value for entry in table for value in entry]


class Edit:
    """Context manager of :meth:`Nic.edit`: nothing is written when it is left by an error."""

    def __init__(self, folder: str) -> None:
        self._path = f"{folder}/state"
        self._lock = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __enter__(self) -> NicState:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._state = NicState(read_text(self._path))
        return self._state

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            replace_text(self._path, self._state.text())
        os.close(self._lock)
