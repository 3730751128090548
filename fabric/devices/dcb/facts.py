"""What a host's outputs show of one port that is set with ``dcb``, before any judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabric.devices.base import Outputs, TargetPort
from fabric.devices.dcb import text
from fabric.devices.linux.common import rdma_cm_file, rdma_cm_folder
from fabric.devices.linux.dump import MISSING, Dump, parse_dump
from fabric.devices.linux.portfacts import interface_mtu
from fabric.devices.linux.tools import driver_info, link_pause


@dataclass(frozen=True)
class Facts:
    """One port as its outputs show it; None where they do not.

    ``apps`` are the (DSCP, priority) entries of the APP table, ``max_rates_bps`` what
    each class may send at most (0 for no limit; None where the driver limits none),
    ``version`` what ``dcb -V`` prints. ``files`` is what the
    family has asked of sysfs and configfs. ``missing`` holds the outputs that are not
    there at all.
    """

    interface: str
    rdma_device: str
    mtu: int | None
    pause: tuple[bool, bool] | None
    driver: Mapping[str, str]
    pfc: tuple[int, ...] | None
    ets: text.Ets | None
    apps: tuple[tuple[int, int], ...] | None
    dcbx: frozenset[str] | None
    max_rates_bps: tuple[int, ...] | None
    version: str
    files: Dump
    rdma_cm_tos: int | None
    missing: tuple[str, ...]

    def why(self, path: str) -> str:
        """Why a file is not shown, in words."""
        complaint = self.files.complaint(path)
        if complaint == MISSING:
            return f"there is no {path}"
        return f"{path}: {complaint}" if complaint else f"{path} is not shown"


def files_command(port: TargetPort, paths: tuple[str, ...]) -> str:
    """One ``grep`` over the device's own files and those that its family asks for."""
    device = f"/sys/class/infiniband/{port.rdma_device}/device/device"
    every = " ".join((device, rdma_cm_folder(port.rdma_device), *paths))
    return f"grep -rH . {every} 2>&1 || true"


def commands(port: TargetPort, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The commands whose outputs :func:`facts_of` reads, in its order."""
    name = port.name
    return (
        f"ip -j link show dev {name}",
        f"ethtool -i {name}",
        f"ethtool -a {name}",
        f"dcb -j pfc show dev {name}",
        f"dcb -j ets show dev {name}",
        f"dcb -j app show dev {name}",
        f"dcb -j dcbx show dev {name}",
        f"for words in -V '-j maxrate show dev {name}'; do dcb $words; done 2>/dev/null || true",
        files_command(port, paths),
    )


def facts_of(port: TargetPort, outputs: Outputs, paths: tuple[str, ...]) -> Facts:
    """Read every output. Raises ReadError where one makes no sense."""
    _, info, pause, pfc, ets, app, dcbx, maxrate, grep = commands(port, paths)
    version, _, rates = outputs.get(maxrate, "").partition("\n")
    files = parse_dump(outputs.get(grep, ""))
    return Facts(
        interface=port.name,
        rdma_device=port.rdma_device,
        mtu=interface_mtu(port, outputs),
        pause=link_pause(outputs.get(pause, "")),
        driver=driver_info(outputs.get(info, "")),
        pfc=text.pfc(pfc, outputs[pfc]) if pfc in outputs else None,
        ets=text.ets(ets, outputs[ets]) if ets in outputs else None,
        apps=text.dscps(app, outputs[app]) if app in outputs else None,
        dcbx=text.dcbx(dcbx, outputs[dcbx]) if dcbx in outputs else None,
        max_rates_bps=text.max_rates(version, rates),
        version=version,
        files=files,
        rdma_cm_tos=files.number(rdma_cm_file(port.rdma_device)),
        missing=tuple(
            command
            for command in commands(port, paths)
            if command not in outputs and command != maxrate
        ),
    )
