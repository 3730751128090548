"""What a host's outputs show of one mlx5 port, before any judgement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabric.devices.base import Outputs, TargetPort
from fabric.devices.linux.common import rdma_cm_file, rdma_cm_folder
from fabric.devices.linux.dump import MISSING, Dump, parse_dump
from fabric.devices.linux.portfacts import interface_mtu
from fabric.devices.linux.tools import driver_info, link_pause
from fabric.devices.mlx5 import firmware, kernel_dcb, paths
from fabric.devices.mlx5.qos_text import QosText, parse_qos
from fabric.qos import PRIORITY_COUNT

TCLASS_UNSET = -1
_TCLASS = re.compile(r"(?:Global tclass=)?(\d+)")
_BUFFER_ROW = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*")


@dataclass(frozen=True)
class Facts:
    """One port as its outputs show it; None or absent where they do not.

    ``tclass`` is ``TCLASS_UNSET`` where the driver has the file and nothing is
    set in it. ``thresholds`` holds (XOFF, XON) in bytes by receive buffer.
    ``firmware`` is what mlxconfig shows. ``qos`` is read from ``dcb`` where
    ``has_mlnx_qos`` is False. ``missing`` holds the outputs that are not there at all.
    """

    interface: str
    rdma_device: str
    mtu: int | None
    pause: tuple[bool, bool] | None
    driver: Mapping[str, str]
    qos: QosText | None
    has_mlnx_qos: bool
    ecn_on: Mapping[str, Mapping[int, bool]]
    parameters: Mapping[str, int]
    thresholds: Mapping[int, tuple[int, int]]
    rdma_cm_tos: int | None
    tclass: int | None
    hca_type: str
    sysfs: Dump
    rdma: Dump
    debugfs: Dump
    firmware: Mapping[str, int]
    missing: tuple[str, ...]

    @property
    def pci(self) -> str:
        """The port's PCI address; empty where not shown."""
        return self.driver.get("bus-info", "")

    def debugfs_file(self, name: str) -> str:
        """The file of one congestion parameter in debugfs."""
        return f"{paths.DEBUGFS}/{self.pci}/cc_params/{name}"

    def why(self, dump: Dump, path: str) -> str:
        """Why a path is not shown, in words."""
        complaint = dump.complaint(path)
        if complaint == MISSING:
            return f"there is no {path}"
        return f"{path}: {complaint}" if complaint else f"{path} is not shown"


def commands(port: TargetPort) -> tuple[str, ...]:
    """The commands whose outputs :func:`facts_of` reads, in its order."""
    ecn, qos = paths.ecn_folder(port.name), paths.qos_folder(port.name)
    device = f"/sys/class/infiniband/{port.rdma_device}"
    return (
        f"ip -j link show dev {port.name}",
        f"ethtool -i {port.name}",
        f"ethtool -a {port.name}",
        f"mlnx_qos -i {port.name}",
        f"grep -rH . {ecn} {qos} 2>&1 || true",
        f"grep -rH . {device}/hca_type {device}/tc {rdma_cm_folder(port.rdma_device)} 2>&1 || true",
        f"grep -rH . {paths.DEBUGFS}/*/cc_params 2>&1 || true",
    )


def facts_of(port: TargetPort, outputs: Outputs) -> Facts:
    """Read every output. Raises ReadError where one makes no sense."""
    _, info, pause, qos, sysfs, rdma, debugfs = commands(port)
    sysfs_dump = parse_dump(outputs.get(sysfs, ""))
    rdma_dump = parse_dump(outputs.get(rdma, ""))
    debugfs_dump = parse_dump(outputs.get(debugfs, ""))
    driver = driver_info(outputs.get(info, ""))
    cm = rdma_dump.number(rdma_cm_file(port.rdma_device))
    shown = firmware.settings(port, outputs)
    missing = [command for command in commands(port) if command not in outputs]
    read = parse_qos(qos, outputs[qos]) if qos in outputs else None
    if read is None and (read := kernel_dcb.parse(outputs.get(kernel_dcb.command(port), ""))):
        missing.remove(qos)
    return Facts(
        interface=port.name,
        rdma_device=port.rdma_device,
        mtu=interface_mtu(port, outputs),
        pause=link_pause(outputs.get(pause, "")),
        driver=driver,
        qos=read,
        has_mlnx_qos=qos in outputs,
        ecn_on={point: _switches(sysfs_dump, port.name, point) for point in ("np", "rp")},
        parameters=_parameters(port.name, driver.get("bus-info", ""), sysfs_dump, debugfs_dump),
        thresholds=_thresholds(sysfs_dump, port.name),
        rdma_cm_tos=cm,
        tclass=_tclass(rdma_dump, port.rdma_device) if rdma in outputs else None,
        hca_type=rdma_dump.text(f"/sys/class/infiniband/{port.rdma_device}/hca_type") or "",
        sysfs=sysfs_dump,
        rdma=rdma_dump,
        debugfs=debugfs_dump,
        firmware=shown,
        missing=tuple(missing),
    )


def _switches(dump: Dump, interface: str, point: str) -> dict[int, bool]:
    return {
        priority: bool(value)
        for priority in range(PRIORITY_COUNT)
        if (value := dump.number(paths.enable_file(interface, point, priority))) is not None
    }


def _parameters(interface: str, pci: str, sysfs: Dump, debugfs: Dump) -> dict[str, int]:
    found = {}
    for parameter in paths.PARAMETERS:
        value = sysfs.number(f"{paths.ecn_folder(interface)}/{parameter.sysfs}")
        if value is None:
            value = debugfs.number(f"{paths.DEBUGFS}/{pci}/cc_params/{parameter.debugfs}")
        if value is not None:
            found[parameter.field] = value
    return found


def _thresholds(dump: Dump, interface: str) -> dict[int, tuple[int, int]]:
    """XOFF and XON by buffer, from MLNX_OFED's ``qos/buffer_size`` table."""
    rows = dump.files.get(f"{paths.qos_folder(interface)}/buffer_size", ())
    return {
        int(match[1]): (int(match[3]), int(match[4]))
        for row in rows
        if (match := _BUFFER_ROW.fullmatch(row))
    }


def _tclass(dump: Dump, rdma_device: str) -> int | None:
    file = paths.traffic_class_file(rdma_device)
    for line in dump.files.get(file, ()):
        if match := _TCLASS.fullmatch(line.strip()):
            return int(match[1])
    # An empty file prints nothing; a missing one makes grep complain.
    return None if dump.complaint(file) else TCLASS_UNSET
