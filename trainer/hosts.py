"""Ranks on this machine, or on a site's hosts over the OpenSSH client with the site's own keys.

Ranks are dealt out host by host in turn blocks: rank 0 .. k-1 on the first.
The user's keys or agent log in (``fabric.reach.access``); host keys are checked.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from fabric.errors import InputError, ToolError
from fabric.reach.access import Access, access_to
from fabric.site import Site
from trainer.collective.settings import settings_for
from trainer.supervise import Meeting, Place

# A host that is stopped or lost says nothing and closes nothing.
SILENT_AFTER_S = 8.0
JOIN_WITHIN_S = 120.0
# Emulated processors take minutes to load TensorFlow, and say nothing in between.
LAB_SILENT_AFTER_S = 300.0
LAB_JOIN_WITHIN_S = 900.0
# Of an option that is given twice, ssh takes the first.
_LAB_PATIENCE = ("ConnectTimeout=120", "ServerAliveInterval=10", "ServerAliveCountMax=6")
_OUTSIDE = "192.0.2.1"  # of the documentation's range (RFC 5737): nothing is sent there


def ssh_command(access: Access) -> tuple[str, ...]:
    """``ssh`` with all that it needs to log in; what it runs is to be appended."""
    only = [
        f'UserKnownHostsFile="{access.known_hosts}"',
        "GlobalKnownHostsFile=none",
        "StrictHostKeyChecking=yes",
        "BatchMode=yes",
        "ConnectTimeout=15",
        "ServerAliveInterval=2",
        "ServerAliveCountMax=3",
    ]
    key: tuple[str, ...] = ()
    if access.key_file is not None:
        only.append("IdentitiesOnly=yes")
        key = ("-i", str(access.key_file))
    options = (word for option in only for word in ("-o", option))
    target = (f"{access.user}@{access.host}", "--")
    return ("ssh", "-T", "-F", "none", "-p", str(access.port), *key, *options, *target)


def places_on(
    site: Site,
    hosts: Sequence[str],
    ranks: int,
    *,
    python: str = sys.executable,
    wishes: Sequence[str] = (),
) -> list[Place]:
    """A place for each rank on these hosts of the site, as even blocks.

    ``python`` is the interpreter with PAISoar on the hosts, ``wishes`` are
    those of :func:`~trainer.collective.settings.settings_for`. InputError for
    a host that is none of the site's, ToolError without an SSH client.
    """
    if shutil.which("ssh") is None:
        raise ToolError("there is no ssh", advice="Install the OpenSSH client.")
    unknown = [host for host in hosts if host not in site.topology.hosts]
    if unknown:
        raise InputError(f"{', '.join(unknown)} is no host of {site.name}", key="host")
    chosen = list(hosts)[:ranks]
    each, more = divmod(ranks, len(chosen))
    places: list[Place] = []
    for number, host in enumerate(chosen):
        command = _brought_here(site, ssh_command(access_to(site, host)))
        places += [
            Place(host, command, python, network=settings_for(site, host, place, wishes))
            for place in range(each + (number < more))
        ]
    return places


def places_here(site: Site, ranks: int, *, wishes: Sequence[str] = ()) -> list[Place]:
    """Places for all ranks on this machine, which may be a host of the site."""
    return [Place(network=settings_for(site, own_name(), place, wishes)) for place in range(ranks)]


def own_name() -> str:
    """The name of this machine, without its domain, as sites write their hosts' names."""
    return socket.gethostname().partition(".")[0]


def own_address() -> str:
    """Our IPv4 address for other hosts: that of our name, else that on the way out.

    Of a machine that has only loopback it is that.
    """
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    own = [
        address.address
        for name, addresses in psutil.net_if_addrs().items()
        if name in up
        for address in addresses
        if address.family == socket.AF_INET and not address.address.startswith("127.")
    ]
    candidates: list[str] = []
    with contextlib.suppress(OSError):
        candidates += socket.gethostbyname_ex(socket.gethostname())[2]
    with contextlib.suppress(ToolError):
        candidates.append(_address_towards(_OUTSIDE))
    candidates += own
    return next((address for address in candidates if address in own), "127.0.0.1")


def meeting_for(site: Site, hosts: Sequence[str]) -> Meeting:
    """Where ranks on these hosts reach the launcher: its address towards the first of them.

    Guests of a lab have no way out; their loopback leads here by SSH.
    """
    if site.environment == "lab":
        return Meeting(
            port=_lab_port(site.path),
            silent_after_s=LAB_SILENT_AFTER_S,
            join_within_s=LAB_JOIN_WITHIN_S,
        )
    return Meeting(
        host=_address_towards(access_to(site, hosts[0]).host),
        silent_after_s=SILENT_AFTER_S,
        join_within_s=JOIN_WITHIN_S,
    )


@functools.cache
def _lab_port(file: Path) -> int:
    """A free port of loopback, where the ranks of this site's lab meet in this process."""
    del file  # one port a site
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _brought_here(site: Site, command: tuple[str, ...]) -> tuple[str, ...]:
    """``ssh`` to a guest of a lab brings the place of the meeting along, and has patience."""
    if site.environment != "lab":
        return command
    place = f"127.0.0.1:{_lab_port(site.path)}"
    patience = (word for option in _LAB_PATIENCE for word in ("-o", option))
    return (command[0], *patience, "-R", f"{place}:{place}", *command[1:])


def _address_towards(host: str) -> str:
    """Our own address on the way to ``host``; no packet is sent."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as sock:
            sock.connect(address)
            return str(sock.getsockname()[0])
    except OSError as error:
        raise ToolError(f"there is no way to {host}: {error}") from error
