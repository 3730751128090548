"""What the lab asks of a machine, and what it says where something is missing."""

from __future__ import annotations

import lzma
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.errors import InputError, ToolError
from fabric.lab import image, modules, packages, qemu
from fabric.lab.plan import Sizes, guests_of
from fabric.site import Site
from tests.fabric.lab.conftest import program

APT = """\
NOTE: This is only a simulation!
Inst openssh-client [1:9.2p1-2+deb12u6] (1:9.2p1-2+deb12u10 Debian:12.15/oldstable [amd64])
Inst libwrap0 (7.6.q-32 Debian:12.15/oldstable [amd64])
Inst ethtool (1:6.1-1 Debian:12.15/oldstable [amd64])
Conf libwrap0 (7.6.q-32 Debian:12.15/oldstable [amd64])
"""
DEPENDS = "linux-image-amd64\n  Depends: linux-image-6.1.0-57-amd64\n"


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def says(folder: Path, name: str, text: str, code: int = 0) -> None:
    program(folder, name, f"#!/bin/sh\n/bin/cat <<'X'\n{text}X\nexit {code}\n")


def test_without_qemu_the_command_that_installs_it_is_said(bin_folder):
    with pytest.raises(ToolError) as caught:
        qemu.require_qemu()
    assert caught.value.exit_code == 3
    assert "there is no qemu-system-x86_64" in caught.value.message
    assert "apt-get install -y qemu-system-x86" in caught.value.advice


def test_qemu_without_stream_sockets_is_too_old(bin_folder):
    says(bin_folder, "qemu-system-x86_64", "QEMU emulator version 6.2.0 (Debian)\n")
    with pytest.raises(ToolError, match=r"is 6\.2\.0; the lab needs 7\.2 or newer"):
        qemu.require_qemu()


def test_a_newer_qemu_will_do(bin_folder):
    says(bin_folder, "qemu-system-x86_64", "QEMU emulator version 10.0.2 (Debian)\n")
    assert qemu.require_qemu() == "10.0.2"


@pytest.mark.parametrize(("boots", "found"), [(True, "kvm"), (False, "tcg")])
def test_kvm_is_used_where_a_kernel_really_boots_with_it(
    bin_folder, cache, tmp_path, monkeypatch, boots, found
):
    device = tmp_path / "kvm"
    device.write_text("")
    monkeypatch.setattr(qemu, "KVM", device)
    cache.mkdir()
    asked = tmp_path / "asked"
    said = "paisoar-lab: alive" if boots else "failed to set MSR 0x10a"
    program(
        bin_folder,
        "qemu-system-x86_64",
        f'#!/bin/sh\necho "$@" >> {asked}\necho "{said}"\n',
    )
    made = image.Image(tmp_path)
    assert qemu.accelerator(made, "7.2") == found
    assert qemu.accelerator(made, "7.2") == found
    assert len(asked.read_text().splitlines()) == 1  # tried once
    assert qemu.accelerator(made, "8.0") == found
    assert len(asked.read_text().splitlines()) == 2


def test_without_kvm_nothing_is_tried(bin_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(qemu, "KVM", tmp_path / "none")
    assert qemu.accelerator(image.Image(tmp_path), "7.2") == "tcg"


def test_a_guest_has_its_cables_and_one_way_in_and_no_way_out(site: Site, tmp_path):
    guest = guests_of(site, Sizes())[1]
    words = qemu.command(guest, image.Image(tmp_path), "tcg")
    networks = [words[i + 1] for i, word in enumerate(words) if word == "-netdev"]
    assert len(networks) == 2
    assert "restrict=on" in networks[0]
    assert f"hostfwd=tcp:127.0.0.1:{guest.port}-" in networks[0]
    assert networks[1].startswith("stream,")
    assert "server=off" in networks[1]
    shares = [words[i + 1] for i, word in enumerate(words) if word == "-fsdev"]
    assert all("readonly=on" in share for share in shares)
    nic = next(word for word in words if guest.nics[0].mac in word)
    assert "host_mtu=9216" in nic
    assert "speed=100," in nic


@pytest.mark.parametrize(("accel", "processors"), [("tcg", "1,maxcpus=2"), ("kvm", "1")])
def test_an_emulated_guest_could_have_a_second_processor(site: Site, tmp_path, accel, processors):
    # Without, a release of QEMU before 8.1 loses a NIC's kick now and then.
    words = qemu.command(guests_of(site, Sizes())[0], image.Image(tmp_path), accel)
    assert words[words.index("-smp") + 1] == processors


def test_a_cache_of_nobody_is_refused_by_the_variables_name(monkeypatch):
    monkeypatch.setenv(image.CACHE, "~nobody-of-that-name/lab")
    with pytest.raises(InputError, match=f"{image.CACHE} names no folder: ~nobody-of-that-name"):
        image.cache_folder()


def test_what_the_machine_lacks_is_asked_of_apt(bin_folder):
    says(bin_folder, "apt-get", APT)
    assert packages.missing() == (
        "openssh-client=1:9.2p1-2+deb12u10",
        "libwrap0=7.6.q-32",
        "ethtool=1:6.1-1",
    )


def test_the_kernel_is_what_debians_newest_is_called(bin_folder):
    says(bin_folder, "apt-cache", DEPENDS)
    assert packages.kernel_package() == ("linux-image-6.1.0-57-amd64", "6.1.0-57-amd64")


def test_lists_that_know_no_kernel_are_to_be_updated(bin_folder):
    says(bin_folder, "apt-cache", "")
    with pytest.raises(ToolError) as caught:
        packages.kernel_package()
    assert "apt knows no package linux-image-amd64" in caught.value.message
    assert "apt-get update" in caught.value.advice


def test_apts_own_words_are_quoted(bin_folder):
    program(
        bin_folder,
        "apt-get",
        '#!/bin/sh\necho "W: something" >&2\n'
        'echo "E: Unable to locate package perftest" >&2\nexit 100\n',
    )
    with pytest.raises(ToolError) as caught:
        packages.missing()
    assert caught.value.message.endswith(": E: Unable to locate package perftest")
    assert "apt-get update" in caught.value.advice


def test_a_machine_without_apt_is_told_that_it_needs_debian(bin_folder):
    with pytest.raises(ToolError) as caught:
        packages.missing()
    assert "there is no apt-get" in caught.value.message
    assert "Debian" in caught.value.advice


def test_unpacked_folders_do_not_hide_the_machines_links(tmp_path):
    root, target = tmp_path / "root", tmp_path / "target"
    (root / "usr" / "lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    (root / "opt").mkdir()
    for name in ("lib/modules/a", "usr/lib/b", "sbin/c"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(name)
    packages.fit_to_machine(target, root)
    assert (target / "usr/lib/modules/a").read_text() == "lib/modules/a"
    assert (target / "usr/lib/b").read_text() == "usr/lib/b"
    assert not (target / "lib").exists()
    assert (target / "sbin/c").exists()  # that one is a folder of its own, or none, there


def test_without_kmod_the_command_that_installs_it_is_said(bin_folder, tmp_path, monkeypatch):
    def run(*_args, **_options):
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ToolError) as caught:
        modules.index(tmp_path, "6.1")
    assert "there is no depmod" in caught.value.message
    assert "kmod" in caught.value.advice


def test_a_disk_that_is_full_is_said_before_anything_is_fetched(bin_folder, cache, monkeypatch):
    monkeypatch.setattr(image.shutil, "disk_usage", lambda _path: type("D", (), {"free": 10**8}))
    with pytest.raises(ToolError) as caught:
        image.prepare(lambda _what: None)
    assert f"needs 900 MB in {cache}, where 100 MB are free" in caught.value.message
    assert image.CACHE in caught.value.advice


@pytest.fixture
def debian(bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for apt, dpkg and kmod; what they were asked stands in a file."""
    asked = tmp_path / "asked"
    work = tmp_path / "work.py"
    work.write_text(
        f"""
import pathlib, sys
name, *words = sys.argv[1:]
with open({str(asked)!r}, "a") as file:
    print(name, *words, file=file)
if name == "apt-get" and "-s" in words:
    print("Inst busybox-static (1:1.35 Debian [amd64])")
elif name == "apt-cache":
    print("  Depends: linux-image-6.1.0-57-amd64")
elif name == "apt-get":
    if pathlib.Path({str(tmp_path / "offline")!r}).exists():
        print("E: Failed to fetch", file=sys.stderr)
        sys.exit(100)
    pathlib.Path(words[-1].partition("=")[0] + ".deb").write_text("")
elif name == "dpkg-deb":
    target = pathlib.Path(words[2])
    if "busybox" in words[1]:
        (target / "bin").mkdir(parents=True)
        (target / "bin/busybox").write_bytes(b"static")
    else:
        base = target / "lib/modules/6.1.0-57-amd64/kernel"
        base.mkdir(parents=True)
        (base / "9p.ko").write_bytes(b"module")
        (base / "unused.ko").write_bytes(b"module")
        (target / "boot").mkdir()
        (target / "boot/vmlinuz-6.1.0-57-amd64").write_bytes(b"kernel")
elif name == "modprobe":
    root = words[1]
    print(f"insmod {{root}}/lib/modules/6.1.0-57-amd64/kernel/9p.ko ")
"""
    )
    for name in ("apt-get", "apt-cache", "dpkg-deb", "depmod", "modprobe", "dpkg-query"):
        program(bin_folder, name, f'#!/bin/sh\nexec {sys.executable} {work} {name} "$@"\n')
    return asked


def test_an_image_is_made_once(debian, cache):
    told: list[str] = []
    made = image.prepare(told.append)
    assert made.kernel.read_bytes() == b"kernel"
    assert b"static" in made.initrd.read_bytes()
    assert [path.name for path in made.tree.rglob("*.ko")] == ["9p.ko"]
    assert any("kernel" in what for what in told)
    downloads = debian.read_text().count("download")
    assert image.prepare(told.append) == made
    assert debian.read_text().count("download") == downloads == 2
    assert not list(cache.glob("new-*"))


def test_a_download_that_fails_leaves_nothing_and_can_be_tried_again(debian, cache, tmp_path):
    (tmp_path / "offline").touch()
    with pytest.raises(ToolError, match="cannot download busybox-static=1:1.35: E: Failed"):
        image.prepare(lambda _what: None)
    assert [path.name for path in cache.iterdir()] == ["lock"]
    (tmp_path / "offline").unlink()
    assert image.prepare(lambda _what: None).initrd.is_file()


def test_an_interrupt_leaves_nothing_of_a_preparation(debian, cache):
    def interrupt(what: str) -> None:
        if "kernel" in what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        image.prepare(interrupt)
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_images_that_nobody_holds_go_when_another_is_made(debian, cache, monkeypatch):
    first = image.prepare(lambda _what: None)
    monkeypatch.setattr(image, "RECIPE", 1000)
    with first.hold():
        second = image.prepare(lambda _what: None)
        assert first.folder.is_dir()
    (cache / "new-left").mkdir()  # by a program that was killed
    monkeypatch.setattr(image, "RECIPE", 1001)
    third = image.prepare(lambda _what: None)
    assert not first.folder.exists()
    assert not second.folder.exists()
    assert not (cache / "new-left").exists()
    assert third.folder.is_dir()


def packed(content: bytes, setup_sectors: int = 3) -> bytes:
    """A bzImage as the boot protocol describes it."""
    payload = lzma.compress(content) + struct.pack("<I", len(content))
    head = bytearray((setup_sectors + 1) * 512 + 64)
    head[0x1F1] = setup_sectors
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", head, 0x248, 64, len(payload))
    return bytes(head) + payload + b"end"


def test_a_kernel_is_unpacked_where_it_can_be():
    kernel = b"\x7fELF" + b"x" * 1000
    assert image.unpacked_kernel(packed(kernel)) == kernel
    assert image.unpacked_kernel(packed(b"no kernel")) is None
    assert image.unpacked_kernel(packed(kernel).replace(b"\xfd7zXZ", b"\x28\xb5\x2f\xfdX")) is None
    assert image.unpacked_kernel(b"\0" * 2048) is None
