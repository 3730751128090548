"""The private view that one emulated host has of the machine it runs on.

One holder process a host: ``unshare`` into new mount, UTS and PID namespaces
(and a user namespace that maps us to root, where we are not), bind the host's
own folders over ``/etc``, ``/sys``, ... and wait. Sessions join with
``nsenter``, which costs 2 ms of CPU. The holder reads a pipe whose other end
only we hold, so that it ends when we do, even by SIGKILL; it is process 1 of
its PID namespace, so that the kernel then ends every process of every session
and drops the mounts with the last of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fabric.errors import ToolError

# $1 is the host's name, then pairs of a source and the path it is bound over.
_SETUP = """\
# The program works in a user namespace too, the file needs no program.
hostname "$1" 2>/dev/null || printf %s "$1" > /proc/sys/kernel/hostname
shift
while [ $# -gt 0 ]; do
    mount --bind "$1" "$2"
    shift 2
done
echo ready
exec env --ignore-signal=CHLD cat >/dev/null
"""
_UNSHARE = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
TOOLS = ("unshare", "nsenter", "mount")


class Namespace:
    """The namespaces of one host, entered by ``command``; :meth:`close` ends all in them."""

    def __init__(self, host: str, binds: Mapping[Path, Path]) -> None:
        """Start the holder. ``binds``: path in the host -> our file or folder.

        Raises ToolError where the kernel or the container does not let us.
        """
        for tool in TOOLS:
            if shutil.which(tool) is None:
                raise ToolError(
                    f"starting emulated host {host}: there is no {tool} on this machine.",
                    advice="Install util-linux.",
                )
        self._user = os.geteuid() != 0
        user = ["--user", "--map-root-user"] if self._user else []
        pairs = [str(path) for target, source in binds.items() for path in (source, target)]
        # Closed by close(); a context manager would end with this call.
        self._holder = subprocess.Popen(
            [*_UNSHARE, *user, "sh", "-ec", _SETUP, "sh", host, *pairs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C at our terminal is not for the hosts
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"ready\n":
            _, trace = self._holder.communicate()
            raise ToolError(
                f"starting emulated host {host}: no private namespaces: "
                f"{trace.decode(errors='replace').strip()}",
                advice="Run as root, or allow unprivileged user namespaces "
                "(sysctl kernel.unprivileged_userns_clone=1, or the container's "
                "--security-opt seccomp=unconfined and --cap-add SYS_ADMIN). In a chroot "
                "/ must be a mount point: enter it by pivot_root, or bind it onto itself.",
            )

    @property
    def alive(self) -> bool:
        """Whether the holder still runs."""
        return self._holder.poll() is None

    @property
    def command(self) -> list[str]:
        """The words before a command line that run it inside."""
        pid = self._holder.pid
        user = ["--user", "--preserve-credentials"] if self._user else []
        # The holder's own PID namespace is its parent's; the one it made is its children's.
        pid_namespace = f"--pid=/proc/{pid}/ns/pid_for_children"
        return ["nsenter", "--target", str(pid), *user, "--mount", "--uts", pid_namespace, "--"]

    def close(self) -> None:
        """End the holder and every process in the namespaces."""
        self._holder.communicate()
