"""How NX-OS shortens interface names in its tables."""

from __future__ import annotations


def short_name(name: str) -> str:
    """``Eth1/1`` for ``Ethernet1/1``, ``Lo0`` for ``loopback0``."""
    for full, short in (("Ethernet", "Eth"), ("port-channel", "Po"), ("loopback", "Lo")):
        if name.startswith(full):
            return short + name.removeprefix(full)
    return name
