"""``paisoar audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fabric.audit import AuditReport
from fabric.audit import audit as run_audit
from fabric.errors import PaisoarError
from fabric.site import load_site
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, run

DeviceOption = Annotated[
    list[str] | None, typer.Option("--device", "-d", help="Only this device; may be repeated.")
]

CountersOption = Annotated[
    bool,
    typer.Option("--counters", help="Judge counters too: what has happened since they were 0."),
]


def audit(
    file: FileOption = DEFAULT_FILE,
    device: DeviceOption = None,
    counters: CountersOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read every device and judge both ends of every cable; changes nothing.

    Exit 0 without findings, 1 with findings, 3 where a device did not answer.
    """
    run(as_json, lambda ui: look(ui, file, device, counters=counters))


def look(ui: Ui, file: Path, names: list[str] | None, *, counters: bool = False) -> Answer:
    """Audit and keep the report; the answer shows it."""
    from fabric.audit.record import save_audit
    from fabric.collect import read_counters
    from fabric.devices.registry import expected_qos
    from fabric.playread import read_states_by_playbook
    from validation.baseline import certified_states

    site = load_site(file)
    devices = site.select(names)
    with ui.events("reading devices", len(devices)) as on_event:
        read = read_states_by_playbook(site, devices, on_event)
    intended = {name: expected_qos(site, name) for name in read.states}
    counted = read_counters(site, read.states).snapshots if counters else None
    report = run_audit(
        site,
        read.states,
        intended,
        baseline=certified_states(site),
        outputs=read.outputs,
        counters=counted,
    )
    save_audit(site, report)
    document = report.to_json() | {
        "unreachable": {name: error.message for name, error in read.failed.items()}
    }
    return Answer(
        document,
        lambda out: show_report(out, report, read.failed),
        good=report.clean and not read.failed,
        exit_code=3 if read.failed else 1,
    )


# Of evidence and fix in the table, and of devices behind one skip; JSON has all.
MAX_LINES = 6
MAX_NAMES = 4


def show_report(out: Console, report: AuditReport, failed: dict[str, PaisoarError]) -> None:
    """Findings as a table, then what was skipped and who did not answer."""
    if report.findings:
        table = Table("rule", "severity", "device", "port", "what is wrong", show_lines=True)
        for finding in report.findings:
            shown = (*finding.evidence[: MAX_LINES - 1], *finding.evidence[MAX_LINES - 1 :][-1:])
            evidence = "".join(f"\n  {line}" for line in shown)
            fix = "".join(f"\n  > {line}" for line in finding.fix[:MAX_LINES])
            table.add_row(
                finding.rule,
                finding.severity,
                finding.device,
                finding.port,
                escape(finding.message + evidence + fix),
            )
        out.print(table)
    for line in skip_lines(report):
        out.print(line, markup=False)
    for name, error in failed.items():
        out.print(f"not answered: {name}: {error.message}", markup=False)
    out.print(
        f"{len(report.devices)} devices read, {len(report.findings)} findings, "
        f"{len(report.skipped)} skipped, {len(failed)} unreachable."
    )
    if report.paths:
        paths = report.paths
        out.print(f"{paths.lossless_pairs} of {paths.pairs} host pairs are lossless on every path.")
    if report.findings:
        out.print("Mend with: paisoar plan, then paisoar provision; learn: paisoar explain RULE")


def skip_lines(report: AuditReport) -> list[str]:
    """One line for each rule and reason, with the devices that it holds for."""
    devices: dict[tuple[str, str], list[str]] = {}
    for skip in report.skipped:
        devices.setdefault((skip.rule, skip.reason), []).append(skip.device)
    lines = []
    for (rule, reason), names in devices.items():
        shown = ", ".join(names[:MAX_NAMES])
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        where = f" on {shown}{more}" if shown else ""
        lines.append(f"skipped: {rule}{where}: {reason}")
    return lines
