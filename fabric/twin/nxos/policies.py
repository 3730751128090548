"""Rules about attaching policies that interfaces and ``system qos`` share.

NX-OS's exact wording of these refusals was not found in a public source: what
is sure is that they begin with ``ERROR:``.
"""

from __future__ import annotations

from fabric.twin.nxos.cli import CliError
from fabric.twin.nxos.config import IN_CLASSES, Config


def attach(where: str, current: str, policy: str, *, remove: bool) -> None:
    """CliError where a policy of the same type is there already, or none to remove."""
    if remove:
        if current != policy:
            raise CliError(f"{where}: policy {policy} is not attached")
    elif current not in ("", policy):
        raise CliError(f"{where}: policy {current} is already attached, detach it first")


def is_ingress(config: Config, policy: str, way: str) -> None:
    """CliError where a queuing policy does not exist or goes the other way."""
    found = config.queuing_policies.get(policy)
    if found is None:
        raise CliError(f"policy-map type queuing {policy} does not exist")
    ingress = any(name in IN_CLASSES for name in found.classes)
    if found.classes and ingress != (way == "input"):
        raise CliError(f"policy-map type queuing {policy} cannot be attached as {way}")
