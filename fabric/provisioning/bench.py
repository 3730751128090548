"""How fast an emulated site is provisioned: our playbooks beside a netmiko loop.

The loop is what is written without us: log in to one device after another, send
the lines, save, show back. It sends the same lines and show commands as we do, and
less besides: it reads nothing first, takes no checkpoint, and compares nothing.
Both ways take turns on the same devices, which start fresh before each.
"""

from __future__ import annotations

import io
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import netmiko

from fabric.devices.base import DeviceModule
from fabric.devices.registry import module_of
from fabric.errors import ToolError
from fabric.provisioning.plan import DevicePlan, Plan, make_plan, mismatches
from fabric.provisioning.provision import provision
from fabric.reach.access import Access, access_to
from fabric.reach.collect import read_states
from fabric.reach.hostssh import close_hosts
from fabric.reach.switchssh import close_switches
from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin import lifecycle
from fabric.twin.server import devices_folder

MIN_RATIO = 5.0
READ_TIMEOUT_S = 60.0

OnStep = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Case:
    """An emulated site, and which of its devices are provisioned."""

    name: str
    shape: ClosShape
    kinds: tuple[str, ...] = ("switch", "host")


CASES = (
    Case("4 leaves, 2 spines, 18 hosts", ClosShape(18, 4, 2)),
    Case("16 leaves, 8 spines", ClosShape(16, 16, 8), ("switch",)),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One case: seconds of each round, and how many times as fast as the loop we are."""

    case: str
    devices: int
    commands: int
    ours_s: tuple[float, ...]
    loop_s: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The loop's median over ours."""
        return statistics.median(self.loop_s) / statistics.median(self.ours_s)

    @property
    def good(self) -> bool:
        """Whether we are as much faster as we mean to be."""
        return self.ratio >= MIN_RATIO

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self) | {
            "ours_median_s": round(statistics.median(self.ours_s), 2),
            "loop_median_s": round(statistics.median(self.loop_s), 2),
            "rounds": len(self.ours_s),
            "ratio": round(self.ratio, 2),
            "limits": {"ratio": MIN_RATIO},
            "verdict": "PASS" if self.good else "FAIL",
        }


def compare_all(
    cases: Sequence[Case],
    rounds: int,
    budget_s: float,
    on_step: OnStep = lambda _w, _d, _t: None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Compared, ...]:
    """Every case, as far as the time goes: after ``budget_s`` no case and no round begins.

    The first case always has a round. Cases that never began are absent. ToolError as
    for :func:`compare`.
    """
    end = clock() + budget_s
    rows: list[Compared] = []
    for case in cases:
        if rows and clock() >= end:
            break
        rows.append(compare(case, rounds, on_step, lambda: clock() < end))
    return tuple(rows)


def compare(
    case: Case,
    rounds: int,
    on_step: OnStep = lambda _w, _d, _t: None,
    again: Callable[[], bool] = lambda: True,
) -> Compared:
    """Provision the case's devices both ways, in turns, so many times.

    ``again`` says whether there is time for a round after the first. ToolError where a
    device does not do what was intended after either way.
    """
    with tempfile.TemporaryDirectory(prefix="paisoar-bench-") as name:
        path = Path(name) / "fabric.yaml"
        path.write_text(starter_yaml(case.shape, site="bench", environment="twin"))
        site = load_site(path)
        devices = [name for name, spec in site.devices.items() if spec.kind in case.kinds]
        ways = {"playbooks": _by_playbooks, "netmiko loop": _by_loop}
        times: dict[str, list[float]] = {way: [] for way in ways}
        turns = [way for _ in range(rounds) for way in ways]
        try:
            for turn, way in enumerate(turns):
                if turn and way == turns[0] and not again():
                    break
                on_step(f"{case.name}: {way}", turn, len(turns))
                plan = _fresh(site, devices)
                begun = time.perf_counter()
                ways[way](site, plan)
                times[way].append(round(time.perf_counter() - begun, 2))
                _check(site, plan, way)
        finally:
            _disconnect()
            lifecycle.down(path)
    return Compared(
        case.name,
        len(devices),
        sum(len(order.change.commands) for order in plan.devices.values()),
        ours_s=tuple(times["playbooks"]),
        loop_s=tuple(times["netmiko loop"]),
    )


def _fresh(site: Site, devices: list[str]) -> Plan:
    """Start the twin in factory state; what is to be changed there."""
    _disconnect()
    lifecycle.down(site.path)
    shutil.rmtree(devices_folder(site), ignore_errors=True)
    lifecycle.up(site)
    states = read_states(site, devices)
    states.raise_failed()
    _disconnect()
    return make_plan(site, states)


def _disconnect() -> None:
    close_switches()
    close_hosts()


def _check(site: Site, plan: Plan, way: str) -> None:
    states = read_states(site, plan.devices)
    states.raise_failed()
    for name, state in states.states.items():
        wrong = mismatches(state, plan.devices[name].intended)
        if wrong:
            raise ToolError(f"{name} is not as intended after the {way}: {wrong[0]}")


def _by_playbooks(site: Site, plan: Plan) -> None:
    error = provision(site, plan).error
    if error is not None:
        raise error


def _by_loop(site: Site, plan: Plan) -> None:
    for name, order in plan.devices.items():
        module = module_of(site, name)
        with _connected(access_to(site, name), module) as cli:
            if module.netmiko_type:
                lines = [line.strip() for line in order.change.commands]
                cli.send_config_set(lines, read_timeout=READ_TIMEOUT_S)
                cli.save_config()
            else:
                _change_host(cli, order)
            for command in module.read_commands(order.target):
                cli.send_command(command, read_timeout=READ_TIMEOUT_S)


def _connected(access: Access, module: DeviceModule) -> Any:  # noqa: ANN401 - untyped library
    return netmiko.ConnectHandler(
        device_type=module.netmiko_type or "linux",
        host=access.host,
        port=access.port,
        username=access.user,
        use_keys=True,
        key_file=str(access.key_file),
        ssh_strict=True,
        alt_host_keys=True,
        alt_key_file=str(access.known_hosts),
    )


def _change_host(cli: Any, order: DevicePlan) -> None:  # noqa: ANN401 - untyped library
    folders = sorted({str(Path(file.path).parent) for file in order.change.files})
    for folder in folders:
        cli.send_command(f"mkdir -p {folder}", read_timeout=READ_TIMEOUT_S)
    with cli.remote_conn_pre.open_sftp() as files:
        for file in order.change.files:
            files.putfo(io.BytesIO((file.after or "").encode()), file.path)
            files.chmod(file.path, int(file.mode, 8))
    for command in order.change.commands:
        # A command longer than a terminal's line comes back broken up.
        cli.send_command(command, read_timeout=READ_TIMEOUT_S, cmd_verify=False)
