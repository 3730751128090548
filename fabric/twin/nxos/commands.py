"""Every command of the emulated NX-OS: importing this module fills the grammars."""

from __future__ import annotations

from fabric.twin.nxos import (
    config_channels,
    config_global,
    config_interface,
    config_qos,
    config_queuing,
    exec_commands,
    show_config,
    show_interface,
    show_queuing,
    show_system,
)

LOADED = (
    config_channels,
    config_global,
    config_interface,
    config_qos,
    config_queuing,
    exec_commands,
    show_config,
    show_interface,
    show_queuing,
    show_system,
)
