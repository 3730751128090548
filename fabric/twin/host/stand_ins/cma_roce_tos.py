"""``cma_roce_tos -d DEV -t TOS``: the TOS of rdma_cm connections (Mellanox/mlnx-tools)."""

from __future__ import annotations

import os
import sys

from .files import Host, read_text, write_text

USAGE = """\
Set/Show RoCE default ToS of RDMA_CM applications

Usage:
	cma_roce_tos OPTIONS
Options:
	-h              show this help
	-d <dev>        use IB device <dev> (default mlx5_0)
	-p <port>       use port <port> of IB device (default 1)
	-t <tos>        set ToS of RoCE RDMA_CM applications (0)"""
MAX_TOS = 255


def main(host: Host, arguments: list[str]) -> int:
    """Run the program; its exit status."""
    chosen = {"-d": "mlx5_0", "-p": "1", "-t": "-1"}
    words = list(arguments)
    while words:
        option, value = words[0][:2], words[0][2:]
        if option == "-h":
            print(USAGE)
            return 0
        words.pop(0)
        if option not in chosen:
            continue
        if not value:
            if not words:
                sys.stderr.write(f"cma_roce_tos: option requires an argument -- {option[1]}\n")
                break
            value = words.pop(0)
        chosen[option] = value
    device, port = chosen["-d"], chosen["-p"]
    folder = f"{host.sys}/kernel/config/rdma_cm/{device}"
    if "/" in device or not os.path.isdir(folder):
        sys.stderr.write(f"mkdir: cannot create directory '{device}': No such device\n")
        print(f"Failed to create configuration for {device}")
        return 1
    path = f"{folder}/ports/{port}/default_roce_tos"
    if not os.path.exists(path):
        print(f"Device {device} port {port} does not exist")
        return 1
    if chosen["-t"] != "-1":
        # The script goes on and prints the old value where the kernel refuses the new one.
        if chosen["-t"].isdigit() and int(chosen["-t"]) <= MAX_TOS:
            write_text(path, f"{chosen['-t']}\n")
        else:
            sys.stderr.write("cma_roce_tos: echo: write error: Invalid argument\n")
    sys.stdout.write(read_text(path))
    return 0
