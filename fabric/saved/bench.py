"""How fast a large fabric is rendered, read from saved outputs, and audited.

A three-level Clos of 512 switches with 64 ports each and 8,192 hosts, or a part
of it. Its outputs are written first (not measured), then every device's
configuration is rendered, every file is read and understood, and every rule is
judged, in one process on one core.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fabric.audit import audit
from fabric.devices.registry import expected_qos, module_of, preload
from fabric.errors import InputError
from fabric.saved.layout import file_name
from fabric.saved.offline import read_for_site
from fabric.saved.sample import MODEL, sample_outputs
from fabric.site import FabricFile, HostSpec, NicSpec, Site, SwitchSpec
from fabric.starter import starter_yaml
from fabric.topology import ClosShape, ThreeLevelShape, Topology, build_three_level_clos
from fabric.yamlfile import load_yaml

PORTS = 64
MAX_SECONDS, MAX_MIB = 20.0, 2048.0
# 256 leaves, 128 spines, 128 cores; 32 NICs and 16 uplinks a leaf.
FULL = ThreeLevelShape(
    pods=32, leaves_per_pod=8, hosts_per_leaf=32, spines_per_pod=4, cores_per_plane=32,
    leaf_cables=4,
)  # fmt: skip

OnStep = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: sizes, seconds of wall clock and of one core, and peak memory."""

    switches: int
    ports: int
    cabled_ports: int
    nics: int
    files: int
    render_s: float
    read_s: float
    audit_s: float
    seconds: float
    cpu_seconds: float
    peak_mib: float
    findings: int
    host_pairs: int

    @property
    def good(self) -> bool:
        """Within the limits for the full size, and the fabric was found to be right."""
        return self.cpu_seconds < MAX_SECONDS and self.peak_mib < MAX_MIB and self.findings == 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        limits = {"cpu_seconds": MAX_SECONDS, "peak_mib": MAX_MIB}
        return asdict(self) | {"limits": limits, "verdict": "PASS" if self.good else "FAIL"}


def measure(pods: int = FULL.pods, on_step: OnStep = lambda _w, _d, _t: None) -> Measured:
    """Measure a fabric of so many pods (32: 512 switches). InputError below 1 or above."""
    if not 1 <= pods <= FULL.pods:
        raise InputError(f"{pods} pods: at least 1 and at most {FULL.pods}", key="--pods")
    shape = ThreeLevelShape(
        pods, FULL.leaves_per_pod, FULL.hosts_per_leaf, FULL.spines_per_pod, pods, FULL.leaf_cables
    )
    preload()
    with tempfile.TemporaryDirectory(prefix="paisoar-bench-") as name:
        folder = Path(name)
        site = large_site(folder, build_three_level_clos(shape))
        outputs = folder / "outputs"
        files = write_samples(site, outputs, on_step)
        on_step("measuring", 0, 1)
        with one_core():
            return _measured(site, outputs, files)


def _measured(site: Site, outputs: Path, files: int) -> Measured:
    wall, cpu = time.perf_counter(), time.process_time()
    for device in site.devices:
        module_of(site, device).render(expected_qos(site, device))
    rendered = time.perf_counter()
    saved = read_for_site(outputs, site)
    read = time.perf_counter()
    report = audit(saved.site, saved.states, saved.intended, outputs=saved.outputs)
    judged = time.perf_counter()
    used = time.process_time() - cpu
    topology = site.topology
    return Measured(
        switches=len(topology.switches),
        ports=sum(len(saved.states[name].ports) for name in topology.switches),
        cabled_ports=sum(len(topology.ports_of[name]) for name in topology.switches),
        nics=len(topology.endpoints),
        files=files,
        render_s=round(rendered - wall, 2),
        read_s=round(read - rendered, 2),
        audit_s=round(judged - read, 2),
        seconds=round(judged - wall, 2),
        cpu_seconds=round(used, 2),
        peak_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        findings=len(report.findings) + len(saved.failed),
        host_pairs=report.paths.pairs if report.paths else 0,
    )


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process on one of its cores."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def large_site(folder: Path, topology: Topology) -> Site:
    """A site of this topology with the starter's intent; NX-OS and mlx5 throughout."""
    path = folder / "fabric.yaml"
    path.write_text(starter_yaml(ClosShape(2, 1, 0), site="bench", environment="site"))
    document = load_yaml(path).validate(FabricFile)
    devices: dict[str, SwitchSpec | HostSpec] = {}
    for name in topology.switches:
        role = "leaf" if name.startswith("leaf") else "spine"
        devices[name] = SwitchSpec.model_validate(
            {"kind": "switch", "role": role, "os": "nxos", "model": MODEL, "buffer": "80MB"}
        )
    for name in topology.hosts:
        nics = {
            end.port: NicSpec.model_construct(
                family="mlx5",
                rdma=f"mlx5_{index}",
                speed=topology.link_of[end].speed_bps,
                address="",
            )
            for index, end in enumerate(topology.ports_of[name])
        }
        devices[name] = HostSpec.model_construct(kind="host", nics=nics)
    return Site(path, document.model_copy(update={"devices": devices, "cables": []}), topology)


def write_samples(site: Site, outputs: Path, on_step: OnStep) -> int:
    """Write every device's outputs; how many files there are."""
    files = 0
    for number, device in enumerate(site.devices):
        if number % 64 == 0:
            on_step(f"writing outputs of {device}", number, len(site.devices))
        folder = outputs / device
        folder.mkdir(parents=True)
        for command, text in sample_outputs(site, device, ports=PORTS).items():
            (folder / file_name(command)).write_text(text)
            files += 1
    return files
