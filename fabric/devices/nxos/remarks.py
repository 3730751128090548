"""Faults that only NX-OS's own configuration shows.

Sources: Cisco, Nexus 9000 NX-OS QoS guide 10.5(x), "Configuring Marking"; Nexus
9000 NX-OS Unicast Routing guide, ``ip load-sharing address``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabric.devices.nxos.names import is_physical
from fabric.devices.nxos.profiles import effective
from fabric.devices.sections import Section, find
from fabric.qos import Remark

_INPUT = "service-policy type qos input "
_NETWORK = "service-policy type network-qos "


def remarks(sections: Sequence[Section]) -> Iterator[Remark]:
    """Policies that rewrite DSCPs, PFC in one direction only, ECMP without UDP ports."""
    users: dict[str, list[str]] = {}
    for section in sections:
        name = section.text.removeprefix("interface ")
        if section.text == "system qos" or (name != section.text and is_physical(name)):
            for line in effective(section, sections).children:
                if line.text.startswith(_INPUT):
                    policy = line.text.removeprefix(_INPUT).split()[0]
                    users.setdefault(policy, []).append("" if name == section.text else name)
    for policy, ports in users.items():
        found = find(sections, f"policy-map type qos {policy}")
        for entry in found.children if found else ():
            for line in entry.children:
                if line.text.startswith(("set dscp ", "set precedence ")):
                    message = f"policy-map {policy} rewrites: {entry.text}: {line.text}"
                    yield from (Remark("rewrite", port, message, (line.text,)) for port in ports)
    yield from _one_way(sections)
    for section in sections:
        if section.text.startswith("ip load-sharing address ") and " port " not in section.text:
            yield Remark(
                "ecmp", "", "ECMP does not hash UDP ports: " + section.text, (section.text,)
            )


def _one_way(sections: Sequence[Section]) -> Iterator[Remark]:
    """Classes of the network-qos policy in use that obey a pause and send none.

    Source: Cisco, Nexus 9000 NX-OS QoS guide, ``pause pfc-cos ... receive``.
    """
    system = find(sections, "system qos")
    for line in system.children if system else ():
        if not line.text.startswith(_NETWORK):
            continue
        policy = find(sections, "policy-map type network-qos " + line.text.removeprefix(_NETWORK))
        for entry in policy.children if policy else ():
            for child in entry.children:
                words = child.text.split()
                if words[:2] == ["pause", "pfc-cos"] and words[-1] == "receive":
                    message = f"PFC is asymmetric ({child.text}): the switch obeys and sends none"
                    yield Remark("pfc", "", message, (f"{entry.text}: {child.text}",))
