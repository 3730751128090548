"""Where the mlx5 driver shows and takes its settings.

MLNX_OFED (and DOCA) offers ``/sys/class/net/IF/ecn/roce_{np,rp}``, with one
switch a priority; the kernel's own driver offers debugfs ``cc_params`` and no
such switches (there the firmware's ``ROCE_CC_PRIO_MASK`` decides). Sources:
mlnx-ofa_kernel drivers/net/ethernet/mellanox/mlx5/core/en_sysfs.c; Linux
drivers/infiniband/hw/mlx5/cong.c; units, the tool headers of Mellanox/mstflint
(``tools_open_roce_cc_ecn``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

DEBUGFS = "/sys/kernel/debug/mlx5"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One DCQCN parameter: its field in ``Dcqcn`` and its files in both drivers.

    ``unit`` is the driver's, and ours too: no value is converted. Not every release
    shows the ``optional`` ones: where one is not shown it is taken to be at the vendor's
    default.
    """

    field: str
    label: str
    sysfs: str
    debugfs: str
    unit: str
    optional: bool = False


PARAMETERS = (
    Parameter("cnp_dscp", "CNP DSCP", "roce_np/cnp_dscp", "np_cnp_dscp", ""),
    Parameter("cnp_priority", "CNP priority", "roce_np/cnp_802p_prio", "np_cnp_prio", ""),
    Parameter(
        "min_time_between_cnps_us",
        "min_time_between_cnps",
        "roce_np/min_time_between_cnps",
        "np_min_time_between_cnps",
        "us",
    ),
    Parameter(
        "rate_to_set_on_first_cnp_mbps",
        "rate_to_set_on_first_cnp",
        "roce_rp/rate_to_set_on_first_cnp",
        "rp_rate_to_set_on_first_cnp",
        "Mb/s",
    ),
    Parameter(
        "alpha_update_interval_us", "dce_tcp_rtt", "roce_rp/dce_tcp_rtt", "rp_dce_tcp_rtt", "us"
    ),
    Parameter("g_of_1024", "dce_tcp_g", "roce_rp/dce_tcp_g", "rp_dce_tcp_g", "/1024"),
    Parameter(
        "initial_alpha_of_1024",
        "initial_alpha_value",
        "roce_rp/initial_alpha_value",
        "rp_initial_alpha_value",
        "/1024",
    ),
    Parameter(
        "rate_reduce_interval_us",
        "rate_reduce_monitor_period",
        "roce_rp/rate_reduce_monitor_period",
        "rp_rate_reduce_monitor_period",
        "us",
    ),
    Parameter("time_reset_us", "rpg_time_reset", "roce_rp/rpg_time_reset", "rp_time_reset", "us"),
    Parameter("byte_reset", "rpg_byte_reset", "roce_rp/rpg_byte_reset", "rp_byte_reset", "bytes"),
    Parameter("fast_recovery_stages", "rpg_threshold", "roce_rp/rpg_threshold", "rp_threshold", ""),
    Parameter("ai_rate_mbps", "rpg_ai_rate", "roce_rp/rpg_ai_rate", "rp_ai_rate", "Mb/s"),
    Parameter("hai_rate_mbps", "rpg_hai_rate", "roce_rp/rpg_hai_rate", "rp_hai_rate", "Mb/s"),
    Parameter("min_rate_mbps", "rpg_min_rate", "roce_rp/rpg_min_rate", "rp_min_rate", "Mb/s"),
    Parameter("max_rate_mbps", "rpg_max_rate", "roce_rp/rpg_max_rate", "rp_max_rate", "Mb/s", True),
    Parameter("gd_log2", "rpg_gd", "roce_rp/rpg_gd", "rp_gd", "", True),
    Parameter(
        "min_decrease_percent",
        "rpg_min_dec_fac",
        "roce_rp/rpg_min_dec_fac",
        "rp_min_dec_fac",
        "%",
        True,
    ),
    Parameter(
        "clamp_target", "clamp_tgt_rate", "roce_rp/clamp_tgt_rate", "rp_clamp_tgt_rate", "", True
    ),
    Parameter(
        "clamp_target_after_time",
        "clamp_tgt_rate_after_time_inc",
        "roce_rp/clamp_tgt_rate_after_time_inc",
        "rp_clamp_tgt_rate_ati",
        "",
        True,
    ),
)


def ecn_folder(interface: str) -> str:
    """MLNX_OFED's folder of DCQCN settings."""
    return f"/sys/class/net/{interface}/ecn"


def qos_folder(interface: str) -> str:
    """MLNX_OFED's folder of QoS settings."""
    return f"/sys/class/net/{interface}/qos"


@lru_cache(maxsize=4096)
def enable_file(interface: str, point: str, priority: int) -> str:
    """The switch of one priority; ``point`` is ``np`` or ``rp``."""
    return f"{ecn_folder(interface)}/roce_{point}/enable/{priority}"


def tc_folder(rdma_device: str) -> str:
    """MLNX_OFED's folder of verbs traffic classes."""
    return f"/sys/class/infiniband/{rdma_device}/tc"


def traffic_class_file(rdma_device: str) -> str:
    """The traffic class of every RoCE QP of the device."""
    return f"{tc_folder(rdma_device)}/1/traffic_class"
