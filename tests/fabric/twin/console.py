"""Typing on the console of an emulated switch with modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabric.devices.base import Change, DeviceModule
from fabric.devices.registry import expected_qos, module_of, target_of
from fabric.intended import intended_qos
from fabric.provisioning.plan import mismatches
from fabric.qos import DeviceQos
from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin.cli.modal import ModalCli


class Console:
    """A session that keeps its place in the modes; ``leave`` ends configuration mode."""

    def __init__(self, switch: Any, cli: ModalCli, leave: str) -> None:
        self.switch = switch
        self.cli = cli
        self._leave = leave

    def type(self, *lines: str) -> str:
        """Type lines that must be accepted; the last one's output."""
        text = ""
        for line in lines:
            answer = self.cli.execute(line)
            assert answer.accepted, f"{self.cli.prompt}{line}\n{answer.text}"
            text = answer.text
        return text

    def refused(self, line: str) -> str:
        """Type a line that must be refused; what the switch says."""
        answer = self.cli.execute(line)
        assert not answer.accepted, f"{self.cli.prompt}{line} was accepted"
        return answer.text.rstrip("\n")

    def back(self) -> None:
        """Leave configuration mode, if in it."""
        if self.cli.stack:
            self.type(self._leave)

    def running(self) -> str:
        return self.switch.running_text()

    def outputs(self, commands: tuple[str, ...]) -> dict[str, str]:
        return {command: self.type(command) for command in commands}

    def apply(self, module: DeviceModule, change: Change) -> None:
        """As a run does it: entered, applied with a way back, then confirmed."""
        net = module.safety_net("run-1")
        self.type(net.edit.enter, *change.commands, *net.edit.apply)
        self.back()
        self.type(*net.confirm, *net.save)
        self.back()

    def undo(self, module: DeviceModule, change: Change) -> None:
        """As a run does it line by line."""
        edit = module.safety_net("run-1").undo_edit
        self.type(edit.enter or "configure", *change.rollback, *edit.apply)
        self.back()


def site_of(folder: Path, switch_os: str) -> Site:
    """4 hosts, 2 leaves, 1 spine, all of one system."""
    path = folder / "fabric.yaml"
    shape = ClosShape(4, 2, 1)
    path.write_text(starter_yaml(shape, site="test", environment="twin", switch_os=(switch_os,)))
    return load_site(path)


def switches_of(switch_class: Any, site: Site, folder: Path) -> dict[str, Any]:
    """Every switch of the site, each aware of the others, none behind SSH."""
    found: dict[str, Any] = {}
    for name in site.topology.switches:
        found[name] = switch_class(name, folder / "devices" / name, site, found)
    return found


class Provisioner:
    """Our module at work on one switch of a site, typing on its console."""

    def __init__(self, site: Site, name: str, console: Console) -> None:
        self.console = console
        self.module = module_of(site, name)
        self.target = target_of(site, name)
        self._wanted = intended_qos(site, name)
        self._expected = expected_qos(site, name)

    def change(self) -> Change:
        outputs = self.console.outputs(self.module.read_commands(self.target))
        return self.module.change(self.target, outputs, self._wanted)

    def read(self) -> DeviceQos:
        outputs = self.console.outputs(self.module.read_commands(self.target))
        return self.module.read(self.target, outputs)

    def wrong(self) -> list[str]:
        return mismatches(self.read(), self._expected)

    def apply(self) -> Change:
        """The change, which left nothing wrong and nothing to do."""
        change = self.change()
        self.console.apply(self.module, change)
        assert self.wrong() == []
        assert self.change() == Change()
        return change

    def there_and_back(self) -> str:
        """Apply and undo; the configuration in between."""
        before = self.console.running()
        change = self.apply()
        between = self.console.running()
        self.console.undo(self.module, change)
        assert self.console.running() == before
        return between

    def sees_fault(self, kind: str, port: str) -> None:
        """A fault is seen, and mended by the next change."""
        self.apply()
        self.console.switch.break_(kind, "" if kind == "ecn-off" else port)
        word = {"pfc-off": "pfc_priorities", "mtu": "mtu_bytes", "ecn-off": "ecn"}[kind]
        assert any(word in line for line in self.wrong())
        self.apply()
