"""``paisoar init --from``: an existing site's fabric.yaml, and what is missing in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from fabric.devices.entries import NICS, known
from fabric.errors import MAX_SHOWN, InputError
from fabric.site import Site, device_name, load_site
from fabric.textfile import write_text
from paisoar.console import Answer, Ui, command_line, count_of

if TYPE_CHECKING:
    from fabric.bringin import Gap


def may_write(file: Path, site: str, environment: str, force: bool) -> None:
    """InputError where the file may not be overwritten, or an option is wrong."""
    try:
        device_name(site)
    except ValueError as error:
        raise InputError(f"{error} (got {site!r})", key="--site") from error
    if environment not in ("twin", "site"):
        raise InputError(
            f"{environment!r} is no environment", key="--environment", advice="Use twin or site."
        )
    if file.exists() and not force:
        raise InputError("exists already", file=file, advice="Use --force to overwrite it.")


def bring_in(
    ui: Ui,
    file: Path,
    paths: list[Path],
    *,
    site: str,
    environment: str,
    switch_os: Sequence[str],
    nic_family: str,
) -> Answer:
    """Write ``file`` from these sources; the answer is bad where it has faults."""
    from fabric.bringin import read_sources, site_yaml

    _refuse_unknown(switch_os, nic_family)
    ui.say(f"reading {', '.join(map(str, paths))}")
    source = read_sources(paths)
    written = site_yaml(
        source, site=site, environment=environment, switch_os=switch_os, nic_family=nic_family
    )
    write_text(file, written.text)
    faults = [f"{file}:{gap.line}: {gap.key}: missing: {gap.what}" for gap in written.gaps]
    wiring: list[str] = []
    try:
        loaded = load_site(file)
    except InputError as error:
        faults += _untold(error.faults, written.gaps)
    else:
        wiring = [] if faults else _wiring(paths, loaded)
    switches = sum(device.kind != "host" for device in source.devices.values())
    document = {
        "file": str(file),
        "hosts": len(source.devices) - switches,
        "switches": switches,
        "cables": len(source.cables),
        "missing": [{"line": gap.line, "key": gap.key, "what": gap.what} for gap in written.gaps],
        "faults": faults,
        "assumed": list(written.assumed),
        "notes": list(source.notes),
        "wiring": wiring,
    }

    def show(out: Console) -> None:
        _show_some(out, source.notes, "note: ")
        _show_some(out, written.assumed, "assumed: ")
        _show_some(out, wiring, "wiring: ")
        _show_some(out, faults)
        out.print(
            f"{file}: {count_of(len(source.devices) - switches, 'host')}, "
            f"{count_of(switches, 'switch', 'switches')}, "
            f"{count_of(len(source.cables), 'cable')}. {_what_now(faults, wiring)}"
            f" {command_line('check', file)}"
        )

    return Answer(document, show, good=not (faults or wiring))


def _refuse_unknown(switch_os: Sequence[str], nic_family: str) -> None:
    """InputError for a system or NIC family that is none."""
    from fabric.saved.systems import known_systems

    for name in switch_os:
        if name not in known_systems() or len(switch_os) > 2:
            there = ", ".join(known_systems())
            raise InputError(
                f"{','.join(switch_os)!r} is no system, or that of leaves and that of spines",
                key="--switch-os",
                advice=f"There are {there}.",
            )
    if nic_family and nic_family not in known(NICS):
        raise InputError(
            f"{nic_family!r} is no NIC family; with --from there is one for all that lack it",
            key="--nic",
            advice=f"There are {', '.join(known(NICS))}.",
        )


def _untold(faults: Sequence[InputError], gaps: Sequence[Gap]) -> list[str]:
    """The faults of the file that do not follow from something that is missing in it."""
    inside: set[str] = set()
    for gap in gaps:
        steps = gap.key.split(".")
        inside.update(".".join(steps[: count + 1]) for count in range(len(steps)))
    no_device = "no device is called "
    absent = {f"{no_device}{gap.key.removeprefix('devices.')!r}" for gap in gaps}
    no_devices = any(gap.key == "devices" for gap in gaps)
    return [
        str(fault)
        for fault in faults
        if fault.key not in inside
        and fault.reason not in absent
        and not (no_devices and fault.reason.startswith(no_device))
    ]


def _show_some(out: Console, lines: Sequence[str], title: str = "") -> None:
    for line in lines[:MAX_SHOWN]:
        out.print(f"{title}{line}")
    if len(lines) > MAX_SHOWN:
        out.print(f"{title}and {len(lines) - MAX_SHOWN} more; --json has them all")


def _what_now(faults: list[str], wiring: list[str]) -> str:
    if faults:
        return "Complete it, then:"
    if wiring:
        return "LLDP shows other cables: correct the file, or the cables, then:"
    return "Next:"


def _wiring(paths: list[Path], site: Site) -> list[str]:
    """What LLDP in saved outputs says of the cables that were written."""
    from fabric.audit import audit
    from fabric.saved.offline import read_for_site

    lines = []
    for path in paths:
        if not path.is_dir() or not any((path / name).is_dir() for name in site.devices):
            continue
        saved = read_for_site(path, site)
        report = audit(saved.site, saved.states, saved.intended)
        lines += [
            f"{finding.device} {finding.port}: {finding.message.partition('. ')[0]}"
            for finding in report.findings
            if finding.rule in ("cabling", "lldp-peers", "port-missing")
        ]
    return lines
