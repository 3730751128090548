"""The sysfs, debugfs and configfs files of a NIC that hold one number each.

A plain file takes whatever is written into it; the kernel would have refused.
:func:`settle` makes good for that at the end of every session: a value that the
kernel would have refused (EINVAL) is taken back to the last good one, a good
one is written as the kernel prints it. Between the write and the end of its own
session a wrong value can be read; nobody else's later session sees it.

Sources: names and range of ``enable``, NVIDIA MLNX_OFED "Explicit Congestion
Notification"; ranges and defaults of the DCQCN parameters, NVIDIA "DCQCN CC
parameters" and ``mlxconfig`` (ROCE_CC_PRIO_MASK_P1 255: every priority on; all
other defaults as in fabric.qos.Dcqcn); debugfs names, Linux
drivers/infiniband/hw/mlx5/cong.c.
"""

from __future__ import annotations

import contextlib
import os
import time

from .driver import MAX_MTU, MIN_MTU
from .files import PRIORITIES, Host, Nic, read_pairs, read_text, write_pairs, write_text

U32 = (1 << 32) - 1

# sysfs name below ecn/: (debugfs name, default, lowest, highest).
PARAMETERS = {
    "roce_np/cnp_dscp": ("np_cnp_dscp", 48, 0, 63),
    "roce_np/cnp_802p_prio": ("np_cnp_prio", 6, 0, 7),
    "roce_np/min_time_between_cnps": ("np_min_time_between_cnps", 4, 0, 4095),
    "roce_rp/clamp_tgt_rate": ("rp_clamp_tgt_rate", 0, 0, 1),
    "roce_rp/clamp_tgt_rate_after_time_inc": ("rp_clamp_tgt_rate_ati", 1, 0, 1),
    "roce_rp/dce_tcp_g": ("rp_dce_tcp_g", 1019, 0, 1023),
    "roce_rp/dce_tcp_rtt": ("rp_dce_tcp_rtt", 1, 1, 131071),
    "roce_rp/initial_alpha_value": ("rp_initial_alpha_value", 1023, 1, 1023),
    "roce_rp/rate_reduce_monitor_period": ("rp_rate_reduce_monitor_period", 4, 1, U32),
    "roce_rp/rate_to_set_on_first_cnp": ("rp_rate_to_set_on_first_cnp", 0, 0, U32),
    "roce_rp/rpg_ai_rate": ("rp_ai_rate", 5, 1, U32),
    "roce_rp/rpg_byte_reset": ("rp_byte_reset", 32767, 0, U32),
    "roce_rp/rpg_gd": ("rp_gd", 11, 10, 11),
    "roce_rp/rpg_hai_rate": ("rp_hai_rate", 50, 1, U32),
    "roce_rp/rpg_max_rate": ("rp_max_rate", 0, 0, U32),
    "roce_rp/rpg_min_dec_fac": ("rp_min_dec_fac", 50, 0, 100),
    "roce_rp/rpg_min_rate": ("rp_min_rate", 1, 1, U32),
    "roce_rp/rpg_threshold": ("rp_threshold", 1, 1, 31),
    "roce_rp/rpg_time_reset": ("rp_time_reset", 300, 1, 131071),
}
DEFAULT_MTU = 1500
# Lowest and highest MTU of a family that has others than mlx5.
MTUS = {"bnxt": (60, 9500), "irdma": (68, 9702)}
UNSET = -1


class Register:
    """One file: where it is, its range, and how the kernel prints a value."""

    def __init__(self, path: str, default: int, low: int, high: int, shown: str = "{}\n") -> None:
        """``shown`` with ``{}`` for the value; empty: as C's ``%#x``."""
        self.path = path
        self.default = default
        self.low = low
        self.high = high
        self._shown = shown

    def text(self, value: int) -> str:
        """What a read of the file gives; empty for a traffic class that is not set."""
        if value == UNSET:
            return ""
        if not self._shown:
            return f"{value:#x}\n" if value else "0\n"
        return self._shown.format(value)

    def parse(self, text: str) -> int | None:
        """The value of a write; None for one that the kernel refuses."""
        word = text.rsplit("=", maxsplit=1)[-1].strip()
        if not word and self.low == UNSET:
            return UNSET
        try:
            value = int(word, 0)
        except ValueError:
            return None
        return value if self.low <= value <= self.high else None


# bnxt_re configfs.c: file below cc/: (default, lowest, highest).
BNXT_CC = {
    "apply": (0, 0, 1),
    "cc_mode": (0, 0, 1),
    "cnp_dscp": (48, 0, 63),
    "cnp_prio": (7, 0, 7),
    "disable_prio_vlan_tx": (1, 0, 1),
    "ecn_enable": (0, 0, 1),
    "ecn_marking": (0, 0, 2),
    "roce_dscp": (0, 0, 63),
    "roce_prio": (0, 0, 7),
}
# irdma configfs.c (RoCE mode).
IRDMA = {
    "cnp_up_override": (0, 0, 63),
    "roce_ackcreds": (30, 1, 30),
    "roce_cwnd": (1024, 1, 1024),
    "roce_dcqcn_enable": (0, 0, 1),
    "roce_dctcp_enable": (0, 0, 1),
    "roce_timely_enable": (0, 0, 1),
    "up_map_enable": (0, 0, 1),
}


def registers(nic: Nic) -> dict[str, Register]:
    """Every register of a NIC port by a short name."""
    config = f"{nic.host.sys}/kernel/config"
    rdma = nic.facts["rdma"]
    if nic.family == "bnxt":
        folder = f"{config}/bnxt_re/{rdma}/ports/1/cc"
        found = {name: Register(f"{folder}/{name}", *v, "") for name, v in BNXT_CC.items()}
    elif nic.family == "irdma":
        folder = f"{config}/irdma/{rdma}"
        found = {name: Register(f"{folder}/{name}", *v) for name, v in IRDMA.items()}
    else:
        found = _mlx5(nic)
    low, high = MTUS.get(nic.family, (MIN_MTU, MAX_MTU))
    found["mtu"] = Register(f"{nic.net}/mtu", DEFAULT_MTU, low, high)
    found["default_roce_tos"] = Register(
        f"{config}/rdma_cm/{rdma}/ports/1/default_roce_tos", 0, 0, 255
    )
    return found


def _mlx5(nic: Nic) -> dict[str, Register]:
    ecn = f"{nic.net}/ecn"
    found = {
        f"{side}/enable/{priority}": Register(f"{ecn}/{side}/enable/{priority}", 1, 0, 1)
        for side in ("roce_np", "roce_rp")
        for priority in range(PRIORITIES)
    }
    for name, (_, default, low, high) in PARAMETERS.items():
        found[name] = Register(f"{ecn}/{name}", default, low, high)
    found["traffic_class"] = Register(
        f"{nic.verbs}/tc/1/traffic_class", UNSET, UNSET, 255, "Global tclass={}\n"
    )
    return found


def debugfs_folder(nic: Nic) -> str:
    """Where the kernel's own debugfs shows the same DCQCN parameters."""
    return f"{nic.host.sys}/kernel/debug/mlx5/{nic.facts['pci']}/cc_params"


def reset(nic: Nic) -> None:
    """Every register to its factory default; both names of one parameter are one file."""
    for register in registers(nic).values():
        os.makedirs(os.path.dirname(register.path), exist_ok=True)
        write_text(register.path, register.text(register.default))
    if nic.family not in MTUS:
        debugfs = debugfs_folder(nic)
        os.makedirs(debugfs, exist_ok=True)
        for name, (debug_name, _, _, _) in PARAMETERS.items():
            with contextlib.suppress(FileExistsError):
                os.link(f"{nic.net}/ecn/{name}", f"{debugfs}/{debug_name}")
    write_pairs(
        f"{nic.folder}/registers",
        {name: str(register.default) for name, register in registers(nic).items()},
    )


def settle(host: Host) -> None:
    """Take back what the kernel would have refused; print the rest as it does."""
    for nic in host.nics():
        good = read_pairs(f"{nic.folder}/registers")
        changed = False
        for name, register in registers(nic).items():
            before = int(good.get(name, register.default))
            text = read_text(register.path)
            if text == register.text(before):
                continue
            if not text:  # emptied by a shell that is about to write: look again
                time.sleep(0.002)
                text = read_text(register.path)
            value = register.parse(text)
            if value is None:
                value = before
            os.makedirs(os.path.dirname(register.path), exist_ok=True)
            write_text(register.path, register.text(value))
            changed = changed or value != before
            good[name] = str(value)
        if changed:
            write_pairs(f"{nic.folder}/registers", good)
