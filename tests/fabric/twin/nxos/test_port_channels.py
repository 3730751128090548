"""Port channels and broken-out ports on the emulated NX-OS, and what becomes of them.

Rules: Cisco Nexus 9000 Interfaces and QoS configuration guides, see ``config_channels``.
"""

from __future__ import annotations

import pytest

from fabric.audit import audit
from fabric.devices.registry import expected_qos, module_of, target_of
from fabric.errors import DeviceError
from fabric.intended import intended_qos
from fabric.site import Site, load_site
from fabric.twin.nxos import EmulatedSwitch
from tests.fabric.twin.consoles import Console
from tests.sites import write_site

PORT = "Ethernet1/1"


@pytest.fixture
def config(console: Console) -> Console:
    console.type("configure terminal", "feature lacp")
    return console


def test_a_channel_group_makes_its_channel_and_is_printed_with_it(config: Console):
    config.type("interface Ethernet1/1-2", "channel-group 10 mode active", "end")
    text = config.running()
    channel, port = text.index("interface port-channel10\n"), text.index("interface Ethernet1/1\n")
    assert channel < port
    assert "  channel-group 10 mode active\n" in text[port:]
    assert "no switchport" in text[channel:port]
    summary = config.type("show port-channel summary")
    assert "10    Po10(RU)     Eth      LACP      Eth1/1(P)    Eth1/2(P)" in summary


def test_a_configuration_with_channels_boots_as_it_was_saved(config: Console, leaf: EmulatedSwitch):
    config.type(
        "interface port-channel10", "no switchport", "mtu 9216", "priority-flow-control mode on",
        "interface Ethernet1/1-2", "channel-group 10 force mode active",
        "interface breakout module 1 port 54 map 25g-4x", "end",
    )  # fmt: skip
    before = config.running()
    leaf.replace_config(leaf.running_text())
    assert config.running() == before
    assert before.count("mtu 9216") == before.count("priority-flow-control mode on") == 3


@pytest.mark.parametrize(
    ("lines", "line", "says"),
    [
        (("no feature lacp", "interface e1/1"), "channel-group 10 mode active", "feature lacp"),
        (
            ("interface po10", "no switchport", "mtu 9216", "interface e1/1"),
            "channel-group 10",
            "command failed: port not compatible [MTU]",
        ),
        (
            ("interface po10", "interface e1/1"),
            "channel-group 10",
            "command failed: port not compatible [Ethernet Layer]",
        ),
        (("interface e1/1", "channel-group 10"), "mtu 9216", "member of port-channel10"),
        (("interface e1/1",), "channel-group 4097", "Invalid range"),
        (("interface loopback0",), "channel-group 10", "not supported on this interface"),
        (("interface e1/1", "channel-group 10"), "no channel-group 11", "not a member"),
        ((), "interface breakout module 1 port 1 map 25g-4x", "cannot be broken out"),
        ((), "interface breakout module 1 port 54 map 25g-3x", "Invalid command"),
        ((), "interface Ethernet1/54/1", "does not exist"),
    ],
)
def test_what_a_switch_refuses(config: Console, lines, line, says):
    config.type(*lines)
    assert says in config.refused(line)


def test_forced_members_do_as_their_channel_and_keep_it_when_it_goes(config: Console):
    config.type(
        "interface port-channel10", "no switchport", "mtu 9216", "flowcontrol receive on",
        "interface Ethernet1/1", "channel-group 10 force", "interface port-channel10", "mtu 4000",
        "no interface port-channel10", "end",
    )  # fmt: skip
    text = config.running()
    port = text[text.index("interface Ethernet1/1\n") : text.index("interface Ethernet1/2\n")]
    assert "mtu 4000" in port
    assert "flowcontrol receive on" in port
    assert "channel" not in text


def test_the_channels_policies_take_effect_and_its_members_own_do_not(config: Console):
    config.type("end")
    config.configure_roce()
    config.type(
        "configure terminal", "feature lacp", "policy-map type queuing OTHER",
        "class type queuing c-out-8q-q3", "bandwidth remaining percent 10",
        "interface Ethernet1/1", "service-policy type queuing output OTHER",
    )  # fmt: skip
    assert "10" in _share(config)
    config.type("channel-group 10")
    assert "50" in _share(config)
    config.type("interface port-channel10", "service-policy type queuing output OTHER")
    assert "10" in _share(config)
    config.type("interface Ethernet1/1", "no service-policy type queuing output OTHER")
    assert "10" in _share(config)


def _share(console: Console) -> list[str]:
    lines = console.type("show queuing interface ethernet 1/1").splitlines()
    return next(line.split() for line in lines if line.split()[:1] == ["3"])


def test_a_port_is_broken_out_and_put_together_again(config: Console):
    line = "interface breakout module 1 port 53-54 map 25g-4x"
    config.type(line, "interface Ethernet1/53/2", "mtu 9216", "end")
    text = config.running()
    assert f"{line}\n" in text
    assert [f"interface Ethernet1/54/{n}\n" in text for n in range(6)] == [
        False, True, True, True, True, False,
    ]  # fmt: skip
    assert "interface Ethernet1/54\n" not in text
    config.type("configure terminal", f"no {line}", "end")
    assert "Ethernet1/53/2" not in config.running()
    assert "interface Ethernet1/54\n" in config.running()


class Leaf:
    """The first leaf of a site, whose first port is in a port channel."""

    def __init__(self, site: Site, console: Console) -> None:
        self.site, self.console = site, console
        self.module, self.target = module_of(site, "leaf1"), target_of(site, "leaf1")

    def outputs(self) -> dict[str, str]:
        return {c: self.console.type(c) for c in self.module.read_commands(self.target)}

    def change(self):
        return self.module.change(self.target, self.outputs(), intended_qos(self.site, "leaf1"))

    def findings(self):
        outputs = self.outputs()
        state = self.module.read(self.target, outputs)
        intended = {"leaf1": expected_qos(self.site, "leaf1")}
        report = audit(self.site, {"leaf1": state}, intended, outputs={"leaf1": outputs})
        return [one for one in report.findings if one.rule != "unsaved"]


@pytest.fixture
def provisioned(site: Site, console: Console) -> Leaf:
    leaf = Leaf(site, console)
    console.type("configure terminal", *leaf.change().commands, "end")
    assert leaf.findings() == []
    return leaf


def test_a_member_without_its_channels_policies_is_found_refused_and_mended_by_hand(provisioned):
    console = provisioned.console
    console.type(
        "configure terminal", "feature lacp", f"interface {PORT}", "channel-group 10 mode active"
    )
    console.type("end")
    found = provisioned.findings()
    assert {one.port for one in found} == {PORT}
    assert {"trust", "buffer"} <= {one.rule for one in found}
    with pytest.raises(DeviceError, match="PAISoar sets no channels") as error:
        provisioned.change()
    for one in found:
        assert one.fix == (error.value.advice,)
    lines = error.value.advice.partition("set by hand: ")[2].rstrip(".").split("; ")
    assert all("service-policy" in line for line in lines)
    console.type("configure terminal", "interface port-channel10", *lines, "end")
    assert provisioned.findings() == []
    assert provisioned.change().empty


def test_a_port_that_leaves_its_channel_is_provisioned_like_any_other(provisioned):
    console = provisioned.console
    console.type("configure terminal", "feature lacp", f"interface {PORT}", "channel-group 10")
    console.type("interface port-channel10", "mtu 1500", "no interface port-channel10", "end")
    assert [one.rule for one in provisioned.findings()] == ["mtu"]
    change = provisioned.change()
    assert change.commands == (f"interface {PORT}", "  mtu 9216")
    console.type("configure terminal", *change.commands, "end")
    assert provisioned.findings() == []


def test_a_cable_to_a_broken_out_port_is_provisioned_and_judged(tmp_path):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("'leaf1:Ethernet1/1'", "'leaf1:Ethernet1/50/2'"))
    site = load_site(path)
    leaf = Leaf(site, Console(EmulatedSwitch("leaf1", tmp_path / "devices", site)))
    assert "interface breakout module 1 port 50 map 25g-4x\n" in leaf.console.running()
    leaf.console.type("configure terminal", *leaf.change().commands, "end")
    assert leaf.findings() == []
    leaf.console.type("configure terminal", "interface e1/50/2", "no priority-flow-control mode")
    leaf.console.type("end")
    assert [(one.rule, one.port) for one in leaf.findings()] == [("pfc", "Ethernet1/50/2")]
    leaf.console.type(
        "configure terminal", "no interface breakout module 1 port 50 map 25g-4x", "end"
    )
    with pytest.raises(DeviceError, match="shows no Ethernet1/50/2"):
        leaf.change()
    assert "port-missing" in {one.rule for one in leaf.findings()}
