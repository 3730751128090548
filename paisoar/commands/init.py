"""``paisoar init``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fabric.errors import InputError
from fabric.site import Site, device_name, load_site
from fabric.starter import refuse_impossible, starter_yaml
from fabric.textfile import read_text, write_text
from fabric.topology import ClosShape
from paisoar.console import (
    DEFAULT_FILE,
    Answer,
    FileOption,
    JsonOption,
    Ui,
    command_line,
    count_of,
    run,
)

SwitchOsOption = Annotated[
    str, typer.Option(help="The switches' system; two, as in nxos,sonic, for leaves and spines.")
]
NicOption = Annotated[
    str, typer.Option(help="The NIC family; several, as in mlx5,bnxt, take turns.")
]


def init(
    file: FileOption = DEFAULT_FILE,
    hosts: Annotated[int, typer.Option(min=1, help="How many hosts.")] = 16,
    leaves: Annotated[int, typer.Option(min=1, help="How many leaf switches.")] = 4,
    spines: Annotated[int, typer.Option(min=0, help="How many spine switches.")] = 2,
    dual_homed: Annotated[
        bool, typer.Option("--dual-homed", help="Two NICs a host, to two leaves.")
    ] = False,
    site: Annotated[str, typer.Option(help="The site's name.")] = "demo",
    environment: Annotated[
        str,
        typer.Option(
            help="twin (emulated here) or site (real devices); site with --from.",
            show_default="twin",
        ),
    ] = "",
    switch_os: SwitchOsOption = "nxos",
    nic: NicOption = "mlx5",
    from_: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            help="An Ansible inventory, a NetBox export (JSON), a devices.csv, or a folder of "
            "saved outputs; may be repeated, and the first that knows a thing is right.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a commented fabric.yaml for a Clos of the asked size.

    Hosts have 25G NICs, leaf uplinks are 100G, and every leaf gets as many
    uplinks as it needs not to be oversubscribed.

    With --from the devices and cables are those of an existing site. What no source
    tells is missing in the file, and named with its line; exit 1 then, and where LLDP
    in saved outputs contradicts the cables of another source.
    """
    if from_:
        run(as_json, lambda ui: _bring_in(ui, file, from_, site, environment or "site", force))
        return
    environment = environment or "twin"
    shape = ClosShape(hosts, leaves, spines, nics_per_host=2 if dual_homed else 1)

    def text() -> str:
        refuse_impossible(shape)
        return starter_yaml(
            shape,
            site=site,
            environment=environment,
            switch_os=switch_os.split(","),
            nics=nic.split(","),
        )

    run(as_json, lambda ui: _init(ui, file, text, site, environment, force))


def _init(
    ui: Ui, file: Path, make_text: Callable[[], str], name: str, environment: str, force: bool
) -> Answer:
    _may_write(file, name, environment, force)
    try:
        text = make_text()
    except ValueError as error:
        raise InputError(str(error)) from error
    ui.say(f"writing {file}")
    earlier = read_text(file) if file.exists() else None
    write_text(file, text)
    try:
        loaded = load_site(file)
    except InputError as error:
        if earlier is None:
            file.unlink()
        else:
            write_text(file, earlier)
        raise InputError(
            f"no valid site of this shape: {error.reason}",
            advice="Ask for more leaves, more spines or fewer hosts.",
        ) from error
    topology = loaded.topology
    document = {
        "file": str(file),
        "hosts": len(topology.hosts),
        "switches": len(topology.switches),
        "cables": len(topology.links),
    }

    def show(out: Console) -> None:
        out.print(
            f"{file}: {count_of(len(topology.hosts), 'host')}, "
            f"{count_of(len(topology.switches), 'switch', 'switches')}, "
            f"{count_of(len(topology.links), 'cable')}. "
            f"Next: {command_line('check', file)}"
        )

    return Answer(document, show)


def _may_write(file: Path, site: str, environment: str, force: bool) -> None:
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


def _bring_in(
    ui: Ui, file: Path, paths: list[Path], name: str, environment: str, force: bool
) -> Answer:
    from fabric.bringin import read_sources, site_yaml

    _may_write(file, name, environment, force)
    ui.say(f"reading {', '.join(map(str, paths))}")
    source = read_sources(paths)
    written = site_yaml(source, site=name, environment=environment)
    write_text(file, written.text)
    faults = [f"{file}:{gap.line}: {gap.key}: missing: {gap.what}" for gap in written.gaps]
    wiring: list[str] = []
    if not faults:
        try:
            site = load_site(file)
        except InputError as error:
            faults.append(str(error))
        else:
            wiring = _wiring(paths, site)
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
        for title, lines in (
            ("note", source.notes),
            ("assumed", written.assumed),
            ("wiring", wiring),
        ):
            for line in lines:
                out.print(f"{title}: {line}")
        for line in faults:
            out.print(line)
        out.print(
            f"{file}: {count_of(len(source.devices) - switches, 'host')}, "
            f"{count_of(switches, 'switch', 'switches')}, "
            f"{count_of(len(source.cables), 'cable')}. {_what_now(faults, wiring)}"
            + f" {command_line('check', file)}"
        )

    return Answer(document, show, good=not (faults or wiring))


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
