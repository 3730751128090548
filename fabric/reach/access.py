"""How each device of a site is reached over SSH, and with which credentials.

Secrets come from the environment or the SSH agent, never from ``fabric.yaml``:

- ``PAISOAR_SWITCH_USER``, ``PAISOAR_SWITCH_PASSWORD``, ``PAISOAR_SWITCH_KEY``
- ``PAISOAR_HOST_USER``, ``PAISOAR_HOST_PASSWORD``, ``PAISOAR_HOST_KEY``
- ``PAISOAR_KNOWN_HOSTS`` (default ``~/.ssh/known_hosts``)

``..._KEY`` names a private key file. The twin keeps its own key and host keys
under ``.paisoar/twin/`` (``inventory.json``), the lab under ``.paisoar/lab/``.
"""

from __future__ import annotations

import getpass
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabric.errors import ToolError
from fabric.site import Site, SwitchSpec, state_dir_of

INVENTORY = "inventory.json"


@dataclass(frozen=True, slots=True)
class Access:
    """Where and how to log in. ``password`` never shows in a repr or a log.

    ``slow``: an emulated processor, which may answer much later than others do.
    """

    host: str
    port: int
    user: str
    known_hosts: Path
    key_file: Path | None = None
    password: str | None = field(default=None, repr=False)
    slow: bool = False


def twin_dir(site: Site) -> Path:
    """Where the site's twin keeps its state."""
    return twin_dir_of(site.path)


def twin_dir_of(file: Path) -> Path:
    """Where the twin of the site of this ``fabric.yaml`` keeps its state."""
    return state_dir_of(file) / "twin"


def twin_inventory_path(site: Site) -> Path:
    """The file in which a running twin says where its devices listen.

    JSON: ``{"pid": int, "control": {"port": int, "token": str}, "devices":
    {NAME: {"port": int, "user": str}}}``; mode 0600.
    """
    return twin_dir(site) / INVENTORY


def lab_dir_of(file: Path) -> Path:
    """Where the lab of the site of this ``fabric.yaml`` keeps its keys, logs and sockets."""
    return state_dir_of(file) / "lab"


def user_name() -> str:
    """Who runs this; the number of the user where the system has no name for it."""
    if os.geteuid() == 0:
        return "root"
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user{os.geteuid()}"


def check_twin_is_up(site: Site) -> None:
    """ToolError where the site is a twin and nobody has started it, or it has died."""
    if site.environment == "twin":
        _twin_inventory(site)


def access_to(site: Site, device: str) -> Access:
    """Access to one device; ToolError where the site's twin is not up."""
    if site.environment == "twin":
        return _twin_access(site, device)
    spec = site.devices[device]
    if site.environment == "lab":
        folder = lab_dir_of(site.path)
        return Access(
            host=spec.mgmt.address or device,
            port=spec.mgmt.port,
            user=spec.mgmt.user or "root",
            known_hosts=folder / "known_hosts",
            key_file=folder / "id_ed25519",
            slow=True,
        )
    prefix = "PAISOAR_SWITCH" if isinstance(spec, SwitchSpec) else "PAISOAR_HOST"
    key = os.environ.get(f"{prefix}_KEY")
    known_hosts = os.environ.get("PAISOAR_KNOWN_HOSTS", "~/.ssh/known_hosts")
    return Access(
        host=spec.mgmt.address or device,
        port=spec.mgmt.port,
        user=spec.mgmt.user or os.environ.get(f"{prefix}_USER") or user_name(),
        known_hosts=Path(known_hosts).expanduser(),
        key_file=Path(key).expanduser() if key else None,
        password=os.environ.get(f"{prefix}_PASSWORD"),
    )


def _twin_inventory(site: Site) -> dict[str, Any]:
    advice = f"Start it with `paisoar twin up -f {site.path}`."
    try:
        inventory: dict[str, Any] = json.loads(twin_inventory_path(site).read_text())
        pid = int(inventory["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ToolError(f"the twin of {site.path} is not up.", advice=advice) from None
    if not Path(f"/proc/{pid}").exists():
        raise ToolError(f"the twin of {site.path} has died (process {pid}).", advice=advice)
    return inventory


def _twin_access(site: Site, device: str) -> Access:
    entry = _twin_inventory(site)["devices"].get(device)
    if entry is None:
        raise ToolError(
            f"the twin of {site.path} has no {device}: it is of an earlier content of the file.",
            advice=f"`paisoar twin down -f {site.path}`, then up, makes it anew.",
        )
    return Access(
        host="127.0.0.1",
        port=entry["port"],
        user=entry["user"],
        known_hosts=twin_dir(site) / "known_hosts",
        key_file=twin_dir(site) / "id_ed25519",
    )
