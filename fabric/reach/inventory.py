"""Ansible's inventory of a site: where devices are and how to log in, without secrets.

Groups are ``switches`` and ``hosts``. Passwords are named, never written: the
playbooks look them up in their own environment.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fabric.devices.base import Target, TargetPort
from fabric.devices.registry import target_of
from fabric.errors import InputError
from fabric.provisioning.planfile import write_private
from fabric.reach.access import Access, access_to
from fabric.reach.collect import needs_sudo
from fabric.site import Site, SwitchSpec

SWITCH_PASSWORD = "PAISOAR_SWITCH_PASSWORD"  # noqa: S105 - a variable's name
HOST_PASSWORD = "PAISOAR_HOST_PASSWORD"  # noqa: S105 - a variable's name


def write_inventory(
    path: Path,
    site: Site,
    devices: Iterable[str],
    host_vars: Mapping[str, Mapping[str, object]] | None = None,
) -> None:
    """Write the inventory of these devices as JSON, with more variables where given.

    ToolError where the site's twin is not up.
    """
    groups: dict[str, dict[str, Any]] = {"switches": {}, "hosts": {}}
    for name in devices:
        access = access_to(site, name)
        is_switch = isinstance(site.devices[name], SwitchSpec)
        variables = _variables(site, name, access, is_switch=is_switch)
        variables.update((host_vars or {}).get(name, {}))
        groups["switches" if is_switch else "hosts"][name] = variables
    document = {
        "all": {"children": {group: {"hosts": members} for group, members in groups.items()}}
    }
    write_private(path, json.dumps(document, indent=1) + "\n")


def passwords(site: Site, devices: Iterable[str]) -> dict[str, str]:
    """The environment variables that these devices' passwords come from, with values."""
    if site.environment == "twin":
        return {}
    kinds = {site.devices[name].kind for name in devices}
    names = [SWITCH_PASSWORD] * ("switch" in kinds) + [HOST_PASSWORD] * ("host" in kinds)
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _variables(site: Site, name: str, access: Access, *, is_switch: bool) -> dict[str, object]:
    target = target_of(site, name)
    variables: dict[str, object] = {
        "ansible_host": access.host,
        "ansible_port": access.port,
        "ansible_user": access.user,
        "paisoar_known_hosts": str(access.known_hosts),
        "paisoar_key_file": str(access.key_file) if access.key_file is not None else "",
        "paisoar_os": target.os,
        "paisoar_target": dataclasses.asdict(target),
    }
    if is_switch:
        # The action plugins speak to switches themselves, over netmiko.
        variables["ansible_connection"] = "local"
        if access.password is not None:
            variables["paisoar_password_variable"] = SWITCH_PASSWORD
        return variables
    # ssh splits a list of files at blanks: inner quotes for ssh, outer ones for Ansible.
    only = [f'UserKnownHostsFile="{_for_ssh(access.known_hosts)}"', "GlobalKnownHostsFile=none"]
    if access.key_file is not None:
        # Ansible puts the quotes around this one.
        variables["ansible_ssh_private_key_file"] = _for_ssh(access.key_file)
        only.append("IdentitiesOnly=yes")
    variables["ansible_ssh_common_args"] = " ".join(f"-o {shlex.quote(o)}" for o in only)
    if access.password is not None:
        variables["paisoar_password_variable"] = HOST_PASSWORD
        variables["ansible_password"] = f"{{{{ lookup('env', '{HOST_PASSWORD}') }}}}"
    if needs_sudo(site, access):
        variables["ansible_become"] = True
    return variables


def _for_ssh(path: Path) -> str:
    """A path inside a quoted option of ssh, so that nothing in it is expanded.

    Source: ssh_config(5), "TOKENS" and "ENVIRONMENT VARIABLES". InputError where ssh
    or Ansible has no way to write it.
    """
    text = str(path)
    for sign in ("${", "{{", "{%", "{#", "\n"):
        if sign in text:
            raise InputError(
                f"ssh or Ansible would not take {sign!r} in this path for what it is",
                file=path,
                advice="Move the site or the file to a folder with a plainer name.",
            )
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def access_from(variables: Mapping[str, Any]) -> Access:
    """The Access that an inventory's variables of one device describe."""
    key = variables.get("paisoar_key_file")
    secret = variables.get("paisoar_password_variable")
    return Access(
        host=str(variables["ansible_host"]),
        port=int(variables["ansible_port"]),
        user=str(variables["ansible_user"]),
        known_hosts=Path(str(variables["paisoar_known_hosts"])),
        key_file=Path(str(key)) if key else None,
        password=os.environ.get(str(secret)) if secret else None,
    )


def target_from(variables: Mapping[str, Any]) -> Target:
    """The Target that an inventory's variables of one device describe."""
    target = variables["paisoar_target"]
    return Target(
        device=str(target["device"]),
        os=str(target["os"]),
        model=str(target["model"]),
        ports=tuple(
            TargetPort(
                name=str(port["name"]),
                speed_bps=int(port["speed_bps"]),
                cable_m=float(port["cable_m"]),
                family=str(port["family"]),
                rdma_device=str(port["rdma_device"]),
            )
            for port in target["ports"]
        ),
    )
