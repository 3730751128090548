"""What an emulated host is made of: its private files, as freshly installed.

``etc`` is a small ``/etc`` of its own with the few files of this machine that
programs need to run; ``usr/local/sbin`` holds the stand-ins, first on every
PATH; ``sys`` is a whole ``/sys`` with nothing but the emulated NICs in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import uuid
from pathlib import Path

from fabric.errors import InputError
from fabric.site import HostSpec, Site
from fabric.topology import PortRef
from fabric.twin.host import stand_ins
from fabric.twin.host.adapters import adapter_of
from fabric.twin.host.stand_ins.factory import reset_host
from fabric.twin.host.stand_ins.files import Host, write_pairs, write_text
from fabric.twin.host.stand_ins.launch import PROGRAMS

MAX_INTERFACE_NAME = 15  # IFNAMSIZ - 1

# Files and folders of this machine that programs in the host read.
_BORROWED = (
    "alternatives", "debian_version", "environment", "inputrc", "ld.so.cache", "ld.so.conf",
    "localtime", "login.defs", "nsswitch.conf", "os-release", "protocols", "services", "shells",
    "terminfo", "timezone",
)  # fmt: skip
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
BOOT_ID_FILE = "boot_id"
_PROFILE = """\
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
[ -n "$PS1" ] && [ -r /etc/bash.bashrc ] && [ -n "$BASH" ] && . /etc/bash.bashrc
"""
_BASHRC = "[ -n \"$PS1\" ] && PS1='\\u@\\h:\\w\\$ '\n"


def build(folder: Path, name: str, site: Site) -> None:
    """Make the host's files where there are none yet; what is there stays.

    Raises InputError where a NIC's name cannot be that of a Linux interface.
    """
    spec = site.host(name)
    for interface in spec.nics:
        if "/" in interface or len(interface) > MAX_INTERFACE_NAME:
            raise InputError(
                f"{interface!r} cannot be the name of a Linux interface",
                file=site.path,
                key=f"devices.{name}.nics",
                advice=f"At most {MAX_INTERFACE_NAME} characters and no slash.",
            )
    install_programs(folder)
    if not (folder / BOOT_ID_FILE).exists():
        new_boot(folder)
    if (folder / "installed").exists():
        return
    for path in ("home", "run/systemd/system", "nics", "sys/block", "sys/kernel/config/rdma_cm"):
        (folder / path).mkdir(parents=True, exist_ok=True)
    for index, interface in enumerate(spec.nics):
        _write_facts(folder, site, name, spec, interface, index)
    reset_host(Host(str(folder)))
    install_etc(folder, name)
    (folder / "installed").write_text("1\n")


def install_programs(folder: Path) -> None:
    """(Re)write the stand-ins' program files: interpreter and source may have moved."""
    programs = folder / "usr/local/sbin"
    programs.mkdir(parents=True, exist_ok=True)
    python = os.path.realpath(sys.executable)  # past the venv, whose site we skip
    package = Path(stand_ins.__file__).parent
    for program in PROGRAMS:
        path = programs / program
        path.write_text(
            f"#!{python} -ISE\n"
            "import sys\n"
            f"sys.path.append({str(package.parent)!r})\n"
            f"from {package.name}.launch import run\n"
            f"run({program!r}, {str(folder)!r})\n"
        )
        path.chmod(0o755)


def install_etc(folder: Path, name: str) -> None:
    """A fresh ``/etc``; the folder itself stays, because it is mounted."""
    etc = folder / "etc"
    etc.mkdir(parents=True, exist_ok=True)
    clear(etc)
    for borrowed in _BORROWED:
        source = Path("/etc") / borrowed
        with contextlib.suppress(OSError):
            if borrowed == "alternatives":
                _borrow_alternatives(source, etc / borrowed)
            elif source.is_dir():
                shutil.copytree(source, etc / borrowed, symlinks=True)
            elif source.exists():
                shutil.copyfile(source, etc / borrowed)
    home = folder / "home"
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    texts = {
        "hostname": f"{name}\n",
        "hosts": f"127.0.0.1\tlocalhost\n127.0.1.1\t{name}\n::1\tlocalhost\n",
        "passwd": f"root:x:0:0:root:{home}:{shell}\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "group": "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n",
        "machine-id": f"{uuid.uuid5(uuid.NAMESPACE_DNS, name).hex}\n",
        "profile": _PROFILE,
        "bash.bashrc": _BASHRC,
        "fstab": "",
    }
    for file, text in texts.items():
        (etc / file).write_text(text)
    for made in ("systemd/system", "modprobe.d", "sysctl.d", "profile.d"):
        (etc / made).mkdir(parents=True, exist_ok=True)


def _borrow_alternatives(source: Path, target: Path) -> None:
    """Links to programs only: manual pages are most of them and would slow every start."""
    target.mkdir()
    for link in os.scandir(source):
        if link.is_symlink() and not link.name.endswith(".gz"):
            (target / link.name).symlink_to(Path(link.path).readlink())


def is_program(path: Path) -> bool:
    """Whether this file of ``/usr/local/sbin`` is a stand-in of ours."""
    return path.name in PROGRAMS


def clear(folder: Path) -> None:
    """Remove all that a folder holds."""
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        else:
            child.unlink()


def new_boot(folder: Path) -> None:
    """Draw a boot id, as the kernel does once a boot. In place: the file is mounted."""
    (folder / BOOT_ID_FILE).write_text(f"{uuid.uuid4()}\n")


def binds(folder: Path) -> dict[Path, Path]:
    """Path in the host -> the file or folder of ours that lies over it."""
    found: dict[Path, Path] = {}
    for path in ("etc", "sys", "run", "usr/local/sbin"):
        target = Path("/") / path
        # Never hide the host's own folder, wherever a user has put the site.
        if target.is_dir() and target.resolve() not in folder.parents:
            found[target.resolve()] = folder / path
    if BOOT_ID.is_file():
        found[BOOT_ID] = folder / BOOT_ID_FILE
    for program in PROGRAMS:
        for place in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
            real = (Path(place) / program).resolve()
            if real.is_file() and real.name == program:
                found[real] = folder / "usr/local/sbin" / program
    return found


def _write_facts(
    folder: Path, site: Site, host: str, spec: HostSpec, interface: str, index: int
) -> None:
    nic = spec.nics[interface]
    link = site.topology.link_of[PortRef(host, interface)]
    digest = hashlib.sha256(f"{site.name}/{host}/{interface}".encode()).hexdigest()
    tail = ":".join(digest[at : at + 2] for at in (0, 2, 4))
    adapter = adapter_of(nic.family)
    facts = {
        "family": nic.family,
        "driver": adapter.driver,
        "index": str(index + 2),  # 1 is the loopback
        "rdma": nic.rdma,
        "pci": f"0000:3b:00.{index}"
        if index < 8
        else f"0000:{0x3B + index // 8:02x}:00.{index % 8}",
        "mac": f"{adapter.mac_prefix}:{tail}",
        "address": nic.address,
        "speed_mbps": str(link.speed_bps // 10**6),
        "firmware": adapter.firmware,
        "driver_version": adapter.version,
        "hca_type": adapter.hca_type,
        "vendor": adapter.vendor,
        "device": adapter.device,
    }
    (folder / "nics" / interface).mkdir(parents=True, exist_ok=True)
    write_pairs(str(folder / "nics" / interface / "facts"), facts)
    _write_sysfs(folder / "sys", interface, facts)


def _write_sysfs(sysfs: Path, interface: str, facts: dict[str, str]) -> None:
    """The files of a NIC that never change; the rest is the factory's."""
    pci = sysfs / "bus/pci/devices" / facts["pci"]
    net = sysfs / "class/net" / interface
    verbs = sysfs / "class/infiniband" / facts["rdma"]
    loopback = sysfs / "class/net/lo"
    firmware = facts["firmware"].split()[0]
    texts = {
        pci / "vendor": facts["vendor"],
        pci / "device": facts["device"],
        pci / "numa_node": "0",
        net / "address": facts["mac"],
        net / "ifindex": facts["index"],
        net / "type": "1",
        net / "addr_len": "6",
        net / "dev_id": "0x0",
        net / "duplex": "full",
        loopback / "address": "00:00:00:00:00:00",
        loopback / "ifindex": "1",
        loopback / "type": "772",
        loopback / "mtu": "65536",
        loopback / "operstate": "unknown",
        verbs / "hca_type": facts["hca_type"],
        verbs / "fw_ver": firmware,
        verbs / "board_id": facts["firmware"].split()[-1].strip("()"),
        verbs / "node_type": "1: CA",
        verbs / "ports/1/link_layer": "Ethernet",
        verbs / "ports/1/gid_attrs/ndevs/0": interface,
        verbs / "ports/1/gid_attrs/types/0": "IB/RoCE v1",
        verbs / "ports/1/gid_attrs/ndevs/3": interface,
        verbs / "ports/1/gid_attrs/types/3": "RoCE v2",
        verbs / "ports/1/gids/3": _mapped_gid(facts["address"]),
    }
    if facts["family"] == "irdma":
        texts[sysfs / "module/irdma/parameters/dcqcn_enable"] = "N"
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(str(path), f"{text}\n")
    for path in (net, verbs):
        with contextlib.suppress(FileExistsError):
            (path / "device").symlink_to(f"../../../bus/pci/devices/{facts['pci']}")
    for kind, child in (("net", interface), ("infiniband", facts["rdma"])):
        (pci / kind / child).mkdir(parents=True, exist_ok=True)


def _mapped_gid(address: str) -> str:
    """The GID of an IPv4 address (IPv4-mapped IPv6, RoCE v2)."""
    if not address:
        return "0000:0000:0000:0000:0000:0000:0000:0000"
    first, second, third, fourth = (int(part) for part in address.split("."))
    return f"0000:0000:0000:0000:0000:ffff:{first:02x}{second:02x}:{third:02x}{fourth:02x}"
