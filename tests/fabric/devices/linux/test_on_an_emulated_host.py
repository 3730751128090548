"""Changes carried out in the shells of an emulated host: there, at boot, and back.

The host is written from the vendors' documentation, not from this module, and
refuses what the mlx5 driver refuses (``fabric.twin.host``).
"""

import subprocess

import pytest

from fabric.devices.registry import module_of, target_of
from fabric.intended import intended_qos
from fabric.topology import ClosShape
from fabric.twin.host import image
from fabric.twin.host.namespace import Namespace
from tests.sites import make_site

HOST = "host1"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Shell:
    """A dual-homed host of a small site; commands run in its namespaces."""

    def __init__(self, folder):
        self.site = make_site(folder, ClosShape(4, 2, 1, nics_per_host=2))
        self.module = module_of(self.site, HOST)
        self.target = target_of(self.site, HOST)
        self.intended = self.module.normalise(intended_qos(self.site, HOST))
        image.build(folder / HOST, HOST, self.site)
        self.namespace = Namespace(HOST, image.binds(folder / HOST))

    def run(self, command, text=""):
        done = subprocess.run(
            [*self.namespace.command, "sh", "-c", command],
            check=False,
            input=text,
            capture_output=True,
            text=True,
            env={"PATH": PATH, "HOME": "/"},
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-400:]}{done.stderr[-400:]}"
        return done.stdout

    def outputs(self):
        return {command: self.run(command) for command in self.module.read_commands(self.target)}

    def read(self):
        return self.module.read(self.target, self.outputs())

    def change(self):
        return self.module.change(self.target, self.outputs(), self.intended)

    def write(self, path, text, mode):
        if text is None:
            self.run(f"rm -f {path}")
        else:
            self.run(f"mkdir -p $(dirname {path}) && cat > {path} && chmod {mode} {path}", text)

    def apply(self, change):
        for file in change.files:
            self.write(file.path, file.after, file.mode)
        for command in change.commands:
            self.run(command)

    def undo(self, change):
        for command in change.rollback:
            self.run(command)
        for file in change.files:
            self.write(file.path, file.before, file.mode)


@pytest.fixture
def host(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.namespace.close()


# What somebody may have done before us, as commands.
BEFORE = {
    "out of the box": [],
    "pfc on, all priorities in one buffer": [
        "mlnx_qos -i ens1f0 --dcbx os",
        "mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0",
    ],
    "another lossless priority in a buffer of its own": [
        "mlnx_qos -i ens1f0 --dcbx os",
        "ethtool -A ens1f0 rx off tx off",
        "mlnx_qos -i ens1f0 --trust dscp",
        "mlnx_qos -i ens1f0 --prio2buffer 0,0,0,0,0,2,0,0 --buffer_size 20736,0,155520,0,0,0,0,0",
        "mlnx_qos -i ens1f0 --pfc 0,0,0,0,0,1,0,0 --cable_len 30",
        "mlnx_qos -i ens1f0 -p 0,0,0,0,0,1,1,1 -s ets,strict,ets,ets,ets,ets,ets,ets "
        "-t 100,0,0,0,0,0,0,0",
        "echo 0 > /sys/class/net/ens1f0/ecn/roce_np/enable/3",
        "echo 104 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class",
    ],
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_whatever_was_there_becomes_what_is_intended_and_comes_back(host, before):
    for command in before:
        host.run(command)
    start = host.read()
    change = host.change()
    host.apply(change)
    live = host.read()
    assert live.ports == host.intended.ports
    assert live.saved is True
    assert live.unread == ()
    assert host.change().empty
    host.undo(change)
    assert host.read() == start


def test_the_boot_script_alone_brings_back_everything_after_a_reset(host):
    host.apply(host.change())
    for interface in ("ens1f0", "ens1f1"):
        for command in (
            f"mlnx_qos -i {interface} --pfc 0,0,0,0,0,0,0,0",
            f"mlnx_qos -i {interface} --trust pcp",
            f"ip link set dev {interface} mtu 1500",
            f"echo 5 > /sys/class/net/{interface}/ecn/roce_rp/rpg_ai_rate",
        ):
            host.run(command)
    assert host.read().saved is False
    for interface in ("ens1f0", "ens1f1"):
        assert "all settings are in place" in host.run(f"sh /etc/paisoar/roce-{interface}.sh")
    assert host.read().ports == host.intended.ports
    assert host.read().saved is True


def test_counters_of_every_port_are_there(host):
    host.apply(host.change())
    outputs = {c: host.run(c) for c in host.module.counter_commands(host.target)}
    shot = host.module.read_counters(host.target, outputs, 1.0)
    seen = {(c.port, c.name, c.priority) for c in shot.counters}
    for interface in ("ens1f0", "ens1f1"):
        assert (interface, "rx_pause_frames", 3) in seen
        assert (interface, "out_of_sequence", None) in seen
        assert (interface, "np_cnp_sent", None) in seen
    assert all("PFC is off" in entry for entry in shot.missing)
