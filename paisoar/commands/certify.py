"""``paisoar certify`` and ``paisoar certificate show | verify | revoke``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fabric.errors import GateRefusedError
from fabric.site import load_site
from paisoar.console import (
    DEFAULT_FILE,
    Answer,
    FileOption,
    JsonOption,
    Ui,
    command_line,
    run,
)

if TYPE_CHECKING:
    from validation.certificates.certificate import Certificate

certificate = typer.Typer(
    no_args_is_help=True, help="Show, verify and revoke certificates of a site."
)

Which = Annotated[
    str, typer.Argument(metavar="[CERTIFICATE]", help="An id or a file; the newest if not given.")
]


def certify(
    file: FileOption = DEFAULT_FILE,
    run_id: Annotated[str, typer.Option("--run", help="A run's id; the newest if not given.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Judge a validation run and sign what it has shown, or say what is missing.

    The devices are read once more: what is signed is what they do now.
    """
    run(as_json, lambda ui: issue(ui, file, run_id))


@certificate.command()
def show(which: Which = "", file: FileOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """Show a certificate and whether it holds now."""
    run(as_json, lambda ui: _show(ui, file, which))


@certificate.command()
def verify(which: Which = "", file: FileOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """Verify signature, site, class, revocation, dates and intent; exit 1 with the reason.

    No device is read: `paisoar train` also compares the fabric with what was certified.
    """
    run(as_json, lambda ui: _verify(ui, file, which))


@certificate.command()
def revoke(
    which: Annotated[str, typer.Argument(metavar="CERTIFICATE", help="The certificate's id.")],
    reason: Annotated[str, typer.Option(help="Why, for those who read the list.")] = (
        "withdrawn by the operator"
    ),
    file: FileOption = DEFAULT_FILE,
    as_json: JsonOption = False,
) -> None:
    """Put a certificate on the signed revocation list; the gate refuses it from then on."""
    run(as_json, lambda ui: _revoke(ui, file, which, reason))


def issue(ui: Ui, file: Path, run_id: str = "") -> Answer:
    """Certify a run; raises JudgedBadError that lists what is missing."""
    from validation.certificates.certify import certify as sign
    from validation.results.store import latest_run, load_run

    site = load_site(file)
    ui.say("reading the devices once more")
    warnings: list[str] = []
    run_of = load_run(site, run_id) if run_id else latest_run(site)
    signed = sign(site, run_of, on_warning=warnings.append)

    def show(out: Console) -> None:
        _facts(out, signed)
        for line in warnings:
            out.print(f"warning: {line}", style="yellow")
        out.print(f"Next: {command_line('train', file)}, or {command_line('report', file)}")

    return Answer(signed.to_json() | {"file": str(signed.path), "warnings": warnings}, show)


def _show(ui: Ui, file: Path, which: str) -> Answer:
    from validation.certificates.certificate import show as look

    site = load_site(file)
    ui.say("looking at the certificate")
    shown = look(site, which or None)
    found = shown.certificate
    document: dict[str, Any] = found.to_json() if found else {"file": str(shown.path)}
    document |= {"valid": shown.valid, "reason": shown.reason, "message": shown.message}

    def tell(out: Console) -> None:
        if found is not None:
            _facts(out, found)
        out.print(f"{'valid' if shown.valid else 'NOT VALID'}: {shown.message}", markup=False)

    return Answer(document, tell, good=shown.valid)


def _verify(ui: Ui, file: Path, which: str) -> Answer:
    from validation.certificates.certificate import verify as check

    site = load_site(file)
    ui.say("verifying")
    try:
        found = check(site, which or None)
    except GateRefusedError as error:
        refused = error
        return Answer(
            {"valid": False, "reason": error.reason, "message": error.message},
            lambda out: out.print(f"not valid ({refused.reason}): {refused}", markup=False),
            good=False,
        )
    return Answer(
        {"valid": True, "id": found.id, "class": found.evidence_class},
        lambda out: out.print(f"{found.id} is valid until {found.predicate.not_after}."),
    )


def _revoke(ui: Ui, file: Path, which: str, reason: str) -> Answer:
    from validation.certificates.certificate import revoke as withdraw

    site = load_site(file)
    ui.say("revoking")
    listed = withdraw(site, which, reason)
    return Answer(
        {"revoked": which, "sequence": listed.sequence},
        lambda out: out.print(f"{which} is revoked (list {listed.sequence})."),
    )


def _facts(out: Console, found: Certificate) -> None:
    predicate = found.predicate
    table = Table(show_header=False)
    table.add_column()
    # Paths and hashes are copied: none may be cut off.
    table.add_column(overflow="fold")
    table.add_row("certificate", found.id)
    table.add_row("site", found.site)
    table.add_row("evidence class", found.evidence_class)
    table.add_row("profile", predicate.profile.name)
    table.add_row("hosts", ", ".join(found.hosts))
    table.add_row("valid", f"{predicate.not_before} to {predicate.not_after}")
    for suite, seen in _covered(found).items():
        table.add_row(suite, seen)
    table.add_row("signed by key", predicate.issuer_key_id)
    table.add_row("fabric fingerprint", found.fingerprint.sha256)
    table.add_row("file", str(found.path))
    out.print(table)


def _covered(found: Certificate) -> dict[str, str]:
    """What each suite saw of what it had to see, for people."""
    lines: dict[str, list[str]] = {}
    for entry in found.predicate.coverage:
        lines.setdefault(entry.suite, []).append(
            f"{entry.seen:,} of {entry.expected:,} {entry.what}"
        )
    if lines and not any(entry.what == "counters" for entry in found.predicate.coverage):
        lines["counters"] = ["not stated: this certificate is of an earlier release"]
    return {suite: ", ".join(seen) for suite, seen in lines.items()}
