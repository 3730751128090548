"""``paisoar audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fabric.audit import AuditReport
from fabric.audit import audit as run_audit
from fabric.errors import PaisoarError
from fabric.site import load_site
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, run

DeviceOption = Annotated[
    list[str] | None, typer.Option("--device", "-d", help="Only this device; may be repeated.")
]


def audit(
    file: FileOption = DEFAULT_FILE,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read every device and judge both ends of every cable; changes nothing.

    Exit 0 without findings, 1 with findings, 3 where a device did not answer.
    """
    run(as_json, lambda ui: look(ui, file, device))


def look(ui: Ui, file: Path, names: list[str] | None) -> Answer:
    """Audit and keep the report; the answer shows it."""
    from fabric.audit.record import save_audit
    from fabric.devices.registry import expected_qos
    from fabric.playread import read_states_by_playbook
    from validation.baseline import certified_states

    site = load_site(file)
    devices = site.select(names)
    with ui.events("reading devices", len(devices)) as on_event:
        read = read_states_by_playbook(site, devices, on_event)
    intended = {name: expected_qos(site, name) for name in read.states}
    report = run_audit(site, read.states, intended, baseline=certified_states(site))
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


def show_report(out: Console, report: AuditReport, failed: dict[str, PaisoarError]) -> None:
    """Findings as a table, then what was skipped and who did not answer."""
    if report.findings:
        table = Table("rule", "severity", "device", "port", "what is wrong", show_lines=True)
        for finding in report.findings:
            evidence = "".join(f"\n  {line}" for line in finding.evidence[:4])
            table.add_row(
                finding.rule,
                finding.severity,
                finding.device,
                finding.port,
                finding.message + evidence,
            )
        out.print(table)
    for skip in report.skipped:
        out.print(f"skipped: {skip.rule} on {skip.device}: {skip.reason}")
    for name, error in failed.items():
        out.print(f"not answered: {name}: {error.message}", markup=False)
    out.print(
        f"{len(report.devices)} devices read, {len(report.findings)} findings, "
        f"{len(report.skipped)} skipped, {len(failed)} unreachable."
    )
    if report.findings:
        out.print("Mend with: paisoar plan, then paisoar provision")
