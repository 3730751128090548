"""Soft-RoCE: read for what it is, and never judged as lossless.

hw_counters and sysfs as in Linux 6.1, drivers/infiniband/sw/rxe/{rxe_hw_counters.c,rxe_verbs.c}.
"""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.audit import audit
from fabric.counters import COUNTER_NAMES
from fabric.devices.base import ReadError
from fabric.devices.linux import MODULE
from fabric.devices.linux.script import UNIT, UNIT_PATH, render_script, script_path
from fabric.devices.registry import expected_qos, target_of
from fabric.devices.rxe import FAMILY
from fabric.intended import intended_qos
from fabric.site import load_site
from tests.sites import make_site, write_site

SWITCH_ONLY = {"tx_queue_packets", "tx_queue_bytes", "ecn_marked_packets", "watchdog_storms"}
TOS = "/sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_tos"
LINK = '[{{"ifindex":2,"ifname":"ens1f0","flags":["UP"],"mtu":{},"operstate":"UP"}}]\n'
COUNTERS = """\
ack_deferred:0
completer_retry_err:4
duplicate_request:1
lifespan:10
link_downed:0
out_of_seq_request:2
rcvd_pkts:900
rcvd_rnr_err:5
rcvd_seq_err:3
rdma_recvs:7
sent_pkts:800
"""


@pytest.fixture
def site(tmp_path):
    """Host 1 has rxe over its interface, the others ConnectX."""
    path = write_site(tmp_path)
    text = path.read_text()
    path.write_text(text.replace("family: mlx5, rdma: mlx5_0", "family: rxe, rdma: rxe0", 1))
    return load_site(path)


def outputs_of(site, mtu=9000, tos="106"):
    target = target_of(site, "host1")
    port = MODULE.normalise(intended_qos(site, "host1")).ports[0]
    script = render_script(port.name, FAMILY.settings(port))
    files = {script_path(port.name): script, UNIT_PATH: UNIT}
    shown = dict.fromkeys(MODULE.read_commands(target), "")
    kernel, enabled, dump, *_ = shown
    link, grep = FAMILY.read_commands(target.ports[0])
    return target, shown | {
        kernel: "6.1.0-57-amd64\n",
        enabled: "enabled\n",
        dump: "".join(f"{p}:{line}\n" for p, text in files.items() for line in text.splitlines()),
        link: LINK.format(mtu),
        grep: f"/sys/class/infiniband/rxe0/parent:ens1f0\n{TOS}:{tos}\n",
    }


def test_mtu_and_rdma_cm_are_all_that_is_asked_for(site):
    target, outputs = outputs_of(site)
    live = MODULE.read(target, outputs)
    assert live.ports == MODULE.normalise(intended_qos(site, "host1")).ports
    assert live.saved is True
    assert live.ports[0].pfc_priorities == ()
    assert live.model == "Soft-RoCE"
    assert MODULE.capabilities(target).max_lossless_classes == 0


def test_what_differs_is_set_and_goes_back(site):
    target, outputs = outputs_of(site, mtu=1500, tos="0")
    change = MODULE.change(target, outputs, intended_qos(site, "host1"))
    assert change.commands[0] == "ip link set dev ens1f0 mtu 9000"
    assert f"echo 106 > {TOS}" in change.commands[1]
    assert change.rollback == (
        change.commands[1].replace("106", "0"),
        "ip link set dev ens1f0 mtu 1500",
    )


def test_a_device_that_configfs_held_nothing_of_goes_back_to_that(site):
    target, outputs = outputs_of(site)
    grep = FAMILY.read_commands(target.ports[0])[1]
    outputs[grep] = f"/sys/class/infiniband/rxe0/parent:ens1f0\ngrep: {TOS}: No such file\n"
    change = MODULE.change(target, outputs, intended_qos(site, "host1"))
    assert change.rollback == (f"echo 0 > {TOS} && rmdir /sys/kernel/config/rdma_cm/rxe0",)


def test_any_mtu_and_traffic_class_is_read_back_and_left_alone(site):
    intended = intended_qos(site, "host1")

    @settings(max_examples=40, deadline=None)
    @given(mtu=st.integers(1280, 9500), tos=st.integers(0, 255))
    def reached(mtu, tos):
        (port,) = intended.ports
        nic = dataclasses.replace(port.nic, rdma_cm_tos=tos)
        asked = dataclasses.replace(
            intended, ports=(dataclasses.replace(port, mtu_bytes=mtu, nic=nic),)
        )
        target, outputs = outputs_of(site, mtu=mtu, tos=str(tos))
        held, wanted = MODULE.read(target, outputs).ports[0], MODULE.normalise(asked).ports[0]
        # The boot script is that of the site's own intent.
        assert (
            dataclasses.replace(held, nic=dataclasses.replace(held.nic, persistent=True)) == wanted
        )
        assert not any("rdma_cm" in line or " mtu " in line for line in commands(outputs, asked))
        _, other = outputs_of(site, mtu=mtu + 1, tos=str(255 - tos))
        assert f"ip link set dev ens1f0 mtu {mtu}" in commands(other, asked)
        assert any(f"echo {tos} > {TOS}" in line for line in commands(other, asked))

    def commands(outputs, asked):
        return MODULE.change(target_of(site, "host1"), outputs, asked).commands

    reached()


def test_the_audit_skips_and_never_passes_it(site):
    target, outputs = outputs_of(site)
    states = {name: expected_qos(site, name) for name in site.devices}
    everyone = audit(site, states, states)
    states["host1"] = MODULE.read(target, outputs)
    report = audit(site, states, {name: expected_qos(site, name) for name in site.devices})
    assert report.findings == ()
    skipped = {(skip.rule, skip.device) for skip in report.skipped}
    assert ("software-nic", "host1") in skipped
    unread = [skip.reason for skip in report.skipped if skip.rule == "unread"]
    for fact in ("PFC of priorities", "receive buffer", "DCQCN parameters", "trust"):
        assert any(reason.startswith(f"ens1f0: {fact}") for reason in unread), fact
    # Three of four hosts are left that a path can be lossless between.
    assert report.paths.lossless_pairs == 3 * 2
    assert "; of 6 it cannot be said: a port was not read, or is software" in report.paths.summary
    assert everyone.paths.lossless_pairs < 4 * 3


def test_counters_are_its_own_and_pause_is_missing_with_a_reason(site):
    target = target_of(site, "host1")
    (command,) = FAMILY.counter_commands(target.ports[0])
    folder = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
    text = "".join(f"{folder}/{line}\n" for line in COUNTERS.splitlines())
    below = {"rx_packets": 950, "tx_packets": 850, "rx_bytes": 95_000, "tx_bytes": 85_000}
    text += "".join(f"/sys/class/net/ens1f0/statistics/{n}:{v}\n" for n, v in below.items())
    shot = MODULE.read_counters(target, {command: text}, 1.0)
    values = {counter.name: counter.value for counter in shot.counters}
    assert values["out_of_sequence"] == 2
    assert values["packet_seq_err"] == 3
    # A cable's two ends agree on what crossed it, not on what a queue pair took.
    assert {name: values[name] for name in below} == below
    assert "rx_pause_frames" not in values
    # Every counter that judgement may ask of a NIC is there, or has its reason.
    excused = {said.split(": ")[1] for said in shot.missing}
    assert excused | set(values) >= set(COUNTER_NAMES) - SWITCH_ONLY
    assert "ens1f0: rx_pause_us: rxe has no PFC" in shot.missing
    assert MODULE.read_counters(target, {}, 1.0).counters == ()


def test_nothing_is_planned_without_the_link(site):
    target, outputs = outputs_of(site)
    del outputs[FAMILY.read_commands(target.ports[0])[0]]
    with pytest.raises(ReadError, match="ens1f0"):
        MODULE.change(target, outputs, intended_qos(site, "host1"))


def test_an_intent_of_nothing_but_the_two_is_its_own_normal_form(tmp_path):
    port = intended_qos(make_site(tmp_path), "host1").ports[0]
    once = FAMILY.normalise(port)
    assert FAMILY.normalise(once) == once
    assert once.nic == dataclasses.replace(
        port.nic, dcbx="off", cable_m=0, verbs_traffic_class=None, dcqcn=None
    )
