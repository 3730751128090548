"""The device module of Linux hosts."""

from __future__ import annotations

import dataclasses
import re
from typing import cast

from fabric.counters import Counter, CounterSnapshot
from fabric.devices.base import (
    Capabilities,
    Change,
    Outputs,
    ReadError,
    SafetyNet,
    Target,
    TargetPort,
)
from fabric.devices.booted import BOOT_ID, with_boot_id
from fabric.devices.linux.boot import Boot, read_boot
from fabric.devices.linux.change import host_change
from fabric.devices.linux.portfacts import commands as fact_commands
from fabric.devices.linux.portfacts import read_facts
from fabric.devices.linux.script import (
    SCRIPTS,
    UNIT,
    UNIT_PATH,
    render_script,
    reproduces,
    script_path,
    unit_name,
)
from fabric.devices.nic import NicFamily, NicReading
from fabric.devices.ports import kernel_name
from fabric.devices.registry import NICS, load
from fabric.qos import DeviceQos, PortFacts, PortQos, Remark

KERNEL = "uname -r"
FILES = f"grep -H '' {SCRIPTS} {UNIT_PATH} 2>&1 || true"

_ERROR = re.compile(
    r"not found|No such (?:file|device)|Operation not (?:permitted|supported)|"
    r"Permission denied|Invalid argument|not supported on your system|Traceback",
    re.IGNORECASE,
)


def family_of(name: str) -> NicFamily:
    """The NIC family of this name; InputError lists the known ones."""
    return cast(NicFamily, load(NICS, name))


def enabled_command(target: Target) -> str:
    """The command that shows whether the boot units of all ports are enabled."""
    units = " ".join(_quoted(unit_name(port.name)) for port in target.ports)
    return f"systemctl is-enabled {units} 2>&1 || true"


def _quoted(unit: str) -> str:
    return f"'{unit}'" if "\\" in unit else unit


class LinuxModule:
    """Linux hosts with any mix of NIC families."""

    os = "linux"
    netmiko_type = ""

    def port_name(self, text: str) -> str:
        """The name itself: Linux knows no short ones."""
        return kernel_name(text)

    def capabilities(self, target: Target) -> Capabilities:
        """What the weakest of the host's NICs can hold."""
        each = [family_of(port.family).capabilities(port) for port in target.ports]
        lossless = [c.max_lossless_classes for c in each if c.max_lossless_classes is not None]
        xoff = [c.min_xoff_bytes for c in each if c.min_xoff_bytes is not None]
        notes = dict.fromkeys(note for c in each for note in c.notes)
        return Capabilities(min(lossless, default=None), max(xoff, default=None), tuple(notes))

    def read_commands(self, target: Target) -> tuple[str, ...]:
        """Three commands of the host, then those of its ports, each once.

        Three of each port's show its link, whichever family it is of; a host that
        does not answer them can still be planned for.
        """
        commands = [KERNEL, enabled_command(target), FILES]
        for port in target.ports:
            commands += family_of(port.family).read_commands(port)
            commands += fact_commands(port)
        return tuple(dict.fromkeys(commands))

    def counter_commands(self, target: Target) -> tuple[str, ...]:
        """The commands of the ports, each once, and the boot id."""
        commands: list[str] = []
        for port in target.ports:
            commands += family_of(port.family).counter_commands(port)
        return tuple(dict.fromkeys((*commands, BOOT_ID)))

    def read(self, target: Target, outputs: Outputs) -> DeviceQos:
        """What the host does. Raises ReadError where an output makes no sense.

        ``firmware`` names the driver, the NIC's firmware and the kernel.
        ``saved`` is true where every port's settings survive a reboot.
        """
        boot = self._boot(target, outputs)
        ports: list[PortQos] = []
        facts: list[PortFacts] = []
        remarks: list[Remark] = []
        unread: list[str] = []
        saved: list[bool | None] = []
        models: dict[str, None] = {}
        drivers: dict[str, None] = {}
        for port in target.ports:
            reading = family_of(port.family).read(port, outputs)
            unread += reading.unread
            remarks += reading.remarks
            models |= {reading.model: None} if reading.model else {}
            drivers |= {reading.driver: None} if reading.driver else {}
            persistent = _persistent(boot, port.name, reading)
            saved.append(persistent)
            if persistent is None:
                unread.append(f"{port.name}: whether the settings survive a reboot")
            mtu = reading.port.mtu_bytes if reading.port else None
            facts.append(read_facts(port, outputs, mtu))
            if reading.port is None:
                continue
            nic = reading.port.nic
            if nic is not None:
                nic = dataclasses.replace(nic, persistent=bool(persistent))
            ports.append(dataclasses.replace(reading.port, nic=nic))
        kernel = outputs.get(KERNEL, "").strip()
        if not kernel:
            unread.append("kernel")
        return DeviceQos(
            device=target.device,
            kind="host",
            os=self.os,
            ports=tuple(ports),
            model=", ".join(models),
            firmware=", ".join([*drivers, *([f"Linux {kernel}"] if kernel else [])]),
            saved=None if None in saved else all(saved),
            unread=tuple(unread),
            facts=tuple(facts),
            remarks=tuple(remarks),
        )

    def _boot(self, target: Target, outputs: Outputs) -> Boot:
        return read_boot(
            [port.name for port in target.ports],
            outputs.get(enabled_command(target)),
            outputs.get(FILES),
        )

    def read_counters(self, target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
        """Counters of every port in the schema of ``fabric.counters``."""
        counters: list[Counter] = []
        missing: list[str] = []
        for port in target.ports:
            family = family_of(port.family)
            got, absent = family.read_counters(target.device, port, outputs)
            counters += got
            missing += absent
        taken = CounterSnapshot(target.device, taken_at_s, tuple(counters), tuple(missing))
        return with_boot_id(taken, outputs)

    def normalise(self, intended: DeviceQos) -> DeviceQos:
        """What the host's NICs can express of the intent."""
        return dataclasses.replace(
            intended, ports=tuple(_family(port).normalise(port) for port in intended.ports)
        )

    def render(self, intended: DeviceQos) -> str:
        """The boot script of every port, one after the other, and the unit that runs them."""
        parts = []
        for port in self.normalise(intended).ports:
            script = render_script(port.name, _family(port).settings(port))
            parts.append(f"### {script_path(port.name)}\n{script}")
        return "\n".join([*parts, f"### {UNIT_PATH}\n{UNIT}"])

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From what the outputs show to what is intended.

        ``files`` are the boot scripts and the unit, ``commands`` set what differs
        and enable the unit. ``rollback`` sets back what was read; files go back
        to their ``before``. Raises ReadError where an output that this needs is
        missing.
        """
        boot = self._boot(target, outputs)
        if not boot.files_shown:
            raise ReadError(f"{target.device}: nothing can be planned without `{FILES}`")
        by_name = {port.name: port for port in target.ports}
        ports = self.normalise(intended).ports
        changes = {
            port.name: _family(port).changes(_target(by_name, port.name), outputs, port)
            for port in ports
        }
        scripts = {
            port.name: render_script(port.name, _family(port).settings(port)) for port in ports
        }
        return host_change(boot, changes, scripts)

    def known_change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """Commands alone, for the settings whose values the outputs show.

        For a host that was read in part: nothing of it is right for its boot files, and
        no setting is touched of which nobody knows what it is.
        """
        by_name = {port.name: port for port in target.ports}
        commands: list[str] = []
        for port in self.normalise(intended).ports:
            known = getattr(_family(port), "known_changes", None)
            for change in known(_target(by_name, port.name), outputs, port) if known else ():
                commands += change.commands
        return Change(commands=tuple(commands))

    def safety_net(self, run_id: str) -> SafetyNet:  # noqa: ARG002
        """None: a host goes back by the change's own rollback."""
        return SafetyNet()

    def is_error(self, answer: str) -> bool:
        """Whether these words are a tool's complaint; for hosts the exit code decides."""
        return bool(_ERROR.search(answer))


def _family(port: PortQos) -> NicFamily:
    return family_of(port.nic.family if port.nic else "")


def _target(ports: dict[str, TargetPort], name: str) -> TargetPort:
    if name not in ports:
        raise ReadError(f"{name}: the intent names a port that the host does not have")
    return ports[name]


def _persistent(boot: Boot, interface: str, reading: NicReading) -> bool | None:
    """Whether a reboot brings back what the port does now; None where not shown."""
    enabled = boot.enabled.get(interface)
    if not boot.files_shown or enabled is None or reading.port is None:
        return None
    script = boot.scripts.get(interface)
    if not enabled or script is None or boot.unit != UNIT:
        return False
    return reproduces(script, interface, reading.settings, reading.shown)
