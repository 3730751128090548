"""What devices are called: refused where no site can call them so, or two are called alike."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.bringin.sources import Source
from fabric.errors import InputError, all_of
from fabric.saved.tables import Origin
from fabric.site import device_name
from fabric.siterules import RESERVED


def refuse_names(source: Source) -> None:
    """InputError with every name that is none, where it was told."""
    faults = [*_device_faults(source), *_cable_faults(source)]
    if faults:
        raise all_of(faults)


def _device_faults(source: Source) -> Iterator[InputError]:
    called: dict[str, str] = {}
    for name, device in source.devices.items():
        try:
            device_name(name)
        except ValueError as error:
            yield _fault(device.origin, f"no device can be called {name!r}: {error}")
        if name in RESERVED:
            yield _fault(
                device.origin, f"no device can be called {name!r}: Ansible calls a group so"
            )
        other = called.setdefault(name.lower(), name)
        if other != name:
            yield _fault(device.origin, _alike(name, other, source.devices[other].origin))


def _cable_faults(source: Source) -> Iterator[InputError]:
    """Ends at a device that is written in another way than where it was told."""
    lower = {name.lower(): name for name in source.devices}
    said = set()
    for row in source.cables:
        for end in (row.a, row.b):
            name = lower.get(end.device.lower(), end.device)
            if name != end.device and end.device not in source.devices and end.device not in said:
                said.add(end.device)
                there = source.devices[name].origin
                yield _fault(row.origin, _alike(end.device, name, there))


def _alike(name: str, other: str, there: Origin | None) -> str:
    told = f" ({there})" if there else ""
    return f"{name} and {other}{told} differ in upper and lower case alone"


def _fault(origin: Origin | None, reason: str) -> InputError:
    file, line = origin or (None, None)
    return InputError(
        reason, file=file, line=line, advice="Call it the same everywhere, by a name of its own."
    )
