"""What a member of a port channel does: its channel's policies, not its own.

Source: Cisco, Nexus 9000 NX-OS QoS configuration guide, "Attaching and Detaching a QoS
Policy Action": a policy of a port takes effect only while it is a member of no port
channel; one of the channel does, whatever its members have.
"""

from __future__ import annotations

from fabric.devices.sections import Section

_POLICY = "service-policy "
POLICIES = tuple(
    f"service-policy type {kind} " for kind in ("qos input", "queuing input", "queuing output")
)
# The first word or words by which two lines set the same thing.
ONE_OF = (
    "mtu ",
    "priority-flow-control mode ",
    "priority-flow-control watch-dog-interval ",
    "flowcontrol receive ",
    "flowcontrol send ",
)


def member(port: Section, channel: Section) -> Section:
    """The port as its channel makes it.

    Of other settings a port's own go before its channel's.
    """
    own = [line for line in port.children if not line.text.startswith(_POLICY)]
    said = tuple(start for start in ONE_OF if any(line.text.startswith(start) for line in own))
    inherited = [
        line
        for line in channel.children
        if line.text.startswith((_POLICY, *ONE_OF)) and not line.text.startswith(said)
    ]
    return Section(port.text, [*own, *inherited])
