"""A host with ConnectX NICs as DeviceQos."""

import dataclasses

import pytest

from fabric.devices.base import ReadError
from fabric.devices.linux import MODULE
from fabric.devices.linux.script import UNIT, UNIT_PATH, render_script, script_path
from fabric.devices.mlx5 import FAMILY
from fabric.intended import intended_qos
from tests.fabric.devices.mlx5 import samples
from tests.fabric.devices.mlx5.samples import TARGET, as_grep, factory, provisioned
from tests.sites import make_site

(
    KERNEL, ENABLED, FILES, LINK, INFO, PAUSE, QOS, SYSFS, RDMA, DEBUGFS,
    DCB, MLXCONFIG, *FACTS
) = MODULE.read_commands(TARGET)  # fmt: skip


@pytest.fixture
def intended(tmp_path):
    return MODULE.normalise(intended_qos(make_site(tmp_path), "host1"))


def files_of(intended):
    port = intended.ports[0]
    script = render_script(port.name, FAMILY.settings(port))
    return as_grep(script_path(port.name), script) + as_grep(UNIT_PATH, UNIT)


def test_eleven_commands_a_port_and_four_a_host_show_everything():
    assert (KERNEL, LINK, QOS) == (
        "uname -r",
        "ip -j link show dev ens1f0",
        "mlnx_qos -i ens1f0",
    )
    assert len(FAMILY.read_commands(samples.PORT)) == 9
    two = dataclasses.replace(
        TARGET,
        ports=(
            samples.PORT,
            dataclasses.replace(samples.PORT, name="ens1f1", rdma_device="mlx5_1"),
        ),
    )
    assert len(MODULE.read_commands(two)) == 3 + 1 + 2 * (8 + 3)
    assert not any("\n" in command or len(command) > 240 for command in MODULE.read_commands(two))


def test_a_provisioned_host_reads_back_as_what_was_intended(intended):
    live = MODULE.read(TARGET, provisioned(files_of(intended)))
    assert live.ports == intended.ports
    assert live.saved is True
    assert live.unread == ()
    assert live.kind == "host"
    assert live.model == "ConnectX-6 Dx (MT4125)"
    assert live.firmware == (
        "mlx5_core 24.10-1.1.4, firmware 22.43.1014 (MT_0000000359), Linux 5.15.0-125-generic"
    )


def test_an_untouched_host_reads_as_what_it_is(intended):
    live = MODULE.read(TARGET, factory())
    port = live.port("ens1f0")
    assert (port.trust, port.mtu_bytes, port.link_pause) == ("pcp", 1500, True)
    assert set(port.dscp_to_priority) == {0}
    assert port.priority_to_class == (1, 0, 2, 3, 4, 5, 6, 7)
    assert {queue.scheduler.mode for queue in port.queues} == {"strict"}
    assert port.pfc_priorities == ()
    assert port.ingress_buffers == ()
    assert port.nic.cable_m == 7
    assert port.nic.verbs_traffic_class is None
    assert port.nic.dcqcn.np_priorities == tuple(range(8))
    assert port.nic.dcqcn.time_reset_us == 300
    assert port.nic.persistent is False
    assert live.saved is False
    assert port != intended.ports[0]


def test_what_nobody_set_is_no_gap_but_what_cannot_be_seen_is():
    unread = MODULE.read(TARGET, factory()).unread
    assert unread == (
        "ens1f0: rdma_cm TOS (there is no "
        "/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos)",
    )


def test_the_kernels_own_driver_shows_parameters_in_debugfs_and_no_switches():
    outputs = factory() | {
        SYSFS: samples.NO_SYSFS,
        RDMA: samples.RDMA_INBOX,
        DEBUGFS: samples.debugfs(samples.INTENDED_PARAMETERS),
    }
    live = MODULE.read(TARGET, outputs)
    dcqcn = live.ports[0].nic.dcqcn
    assert (dcqcn.ai_rate_mbps, dcqcn.byte_reset, dcqcn.cnp_dscp) == (40, 0, 48)
    assert (dcqcn.np_priorities, dcqcn.rp_priorities) == ((), ())
    assert any("ECN notification point of priorities 0-7" in fact for fact in live.unread)
    assert any("verbs traffic class (there is no" in fact for fact in live.unread)


def test_parameters_that_may_not_be_read_are_no_values():
    outputs = factory() | {SYSFS: samples.NO_SYSFS}
    live = MODULE.read(TARGET, outputs)
    assert live.ports[0].nic.dcqcn is None
    assert any("DCQCN parameters CNP DSCP" in fact for fact in live.unread)


def test_sysfs_counts_where_a_driver_offers_both():
    outputs = factory() | {DEBUGFS: samples.debugfs(samples.INTENDED_PARAMETERS)}
    assert MODULE.read(TARGET, outputs).ports[0].nic.dcqcn.ai_rate_mbps == 5


def test_an_old_mlnx_qos_shows_no_buffers():
    live = MODULE.read(TARGET, factory() | {QOS: samples.QOS_OLD})
    port = live.ports[0]
    assert port.pfc_priorities == (3,)
    assert port.ingress_buffers == ()
    assert "ens1f0: receive buffer of priority 3" in live.unread
    assert port.class_of_dscp(26) == 2
    assert port.queue(7).scheduler.percent == 100


def test_an_output_that_is_not_there_is_unread_and_the_rest_still_counts():
    outputs = factory()
    del outputs[PAUSE], outputs[KERNEL]
    live = MODULE.read(TARGET, outputs)
    assert live.ports[0].mtu_bytes == 1500
    assert "ens1f0: link pause" in live.unread
    assert "ens1f0: everything that `ethtool -a ens1f0` shows" in live.unread
    assert "kernel" in live.unread


def test_without_mlnx_qos_there_is_no_port():
    outputs = factory()
    del outputs[QOS]
    live = MODULE.read(TARGET, outputs)
    assert live.ports == ()
    assert "ens1f0: everything that `mlnx_qos -i ens1f0` shows" in live.unread


def test_nonsense_is_refused_with_its_command():
    with pytest.raises(ReadError, match="ip -j link show dev ens1f0"):
        MODULE.read(TARGET, factory() | {LINK: 'Device "ens1f0" does not exist.\n'})


def buffer_table(xoff, xon):
    path = "/sys/class/net/ens1f0/qos/buffer_size"
    return as_grep(
        path,
        "Port buffer size = 1027728\nSpare buffer size = 700000\n"
        f"Buffer\tSize\txoff_threshold\txon_threshold\n0\t20736\t0\t\t0\n"
        f"1\t155520\t{xoff}\t\t{xon}\n",
    )


@pytest.mark.parametrize(
    ("shown", "read"),
    [
        ((118760, 109544), (118760, 109544)),
        # Whole cells of 144 bytes, XON one largest MTU of 9978 below.
        ((118656, 108576), (118760, 109544)),
        # Something else altogether.
        ((100000, 90000), (100000, 90000)),
    ],
)
def test_thresholds_are_the_formulas_unless_the_nic_shows_others(intended, shown, read):
    outputs = provisioned(files_of(intended))
    outputs[SYSFS] += buffer_table(*shown)
    buffer = MODULE.read(TARGET, outputs).ports[0].ingress_buffer(3)
    assert (buffer.xoff_bytes, buffer.xon_bytes) == read


def test_settings_survive_a_reboot_only_if_unit_and_script_bring_back_what_is_live(intended):
    good = provisioned(files_of(intended))
    for changed in (
        {ENABLED: "disabled\n"},
        {LINK: samples.ip_link(1500)},
        {QOS: samples.QOS_SET.replace("enabled     0   0   0   1", "enabled     0   0   0   0")},
        {FILES: good[FILES].replace("put 40 ", "put 41 ")},
        {FILES: good[FILES].replace("set -u", "exit 0")},
        {FILES: good[FILES].replace("ExecStart=", "#ExecStart=")},
        {FILES: samples.NO_FILES},
        {RDMA: samples.RDMA_SET.replace("tclass=106", "tclass=104")},
    ):
        live = MODULE.read(TARGET, good | changed)
        assert live.saved is False, changed
        assert live.ports[0].nic.persistent is False
    assert MODULE.read(TARGET, good).saved is True


def test_persistence_that_cannot_be_seen_is_unknown(intended):
    outputs = provisioned(
        files_of(intended) + "grep: /etc/paisoar/roce-ens1f0.sh: Permission denied\n"
    )
    live = MODULE.read(TARGET, outputs)
    assert live.saved is None
    assert "ens1f0: whether the settings survive a reboot" in live.unread


def test_what_a_driver_does_not_show_does_not_make_its_settings_fleeting(intended):
    inbox = provisioned(files_of(intended)) | {
        SYSFS: samples.NO_SYSFS,
        RDMA: samples.RDMA_SET.replace(
            "/sys/class/infiniband/mlx5_0/tc/1/traffic_class:Global tclass=106",
            "grep: /sys/class/infiniband/mlx5_0/tc: No such file or directory",
        ),
        DEBUGFS: samples.debugfs(samples.INTENDED_PARAMETERS),
    }
    assert MODULE.read(TARGET, inbox).saved is True


def test_the_intent_is_rounded_to_what_the_nic_stores(tmp_path):
    asked = intended_qos(make_site(tmp_path), "host1")
    once = MODULE.normalise(asked)
    (buffer,) = once.ports[0].ingress_buffers
    assert (buffer.size_bytes, buffer.xoff_bytes, buffer.xon_bytes) == (155520, 118760, 109544)
    assert MODULE.normalise(once) == once


def test_the_host_can_hold_what_its_weakest_nic_can():
    capabilities = MODULE.capabilities(TARGET)
    assert capabilities.max_lossless_classes == 7
    assert any("MLNX_OFED" in note for note in capabilities.notes)


def test_without_mlnx_qos_the_kernels_dcb_shows_the_same(intended):
    outputs = provisioned(files_of(intended)) | {DCB: samples.DCB_SET}
    del outputs[QOS]
    live = MODULE.read(TARGET, outputs)
    assert live.ports == intended.ports
    assert live.unread == ()
    with pytest.raises(ReadError, match=r"without mlnx_qos; install it \(mlnx-tools\)"):
        MODULE.change(TARGET, outputs, intended)


def test_a_kernel_that_answers_half_of_dcb_shows_no_port(intended):
    outputs = provisioned(files_of(intended)) | {DCB: samples.DCB_SET.splitlines()[0]}
    del outputs[QOS]
    assert MODULE.read(TARGET, outputs).ports == ()
    outputs[DCB] = "Segmentation fault\n"
    with pytest.raises(ReadError, match="dcb -j"):
        MODULE.read(TARGET, outputs)


def test_the_firmwares_mask_tells_what_the_kernels_driver_does_not():
    outputs = factory() | {
        SYSFS: samples.NO_SYSFS,
        DEBUGFS: samples.debugfs(samples.INTENDED_PARAMETERS),
        MLXCONFIG: samples.MLXCONFIG,
    }
    live = MODULE.read(TARGET, outputs)
    dcqcn = live.ports[0].nic.dcqcn
    assert (dcqcn.np_priorities, dcqcn.rp_priorities) == ((3,), (3,))
    assert not any("ECN " in fact for fact in live.unread)


@pytest.mark.parametrize(
    ("text", "remarked"),
    [
        (samples.MLXCONFIG, True),
        (samples.MLXCONFIG.replace("LLDP_NB_DCBX_P1", "LLDP_NB_TX_MODE_P1"), False),
        (samples.MLXCONFIG.replace("WILLING_P1                             True(1)",
                                   "WILLING_P1   True(1)   True(1)   False(0)"), False),
        ("-E- Failed to open the device\n", False),
        ("", False),
    ],
)  # fmt: skip
def test_willing_firmware_is_remarked_on_by_the_ports_own_lines(text, remarked):
    live = MODULE.read(TARGET, factory() | {MLXCONFIG: text})
    assert [(r.rule, r.port) for r in live.remarks] == ([("dcbx", "ens1f0")] if remarked else [])


def test_port_two_of_a_card_is_its_second_function():
    outputs = factory() | {MLXCONFIG: samples.MLXCONFIG, SYSFS: samples.NO_SYSFS}
    outputs[INFO] = outputs[INFO].replace("0000:3b:00.0", "0000:3b:00.1")
    assert MODULE.read(TARGET, outputs).remarks == ()


def test_banners_prompts_and_complaints_around_the_output_do_no_harm(intended):
    quiet = provisioned(files_of(intended))
    noisy = (
        "Last login: Tue Dec  1 10:00:00 2026 from 10.0.0.1\n*** Authorised use only ***\n"
        f"root@host1:~# mlnx_qos -i ens1f0\n{samples.QOS_SET}root@host1:~# \n"
    )
    assert MODULE.read(TARGET, quiet | {QOS: noisy}) == MODULE.read(TARGET, quiet)
