"""Actions as shell text: for the boot script, and for one host as it is now."""

from __future__ import annotations

import shlex

from fabric.devices.linux.dump import MISSING
from fabric.devices.mlx5.facts import Facts
from fabric.devices.mlx5.settings import Action, Item, Move, Raw, Run, Write
from fabric.devices.nic import Setting


def script_setting(item: Item) -> Setting:
    """A section of the boot script; what the driver offers is seen when it runs."""
    lines = [line for action in item.actions for line in _script_lines(item.name, action)]
    return Setting(item.name, item.value, tuple(lines))


def _script_lines(name: str, action: Action) -> tuple[str, ...]:
    if isinstance(action, Run):
        return (f"run {shlex.join(action.words)}",)
    if isinstance(action, Write):
        files = (_with_variable(file) for file in action.files)
        return (f"put {action.value} {' '.join(files)}",)
    if isinstance(action, Move):
        return (
            f"{shlex.join(action.words)} > /dev/null 2>&1 || {{",
            "    # Buffers do not move under PFC, which comes back below.",
            f"    run {shlex.join(action.pfc_off)}",
            f"    run {shlex.join(action.words)}",
            "}",
        )
    return (f'{{ {action.text}; }} || fail "{name} cannot be set"',)


def _with_variable(file: str) -> str:
    # Names are validated where the site is read; only the address is not known here.
    return f'"{file.format(pci="$PCI")}"' if "{pci}" in file else shlex.quote(file)


def commands(item: Item, facts: Facts) -> tuple[str, ...] | None:
    """The commands on this host; None where its driver does not offer the setting."""
    lines: list[str] = []
    for action in item.actions:
        if isinstance(action, Run | Move):
            lines.append(shlex.join(action.words))
        elif isinstance(action, Raw):
            lines.append(action.text)
        else:
            file = _offered(action, facts)
            if file is None:
                return None
            lines.append(f"echo {action.value} > {shlex.quote(file)}")
    return tuple(lines)


def _offered(action: Write, facts: Facts) -> str | None:
    """The first of the files that this host has, as far as its outputs show."""
    for template in action.files:
        file = template.format(pci=facts.pci)
        for dump in (facts.sysfs, facts.rdma, facts.debugfs):
            complaint = dump.complaint(file)
            if file in dump.files or complaint not in (None, MISSING):
                return file
    # An empty file prints nothing: traffic_class while nothing is set in it.
    if len(action.files) == 1 and facts.tclass is not None and "/tc/" in action.files[0]:
        return action.files[0]
    return None
