"""An emulated host whose commands run in its namespaces, without SSH."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

from fabric.devices.linux.module import family_of
from fabric.devices.registry import module_of, target_of
from fabric.intended import intended_qos
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin.host import image
from fabric.twin.host.namespace import Namespace
from fabric.twin.host.stand_ins.files import Host
from fabric.twin.host.stand_ins.registers import settle

HOST = "host1"
_GOOD, _BAD = "=== good", "=== bad"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Shell:
    """A dual-homed host of a small site with NICs of one family."""

    def __init__(self, folder: Path, family: str = "mlx5", *, nics: int = 2):
        path = folder / "fabric.yaml"
        shape = ClosShape(4, 2, 1, nics_per_host=nics)
        family_text = "mlx5" if family == "generic" else family
        made = starter_yaml(shape, site="t", environment="twin", nics=[family_text])
        path.write_text(made.replace("family: mlx5", f"family: {family}"))
        self.site = load_site(path)
        self.module = module_of(self.site, HOST)
        self.target = target_of(self.site, HOST)
        self.intended = self.module.normalise(intended_qos(self.site, HOST))
        image.build(folder / HOST, HOST, self.site)
        self.host = Host(str(folder / HOST))
        self.namespace = Namespace(HOST, image.binds(folder / HOST))

    def run(self, command, text="", *, good=True):
        done = subprocess.run(
            [*self.namespace.command, "sh", "-c", command],
            check=False,
            input=text,
            capture_output=True,
            text=True,
            env={"PATH": PATH, "HOME": "/"},
        )
        settle(self.host)
        if good:
            assert done.returncode == 0, f"{command}: {done.stdout[-400:]}{done.stderr[-400:]}"
            return done.stdout
        assert done.returncode != 0, command
        return done.stdout + done.stderr

    def outputs(self, commands=None):
        """Outputs of these commands, from one shell; one that fails is absent."""
        commands = commands or self.module.read_commands(self.target)
        lines = [f"{{ {c}\n}} 2>/dev/null && echo {_GOOD} || echo {_BAD}" for c in commands]
        shown = {}
        rest = self.run("\n".join(lines))
        for command in commands:
            text, mark, rest = re.split(f"({_GOOD}|{_BAD})\n", rest, maxsplit=1)
            if mark == _GOOD:
                shown[command] = text
        return shown

    def read(self):
        return self.module.read(self.target, self.outputs())

    def change(self, intended=None):
        return self.module.change(self.target, self.outputs(), intended or self.intended)

    def write(self, path, text, mode):
        if text is None:
            self.run(f"rm -f {path}")
        else:
            self.run(f"mkdir -p $(dirname {path}) && cat > {path} && chmod {mode} {path}", text)

    def apply(self, change):
        for file in change.files:
            self.write(file.path, file.after, file.mode)
        if change.commands:
            self.run("set -e\n" + "\n".join(change.commands))

    def undo(self, change):
        if change.rollback:
            self.run("\n".join(change.rollback))
        for file in change.files:
            self.write(file.path, file.before, file.mode)


class Quick:
    """One port of an emulated host, programs run in this process: for many examples."""

    def __init__(self, shell: Shell):
        self.shell, self.port = shell, shell.target.ports[0]
        self.family = family_of(self.port.family)

    def run(self, command):
        words = shlex.split(command)
        if words[0] not in ("dcb", "ethtool", "ip") or "||" in command:
            return self.shell.run(command)
        module = import_module(f"fabric.twin.host.stand_ins.{words[0]}")
        said = io.StringIO()
        with redirect_stdout(said):
            status = module.main(self.shell.host, words[1:])
        assert status == 0, command
        return said.getvalue()

    def outputs(self):
        return {command: self.run(command) for command in self.family.read_commands(self.port)}

    def read(self):
        return self.family.read(self.port, self.outputs())

    def changes(self, intended):
        return self.family.changes(self.port, self.outputs(), intended)

    def apply(self, changes):
        for change in changes:
            for command in change.commands:
                self.run(command)

    def undo(self, changes):
        for change in reversed(changes):
            for command in change.rollback:
                self.run(command)
