"""QEMU: whether it is there, what accelerates it, and the command line of a guest."""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from fabric.errors import ToolError
from fabric.lab.clock import tsc_khz
from fabric.lab.files import console_name, initrd_name
from fabric.lab.image import Image, cache_folder
from fabric.lab.plan import MANAGEMENT_ADDRESS, MANAGEMENT_NET, Guest, GuestNic

PROGRAM = "qemu-system-x86_64"
LEAST = (7, 2)  # the first with -netdev stream
KVM = Path("/dev/kvm")
PROBE_TIMEOUT_S = 10.0
TRANSLATED_MIB = 256
_INSTALL = "As root: apt-get install -y qemu-system-x86 (or: make lab)."
# On a busy machine an emulated timer comes too late for the kernel's check of it, and a
# virtual processor that has to wait is no lock-up.
_CONSOLE = (
    "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check nowatchdog "
    "rcupdate.rcu_cpu_stall_suppress=1"
)
# Without KVM every instruction is translated: `max` has the AVX that TensorFlow asks for.
_PROCESSOR = {"kvm": "host", "tcg": "max"}


def require_qemu() -> str:
    """QEMU's version. ToolError where it is missing or too old, or the machine is no x86-64."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise ToolError(f"the lab's guests are x86-64, this machine is {platform.machine()}")
    if shutil.which(PROGRAM) is None:
        raise ToolError(f"there is no {PROGRAM} on this machine", advice=_INSTALL)
    shown = subprocess.run((PROGRAM, "--version"), capture_output=True, text=True, check=False)
    found = re.search(r"version (\d+)\.(\d+)(\S*)", shown.stdout)
    if found is None:
        said = (shown.stderr or shown.stdout).strip()[:200]
        raise ToolError(f"{PROGRAM} does not say its version: {said}", advice=_INSTALL)
    version = f"{found[1]}.{found[2]}{found[3]}"
    if (int(found[1]), int(found[2])) < LEAST:
        needed = ".".join(map(str, LEAST))
        raise ToolError(f"{PROGRAM} is {version}; the lab needs {needed} or newer", advice=_INSTALL)
    return version


def accelerator(image: Image, version: str) -> str:
    """``kvm`` where a kernel really boots with it, else ``tcg``; tried once after each reboot."""
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    kept = cache_folder() / "accelerator.json"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    asked = {"qemu": version, "boot": boot, "user": os.geteuid()}
    try:
        known = json.loads(kept.read_text())
        if known["asked"] == asked:
            return str(known["accelerator"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    found = "kvm" if _boots_with_kvm(image) else "tcg"
    kept.write_text(json.dumps({"asked": asked, "accelerator": found}) + "\n")
    return found


def _boots_with_kvm(image: Image) -> bool:
    command = [*_machine("kvm", 256, 1), "-serial", "stdio", "-kernel", str(image.kernel)]
    command += ["-initrd", str(image.initrd), "-append", f"{_CONSOLE} paisoar.probe"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return False
    return b"paisoar-lab: alive" in done.stdout


def _machine(accel: str, memory_mib: int, cpus: int) -> list[str]:
    # With room for one more processor than there is, the guest's memory barriers hold against
    # QEMU's own threads too. Releases before 8.1 leave them out for a machine that can never have
    # a second one ("tcg: Do not elide memory barriers for !CF_PARALLEL in system mode",
    # qemu c914d46d0a64); then a NIC's kick is lost now and then, and it sends nothing any more.
    room = f",maxcpus={cpus + 1}" if accel == "tcg" else ""
    # Translated code may take 1 GiB by default: this much is plenty for such guests.
    threads = f",thread=multi,tb-size={TRANSLATED_MIB}" if accel == "tcg" else ""
    return [
        *(PROGRAM, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-accel", f"{accel}{threads}", "-cpu", _PROCESSOR[accel]),
        *("-m", str(memory_mib), "-smp", f"{cpus}{room}"),
    ]


@functools.cache
def _append(accel: str) -> str:
    """The kernel's parameters; an emulated one is told how fast its clock runs."""
    if accel != "tcg":
        return _CONSOLE
    return f"{_CONSOLE} tsc=reliable tsc_early_khz={tsc_khz()}"


def command(guest: Guest, image: Image, accel: str) -> list[str]:
    """The command line of a guest, to be run in the lab's folder.

    The machine's root is shared read-only. The guest reaches nothing of the network but
    its cables; from outside only its SSH port on loopback leads in.
    """
    words = _machine(accel, guest.memory_mib, guest.cpus)
    words += ["-name", guest.name, "-monitor", "none"]
    words += ["-serial", f"file:{console_name(guest.name)}"]
    words += ["-kernel", str(image.kernel), "-initrd", initrd_name(guest.name)]
    words += ["-append", _append(accel), "-device", "virtio-rng-pci"]
    words += _share("root", Path("/")) + _share("tree", image.tree)
    forward = f"hostfwd=tcp:127.0.0.1:{guest.port}-{MANAGEMENT_ADDRESS}:22"
    words += ["-netdev", f"user,id=mgmt,net={MANAGEMENT_NET},restrict=on,{forward}"]
    words += ["-device", f"virtio-net-pci,netdev=mgmt,mac={guest.mac},romfile="]
    for number, nic in enumerate(guest.nics):
        words += _nic(number, nic, guest.max_mtu)
    return words


def _share(tag: str, path: Path) -> list[str]:
    # A comma in a value is written twice.
    where = str(path).replace(",", ",,")
    options = f"local,id={tag},path={where},security_model=none,readonly=on,multidevs=remap"
    return ["-fsdev", options, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def _nic(number: int, nic: GuestNic, max_mtu: int) -> list[str]:
    device = f"virtio-net-pci,mac={nic.mac},host_mtu={max_mtu},romfile="
    device += f",speed={nic.speed_bps // 10**6},duplex=full"
    if not nic.wire:
        return ["-device", device]
    server = "on" if nic.listens else "off"
    wire = f"stream,id=n{number},server={server},addr.type=unix,addr.path={nic.wire}"
    return ["-netdev", wire, "-device", f"{device},netdev=n{number}"]
