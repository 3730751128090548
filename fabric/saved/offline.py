"""A fabric from a folder of saved outputs, ready for the audit.

With a ``fabric.yaml`` the folder is judged against it. Without one the devices,
cables and intent are what the outputs show (``fabric.saved.infer``).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fabric.counters import CounterSnapshot
from fabric.devices.base import CUT_OFF, ReadError, TargetPort
from fabric.devices.registry import expected_qos, module_of, target_of
from fabric.errors import InputError, PaisoarError
from fabric.intended import intended_qos
from fabric.intent import Intent
from fabric.qos import DeviceQos
from fabric.saved.customs import Customs
from fabric.saved.identify import DEFAULT_SPEED_BPS, Identified, Identifier, answers_of, refusals
from fabric.saved.infer import Inference, Inferred, Voter, voters
from fabric.saved.inuse import loose_ports, unsure_ports
from fabric.saved.layout import SavedFolder, file_name, load_folder
from fabric.saved.tables import CABLES, CableRow, DeviceRow
from fabric.saved.wiring import Wiring, wire
from fabric.site import (
    Cable,
    DeviceSpec,
    FabricFile,
    HostSpec,
    Management,
    NicSpec,
    Site,
    SwitchSpec,
    device_names,
)
from fabric.topology import Link, PortRef, Topology
from fabric.units import parse_size_bytes

DEFAULT_BUFFER_BYTES = 40 * 10**6
_UNSURE = (
    "nothing shows which of its ports are in use (no cable, LLDP neighbour or state of a link): "
    "each is judged alone"
)


@dataclass(frozen=True)
class SavedFabric:
    """Everything that an audit needs, and what about the folder is worth saying.

    ``counters`` is None where no device's counters were saved. ``failed`` says for
    a device why it cannot be judged, ``unknown_files`` names files that no module
    reads, ``inferred`` the values of an intent that nobody wrote.
    """

    site: Site
    states: dict[str, DeviceQos]
    intended: dict[str, DeviceQos]
    outputs: dict[str, dict[str, str]]
    counters: dict[str, CounterSnapshot] | None
    failed: dict[str, str]
    unknown_files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    inferred: tuple[Inferred, ...] = ()
    assumed: tuple[str, ...] = field(default=())
    cables: tuple[CableRow, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: what is worth saying."""
        return {
            "unreadable": dict(self.failed),
            "unknown_files": list(self.unknown_files),
            "notes": list(self.notes),
            "inferred": [value.to_json() for value in self.inferred],
            "assumed": list(self.assumed),
        }


@contextmanager
def _no_collection() -> Iterator[None]:
    """Look for no cycles meanwhile.

    What is read holds none, and looking through all of it again and again takes a
    tenth of the time in which a large fabric is read.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_no_collection()
def read_for_site(path: Path, site: Site) -> SavedFabric:
    """The folder's outputs of the site's devices. InputError where it is no such folder.

    A device of the site without a folder is one that did not answer.
    """
    saved = load_folder(path)
    states: dict[str, DeviceQos] = {}
    outputs: dict[str, dict[str, str]] = {}
    failed: dict[str, str] = {}
    notes = list(saved.notes)
    for name in site.devices:
        files = saved.files.get(name)
        if files is None:
            failed[name] = "has no folder"
            continue
        module, target = module_of(site, name), target_of(site, name)
        mine = answers_of(module, module.read_commands(target), files)
        try:
            states[name] = module.read(target, mine)
            outputs[name] = mine
        except (ReadError, PaisoarError, ValueError, KeyError, IndexError) as error:
            failed[name] = str(error) or type(error).__name__
    notes += [
        f"{name}: is no device of {site.path}" for name in saved.files if name not in site.devices
    ]
    targets = {name: (module_of(site, name), target_of(site, name)) for name in states}
    notes += _refused(saved, targets)
    counters, unknown = _counters(saved, targets)
    intended = {
        name: _of_shown_ports(expected_qos(site, name), state) for name, state in states.items()
    }
    return SavedFabric(
        site, states, intended, outputs, counters, failed, tuple(unknown), tuple(notes)
    )


@_no_collection()
def read_folder(path: Path) -> SavedFabric:
    """The fabric that a folder shows by itself. InputError where it is no such folder."""
    saved = load_folder(path)
    devices, failed = _identified(saved)
    states = {name: one.state for name, one in devices.items()}
    wiring = wire(states, saved.cables)
    wiring, notes = _known_ends(wiring, states)
    notes = [*saved.notes, *notes, *wiring.faults]
    ends = _ends_of(wiring.links) | _ends_of(_all(loose_ports(states, wiring.links)))
    devices = {n: _at_its_cables(one, ends, saved.files[n]) for n, one in devices.items()}
    states = {name: one.state for name, one in devices.items()}
    loose = loose_ports(states, wiring.links)
    unsure = unsure_ports(states, wiring.links, loose)
    speeds = {end: link.speed_bps for link in wiring.links for end in (link.a, link.b)}
    speeds |= {link.a: link.speed_bps for links in loose.values() for link in links}
    ports = voters(states, speeds.get)
    inference = Inference(states, ports, (link.speed_bps for link in _all(unsure)))
    told_by = path / CABLES  # what it says of cables, a report calls by this file's name
    site = make_site(told_by, saved.devices, devices, wiring.links, inference.intent())
    intended = _intended(site, states, ports, {**loose, **unsure})
    notes += [f"{k.a}: its cable is not known; the port is judged alone" for k in _all(loose)]
    notes += [f"{name}: {_UNSURE}" for name in unsure]
    outputs = {name: one.outputs for name, one in devices.items()}
    targets = {name: (one.module, one.target) for name, one in devices.items()}
    notes += _refused(saved, targets)
    counters, unknown = _counters(saved, targets)
    return SavedFabric(
        site,
        states,
        intended,
        outputs,
        counters,
        failed,
        tuple(unknown),
        tuple(notes),
        tuple(inference.said) if states else (),
        wiring.assumed,
        tuple(CableRow(k.a, k.b, k.speed_bps, k.length_m) for k in wiring.links),
    )


def limited(saved: SavedFabric, names: list[str] | None) -> SavedFabric:
    """Of these devices only; InputError names one that was not saved."""
    if not names:
        return saved
    named = device_names(names)
    for name in named:
        if name not in saved.states and name not in saved.failed:
            raise InputError(
                f"no device is called {name!r}",
                key="--device",
                advice=f"There are: {', '.join([*saved.states, *saved.failed])}.",
            )
    return replace(
        saved,
        states={name: state for name, state in saved.states.items() if name in named},
        failed={name: why for name, why in saved.failed.items() if name in named},
    )


def _identified(saved: SavedFolder) -> tuple[dict[str, Identified], dict[str, str]]:
    identifier = Identifier(saved.devices)
    devices: dict[str, Identified] = {}
    failed: dict[str, str] = {}
    for name, files in saved.files.items():
        found = identifier.identify(name, files)
        if isinstance(found, str):
            failed[name] = found
        else:
            devices[name] = found
    failed |= {name: "has no folder" for name in saved.devices if name not in saved.files}
    return devices, failed


def _known_ends(wiring: Wiring, states: Mapping[str, DeviceQos]) -> tuple[Wiring, list[str]]:
    """The cables both of whose devices were read; the others are notes."""
    known: list[Link] = []
    left_out: dict[str, list[Link]] = {}
    for link in wiring.links:
        missing = [end.device for end in (link.a, link.b) if end.device not in states]
        if not missing:
            known.append(link)
        for name in missing:
            left_out.setdefault(name, []).append(link)
    notes = [
        f"{CABLES}: {name} was not read: {len(links)} of its cables left out, "
        f"first {links[0].a} - {links[0].b}"
        for name, links in left_out.items()
    ]
    return replace(wiring, links=tuple(known)), notes


def _all(links: Mapping[str, Sequence[Link]]) -> list[Link]:
    return [link for several in links.values() for link in several]


def _ends_of(links: Sequence[Link]) -> dict[PortRef, Link]:
    return {end: link for link in links for end in (link.a, link.b)}


def _at_its_cables(
    one: Identified, ends: Mapping[PortRef, Link], files: Mapping[str, str]
) -> Identified:
    """The device read anew where its cables tell more than was known when it was identified.

    A NIC's thresholds follow from its link's speed; some switches are asked port by
    port, and which ports they have is known only now.
    """
    device = one.target.device
    known = one.target.ports
    if one.state.kind == "switch":
        known = tuple(
            TargetPort(port.name, DEFAULT_SPEED_BPS, 1.0)
            for port in one.state.ports
            if PortRef(device, port.name) in ends
        )
    ports = []
    for port in known:
        link = ends.get(PortRef(device, port.name))
        if link is not None:
            port = replace(port, speed_bps=link.speed_bps, cable_m=link.length_m)  # noqa: PLW2901
        ports.append(port)
    target = replace(one.target, ports=tuple(ports))
    outputs = answers_of(one.module, one.module.read_commands(target), files)
    same_speeds = [p.speed_bps for p in one.target.ports] == [p.speed_bps for p in ports]
    if outputs.keys() == one.outputs.keys() and same_speeds:
        return replace(one, target=target)
    try:
        return replace(one, target=target, outputs=outputs, state=one.module.read(target, outputs))
    except (ReadError, PaisoarError, ValueError, KeyError, IndexError):
        return replace(one, target=target)


def make_site(
    path: Path,
    rows: Mapping[str, DeviceRow],
    devices: Mapping[str, Identified],
    links: Sequence[Link],
    intent: Intent,
) -> Site:
    """A site of these devices, cables and intent; what the file ``path`` would say of them."""
    hosts = [name for name, one in devices.items() if one.state.kind == "host"]
    ends = _ends_of(links)
    at_hosts = {
        end.device
        for link in links
        for end, other in ((link.a, link.b), (link.b, link.a))
        if other.device in set(hosts)
    }
    specs: dict[str, DeviceSpec] = {}
    for name, one in devices.items():
        row = rows.get(name, DeviceRow(name))
        management = Management(address=row.address)
        if one.state.kind == "host":
            nics = {
                port.name: NicSpec.model_construct(
                    family=port.family,
                    rdma=port.rdma_device,
                    speed=ends[at].speed_bps
                    if (at := PortRef(name, port.name)) in ends
                    else port.speed_bps,
                    address="",
                )
                for port in one.target.ports
            }
            specs[name] = HostSpec.model_construct(kind="host", nics=nics, mgmt=management)
        else:
            specs[name] = SwitchSpec.model_construct(
                kind="switch",
                role="leaf" if row.role == "leaf" or name in at_hosts else "spine",
                os=one.state.os,
                model=row.model or one.state.model or "unknown",
                buffer=parse_size_bytes(row.buffer) if row.buffer else DEFAULT_BUFFER_BYTES,
                mgmt=management,
            )
    document = FabricFile.model_construct(
        schema_="paisoar/fabric/v1",
        site="saved",
        environment="site",
        max_oversubscription=1.0,
        intent=intent,
        devices=specs,
        cables=[
            Cable.model_construct(
                a=str(link.a), b=str(link.b), speed=link.speed_bps, length_m=link.length_m
            )
            for link in links
        ],
    )
    switches = tuple(name for name in devices if name not in set(hosts))
    return Site(path, document, Topology(tuple(hosts), switches, tuple(links)))


def _intended(
    site: Site,
    states: Mapping[str, DeviceQos],
    ports: list[Voter],
    loose: Mapping[str, tuple[Link, ...]],
) -> dict[str, DeviceQos]:
    customs = Customs(ports)
    intended: dict[str, DeviceQos] = {}
    for name, state in states.items():
        own = loose.get(name, ())
        links = {link.a.port: link for link in own}
        links |= {end.port: site.topology.link_of[end] for end in site.topology.ports_of[name]}
        wanted = module_of(site, name).normalise(intended_qos(site, name, own))
        live = {port.name: port for port in state.ports}
        adapted = tuple(
            customs.adapt(port, live.get(port.name), links[port.name], state.kind, state.os)
            for port in wanted.ports
        )
        intended[name] = _of_shown_ports(replace(wanted, ports=adapted), state)
    return intended


def _of_shown_ports(intended: DeviceQos, state: DeviceQos) -> DeviceQos:
    """What is intended for the ports that a configuration shows before it was cut off.

    The others are not missing: nothing is known of them, which ``unread`` says.
    """
    if not any(fact.startswith(CUT_OFF) for fact in state.unread):
        return intended
    shown = {port.name for port in state.ports}
    return replace(intended, ports=tuple(p for p in intended.ports if p.name in shown))


def _refused(saved: SavedFolder, targets: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """A note of each file that holds a refusal, or nothing."""
    notes = []
    for name, (module, target) in targets.items():
        commands = dict.fromkeys((*module.read_commands(target), *module.counter_commands(target)))
        notes += [
            f"{name}/{file_name(command)}: was not answered: {line}"
            for command, line in refusals(module, commands, saved.files[name]).items()
        ]
    return notes


def _counters(
    saved: SavedFolder,
    targets: Mapping[str, tuple[Any, Any]],
) -> tuple[dict[str, CounterSnapshot] | None, list[str]]:
    """Counters where any were saved, and the files that no command is the name of."""
    snapshots: dict[str, CounterSnapshot] = {}
    unknown: list[str] = []
    for name, (module, target) in targets.items():
        files = saved.files[name]
        commands = module.counter_commands(target)
        read = module.read_commands(target)
        mine = answers_of(module, commands, files)
        if mine:
            try:
                snapshots[name] = module.read_counters(target, mine, 0.0)
            except (ReadError, ValueError, KeyError, IndexError) as error:
                unknown.append(f"{name}: counters cannot be read: {error}")
        known = {file_name(command) for command in (*commands, *read)}
        unknown += [f"{name}/{file}" for file in sorted(set(files) - known)]
    return snapshots or None, unknown
