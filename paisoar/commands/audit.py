"""``paisoar audit``."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from fabric.errors import InputError, PaisoarError
from fabric.site import Site, load_site
from fabric.textfile import write_text
from paisoar.console import (
    DEFAULT_FILE,
    Answer,
    JsonOption,
    Ui,
    command_line,
    console,
    count_of,
    run,
)

if TYPE_CHECKING:
    from fabric.audit import AuditReport, Finding
    from fabric.counters import CounterSnapshot
    from fabric.saved.offline import SavedFabric

FORMATS = ("table", "json", "sarif", "junit")

# Of evidence and fix in the table, and of devices behind one skip; JSON has all.
MAX_LINES = 6
MAX_NAMES = 4
MAX_REASON = 120

FileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", help="The site's file; fabric.yaml, or none with --from."),
]
DeviceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--device", "--limit", "-d", help="Only this device, or leaf1,leaf2; may be repeated."
    ),
]
CountersOption = Annotated[
    bool,
    typer.Option("--counters", help="Judge counters too: what has happened since they were 0."),
]
FromOption = Annotated[
    Path | None,
    typer.Option("--from", help="Judge saved outputs: a folder a device, a file a command."),
]
SaveOption = Annotated[
    Path | None, typer.Option("--save", help="Also save what the devices printed in this folder.")
]
FormatOption = Annotated[
    str, typer.Option("--format", help="table, json, sarif or junit, on stdout or in --out.")
]
OutOption = Annotated[Path | None, typer.Option("--out", help="Write the report to this file.")]


def audit(
    file: FileOption = None,
    device: DeviceOption = None,
    counters: CountersOption = False,
    from_: FromOption = None,
    save: SaveOption = None,
    format_: FormatOption = "table",
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read every device and judge both ends of every cable; changes nothing.

    With --from nothing is read but files: also of a fabric that PAISoar never
    touched, with the counters that were saved. Without -f its intent is then what
    most of its ports do.

    Exit 0 without findings, 1 with findings, 3 where a device did not answer, or
    nothing could be judged.
    """

    def work(ui: Ui) -> Answer:
        if format_ not in FORMATS:
            raise InputError(
                f"{format_!r} is no format", key="--format", advice="Use table, json, sarif, junit."
            )
        if from_ is not None and save is not None:
            raise InputError("there is no device to read", key="--from", advice="Omit --save.")
        if from_ is not None:
            answer, report, unread = _offline(ui, from_, file, device)
        else:
            answer, report, unread = _live(
                ui, file or DEFAULT_FILE, device, counters=counters, save=save
            )
        return _formatted(answer, report, unread, format_, out)

    run(as_json or (format_ == "json" and out is None), work)


def look(ui: Ui, file: Path, names: list[str] | None) -> Answer:
    """Audit and keep the report; the answer shows it."""
    return _live(ui, file, names, counters=False, save=None)[0]


def _live(
    ui: Ui, file: Path, names: list[str] | None, *, counters: bool, save: Path | None
) -> tuple[Answer, AuditReport, Mapping[str, str]]:
    """The answer, what it shows, and why which devices were not read."""
    from fabric.audit import audit as run_audit
    from fabric.audit.record import save_audit
    from fabric.devices.registry import expected_qos
    from fabric.provisioning.plan import make_plan
    from fabric.reach.playread import read_states_by_playbook
    from validation.baseline import certified_states

    site = load_site(file)
    devices = site.select(names)
    with ui.events("reading devices", len(devices)) as on_event:
        read = read_states_by_playbook(site, devices, on_event)
    intended = {name: expected_qos(site, name) for name in read.states}
    counted, counter_outputs = _counters(ui, site, tuple(read.states)) if counters else (None, {})
    report = run_audit(
        site,
        read.states,
        intended,
        baseline=certified_states(site),
        outputs=read.outputs,
        counters=counted,
    )
    try:
        save_audit(site, report)
    except OSError as error:
        ui.say(f"this audit is not kept for reports: {error}")
    if save is not None:
        from fabric.saved.layout import save_outputs, save_site

        save_outputs(save, read.outputs)
        save_outputs(save, counter_outputs)
        save_site(save, site)
    failed = {name: error.message for name, error in read.failed.items()}
    document = report.to_json() | {"unreachable": failed}
    changes = bool(make_plan(site, read).changed)
    after = _after(report, file, read.failed, plan_changes=changes)
    answer = Answer(
        document,
        lambda out: show_report(out, report, read.failed, after=after),
        good=report.clean and not failed,
        exit_code=3 if failed else 1,
    )
    return answer, report, failed


def _counters(
    ui: Ui, site: Site, devices: tuple[str, ...]
) -> tuple[dict[str, CounterSnapshot], dict[str, dict[str, str]]]:
    """Counters of these devices, and the outputs that they were read from."""
    import time

    from fabric.devices.base import ReadError
    from fabric.devices.registry import module_of, target_of
    from fabric.reach.collect import read_outputs

    with ui.progress("reading counters", len(devices)) as advance:
        outputs = read_outputs(
            site,
            devices,
            lambda module, target: module.counter_commands(target),
            advance,
        )
    snapshots = {}
    for name, answered in outputs.items():
        try:
            snapshots[name] = module_of(site, name).read_counters(
                target_of(site, name), answered, time.time()
            )
        except ReadError as error:
            ui.say(f"{name}: counters: {error}")
    return snapshots, outputs


def _offline(
    ui: Ui, folder: Path, file: Path | None, names: list[str] | None
) -> tuple[Answer, AuditReport, Mapping[str, str]]:
    """The answer, what it shows, and why which devices were not read."""
    from fabric.audit import audit as run_audit
    from fabric.saved.offline import limited, read_folder, read_for_site

    ui.say(f"reading {folder}")
    saved = read_for_site(folder, load_site(file)) if file is not None else read_folder(folder)
    saved = limited(saved, names)
    report = run_audit(
        saved.site, saved.states, saved.intended, outputs=saved.outputs, counters=saved.counters
    )
    document = report.to_json() | saved.to_json()
    answer = Answer(
        document,
        lambda out: _show_saved(out, report, saved, _after_saved(report, folder, file)),
        good=report.clean and not saved.failed and _has_ports(saved),
        exit_code=1 if report.findings else 3,
    )
    return answer, report, saved.failed


def _show_saved(out: Console, report: AuditReport, saved: SavedFabric, after: str) -> None:
    for value in saved.inferred:
        out.print(f"{'assumed' if value.assumed else 'inferred'}: {value}")
    for title, lines in (
        ("assumed", saved.assumed),
        ("note", saved.notes),
        ("not known", saved.unknown_files),
    ):
        for line in lines[:MAX_LINES]:
            out.print(f"{title}: {line}")
        if len(lines) > MAX_LINES:
            out.print(f"{title}: and {len(lines) - MAX_LINES} more, see --json")
    show_report(out, report, {}, saved.failed, after=after)
    if saved.states and not _has_ports(saved):
        out.print("Nothing was judged: no port of these devices has a cable or is in use.")


def _has_ports(saved: SavedFabric) -> bool:
    """Whether there is any port that was judged."""
    return any(saved.intended[name].ports for name in saved.states)


def _formatted(
    answer: Answer,
    report: AuditReport,
    unread: Mapping[str, str],
    format_: str,
    out: Path | None,
) -> Answer:
    """The answer with another format on stdout, or in a file beside what it shows."""
    from fabric.audit import rules
    from fabric.audit.formats import to_junit, to_sarif

    texts: Mapping[str, Callable[[], str]] = {
        "json": lambda: json.dumps(answer.document, indent=2) + "\n",
        "sarif": lambda: (
            json.dumps(to_sarif(report, rules(), version("paisoar"), unread), indent=2) + "\n"
        ),
        "junit": lambda: to_junit(report, rules(), unread),
        "table": lambda: _table_text(answer),
    }
    if out is not None:
        write_text(out, texts[format_]())
        return answer
    if format_ in ("sarif", "junit"):
        text = texts[format_]()
        return Answer(
            answer.document,
            lambda console: console.out(text, end="", highlight=False),
            good=answer.good,
            exit_code=answer.exit_code,
        )
    return answer


def _table_text(answer: Answer) -> str:
    text = io.StringIO()
    answer.show(console(file=text, width=160))
    return text.getvalue()


def show_report(
    out: Console,
    report: AuditReport,
    failed: Mapping[str, PaisoarError],
    unread: Mapping[str, str] | None = None,
    *,
    after: str,
) -> None:
    """Findings as a table, then what was skipped and who did not answer, and what comes next."""
    if report.findings:
        table = Table("rule", "severity", "device", "port", "what is wrong", show_lines=True)
        for row in _rows(report):
            table.add_row(*row)
        out.print(table)
    answers = {name: error.message for name, error in failed.items()} | dict(unread or {})
    if not report.devices:
        _say_unread(out, answers)
        return
    for line in skip_lines(report):
        out.print(line)
    for name, message in answers.items():
        out.print(f"not answered: {name}: {message}")
    out.print(
        f"{len(report.devices)} devices read, {len(report.findings)} findings, "
        f"{len(report.skipped)} skipped, {len(answers)} unreachable."
    )
    if report.paths:
        out.print(report.paths.summary)
    if after:
        out.print(after)


def _say_unread(out: Console, answers: Mapping[str, str]) -> None:
    """That nothing was judged, and why."""
    for name, message in answers.items():
        out.print(f"not answered: {name}: {message}")
    out.print(f"Nothing was judged: none of {count_of(len(answers), 'device')} could be read.")


def _after(
    report: AuditReport, file: Path, failed: Mapping[str, PaisoarError], *, plan_changes: bool
) -> str:
    """What to do next about a fabric that was read; ``plan_changes`` where a plan mends some."""
    if report.findings and not plan_changes:
        explain = f"paisoar explain {report.findings[0].rule}"
        return f"A plan would change nothing: mend it on the device. {explain} says how."
    if report.findings:
        plan, provision = command_line("plan", file), command_line("provision", file)
        return f"Mend with: {plan}, then: {provision}\n{_learn(report)}"
    return "" if failed else f"Next: {command_line('validate', file)}"


def _after_saved(report: AuditReport, folder: Path, file: Path | None) -> str:
    """What to do next about a fabric that was judged from files."""
    if not report.findings:
        return ""
    if file is not None:
        return _after(report, file, {}, plan_changes=True)
    first = f"paisoar init --from {shlex.quote(str(folder))}"
    return f"Mend with what stands behind >, or manage it, from: {first}\n{_learn(report)}"


def _learn(report: AuditReport) -> str:
    return f"Learn: paisoar explain {report.findings[0].rule}"


def _rows(report: AuditReport) -> list[tuple[str, str, str, str, str]]:
    """Rows of the table: devices with the same fault share one; the first's evidence shows."""
    from fabric.audit.rule import FIX

    same: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in report.findings:
        key = (finding.rule, finding.severity, finding.port, finding.message)
        same.setdefault(key, []).append(finding)
    rows = []
    for (rule, severity, port, message), findings in same.items():
        evidence, fix = findings[0].evidence, findings[0].fix
        lines = [*evidence[: MAX_LINES - 1], *evidence[MAX_LINES - 1 :][-1:]]
        # That a plan mends it stands below the table, once.
        lines += [] if fix == FIX else [f"> {line}" for line in fix[:MAX_LINES]]
        text = "".join(f"\n  {line}" for line in lines)
        rows.append((rule, severity, _some(f.device for f in findings), port, message + text))
    return rows


def _some(names: Iterable[str]) -> str:
    """The first few of them, and how many more there are."""
    every = [name for name in names if name]
    more = f" and {len(every) - MAX_NAMES} more" if len(every) > MAX_NAMES else ""
    return ", ".join(every[:MAX_NAMES]) + more


def skip_lines(report: AuditReport) -> list[str]:
    """One line for each rule and reason, with the devices that it holds for."""
    devices: dict[tuple[str, str], list[str]] = {}
    for skip in report.skipped:
        devices.setdefault((skip.rule, skip.reason), []).append(skip.device)
    lines = []
    for (rule, reason), names in devices.items():
        where = f" on {shown}" if (shown := _some(names)) else ""
        short = reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]} ..."
        lines.append(f"skipped: {rule}{where}: {short}")
    return lines
