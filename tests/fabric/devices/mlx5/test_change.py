"""The change that takes a host with ConnectX NICs to what is intended, and back."""

import dataclasses
import subprocess

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
    return intended_qos(make_site(tmp_path), "host1")


@pytest.fixture
def good(intended):
    port = MODULE.normalise(intended).ports[0]
    script = render_script(port.name, FAMILY.settings(port))
    return provisioned(as_grep(script_path(port.name), script) + as_grep(UNIT_PATH, UNIT))


def change(outputs, intended):
    return MODULE.change(TARGET, outputs, intended)


def test_a_host_that_does_what_is_intended_needs_nothing(good, intended):
    found = change(good, intended)
    assert found.empty
    assert (found.diff, found.rollback) == ("", ())


def test_an_untouched_host_gets_everything_in_an_order_that_the_driver_takes(intended):
    commands = change(factory(), intended).commands
    words = [command.split() for command in commands]
    options = [word[3] for word in words if word[0] == "mlnx_qos"]
    # Nothing is said of rate limits: all eight classes are shown, and none has any.
    assert options == ["--trust", "--dscp2prio", "-p", "--prio2buffer", "--pfc"]
    heads = [
        next(i for i, command in enumerate(commands) if needle in command)
        for needle in ("--trust", "--dscp2prio", "ethtool -A", "mtu 9000", "--buffer_size", "--pfc")
    ]
    assert heads == sorted(heads)
    assert commands[-1] == "systemctl enable paisoar-roce@ens1f0.service"
    assert (
        "mlnx_qos -i ens1f0 -p 0,1,2,3,4,5,6,7 -s ets,ets,ets,ets,ets,ets,strict,ets "
        "-t 50,0,0,50,0,0,0,0"
    ) in commands
    assert "mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0 --cable_len 3" in commands
    assert "echo 0 > /sys/class/net/ens1f0/ecn/roce_np/enable/0" in commands
    assert "echo 55 > /sys/class/net/ens1f0/ecn/roce_rp/rpg_time_reset" in commands
    assert "echo 106 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class" in commands


def test_commands_that_are_right_already_are_left_out(intended):
    commands = change(factory(), intended).commands
    assert not any("--dcbx" in command for command in commands)
    assert not any("cnp_dscp" in command or "cnp_802p_prio" in command for command in commands)


def test_under_another_trust_the_whole_dscp_map_is_set(intended):
    (command,) = [c for c in change(factory(), intended).commands if "--dscp2prio" in c]
    assert command.count("--dscp2prio") == 64
    assert "--dscp2prio set,26,3 " in command
    assert "--trust" not in command


def test_one_wrong_dscp_is_one_setting(good, intended):
    text = samples.QOS_SET.replace("\tprio:3 dscp:26,\n", "\tprio:1 dscp:26,\n")
    found = change(good | {QOS: text}, intended)
    assert found.commands == ("mlnx_qos -i ens1f0 --dscp2prio set,26,3",)
    assert found.rollback == ("mlnx_qos -i ens1f0 --dscp2prio set,26,1",)
    assert found.files == ()
    assert found.diff.splitlines() == [
        "- ens1f0: dscp map 0:0-25,27-47,49-63 1:26 6:48",
        "+ ens1f0: dscp map 0:0-25,27-47,49-63 3:26 6:48",
    ]


def test_pfc_off_is_one_line_there_and_back(good, intended):
    text = samples.QOS_SET.replace("enabled     0   0   0   1", "enabled     0   0   0   0")
    found = change(good | {QOS: text}, intended)
    assert found.commands == ("mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0 --cable_len 3",)
    assert found.rollback == ("mlnx_qos -i ens1f0 --pfc 0,0,0,0,0,0,0,0 --cable_len 3",)
    assert found.diff == "- ens1f0: pfc off\n+ ens1f0: pfc 3\n"


def test_a_wrong_cable_is_set_together_with_pfc(good, intended):
    found = change(good | {QOS: samples.QOS_SET.replace("len: 3", "len: 7")}, intended)
    assert found.commands == ("mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0 --cable_len 3",)
    assert found.rollback == ("mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0 --cable_len 7",)


def test_buffers_move_only_while_pfc_is_off_both_ways(good, intended):
    text = samples.QOS_SET.replace("20736,155520,", "20016,156096,")
    found = change(good | {QOS: text}, intended)
    off = "mlnx_qos -i ens1f0 --pfc 0,0,0,0,0,0,0,0"
    on = "mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0 --cable_len 3"
    size = "mlnx_qos -i ens1f0 --prio2buffer 0,0,0,1,0,0,0,0 --buffer_size {},0,0,0,0,0,0"
    assert found.commands == (off, size.format("20736,155520"), on)
    assert found.rollback == (off, size.format("20016,156096"), on)


def test_the_size_of_the_lossy_buffer_is_not_ours_to_change(good, intended):
    text = samples.QOS_SET.replace("20736,155520,", "19872,155520,")
    assert change(good | {QOS: text}, intended).empty


def test_rollback_sets_back_what_was_read_in_reverse(intended):
    found = change(factory(), intended)
    assert found.rollback[0] == "systemctl disable paisoar-roce@ens1f0.service"
    assert found.rollback[-1] == "mlnx_qos -i ens1f0 --trust pcp"
    assert "ip link set dev ens1f0 mtu 1500" in found.rollback
    assert "echo -1 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class" in found.rollback
    assert "echo 300 > /sys/class/net/ens1f0/ecn/roce_rp/rpg_time_reset" in found.rollback
    assert (
        "mlnx_qos -i ens1f0 -p 1,0,2,3,4,5,6,7 -s "
        + ",".join(["vendor"] * 8)
        + " -t 0,0,0,0,0,0,0,0"
    ) in found.rollback
    assert any(line.endswith("ethtool -A ens1f0 rx on tx on") for line in found.rollback)
    at = [i for i, line in enumerate(found.rollback) if "--pfc" in line or "--buffer_size" in line]
    assert [found.rollback[i].split()[3] for i in at] == ["--pfc", "--prio2buffer", "--pfc"]


def test_files_are_written_with_what_was_there_before(good, intended):
    found = change(factory(), intended)
    assert [(f.path, f.before, f.mode) for f in found.files] == [
        ("/etc/paisoar/roce-ens1f0.sh", None, "0755"),
        ("/etc/systemd/system/paisoar-roce@.service", None, "0644"),
    ]
    assert found.files[1].after == UNIT
    stale = good | {FILES: good[FILES].replace("put 40 ", "put 41 ")}
    (file,) = change(stale, intended).files
    assert file.after == file.before.replace("put 41 ", "put 40 ")
    assert change(stale, intended).commands == ()
    assert not change(stale, intended).empty


def test_a_disabled_unit_is_only_enabled(good, intended):
    found = change(good | {ENABLED: "disabled\n"}, intended)
    assert found.commands == ("systemctl enable paisoar-roce@ens1f0.service",)
    assert found.rollback == ("systemctl disable paisoar-roce@ens1f0.service",)
    assert found.files == ()


def test_parameters_go_to_debugfs_where_the_driver_has_only_that(good, intended):
    parameters = samples.INTENDED_PARAMETERS | {"ai_rate_mbps": 5}
    outputs = good | {
        SYSFS: samples.NO_SYSFS,
        RDMA: samples.RDMA_INBOX,
        DEBUGFS: samples.debugfs(parameters),
    }
    found = change(outputs, intended)
    file = "/sys/kernel/debug/mlx5/0000:3b:00.0/cc_params/rp_ai_rate"
    assert f"echo 40 > {file}" in found.commands
    assert f"echo 5 > {file}" in found.rollback
    assert not any("/ecn/" in c or "traffic_class" in c for c in found.commands)


def test_what_cannot_be_seen_cannot_be_planned(good, intended):
    for command in (QOS, LINK, SYSFS, FILES):
        outputs = dict(good)
        del outputs[command]
        with pytest.raises(ReadError) as error:
            change(outputs, intended)
        assert command in str(error.value)


def test_a_port_that_the_host_does_not_have_is_named(good, intended):
    port = dataclasses.replace(intended.ports[0], name="ens9f9")
    with pytest.raises(ReadError, match="ens9f9"):
        change(good, dataclasses.replace(intended, ports=(port,)))


def test_every_command_is_shell_that_parses(good, intended):
    found = change(factory(), intended)
    for command in (*found.commands, *found.rollback):
        subprocess.run(["sh", "-n", "-c", command], check=True, capture_output=True)


def test_link_pause_is_set_once_and_then_left_alone(tmp_path, intended):
    # ethtool itself fails where nothing changes, so the command has to look first.
    (command,) = [c for c in change(factory(), intended).commands if "ethtool" in c]
    state = tmp_path / "pause"
    state.write_text(samples.ethtool_a("on", "off"))
    tool = tmp_path / "ethtool"
    tool.write_text(
        f'#!/bin/sh\n[ "$1" = -a ] && exec cat {state}\necho "$@" >> {tmp_path}/log\n'
        f"grep -q on {state} || exit 79\nsed -i s/on$/off/ {state}\n"
    )
    tool.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    for _ in range(2):
        subprocess.run(["sh", "-c", command], check=True, env=environment)
    assert (tmp_path / "log").read_text() == "-A ens1f0 rx off tx off\n"


def test_complaints_of_tools_are_told_from_answers():
    assert MODULE.is_error("sh: 1: mlnx_qos: not found")
    assert MODULE.is_error("Buffers commands are not supported on your system")
    assert not MODULE.is_error(samples.QOS_SET)
    assert MODULE.safety_net("run1").prepare == ()
    assert (MODULE.os, MODULE.netmiko_type) == ("linux", "")


def test_a_capped_class_is_set_free_and_the_way_back_caps_it_again(good, intended):
    text = good[QOS].replace("tc: 3 ratelimit: unlimited", "tc: 3 ratelimit: 1.0 Gbps")
    assert text != good[QOS]
    capped = {**good, QOS: text}
    port = MODULE.read(TARGET, capped).ports[0]
    assert [q.max_rate_bps for q in port.queues] == [0, 0, 0, 10**9, 0, 0, 0, 0]
    found = change(capped, intended)
    assert "mlnx_qos -i ens1f0 -r 0,0,0,0,0,0,0,0" in found.commands
    assert "mlnx_qos -i ens1f0 -r 0,0,0,1,0,0,0,0" in found.rollback
    assert "- ens1f0: rate limits tc3 1G\n+ ens1f0: rate limits none\n" in found.diff


def test_limits_of_classes_that_are_not_shown_are_taken_off_too(good, intended):
    text = good[QOS].replace("tc: 7 ratelimit: unlimited, tsa: ets, bw: 0%\n\t priority:  7\n", "")
    assert text != good[QOS]
    found = change({**good, QOS: text}, intended)
    assert "mlnx_qos -i ens1f0 -r 0,0,0,0,0,0,0,0" in found.commands
    assert "- ens1f0: rate limits tc7 not shown" in found.diff


@pytest.mark.parametrize(
    ("file", "value", "right", "field"),
    [
        ("rpg_max_rate", 1000, 0, "max_rate_mbps"),
        ("rpg_gd", 10, 11, "gd_log2"),
        ("rpg_min_dec_fac", 5, 50, "min_decrease_percent"),
        ("clamp_tgt_rate", 1, 0, "clamp_target"),
        ("clamp_tgt_rate_after_time_inc", 0, 1, "clamp_target_after_time"),
    ],
)
def test_parameters_that_throttle_a_sender_are_read_and_put_right(
    good, intended, file, value, right, field
):
    path = f"{samples.ECN}/roce_rp/{file}"
    throttled = {**good, SYSFS: good[SYSFS].replace(f"{path}:{right}\n", f"{path}:{value}\n")}
    assert getattr(MODULE.read(TARGET, throttled).ports[0].nic.dcqcn, field) == value
    found = change(throttled, intended)
    assert f"echo {right} > {path}" in found.commands
    assert f"echo {value} > {path}" in found.rollback


def test_a_release_without_these_parameters_is_read_and_planned_all_the_same(good, intended):
    names = ("rpg_max_rate", "rpg_gd", "rpg_min_dec_fac", "clamp_tgt_rate")
    lines = good[SYSFS].splitlines(keepends=True)
    old = {**good, SYSFS: "".join(x for x in lines if not any(f"/{n}" in x for n in names))}
    dcqcn = MODULE.read(TARGET, old).ports[0].nic.dcqcn
    assert (dcqcn.max_rate_mbps, dcqcn.gd_log2, dcqcn.clamp_target_after_time) == (0, 11, 1)
    assert not any("rpg_" in command for command in change(old, intended).commands)


def test_a_member_of_a_bond_with_a_small_mtu_is_planned_with_its_bond(good, intended):
    net = "/sys/class/net/ens1f0"
    bond = f"{net}/master/uevent:DEVTYPE=bond\n{net}/master/uevent:INTERFACE=bond0\n"
    bond += f"{net}/master/mtu:1500\n"
    held = {**good, FACTS[0]: samples.LINK_FACTS + bond}
    assert MODULE.read(TARGET, held).ports[0].mtu_bytes == 1500
    commands = change(held, intended).commands
    assert "ip link set dev ens1f0 mtu 9000" in commands
    assert any("bonding_slave" in command and command.endswith("mtu 9000") for command in commands)
