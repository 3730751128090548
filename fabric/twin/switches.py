"""Which emulated CLI stands for which switch system."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fabric.errors import InputError
from fabric.site import Site
from fabric.twin.device import EmulatedDevice

EMULATORS = {
    "nxos": "fabric.twin.nxos:EmulatedSwitch",
    "eos": "fabric.twin.eos:EmulatedSwitch",
    "junos": "fabric.twin.junos:EmulatedSwitch",
    "sonic": "fabric.twin.sonic:EmulatedSwitch",
    "nvue": "fabric.twin.nvue:EmulatedSwitch",
}


def emulated_switch(
    name: str, folder: Path, site: Site, peers: Mapping[str, Any]
) -> EmulatedDevice:
    """The emulated switch of this name; InputError where its system has no emulation."""
    os = site.switch(name).os
    if os not in EMULATORS:
        raise InputError(
            f"{name}: there is no emulation of {os}",
            file=site.path,
            key=f"devices.{name}.os",
            advice=f"The twin emulates {', '.join(EMULATORS)}.",
        )
    module, _, attribute = EMULATORS[os].partition(":")
    made: EmulatedDevice = getattr(import_module(module), attribute)(name, folder, site, peers)
    return made
