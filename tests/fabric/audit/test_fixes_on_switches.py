"""A fix, sent as it stands to a switch that names its objects itself, mends the finding."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fabric.audit import Finding, audit
from fabric.audit.rule import FIX
from fabric.devices.registry import expected_qos, module_of, target_of
from fabric.intended import intended_qos
from fabric.site import Site
from fabric.twin.eos import EmulatedSwitch as EosSwitch
from fabric.twin.eos.cli import Cli as EosCli
from fabric.twin.nxos import EmulatedSwitch as NxosSwitch
from fabric.twin.nxos.cli import Cli as NxosCli
from fabric.twin.sonic import EmulatedSwitch as SonicSwitch
from tests.fabric.twin.console import site_of

NAME = "leaf1"
_SWITCHES: dict[str, Any] = {"nxos": NxosSwitch, "eos": EosSwitch, "sonic": SonicSwitch}
_ENTER = {"nxos": ("configure terminal",), "eos": ("enable", "configure"), "sonic": ()}


@dataclass
class Bench:
    """One emulated leaf, provisioned, whose objects then got its owner's names."""

    site: Site
    switch: Any

    @property
    def os(self) -> str:
        return self.switch.site.devices[NAME].os

    def session(self) -> Any:
        if self.os == "sonic":
            return self.switch.shell()
        return (NxosCli if self.os == "nxos" else EosCli)(self.switch)

    def type(self, *lines: str) -> str:
        session, text = self.session(), ""
        module = module_of(self.site, NAME)
        for line in lines:
            answer = session.execute(line)
            assert answer.accepted, f"{line}\n{answer.text}"
            assert not module.is_error(answer.text), f"{line}\n{answer.text}"
            text = answer.text
        return text

    def configure(self, *lines: str) -> None:
        self.type(*_ENTER[self.os], *lines)

    def outputs(self) -> dict[str, str]:
        enter = _ENTER["eos"][:1] if self.os == "eos" else ()
        commands = module_of(self.site, NAME).read_commands(target_of(self.site, NAME))
        return {command: self.type(*enter, command) for command in commands}

    def findings(self) -> tuple[Finding, ...]:
        outputs = self.outputs()
        state = module_of(self.site, NAME).read(target_of(self.site, NAME), outputs)
        intended = {NAME: expected_qos(self.site, NAME)}
        report = audit(self.site, {NAME: state}, intended, outputs={NAME: outputs})
        return tuple(one for one in report.findings if one.rule != "unsaved")

    def provision(self) -> None:
        change = module_of(self.site, NAME).change(
            target_of(self.site, NAME), self.outputs(), intended_qos(self.site, NAME)
        )
        self.configure(*change.commands)

    def rename(self) -> None:
        """Give the objects the names that their owner has for them."""
        text = self.switch.running_text().replace("PAISOAR", "OWN")
        self.switch.replace_config(text)


@pytest.fixture
def bench(request, tmp_path) -> Bench:
    site = site_of(tmp_path, request.param)
    bench = Bench(site, _SWITCHES[request.param](NAME, tmp_path / "devices" / NAME, site))
    bench.provision()
    bench.rename()
    assert bench.findings() == ()
    return bench


Broken = Callable[[str], str]
_PORT = {"nxos": "Ethernet1/2", "eos": "Ethernet2", "sonic": "Ethernet1"}


def in_port(port: str, old: str, new: str) -> Broken:
    """Lines of one interface, by what they match, as others."""

    def change(text: str) -> str:
        start, section, end = re.split(rf"(interface {port}\n(?: .*\n)*)", text, maxsplit=1)
        changed, count = re.subn(old, new, section, flags=re.MULTILINE)
        assert count
        return start + changed + end

    return change


def own_object(head: str, port: str, old: str, new: str) -> Broken:
    """The port's object of this kind as one of its own, in which a line is another."""

    def change(text: str) -> str:
        section = re.search(rf"interface {port}\n(?:  .*\n|   !\n)*", text)
        assert section
        word = {"policy-map type queuing": "queuing output"}.get(head, "service-profile")
        used = re.search(rf"{word} (\S+)", section[0])
        assert used
        found = re.search(rf"{head} {used[1]}\n(?:  .*\n)*", text)
        assert found
        changed, count = re.subn(old, new, found[0], flags=re.MULTILINE)
        assert count
        mine = changed.replace(used[1], f"{used[1]}-B")
        ported = in_port(port, rf"{word} \S+", f"{word} {used[1]}-B")(text)
        return ported.replace(found[0], found[0] + mine)

    return change


def row(table: str, key: str, **fields: str | None) -> Broken:
    """Fields of a row of CONFIG_DB as others, or gone."""

    def change(text: str) -> str:
        tables = json.loads(text)
        held = tables[table].setdefault(key, {})
        for name, value in fields.items():
            held.pop(name, None)
            if value is not None:
                held[name] = value
        if not held:
            del tables[table][key]
        return json.dumps(tables)

    return change


def as_range(text: str) -> str:
    """Queues 3 and 4 of both ports in one row, as old releases write it, and without marks."""
    tables = json.loads(text)
    for port in ("Ethernet0", "Ethernet1"):
        tables["QUEUE"].pop(f"{port}|3")
        tables["QUEUE"].pop(f"{port}|4", None)
    (scheduler,) = (
        n for n, r in tables["SCHEDULER"].items() if n.startswith("OWN") and "50" in r.values()
    )
    tables["QUEUE"]["Ethernet0,Ethernet1|3-4"] = {"scheduler": scheduler}
    return json.dumps(tables)


BREAKS: dict[str, dict[str, Broken]] = {
    "nxos": {
        "ecn": own_object("policy-map type queuing", "Ethernet1/2", r" +random-detect.*\n", ""),
        "watchdog": in_port("Ethernet1/2", r" +priority-flow-control watch-dog.*\n", ""),
        "pfc": in_port("Ethernet1/2", "mode on", "mode off"),
        "mtu": in_port("Ethernet1/2", r"mtu \d+", "mtu 1500"),
        "buffer": in_port("Ethernet1/2", r" +service-policy type queuing input .*\n", ""),
    },
    "eos": {
        "ecn": own_object("qos profile", "Ethernet2", r" +random-detect.*\n", ""),
        "watchdog": own_object(
            "qos profile", "Ethernet2", r" +priority-flow-control pause.*\n", ""
        ),
        "pfc": own_object("qos profile", "Ethernet2", r" +priority-flow-control priority.*\n", ""),
        "mtu": in_port("Ethernet2", r"mtu \d+", "mtu 1500"),
    },
    "sonic": {
        "ecn": row("QUEUE", "Ethernet1|3", wred_profile=None),
        "watchdog": row(
            "PFC_WD", "Ethernet1", action=None, detection_time=None, restoration_time=None
        ),
        "pfc": row("PORT_QOS_MAP", "Ethernet1", pfc_enable=None),
        "mtu": row("PORT", "Ethernet1", mtu="1500"),
        "dscp-map": row("PORT_QOS_MAP", "Ethernet1", dscp_to_tc_map="AZURE"),
    },
}
CASES = [(os, name) for os, breaks in BREAKS.items() for name in breaks]


@pytest.mark.parametrize(("bench", "fault"), CASES, indirect=["bench"])
def test_the_fix_of_one_port_is_taken_and_mends_it(bench: Bench, fault: str):
    bench.switch.replace_config(BREAKS[bench.os][fault](bench.switch.running_text()))
    found = bench.findings()
    assert fault in {one.rule for one in found}
    assert {one.port for one in found} == {_PORT[bench.os]}
    for one in found:
        bench.configure(*one.fix)
    assert bench.findings() == ()


@pytest.mark.parametrize("bench", list(BREAKS), indirect=True)
def test_the_fixes_of_one_port_do_not_undo_each_other(bench: Bench):
    text = bench.switch.running_text()
    for broken in BREAKS[bench.os].values():
        text = broken(text)
    bench.switch.replace_config(text)
    found = bench.findings()
    assert len(found) > 3
    fixes = list(dict.fromkeys(one.fix for one in found))
    for order in (fixes, fixes[::-1]):
        bench.switch.replace_config(text)
        for fix in order:
            bench.configure(*fix)
        assert bench.findings() == ()


@pytest.mark.parametrize("bench", ["sonic"], indirect=True)
def test_a_row_of_several_ports_is_parted_before_one_of_them_gets_its_own(bench: Bench):
    bench.switch.replace_config(as_range(bench.switch.running_text()))
    for one in bench.findings():
        if one.rule == "ecn":
            bench.configure(*one.fix)
    assert "ecn" not in {one.rule for one in bench.findings()}
    assert not any("," in key or "3-4" in key for key in bench.switch.config.table("QUEUE"))


# What no plan of ours can leave on a port: it classifies nothing by DSCP.
UNTRUSTING: dict[str, tuple[str, Broken]] = {
    "nxos": ("Ethernet1/1", in_port("Ethernet1/1", r" +service-policy type qos input .*\n", "")),
    "eos": ("Ethernet1", in_port("Ethernet1", r"^( +)mtu", r"\1qos trust cos\n\1mtu")),
}


@pytest.mark.parametrize("bench", list(UNTRUSTING), indirect=True)
def test_a_port_that_trusts_nothing_spoils_no_fix_of_another_port(bench: Bench):
    untrusting, broken = UNTRUSTING[bench.os]
    text = bench.switch.running_text()
    for change in (broken, BREAKS[bench.os]["pfc"], BREAKS[bench.os]["mtu"]):
        text = change(text)
    bench.switch.replace_config(text)
    found = bench.findings()
    assert {"trust", "pfc", "mtu"} <= {one.rule for one in found}
    for one in found:
        other = _PORT[bench.os] if one.port == untrusting else untrusting
        assert f"interface {other}" not in one.fix, one
    for order in (found, found[::-1]):
        bench.switch.replace_config(text)
        for one in order:
            bench.configure(*one.fix)
        assert bench.findings() == ()


def everywhere(old: str, new: str) -> Broken:
    """Every such line of the configuration as another."""

    def change(text: str) -> str:
        changed, count = re.subn(old, new, text, flags=re.MULTILINE)
        assert count
        return changed

    return change


def cables(text: str) -> str:
    """Cables of 300 m, whose buffers are the switch's own choice."""
    tables = json.loads(text)
    tables["CABLE_LENGTH"]["AZURE"] = dict.fromkeys(tables["CABLE_LENGTH"]["AZURE"], "300m")
    tables["BUFFER_PG"]["Ethernet1|3"] = {"profile": "pg_lossless_25000_300m_profile"}
    tables["BUFFER_PROFILE"]["pg_lossless_25000_300m_profile"] = dict(
        tables["BUFFER_PROFILE"]["pg_lossless_25000_5m_profile"]
    )
    return json.dumps(tables)


def other_pfc_queue(text: str) -> str:
    """PFC of priority 3 stops queue 4."""
    tables = json.loads(text)
    for name in tables["MAP_PFC_PRIORITY_TO_QUEUE"]:
        tables["MAP_PFC_PRIORITY_TO_QUEUE"][name]["3"] = "4"
    return json.dumps(tables)


SHOWN_BY_THE_CONFIGURATION = [
    ("sonic", "class-map", other_pfc_queue),
    ("sonic", "pfc", row("PORT", "Ethernet1", pfc_asym="on")),
    ("sonic", "watchdog-times", row("PFC_WD", "GLOBAL", POLL_INTERVAL="1000")),
    ("sonic", "cable-length", cables),
    ("nxos", "pfc", everywhere("pause pfc-cos 3$", "pause pfc-cos 3 receive")),
    (
        "nxos",
        "rate-limit",
        everywhere(
            r"(class type queuing c-out-8q-q3\n    bandwidth.*\n)",
            r"\1    shape min 0 gbps max 10 gbps\n",
        ),
    ),
    ("eos", "pfc", lambda text: "priority-flow-control all off\n" + text),
    (
        "eos",
        "rate-limit",
        everywhere(r"(uc-tx-queue 3\n +no priority\n)", r"\1      shape rate 10000000 kbps\n"),
    ),
]


@pytest.mark.parametrize(
    ("bench", "rule", "broken"),
    SHOWN_BY_THE_CONFIGURATION,
    ids=[f"{os}-{rule}" for os, rule, _ in SHOWN_BY_THE_CONFIGURATION],
    indirect=["bench"],
)
def test_what_the_configuration_alone_shows_is_found_and_mended(bench: Bench, rule: str, broken):
    bench.switch.replace_config(broken(bench.switch.running_text()))
    found = bench.findings()
    assert rule in {one.rule for one in found}
    assert {one.rule for one in found} <= {rule, "buffer", "headroom"}
    if any(one.fix == FIX for one in found):
        bench.provision()
    else:
        for one in found:
            bench.configure(*one.fix)
    assert bench.findings() == ()


@pytest.mark.parametrize("bench", ["eos"], indirect=True)
def test_pfc_that_is_off_everywhere_is_not_lossless_where_no_live_state_was_saved(bench: Bench):
    bench.switch.replace_config("priority-flow-control all off\n" + bench.switch.running_text())
    outputs = {name: text for name, text in bench.outputs().items() if "flow" not in name}
    state = module_of(bench.site, NAME).read(target_of(bench.site, NAME), outputs)
    assert {port.pfc_priorities for port in state.ports} == {()}
