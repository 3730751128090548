"""What a device module is: the only place that knows a vendor.

A module is stateless. It names the commands that show a device's state, turns
their outputs into ``DeviceQos`` and counters, and turns an intended
``DeviceQos`` into the smallest change that reaches it. It never talks to a
device itself: ``fabric.reach.collect`` and the playbooks do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from fabric.counters import CounterSnapshot
from fabric.qos import DeviceQos

# Command -> what the device printed. A command that the device refused is
# absent; modules then name what they could not read in ``DeviceQos.unread``.
Outputs = Mapping[str, str]
# Begins the entry of ``DeviceQos.unread`` of a switch whose other outputs show more ports
# than its configuration does.
CUT_OFF = "the running configuration seems cut off"
Shown = TypeVar("Shown", bound=Sized)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class TargetPort:
    """One cabled port of a device, as the site describes it.

    ``family`` and ``rdma_device`` are empty for a switch's port.
    """

    name: str
    speed_bps: int
    cable_m: float
    family: str = ""
    rdma_device: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The device that a module is asked about."""

    device: str
    os: str
    model: str
    ports: tuple[TargetPort, ...]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file to be written on a host; ``before`` is None where there is none."""

    path: str
    before: str | None
    after: str | None
    mode: str = "0644"


@dataclass(frozen=True, slots=True)
class Change:
    """The smallest change that makes a device do what is intended.

    ``diff`` is for people: lines that begin with ``+``, ``-`` or a blank.
    ``commands`` are sent in order (configuration lines for a switch, shell
    commands for a host), ``rollback`` undoes exactly them. Both empty means
    that the device already does what it should.
    """

    diff: str = ""
    commands: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()
    files: tuple[FileChange, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing to do."""
        return not (self.commands or self.files)


@dataclass(frozen=True, slots=True)
class Edit:
    """How configuration lines are entered and take effect.

    ``enter`` is the command that begins (empty: what the terminal library does
    for this system). ``apply`` is sent after the last line, still in
    configuration mode, where lines have no effect before that; ``discard`` instead
    of it once a line was refused.
    """

    enter: str = ""
    apply: tuple[str, ...] = ()
    discard: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SafetyNet:
    """The vendor's own way back, as exec-mode commands.

    ``prepare`` before a change, ``undo`` after one that failed; ``confirm``, then
    ``save`` after one that was verified, to stay and to be booted with. ``release``
    removes what ``prepare`` made, once nobody needs it; ``abandon`` drops what a
    change that broke off has left pending.
    Empty tuples where the system has none. ``edit`` is how a change is entered,
    ``undo_edit`` how its roll-back lines are.
    """

    prepare: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    save: tuple[str, ...] = ()
    release: tuple[str, ...] = ()
    abandon: tuple[str, ...] = ()
    edit: Edit = Edit()
    undo_edit: Edit = Edit()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the hardware can hold; ``None`` where nothing is known."""

    max_lossless_classes: int | None = None
    min_xoff_bytes: int | None = None
    notes: tuple[str, ...] = field(default=())


class DeviceModule(Protocol):
    """One switch operating system, or Linux hosts with any mix of NIC families."""

    @property
    def os(self) -> str:
        """The name used in ``fabric.yaml`` (``nxos``, ``linux``)."""

    @property
    def netmiko_type(self) -> str:
        """The device type of netmiko; empty for hosts, which are plain SSH."""

    def port_name(self, text: str) -> str:
        """The system's own name of the front port that ``text`` means.

        ``Eth1/1`` is ``Ethernet1/1`` on NX-OS. ValueError where it means none.
        """

    def capabilities(self, target: Target) -> Capabilities:
        """What this model can hold."""

    def read_commands(self, target: Target) -> tuple[str, ...]:
        """Commands that show configuration and state. They change nothing."""

    def counter_commands(self, target: Target) -> tuple[str, ...]:
        """Commands that show counters. They change and clear nothing."""

    def read(self, target: Target, outputs: Outputs) -> DeviceQos:
        """What the device does. Raises ReadError where an output makes no sense."""

    def read_counters(self, target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
        """Counters in the schema of ``fabric.counters``."""

    def normalise(self, intended: DeviceQos) -> DeviceQos:
        """What this system can express of an intended state.

        A device that does all that it can is read back as equal to this, port by
        port. A module without such limits returns its argument.
        """

    def render(self, intended: DeviceQos) -> str:
        """The complete configuration that the intent owns, for people and tests."""

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From what the outputs of ``read_commands`` show to what is intended."""

    def safety_net(self, run_id: str) -> SafetyNet:
        """The vendor's way back for a run of this name."""

    def is_error(self, answer: str) -> bool:
        """Whether this answer to a configuration line or command is a refusal."""


class ReadError(ValueError):
    """An output does not look as the vendor prints it: names command and line."""


def require_shown(found: Shown, device: str, command: str) -> Shown:
    """What was understood of a configuration; ReadError where that is nothing.

    Without a configuration nothing is known of a device: it must not look as if
    nothing were configured.
    """
    if not found:
        raise ReadError(
            f"{device}: '{command}' showed no configuration; "
            "the account may not be allowed to read it"
        )
    return found


def understood(
    outputs: Outputs, command: str, fact: str, parse: Callable[[str], Value], unread: list[str]
) -> Value | None:
    """What this output says, of a command that a switch can be read without.

    None where it was not answered or makes no sense, which goes to ``unread`` with the
    name of the fact that is then not known.
    """
    if command not in outputs:
        unread.append(f"{fact}: '{command}' was not answered")
        return None
    try:
        return parse(outputs[command])
    except ReadError as error:
        unread.append(f"{fact}: {error}")
        return None
