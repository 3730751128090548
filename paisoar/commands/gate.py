"""``paisoar gate``: what ``paisoar train`` asks, for schedulers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from fabric.errors import GateRefusedError, InputError
from paisoar.asked import microseconds
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, count_of, run

if TYPE_CHECKING:
    from fabric.site import EvidenceClass, Site
    from validation.gate import GatePass

# What Slurm's controller gives to its prolog: the nodes of the whole job.
SLURM_HOSTS = "SLURM_JOB_NODELIST"


def gate(
    file: FileOption = DEFAULT_FILE,
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIST",
            help="The job's hosts, as node[01-03,7]; those in SLURM_JOB_NODELIST, or all of the "
            "site's, if not given.",
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Read the devices now, instead of the watch's reading.")
    ] = False,
    max_age: Annotated[
        str, typer.Option(metavar="TIME", help="How old the watch's last reading may be.")
    ] = "2m",
    certificate: Annotated[str, typer.Option(help="An id or a file; the newest if not given.")] = (
        ""
    ),
    evidence: Annotated[
        str, typer.Option("--class", help="Demand simulated, soft-roce or hardware evidence.")
    ] = "",
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Ask nothing; write the files for Slurm, Kubernetes, systemd, Prometheus and "
            "Grafana there, made out for this program and site.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a job may start on these hosts now; exit 0 if so, 1 with the reason if not.

    Verifies certificate, scope, evidence class, dates and revocation, and compares the
    fabric with what was certified: by the last reading of `paisoar watch`, which is
    sealed and must be young, or with --live by reading the devices. A reading that is
    missing or too old never opens the gate.
    """

    def work(ui: Ui) -> Answer:
        from fabric.site import load_site

        site = load_site(file)
        if export is not None:
            return _export(site, export)
        return _ask(ui, site, hosts, certificate, evidence, None if live else max_age)

    run(as_json, work)


def _ask(
    ui: Ui,
    site: Site,
    lists: list[str] | None,
    certificate: str,
    evidence: str,
    max_age: str | None,
) -> Answer:
    from validation.gate import open_gate, open_gate_quickly

    wanted = _hosts(site, lists)
    asked: dict[str, Any] = {
        "certificate": certificate or None,
        "minimum_class": _class(evidence),
    }
    try:
        if max_age is None:
            ui.say("reading the fabric")
            found = open_gate(site, wanted, **asked)
        else:
            limit_s = microseconds("--max-age", max_age) / 1e6
            found = open_gate_quickly(site, wanted, max_age_s=limit_s, **asked)
    except GateRefusedError as error:
        refused = error
        return Answer(
            {
                "open": False,
                "reason": error.reason,
                "message": error.message,
                "advice": error.advice,
                "hosts": list(wanted),
            },
            lambda out: out.print(f"refused ({refused.reason}): {refused}"),
            good=False,
        )
    return Answer(_document(found), lambda out: _show(out, found, live=max_age is None))


def _hosts(site: Site, lists: list[str] | None) -> Sequence[str]:
    from validation.scheduler.hostlist import hosts_of

    job = os.environ.get(SLURM_HOSTS, "")
    if lists is None and not job:
        return site.topology.hosts
    return hosts_of(site, lists if lists is not None else [job])


def _class(evidence: str) -> EvidenceClass | None:
    from validation.certificates.validity import CLASSES

    if evidence and evidence not in CLASSES:
        raise InputError(
            f"there is no evidence class {evidence!r}",
            key="--class",
            advice=f"Use {', '.join(CLASSES)}.",
        )
    return cast(Any, evidence) if evidence else None


def _document(found: GatePass) -> dict[str, Any]:
    from validation.times import to_text

    return {
        "open": True,
        "certificate": found.certificate_id,
        "site": found.site,
        "class": found.evidence_class,
        "hosts": list(found.hosts),
        "fingerprint": found.fingerprint,
        "checked_at": to_text(found.checked_at),
        "not_after": to_text(found.not_after),
        "reading_age_s": round(found.reading_age_s, 3),
        "loopback_only": found.loopback_only,
    }


def _show(out: Console, found: GatePass, *, live: bool) -> None:
    read = "read now" if live else f"read {found.reading_age_s:.0f} s ago"
    out.print(
        f"open: {found.certificate_id} ({found.evidence_class}) covers "
        f"{count_of(len(found.hosts), 'host')}, fabric {read}, holds until "
        f"{found.not_after:%Y-%m-%d %H:%M}Z"
    )


def _export(site: Site, folder: Path) -> Answer:
    from validation.scheduler.export import export_files

    written = export_files(site, folder)

    def show(out: Console) -> None:
        for path in written:
            out.print(str(path))

    return Answer({"files": [str(path) for path in written]}, show)
