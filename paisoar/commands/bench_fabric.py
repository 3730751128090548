"""``paisoar bench fabric``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from paisoar.commands.bench_train import bench
from paisoar.console import Answer, JsonOption, Ui, run

if TYPE_CHECKING:
    from fabric.provisioning.bench import Compared
    from fabric.saved.bench import Measured

__all__ = ["bench"]


class Part(StrEnum):
    """What is measured."""

    AUDIT = "audit"
    PROVISION = "provision"


@bench.command("fabric")
def fabric(
    only: Annotated[Part | None, typer.Option(help="One part; both unless said.")] = None,
    pods: Annotated[
        int, typer.Option(help="Pods of 8 leaves, 4 spines and 256 hosts; 32 are 512 switches.")
    ] = 32,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each way to provision.")] = 1,
    seconds: Annotated[
        float,
        typer.Option(
            min=0, help="Once provisioning has taken so long, no further turn or case begins."
        ),
    ] = 180,
    as_json: JsonOption = False,
) -> None:
    """Audit a large fabric from saved outputs; provision 24 devices beside a netmiko loop.

    Audit: 512 switches and 8,192 NICs are rendered, read and judged on one core;
    writing the outputs takes longer and is not measured. Provision: emulated
    devices, by the playbooks and by a plain loop, in turns; medians. Either is
    to be measured on an idle machine. Exit 1 where a limit is missed. What the time
    did not suffice for is named; the first case always has a turn.
    """
    run(as_json, lambda ui: _measure(ui, only, pods, rounds, seconds))


def _measure(ui: Ui, only: Part | None, pods: int, rounds: int, seconds: float) -> Answer:
    document: dict[str, Any] = {}
    row: Measured | None = None
    cases: tuple[Compared, ...] = ()
    left: list[str] = []
    # Peak memory is the process's: the audit comes first, with what it needs alone.
    if only is not Part.PROVISION:
        from fabric.saved.bench import measure

        with ui.steps("measuring a large fabric") as step:
            row = measure(pods, step)
        document["audit"] = row.to_json()
    if only is not Part.AUDIT:
        from fabric.provisioning.bench import CASES, compare_all

        with ui.steps("provisioning emulated devices") as step:
            cases = compare_all(CASES, rounds, seconds, step)
        left = [case.name for case in CASES[len(cases) :]]
        document["provision"] = [case.to_json() for case in cases]
        document["not_measured"] = left

    def show(out: Console) -> None:
        if row is not None:
            _show_audit(out, row)
        if cases:
            _show_provision(out, cases)
        if left:
            out.print(
                f"Not measured, after {seconds:g} s: {'; '.join(left)}. "
                "A higher --seconds gives it time."
            )

    good = (row is None or row.good) and all(case.good for case in cases)
    return Answer(document, show, good=good)


def _show_audit(out: Console, row: Measured) -> None:
    out.print(
        f"{row.switches} switches with {row.ports} ports ({row.cabled_ports} cabled), "
        f"{row.nics} NICs, {row.files} files, {row.host_pairs} host pairs"
    )
    table = Table("step", "seconds")
    for name, seconds in (
        ("render", row.render_s),
        ("read", row.read_s),
        ("audit", row.audit_s),
        ("all", row.seconds),
        ("all, CPU", row.cpu_seconds),
    ):
        table.add_row(name, f"{seconds:.2f}")
    out.print(table)
    out.print(f"Peak memory {row.peak_mib:.0f} MiB; {row.findings} findings.")


def _show_provision(out: Console, cases: Sequence[Compared]) -> None:
    table = Table("devices", "commands", "turns", "playbooks", "netmiko loop", "ratio", "verdict")
    for case in cases:
        facts = case.to_json()
        table.add_row(
            case.case,
            str(case.commands),
            str(facts["rounds"]),
            f"{facts['ours_median_s']:.1f} s",
            f"{facts['loop_median_s']:.1f} s",
            f"{case.ratio:.1f}x",
            facts["verdict"],
        )
    out.print(table)
    out.print(
        "The playbooks also read first, keep a checkpoint, try one device of each kind before "
        "the others, and compare what they read back; the loop does not."
    )
