"""The boot script, run by a real shell over a folder in place of /sys."""

import subprocess

import pytest

from fabric.devices.linux import MODULE
from fabric.devices.linux.script import UNIT, render_script, unit_name
from fabric.devices.mlx5 import FAMILY
from fabric.intended import intended_qos
from tests.sites import make_site

PCI = "0000:3b:00.0"


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


class Host:
    """Programs that log what they are asked, and a /sys of plain files."""

    def __init__(self, folder):
        self.folder = folder
        port = MODULE.normalise(intended_qos(make_site(folder), "host1")).ports[0]
        self.script = render_script(port.name, FAMILY.settings(port))
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("mlnx_qos", "ip"):
            self.program(name, f'echo "{name} $*" >> {folder}/log')
        self.program("ethtool", 'printf "RX:\\t\\toff\\nTX:\\t\\toff\\n"')
        self.program("modprobe", "exit 1")
        self.net = folder / "sys/class/net/ens1f0"
        self.net.mkdir(parents=True)
        device = folder / "sys/devices" / PCI
        device.mkdir(parents=True)
        (self.net / "device").symlink_to(device)
        (folder / "sys/kernel/config/rdma_cm/mlx5_0/ports/1").mkdir(parents=True)

    def program(self, name, body):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def file(self, path, text="0\n"):
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def run(self, replace=("", "")):
        script = self.script.replace("/sys/", f"{self.folder}/sys/").replace(*replace)
        return subprocess.run(
            ["sh", "-c", script],
            check=False,
            capture_output=True,
            text=True,
            env={"PATH": f"{self.bin}:/usr/bin:/bin"},
        )

    @property
    def log(self):
        return (self.folder / "log").read_text().splitlines()


def test_it_sets_everything_and_says_so(host):
    np = host.file("sys/class/net/ens1f0/ecn/roce_np/enable/3")
    rate = host.file("sys/class/net/ens1f0/ecn/roce_rp/rpg_ai_rate")
    tc = host.file("sys/class/infiniband/mlx5_0/tc/1/traffic_class", "")
    result = host.run()
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("roce ens1f0: all settings are in place\n")
    assert np.read_text() == "1\n"
    assert rate.read_text() == "40\n"
    assert tc.read_text() == "106\n"
    tos = host.folder / "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos"
    assert tos.read_text() == "106\n"
    assert "mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0 --cable_len 3" in host.log
    assert "ip link set dev ens1f0 mtu 9000" in host.log


def test_it_may_run_twice(host):
    first, second = host.run(), host.run()
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout == second.stdout


def test_it_falls_back_to_debugfs_by_the_ports_own_pci_address(host):
    rate = host.file(f"sys/kernel/debug/mlx5/{PCI}/cc_params/rp_ai_rate")
    other = host.file("sys/kernel/debug/mlx5/0000:3b:00.1/cc_params/rp_ai_rate")
    assert host.run().returncode == 0
    assert (rate.read_text(), other.read_text()) == ("40\n", "0\n")


def test_what_the_driver_does_not_offer_is_named_and_left_alone(host):
    result = host.run()
    assert result.returncode == 0
    assert "this driver does not offer it" in result.stdout
    assert "traffic_class" in result.stdout


def test_a_command_that_fails_stops_it_with_the_commands_own_words(host):
    host.program("ip", "echo 'RTNETLINK answers: Invalid argument' >&2; exit 2")
    result = host.run()
    assert result.returncode == 1
    assert result.stderr == (
        "roce ens1f0: FAILED: ip link set dev ens1f0 mtu 9000: exit 2: "
        "RTNETLINK answers: Invalid argument\n"
    )
    assert not any("--pfc" in line for line in host.log)


def test_a_value_that_cannot_be_written_stops_it(host):
    file = host.folder / "sys/class/net/ens1f0/ecn/roce_rp/rpg_ai_rate"
    file.mkdir(parents=True)
    result = host.run()
    assert result.returncode == 1
    assert f"FAILED: cannot write 40 to {file}" in result.stderr


def test_buffers_that_pfc_holds_are_moved_with_pfc_off(host):
    host.program(
        "mlnx_qos",
        f'echo "mlnx_qos $*" >> {host.folder}/log\n'
        f'case "$*" in *--buffer_size*) [ -e {host.folder}/off ] || exit 1;; '
        f"*--pfc*) touch {host.folder}/off;; esac",
    )
    assert host.run().returncode == 0
    log = [line.split()[3:] for line in host.log if "--pfc" in line or "--buffer" in line]
    assert [words[0] for words in log] == ["--prio2buffer", "--pfc", "--prio2buffer", "--pfc"]
    assert log[1] == ["--pfc", "0,0,0,0,0,0,0,0"]
    assert log[3][1] == "0,0,0,1,0,0,0,0"


def test_an_interface_that_is_not_there_is_waited_for_and_then_named(host):
    (host.net / "device").unlink()
    host.net.rmdir()
    result = host.run(replace=("-lt 30", "-lt 1"))
    assert result.returncode == 1
    assert "FAILED: there is no such interface after 1 s" in result.stderr


def test_the_unit_runs_the_script_of_its_interface_after_its_device():
    assert "ExecStart=/bin/sh /etc/paisoar/roce-%I.sh" in UNIT
    assert "After=sys-subsystem-net-devices-%i.device" in UNIT
    assert unit_name("ens1f0") == "paisoar-roce@ens1f0.service"
    assert unit_name("a-b") == r"paisoar-roce@a\x2db.service"


def test_people_see_every_file_that_there_will_be(tmp_path):
    text = MODULE.render(intended_qos(make_site(tmp_path), "host1"))
    assert "### /etc/paisoar/roce-ens1f0.sh\n#!/bin/sh\n" in text
    assert "### /etc/systemd/system/paisoar-roce@.service\n" in text
    assert "# == trust: dscp\nrun mlnx_qos -i ens1f0 --trust dscp\n" in text
