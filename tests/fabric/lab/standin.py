"""Run as ``qemu-system-x86_64``: a guest that is an SSH server and nothing else.

It is started with the command line of a real one in the lab's folder: it listens at the
wires, says on its console what a guest would, and answers ``hostname``. ``standin.json``
in the lab's parent folder tells guests to do otherwise: ``{"host1": "fails"}``.
"""

import asyncio
import json
import signal
import socket
import sys
from pathlib import Path

import asyncssh

VERSION = "QEMU emulator version 7.2.22 (stand-in)"


def values(name: str) -> list[str]:
    words = sys.argv[1:]
    return [words[i + 1] for i, word in enumerate(words) if word == name]


def option(text: str, name: str) -> str:
    found = [part.partition("=")[2] for part in text.split(",") if part.startswith(f"{name}=")]
    return found[0] if found else ""


class Gate(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return True


async def main() -> int:
    name = values("-name")[0]
    console = Path(values("-serial")[0].removeprefix("file:"))
    behaviour = Path("../standin.json")
    does = json.loads(behaviour.read_text()).get(name, "") if behaviour.is_file() else ""
    initrd = Path(values("-initrd")[0]).read_bytes()
    assert name.encode() in initrd
    listeners = []
    for netdev in values("-netdev"):
        if netdev.startswith("stream") and option(netdev, "server") == "on":
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(option(netdev, "addr.path"))
            listener.listen()
            listeners.append(listener)
        elif netdev.startswith("stream"):
            wire = socket.socket(socket.AF_UNIX)
            wire.connect(option(netdev, "addr.path"))
            listeners.append(wire)
    if does == "refuses":
        print("-device virtio-net-pci: no such thing", file=sys.stderr)
        return 1
    if does == "fails":
        console.write_text(
            "[    2.1] rdma_rxe: failed to add ens1f0\n"
            "paisoar-lab: failed: rdma link add rxe0: error: No such file or directory\n"
        )
        return 0
    if does == "panics":
        said = "[    0.052000] Kernel panic - not syncing: IO-APIC + timer doesn't work!\n"
        console.write_text(said + "".join(f"[    0.052000]  ? frame{n}\n" for n in range(20)))
        return 0
    if does == "hangs":
        console.write_text("[    2.1] waiting for nothing\n")
        await asyncio.sleep(3600)

    async def serve(process: asyncssh.SSHServerProcess) -> None:
        process.stdout.write(f"{name}\n")
        process.exit(0)

    forward = option(next(n for n in values("-netdev") if n.startswith("user")), "hostfwd")
    port = int(forward.split(":")[2].split("-")[0])
    await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=Gate,
        server_host_keys=[f"host_keys/{name}"],
        authorized_client_keys="id_ed25519.pub",
        process_factory=serve,
    )
    console.write_text("paisoar-lab: ready\n")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        print(VERSION)
        sys.exit(0)
    if "paisoar.probe" in sys.argv[-1]:
        sys.exit(1)
    sys.exit(asyncio.run(main()))
