"""sysfs, debugfs and configfs files of an emulated NIC."""

import pytest

from fabric.qos import Dcqcn

ECN = "/sys/class/net/ens1f0/ecn"
DEBUGFS = "/sys/kernel/debug/mlx5/0000:3b:00.0/cc_params"


def test_a_fresh_nic_has_ecn_on_for_every_priority_and_mlxconfigs_defaults(out):
    assert out(f"cat {ECN}/roce_np/enable/* {ECN}/roce_rp/enable/*") == "1\n" * 16
    plain = Dcqcn(np_priorities=(), rp_priorities=(), cnp_dscp=48, cnp_priority=6)
    for name, value in (
        ("roce_np/cnp_dscp", plain.cnp_dscp),
        ("roce_np/cnp_802p_prio", plain.cnp_priority),
        ("roce_np/min_time_between_cnps", plain.min_time_between_cnps_us),
        ("roce_rp/dce_tcp_g", plain.g_of_1024),
        ("roce_rp/rpg_time_reset", plain.time_reset_us),
        ("roce_rp/rpg_ai_rate", plain.ai_rate_mbps),
    ):
        assert out(f"cat {ECN}/{name}") == f"{value}\n"
    assert out("cat /sys/class/infiniband/mlx5_0/tc/1/traffic_class") == ""


def test_sysfs_and_debugfs_are_two_names_of_one_parameter(out):
    out(f"echo 55 > {ECN}/roce_rp/rpg_time_reset")
    assert out(f"cat {DEBUGFS}/rp_time_reset") == "55\n"

    out(f"echo 46 > {DEBUGFS}/np_cnp_dscp")
    assert out(f"cat {ECN}/roce_np/cnp_dscp") == "46\n"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{ECN}/roce_np/enable/3", "2"),
        (f"{ECN}/roce_np/cnp_dscp", "64"),
        (f"{ECN}/roce_np/cnp_802p_prio", "8"),
        (f"{ECN}/roce_rp/dce_tcp_g", "1024"),
        (f"{ECN}/roce_rp/rpg_threshold", "many"),
        (f"{DEBUGFS}/rp_initial_alpha_value", "0"),
        ("/sys/class/net/ens1f0/mtu", "20000"),
        ("/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "256"),
        ("/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos", "-3"),
    ],
)
def test_a_value_that_the_kernel_refuses_is_gone_when_the_session_ends(out, path, value):
    before = out(f"cat {path}")

    out(f"echo {value} > {path}")

    assert out(f"cat {path}") == before


def test_a_good_value_reads_back_as_the_kernel_prints_it(out):
    tclass = "/sys/class/infiniband/mlx5_0/tc/1/traffic_class"
    out(f"echo 106 > {tclass}; echo 0x10 > {ECN}/roce_rp/rpg_threshold")

    assert out(f"cat {tclass}") == "Global tclass=106\n"
    assert out(f"cat {ECN}/roce_rp/rpg_threshold") == "16\n"

    out(f"echo -1 > {tclass}")
    assert out(f"cat {tclass}") == ""


def test_a_removed_file_comes_back(out):
    out(f"rm {ECN}/roce_np/enable/3")

    assert out(f"cat {ECN}/roce_np/enable/3") == "1\n"


def test_configfs_can_be_set_as_on_a_real_host(out):
    folder = "/sys/kernel/config/rdma_cm/mlx5_0"
    out(f"mkdir -p {folder} && echo 106 > {folder}/ports/1/default_roce_tos")

    assert out(f"grep -rH . {folder}") == f"{folder}/ports/1/default_roce_tos:106\n"
