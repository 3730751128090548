"""Members of port channels: read as their channel makes them, left alone or refused."""

import pytest

from fabric.devices.registry import SWITCHES, load
from fabric.devices.sections import parse, to_text
from fabric.errors import DeviceError
from tests.fabric.devices.intents import roce_port, state, target

SYSTEMS = {
    "nxos": (("Ethernet1/1", "Ethernet1/3"), "port-channel10"),
    "eos": (("Ethernet1", "Ethernet3"), "Port-Channel10"),
}
QOS = ("mtu ", "priority-flow-control ", "service-p", "uc-tx-queue ", "flowcontrol ", "qos trust")


def running_of(os, intended, *, member, at_channel):
    """A switch that does as intended; the first port is a member, its lines where asked."""
    (port, _), channel = SYSTEMS[os]
    sections = parse(load(SWITCHES, os).render(intended))
    (found,) = (s for s in sections if s.text == f"interface {port}")
    lines = [line for line in found.children if line.text.startswith(QOS)]
    found.children = [line for line in found.children if line not in lines]
    (mode,) = parse("channel-group 10 mode active")
    found.children += [mode, *(lines if member else [])]
    (made,) = parse(f"interface {channel}")
    made.children = lines if at_channel else []
    return to_text([made, *sections])


def plan(os, text, intended):
    ports, _ = SYSTEMS[os]
    outputs = {"show running-config": text}
    return load(SWITCHES, os).change(target(os, *ports), outputs, intended)


def intended_of(os):
    return state(os, *map(roce_port, SYSTEMS[os][0]))


@pytest.mark.parametrize("os", SYSTEMS)
def test_a_member_that_is_not_as_intended_is_refused_with_what_its_channel_lacks(os):
    intended = intended_of(os)
    text = running_of(os, intended, member=False, at_channel=False)
    with pytest.raises(DeviceError) as error:
        plan(os, text, intended)
    (port, other), channel = SYSTEMS[os]
    assert f"not as intended: {port} of {channel}; PAISoar sets no channels" in str(error.value)
    assert f"{other} of" not in str(error.value)
    assert "no channel-group" in str(error.value)
    assert "mtu 9" in str(error.value)


def test_a_member_whose_channel_is_as_intended_needs_nothing_on_nxos():
    intended = intended_of("nxos")
    text = running_of("nxos", intended, member=False, at_channel=True)
    assert plan("nxos", text, intended).empty
    ports, _ = SYSTEMS["nxos"]
    module = load(SWITCHES, "nxos")
    held = module.read(target("nxos", *ports), {"show running-config": text})
    assert held.port(ports[0]) == module.normalise(intended).port(ports[0])


def test_policies_of_a_member_itself_do_nothing_on_nxos():
    intended = intended_of("nxos")
    text = running_of("nxos", intended, member=True, at_channel=False)
    ports, _ = SYSTEMS["nxos"]
    held = load(SWITCHES, "nxos").read(target("nxos", *ports), {"show running-config": text})
    assert held.port(ports[0]).trust == "none"
    assert held.port(ports[1]).trust == "dscp"
    with pytest.raises(DeviceError, match="service-policy type qos input"):
        plan("nxos", text, intended)


def test_a_member_that_is_as_intended_itself_is_left_alone_on_eos():
    intended = intended_of("eos")
    text = running_of("eos", intended, member=True, at_channel=False)
    assert plan("eos", text, intended).empty


@pytest.mark.parametrize("os", SYSTEMS)
def test_other_ports_of_a_switch_with_a_good_member_are_changed_all_the_same(os):
    intended = intended_of(os)
    text = running_of(os, intended, member=os == "eos", at_channel=os == "nxos")
    (port, other), channel = SYSTEMS[os]
    mtu = next(line for line in text.splitlines() if line.strip().startswith("mtu 9"))
    head, tail = text.split(f"interface {other}\n")
    change = plan(os, f"{head}interface {other}\n" + tail.replace(mtu, mtu[:-1] + "1", 1), intended)
    assert f"interface {other}" in change.commands
    assert f"interface {port}" not in change.commands
    assert f"interface {channel}" not in change.commands
