"""Hosts of tests: real SSH on loopback, a sysfs of their own, perftest that is stood in for."""

import asyncio
import json
import os
import shutil
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import psutil
from ruamel.yaml import YAML

from fabric.reach.access import lab_dir_of
from fabric.reach.hostssh import close_hosts
from fabric.site import load_site
from fabric.topology import ClosShape
from tests.fabric.ssh_servers import ssh_servers
from tests.sites import write_site
from tests.validation.perftest.formats import TITLES
from validation.probes.hosts.options import Options
from validation.probes.hosts.probe import HostsProbe
from validation.probes.hosts.step import Pace
from validation.probes.sim import SimProbe

SYSFS = "/sys/class/infiniband"
# Who listens where, as scripts.py asks a host; here one machine's table is of all hosts.
LISTENS = '$4 == "0A"'
# Hosts' addresses are 127.NETWORK.0.N: each process of tests has ports of its own.
NETWORK = 1 + os.getpid() % 250
UTILITIES = (
    *("sh", "timeout", "setsid", "stdbuf", "awk", "sort", "tr", "date", "grep", "cat"),
    *("sleep", "mkdir", "rm", "env", "tail", "mv"),
)
# What the stand-in is told; it takes no such time. A busy machine may start one program
# seconds after another, which must not look like senders that did not compete.
SECONDS = 40
PACE = Pace(setup_s=12.0, lead_s=0.4)


class Hosts:
    """What the hosts of one test hold; ``settings`` are those of the stand-in."""

    def __init__(self, folder, servers):
        self.folder = folder
        self.servers = servers
        self.site = None
        self.commands = []
        self.slow_start_s = 0.0
        self.settings = {"gbps": {}, "faults": {}}

    def device(self, host):
        """The host's verbs device in its sysfs."""
        return self.folder / host / "infiniband" / "mlx5_0"

    def put(self, host, path, text):
        """One file of the device."""
        file = self.device(host) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def write(self):
        (self.folder / "settings.json").write_text(json.dumps(self.settings))

    def share(self, step):
        """What a sound fabric gives each receiver's senders in this step, in Gbit/s."""
        counts = Counter(target.device for _, target in step.pairs())
        self.settings["gbps"] = {host: 23.5 / count for host, count in counts.items()}
        self.write()

    def probe(self, options=None, pace=PACE):
        """The real probe; each step gets its figures first."""
        hosts = self

        class Shared(HostsProbe):
            settle_s = 0.0

            def run(self, step):
                hosts.share(step)
                return super().run(step)

        return Shared(self.site, options or Options(seconds=SECONDS), pace)

    def counted(self, fabric):
        """A factory of that probe, for a fabric whose counters move as in a simulation."""

        def factory(site, states):
            probe = self.probe()
            run = probe.run

            def carry(step):
                SimProbe(site, states, fabric.carry).run(step)
                return run(step)

            probe.run = carry
            return probe

        return factory

    def left(self):
        """Programs that still run, and folders that are still there."""
        ours = str(self.folder / "settings.json")
        running = [
            " ".join(process.info["cmdline"] or ())
            for process in psutil.process_iter(["cmdline", "environ"])
            if (process.info["environ"] or {}).get("STAND_IN") == ours
        ]
        made = {word for command in self.commands for word in command.split() if is_ours(word)}
        return running, [name for name in made if Path(name).exists()]


def is_ours(word):
    return word.startswith("/tmp/paisoar-") and "/" not in word.removeprefix("/tmp/")


def host_shell(hosts, host):
    """What sshd does with a command on this host."""
    folder = hosts.folder
    own = str(folder / host / "infiniband")
    number = int(host.removeprefix("host"))
    listens_here = f"{LISTENS} && $2 ~ /^{number:02X}00{NETWORK:02X}7F:/"
    environment = {
        "PATH": str(folder / "bin"),
        "STAND_IN": str(folder / "settings.json"),
        "STAND_IN_HOST": host,
        "STAND_IN_NETWORK": str(NETWORK),
    }

    async def serve(process):
        hosts.commands.append(process.command)
        if "setsid" in process.command:
            await asyncio.sleep(hosts.slow_start_s)
        child = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            process.command.replace(SYSFS, own).replace(LISTENS, listens_here),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        out, err = await child.communicate()
        process.stdout.write(out.decode().replace(own, SYSFS))
        process.stderr.write(err.decode())
        process.exit(child.returncode)

    return serve


def _programs(folder):
    stand_in = Path(__file__).parent / "stand_in.py"
    (folder / "bin").mkdir()
    for program in TITLES:
        file = folder / "bin" / program
        file.write_text(f'#!/bin/sh\nexec {sys.executable} -S {stand_in} {program} "$@"\n')
        file.chmod(0o755)
    (folder / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    # Nothing else of this machine: it may have perftest or iperf3 of its own.
    for name in UTILITIES:
        (folder / "bin" / name).symlink_to(shutil.which(name))


@contextmanager
def running_hosts(folder, monkeypatch, *, shape=None, environment="site", family="mlx5"):
    """A site whose hosts answer over SSH; switches are nobody's business here."""
    path = write_site(folder, shape or ClosShape(4, 2, 1), environment=environment)
    path.write_text(path.read_text().replace("family: mlx5", f"family: {family}"))
    _programs(folder)
    yaml = YAML()
    document = yaml.load(path)
    with ssh_servers(folder) as servers:
        hosts = Hosts(folder, servers)
        for name, device in document["devices"].items():
            if device["kind"] == "host":
                port = servers.add(name, host_shell(hosts, name))
                device["mgmt"] = {"address": "127.0.0.1", "port": port, "user": "root"}
        with path.open("w") as file:
            yaml.dump(document, file)
        monkeypatch.setenv("PAISOAR_HOST_KEY", str(servers.key_file))
        monkeypatch.setenv("PAISOAR_KNOWN_HOSTS", str(servers.known_hosts))
        monkeypatch.setattr("validation.probes.hosts.step._sleep_until", lambda _: None)
        if environment == "lab":
            lab = lab_dir_of(path)
            lab.mkdir(parents=True)
            (lab / "id_ed25519").symlink_to(servers.key_file)
            (lab / "known_hosts").symlink_to(servers.known_hosts)
        hosts.site = load_site(path)
        for name in hosts.site.topology.hosts:
            _sysfs(hosts, name)
        hosts.write()
        try:
            yield hosts
        finally:
            close_hosts()


def _sysfs(hosts, name):
    number = int(name.removeprefix("host"))
    mapped = f"0000:0000:0000:0000:0000:ffff:0a00:{number:04x}"
    local = f"fe80:0000:0000:0000:0000:00ff:fe00:{number:04x}"
    table = [(local, "IB/RoCE v1"), (local, "RoCE v2"), (mapped, "IB/RoCE v1"), (mapped, "RoCE v2")]
    for index, (gid, kind) in enumerate(table):
        hosts.put(name, f"ports/1/gids/{index}", gid)
        hosts.put(name, f"ports/1/gid_attrs/types/{index}", kind)
        hosts.put(name, f"ports/1/gid_attrs/ndevs/{index}", "ens1f0")
    hosts.put(name, "ports/1/gids/4", "0000:0000:0000:0000:0000:0000:0000:0000")
    hosts.put(name, "ports/1/state", "4: ACTIVE")
    hosts.put(name, "ports/1/link_layer", "Ethernet")
