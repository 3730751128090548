"""One emulated Linux host with ConnectX NICs, as the twin serves it over SSH.

Security: a session's shell is a real shell of the user who runs the twin (root
in a user namespace of its own, where that user is not root). The namespaces
keep a host's files apart from this machine's; they are no sandbox. So only the
twin's own key may log in (``login_required``); the server enforces it.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.channel import SSHServerChannel

from fabric.counters import Counter
from fabric.errors import PaisoarError
from fabric.reach.access import user_name
from fabric.site import Site
from fabric.topology import PortRef
from fabric.twin.host import counters, image, session
from fabric.twin.host.namespace import Namespace
from fabric.twin.host.sftp import HostFiles
from fabric.twin.host.stand_ins import link, registers
from fabric.twin.host.stand_ins.dcbnl import dcbnl_of
from fabric.twin.host.stand_ins.driver import Refused
from fabric.twin.host.stand_ins.factory import reset_nic
from fabric.twin.host.stand_ins.files import Host, Nic

# The fault of a wrong map is put on the DSCP that the site's RoCE traffic carries.
WRONG_PRIORITY = 0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UNREACHABLE = 255


class EmulatedHost:
    """Implements :class:`fabric.twin.device.EmulatedDevice` for a host of the site.

    All state lies in ``folder`` at all times, written by whoever changes it, so
    that it survives any end of the twin. ``user`` is who the server's clients
    log in as. The server opens channels with ``encoding="latin-1"`` (or None) and
    ``line_editor=False``. Ansible's ssh connection works with its defaults; transfers
    need ``sftp_factory=host.sftp``, or ``ansible_ssh_transfer_method=piped``.
    ``~`` is private to the host, ``/etc``, ``/run``, ``/sys`` and
    ``/usr/local/sbin`` too; become is not needed.
    """

    login_required = True

    def __init__(
        self, name: str, folder: Path, site: Site, peers: Mapping[str, Any] | None = None
    ) -> None:
        """Make the host's files if there are none; nothing runs until a session comes.

        ``peers`` are the twin's devices by name: a port has a carrier unless its far
        end is shut. Raises InputError where a NIC cannot be emulated.
        """
        self.name = name
        self.user = user_name()
        self._site = site
        self._peers: Mapping[str, Any] = {} if peers is None else peers
        self._folder = folder.resolve()
        image.build(self._folder, name, site)
        self._host = Host(str(self._folder))
        self._binds = image.binds(self._folder)
        self._namespace: Namespace | None = None
        self._starting = asyncio.Lock()

    async def serve(self, process: asyncssh.SSHServerProcess[Any]) -> None:
        """Carry one SSH session in a real shell; the channel is exited when it ends."""
        if process.subsystem is not None:
            process.stderr.write(session.as_sent(process, "subsystem request failed\n"))
            process.exit(UNREACHABLE)
            return
        try:
            self.follow_links()
            namespace = await self._entered()
            status = await session.carry(
                process, namespace.command, self._shell, self._environment(process), self._home
            )
        except (PaisoarError, OSError) as error:
            process.stderr.write(session.as_sent(process, f"{self.name}: {error}\n"))
            status = UNREACHABLE
        registers.settle(self._host)
        if status < 0:
            process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            process.exit(status)

    def is_shut(self, port: str) -> bool:
        """Whether the host has shut this port."""
        nic = self._host.nic(port)
        return nic is None or not nic.state().admin_up[0]

    def follow_links(self) -> None:
        """Give each port a carrier, or take it, as its far end is up or shut now."""
        for nic in self._host.nics():
            far = self._site.topology.peer(PortRef(self.name, nic.name))
            other = self._peers.get(far.device)
            carrier = int(other is None or not other.is_shut(far.port))
            if nic.state().carrier != [carrier]:
                with nic.edit() as state:
                    state.carrier = [carrier]
                    link.show(nic, state)

    async def prove(self) -> None:
        """Start the host now, not with its first session; ToolError where it cannot."""
        await self._entered()

    def sftp(self, channel: SSHServerChannel[Any]) -> asyncssh.SFTPServer:
        """The server's ``sftp_factory`` for this host."""
        return HostFiles(channel, self._home, self._binds)

    def add_counters(self, deltas: Sequence[Counter]) -> None:
        """Add what traffic did; ValueError for a port that this host does not have."""
        counters.add(self._host, deltas)

    def break_(self, kind: str, port: str) -> str:
        """``nic-reset``: no setting survived; ``dscp-map``: RoCE's DSCP to priority 0.

        ``reboot``: every process ends, what is enabled starts.
        ``port`` empty means every NIC. Raises ValueError for another kind or port, and
        where the NIC refuses it, as one does whose firmware still rules.
        """
        if kind == "reboot":
            return self._reboot()
        nics = self._nics(port)
        if kind == "nic-reset":
            return self._reset(nics)
        if kind == "dscp-map":
            try:
                return self._wrong_map(nics)
            except Refused as error:
                raise ValueError(f"{self.name}'s NIC answered: {error}") from error
        raise ValueError(f"{self.name} is a host and knows no fault {kind!r}")

    def save(self) -> None:
        """Nothing to do: every change is on disk as soon as it is made."""

    def close(self) -> None:
        """End every process in the host and drop its mounts; a later session starts anew."""
        if self._namespace is not None:
            self._namespace.close()
            self._namespace = None

    async def _entered(self) -> Namespace:
        async with self._starting:
            if self._namespace is not None and not self._namespace.alive:
                self.close()
            if self._namespace is None:
                self._namespace = await asyncio.to_thread(Namespace, self.name, self._binds)
            return self._namespace

    @property
    def _home(self) -> Path:
        return self._folder / "home"

    @property
    def _shell(self) -> str:
        return "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"

    def _environment(self, process: asyncssh.SSHServerProcess[Any]) -> dict[str, str]:
        programs = self._folder / "usr/local/sbin"
        bound = programs in self._binds.values()
        asked = {
            name: value
            for name, value in process.env.items()
            if isinstance(name, str) and name.startswith(("LANG", "LC_"))
        }
        return {
            **{name: str(value) for name, value in asked.items()},
            "HOME": str(self._home),
            "LOGNAME": "root",
            "PATH": PATH if bound else f"{programs}:{PATH}",
            "SHELL": self._shell,
            "USER": "root",
        }

    def _nics(self, port: str) -> list[Nic]:
        nics = [nic for nic in self._host.nics() if port in ("", nic.name)]
        if not nics:
            raise ValueError(f"{self.name} has no NIC {port!r}")
        return nics

    def _reboot(self) -> str:
        if self._starting.locked():
            raise ValueError(f"{self.name} is booting")
        self.close()
        self._namespace = Namespace(self.name, self._binds)
        program = self._folder / "usr/local/sbin/systemctl"
        subprocess.run(
            [*self._namespace.command, str(program), "reboot"],
            env={"PATH": f"{program.parent}:{PATH}", "HOME": str(self._home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return f"{self.name} rebooted: its NICs have what its units set at boot"

    def _reset(self, nics: list[Nic]) -> str:
        for nic in nics:
            reset_nic(nic)
        # What would have put the settings back is gone as well: units, scripts, all of /etc.
        image.install_etc(self._folder, self.name)
        programs = self._folder / "usr/local/sbin"
        image.clear(self._folder / "run/systemd/system")
        for left in [path for path in programs.iterdir() if not image.is_program(path)]:
            left.unlink()
        names = ", ".join(nic.name for nic in nics)
        return (
            f"{self.name} was reinstalled: {names} is back at factory settings and "
            "nothing is left that would set it at boot"
        )

    def _wrong_map(self, nics: list[Nic]) -> str:
        dscp = self._site.intent.roce.dscp[0]
        for nic in nics:
            rules = dcbnl_of(nic)
            with nic.edit() as state:
                for entry in [entry for entry in state.app_table() if entry[0] == dscp]:
                    rules.delete_app(state, *entry)
                rules.set_app(state, dscp, WRONG_PRIORITY)
        names = ", ".join(nic.name for nic in nics)
        return f"{self.name}: {names} now puts DSCP {dscp} into priority {WRONG_PRIORITY}"
