import re
from dataclasses import replace

import pytest
from hypothesis import given, settings

from fabric.devices.nxos import MODULE
from fabric.errors import InputError
from fabric.intended import intended_qos
from fabric.qos import Ecn, Queue, Scheduler, Watchdog
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from tests.fabric.devices.nxos.listings import roce_port, switch, switches, target

# Lines of blogs that a Nexus 9000 refuses (Enizaksoy/lab-baremetal-gpu-cluster,
# SETUP_GUIDE_STEP_BY_STEP.md, and another).
REFUSED = (
    re.compile(r"^feature qos", re.M),
    re.compile(r"class type network-qos c-out-"),
    re.compile(r"^\s*random-detect ecn\s*$", re.M),
    re.compile(r"pause no-drop"),
    re.compile(r"congestion-control random-detect"),
)


def read_back(text: str, *ports: str):
    return MODULE.read(target(*ports), {"show running-config": text})


@settings(max_examples=60, deadline=None)
@given(switches())
def test_what_is_rendered_reads_back_as_the_same_on_every_port(state):
    assert read_back(MODULE.render(state)).ports == MODULE.normalise(state).ports


@settings(max_examples=30, deadline=None)
@given(switches())
def test_what_nxos_can_express_is_left_as_it_is(state):
    paused = {priority for port in state.ports for priority in port.pfc_priorities}
    normal = MODULE.normalise(state)
    assert normal.ports[0].dscp_to_priority == state.ports[0].dscp_to_priority
    assert MODULE.normalise(normal) == normal
    assert {p for port in normal.ports for p in port.pfc_priorities} == paused
    assert [port.queues for port in normal.ports] == [port.queues for port in state.ports]


@settings(max_examples=60, deadline=None)
@given(switches())
def test_no_line_that_a_nexus_9000_refuses_is_ever_rendered(state):
    text = MODULE.render(state)
    for pattern in REFUSED:
        assert not pattern.search(text)
    for line in text.splitlines():
        if line.startswith(("class-map", "policy-map")):
            assert len(line.split()[-1]) <= 40


def test_a_port_gets_its_classes_pause_ecn_and_strict_cnp():
    text = MODULE.render(switch(roce_port()))
    for block in (
        "class-map type qos match-any PAISOAR-DSCP-26\n  match dscp 26\n",
        "  class PAISOAR-DSCP-26\n    set qos-group 3\n",
        "  class class-default\n    set qos-group 0\n",
        "  class type network-qos c-8q-nq3\n    mtu 9216\n    pause pfc-cos 3\n",
        "  class type queuing c-out-8q-q6\n    priority level 1\n",
        "  class type queuing c-out-8q-q3\n    bandwidth remaining percent 50\n"
        "    random-detect minimum-threshold 100 kbytes maximum-threshold 400 kbytes "
        "drop-probability 20 weight 0 ecn\n",
        "  class type queuing c-in-q3\n"
        "    pause buffer-size 173000 pause-threshold 150000 resume-threshold 140000\n",
        "interface Ethernet1/1\n  mtu 9216\n  priority-flow-control mode on\n"
        "  priority-flow-control watch-dog-interval on\n"
        "  service-policy type qos input PAISOAR-IN-",
    ):
        assert block in text
    assert text.startswith(
        "priority-flow-control watch-dog-interval on\n"
        "priority-flow-control watch-dog shutdown-multiplier 2\n"
    )
    assert "flowcontrol" not in text.replace("priority-flow-control", "")


def test_ports_with_other_thresholds_get_other_policies_and_like_ports_share_one():
    text = MODULE.render(
        switch(
            roce_port("Ethernet1/1"),
            roce_port("Ethernet1/2"),
            roce_port("Ethernet1/49", kmin=400_000),
        )
    )
    attached = re.findall(r"service-policy type queuing output (\S+)", text)
    assert attached[0] == attached[1] != attached[2]
    assert len(re.findall(r"^policy-map type queuing PAISOAR-OUT-", text, re.M)) == 2
    assert len(re.findall(r"^policy-map type qos ", text, re.M)) == 1


def test_names_follow_from_content_alone():
    one = MODULE.render(switch(roce_port("Ethernet1/1")))
    two = MODULE.render(replace(switch(roce_port("Ethernet1/7")), device="another"))
    names = re.findall(r"PAISOAR-\S+", one)
    assert names == re.findall(r"PAISOAR-\S+", two)
    assert names != re.findall(r"PAISOAR-\S+", MODULE.render(switch(roce_port(kmin=7000))))


def test_thresholds_that_are_no_kilobytes_stay_exact():
    port = roce_port()
    queues = tuple(
        replace(queue, ecn=Ecn(100_001, 400_000, 5)) if queue.ecn else queue
        for queue in port.queues
    )
    state = switch(replace(port, queues=queues))
    assert "minimum-threshold 100001 bytes maximum-threshold 400 kbytes" in MODULE.render(state)
    assert read_back(MODULE.render(state)).ports[0].queues[3].ecn == Ecn(100_001, 400_000, 5)


def test_watchdog_times_become_what_the_switch_can_do():
    ports = (
        replace(roce_port("Ethernet1/1"), watchdog=Watchdog(150, 400, "shutdown")),
        replace(roce_port("Ethernet1/2"), watchdog=Watchdog(420, 400, "forward")),
        replace(roce_port("Ethernet1/3"), watchdog=None),
    )
    normal = MODULE.normalise(switch(*ports))
    assert [port.watchdog for port in normal.ports] == [
        Watchdog(500, None, "drop"),
        Watchdog(500, None, "drop"),
        None,
    ]
    assert read_back(MODULE.render(switch(*ports))).ports == normal.ports
    slow = replace(roce_port(), watchdog=Watchdog(5000, 400))
    assert MODULE.normalise(switch(slow)).ports[0].watchdog == Watchdog(1000, None)


@pytest.mark.parametrize(
    ("port", "says"),
    [
        (replace(roce_port("Ethernet1/2"), trust="pcp"), "leaf-1:Ethernet1/2: NX-OS cannot trust"),
        (
            replace(roce_port("Ethernet1/2"), priority_to_class=(0, 0, 2, 3, 4, 5, 6, 7)),
            "map a priority to another queue",
        ),
        (replace(roce_port("Ethernet1/2"), link_pause=True), "pause the link and single"),
        (
            replace(
                roce_port("Ethernet1/2"),
                queues=tuple(Queue(number, Scheduler("strict")) for number in range(4)),
            ),
            "serve more than 3 queues strictly",
        ),
        (replace(roce_port("Ethernet1/2"), pfc_priorities=(4,)), "pause other priorities"),
        (
            replace(roce_port("Ethernet1/2"), class_mtu_bytes=(1500,) * 8),
            "give a class another MTU",
        ),
    ],
)
def test_what_nxos_cannot_express_is_an_error_that_says_so(port, says):
    with pytest.raises(InputError, match=says):
        MODULE.render(switch(roce_port(), port))


def test_the_starter_site_is_within_what_nxos_can_do(tmp_path):
    path = tmp_path / "fabric.yaml"
    path.write_text(
        starter_yaml(ClosShape(hosts=4, leaves=2, spines=2), site="s", environment="twin")
    )
    site = load_site(path)
    for name in site.topology.switches:
        intended = intended_qos(site, name)
        assert read_back(MODULE.render(intended)).ports == MODULE.normalise(intended).ports


def test_nothing_intended_renders_nothing():
    assert MODULE.render(switch()) == ""
