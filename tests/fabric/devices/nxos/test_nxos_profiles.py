"""Settings that a port has from a port-profile.

Rules of Cisco's Interfaces Configuration Guides, "Port Profiles": a port's own lines go
before its profile's, a profile's own before those that it inherits, and a profile that is
not enabled does nothing.
"""

import pytest

from fabric.devices.nxos import MODULE
from fabric.errors import DeviceError
from fabric.unread import FIELDS, Fact, unseen
from tests.fabric.devices.nxos.listings import roce_port, switch, target

PORTS = ("Ethernet1/1", "Ethernet1/2")
INTENDED = switch(*map(roce_port, PORTS))
RUNNING = "show running-config"


def running(*, own=(), profile="port-profile type ethernet GPU", state="state enabled", more=""):
    """The first port's lines in a profile, but for those of its own."""
    rendered = MODULE.render(INTENDED)
    head, _, rest = rendered.partition("interface Ethernet1/1\n")
    lines = rest[: rest.index("interface ")].splitlines()
    kept = "".join(f"  {line}\n" for line in ("inherit port-profile GPU", *own))
    held = "\n".join([profile, *lines, f"  {state}", ""])
    second = rest[rest.index("interface ") :]
    return f"{head}{held}{more}interface Ethernet1/1\n{kept}{second}"


def read(text):
    return MODULE.read(target(*PORTS), {RUNNING: text})


def change(text):
    return MODULE.change(target(*PORTS), {RUNNING: text}, INTENDED)


def test_a_port_does_what_its_profile_says():
    held = read(running())
    assert held.ports == MODULE.normalise(INTENDED).ports
    assert held.unread == read(MODULE.render(INTENDED)).unread
    assert change(running()).empty


def test_a_line_of_the_port_itself_goes_before_its_profiles():
    text = running(own=("mtu 1500", "priority-flow-control mode off"))
    port = read(text).port("Ethernet1/1")
    assert (port.mtu_bytes, port.pfc_priorities) == (1500, ())
    assert port.queues == MODULE.normalise(INTENDED).ports[0].queues
    plan = change(text)
    assert plan.commands == (
        "interface Ethernet1/1",
        "  mtu 9216",
        "  priority-flow-control mode on",
    )


def test_a_profile_inherits_another_and_what_it_says_itself_goes_first():
    base = running(profile="port-profile type ethernet BASE")
    above = "port-profile type ethernet GPU\n  inherit port-profile BASE\n  mtu 4000\n"
    text = base.replace(
        "interface Ethernet1/1\n", f"{above}  state enabled\ninterface Ethernet1/1\n"
    )
    port = read(text).port("Ethernet1/1")
    assert (port.mtu_bytes, port.pfc_priorities, port.trust) == (4000, (3,), "dscp")
    assert change(text).commands == ("interface Ethernet1/1", "  mtu 9216")


def test_a_profile_that_is_not_enabled_does_nothing():
    port = read(running(state="description off")).port("Ethernet1/1")
    assert (port.mtu_bytes, port.trust, port.pfc_priorities) == (1500, "none", ())


def test_nothing_is_known_of_a_port_whose_profile_is_not_shown():
    state = read(running(profile="port-profile type ethernet OTHER"))
    for fact in Fact:
        assert "inherits a port-profile that is not shown: GPU" in unseen(
            state.unread, "Ethernet1/1", fact
        )
        assert not unseen(state.unread, "Ethernet1/2", fact)
        assert fact in FIELDS


def test_a_line_of_a_profile_that_is_not_intended_is_for_its_owner_to_take_out():
    text = running().replace("  state enabled", "  flowcontrol receive on\n  state enabled")
    assert read(text).port("Ethernet1/1").link_pause
    with pytest.raises(DeviceError, match="Ethernet1/1 inherits 'flowcontrol receive on'"):
        change(text)


def test_a_member_of_a_port_channel_has_the_policies_of_its_channels_profile():
    channel = "interface port-channel10\n  inherit port-profile GPU\n"
    text = running(profile="port-profile type port-channel GPU", more=channel).replace(
        "interface Ethernet1/1\n  inherit port-profile GPU\n",
        "interface Ethernet1/1\n  channel-group 10 mode active\n",
    )
    assert read(text).ports == MODULE.normalise(INTENDED).ports
