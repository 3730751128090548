"""Our names of systems, from what others call them."""

from __future__ import annotations

import re

from fabric.devices.entries import HOSTS, SWITCHES, known

# What names of systems hold, in Ansible (``cisco.nxos.nxos``) and NetBox (``cisco-nx-os``).
# The first that is found is right: ``cumulus-linux`` is no plain Linux.
_SYSTEMS = tuple(
    (name, re.compile(rf"(?<![a-z])(?:{words})"))
    for name, words in (
        ("nxos", "nx-?os|nexus"),
        ("sonic", "sonic"),
        ("nvue", "nvue|cumulus"),
        ("os10", r"(?:dell|dell-?emc|smartfabric)?-?os-?10(?!\d)"),
        ("eos", "[vc]?eos(?![a-z])|arista"),
        ("junos", "junos|qfx"),
        ("cloudengine", "cloudengine|vrp|huawei|ce(?![a-z])"),
        ("comware", "comware|h3c"),
        (
            "linux",
            "linux|ubuntu|debian|rhel|red-?hat|rocky|alma|centos|suse|sles|fedora|oracle-?linux"
            "|dgx-?os",
        ),
    )
)


def system(text: str) -> str:
    """Our name of a system: ``cisco.nxos.nxos`` is ``nxos``; empty for an unknown one."""
    words = re.sub(r"[\s._]+", "-", text.strip().lower())
    if words in known(SWITCHES):
        return words
    return next((name for name, pattern in _SYSTEMS if pattern.search(words)), "")


def known_systems() -> tuple[str, ...]:
    """The systems that a switch may have."""
    return tuple(name for name in known(SWITCHES) if name != HOSTS)
