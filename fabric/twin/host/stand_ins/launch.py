"""Entry of every stand-in: each program file in ``/usr/local/sbin`` calls :func:`run`."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from .files import Host

# Program name -> module of this package.
PROGRAMS = {
    "cma_roce_tos": "cma_roce_tos",
    "dcb": "dcb",
    "ethtool": "ethtool",
    "ibdev2netdev": "ibdev2netdev",
    "ip": "ip",
    "mlnx_qos": "mlnx_qos",
    "rdma": "rdma",
    "systemctl": "systemctl",
}


def run(program: str, folder: str) -> None:
    """Run one stand-in over the host in ``folder`` and leave with its exit status."""
    module = import_module(f".{PROGRAMS[program]}", __package__)
    try:
        status: int = module.main(Host(folder), sys.argv[1:])
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = 141  # as a program that died of SIGPIPE
    # Skips the interpreter's teardown, a fifth of the whole run time.
    os._exit(status)
