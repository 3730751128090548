"""``paisoar init``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fabric.errors import InputError
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, run

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
        str, typer.Option(help="twin (emulated here) or site (real devices).")
    ] = "twin",
    switch_os: SwitchOsOption = "nxos",
    nic: NicOption = "mlx5",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a commented fabric.yaml for a Clos of the asked size.

    Hosts have 25G NICs, leaf uplinks are 100G, and every leaf gets as many
    uplinks as it needs not to be oversubscribed.
    """
    shape = ClosShape(hosts, leaves, spines, nics_per_host=2 if dual_homed else 1)

    def text() -> str:
        return starter_yaml(
            shape,
            site=site,
            environment=environment,
            switch_os=switch_os.split(","),
            nics=nic.split(","),
        )

    run(as_json, lambda ui: _init(ui, file, text, environment, force))


def _init(
    ui: Ui, file: Path, make_text: Callable[[], str], environment: str, force: bool
) -> Answer:
    if environment not in ("twin", "site"):
        raise InputError(
            f"{environment!r} is no environment", key="--environment", advice="Use twin or site."
        )
    if file.exists() and not force:
        raise InputError("exists already", file=file, advice="Use --force to overwrite it.")
    try:
        text = make_text()
    except ValueError as error:
        raise InputError(str(error)) from error
    ui.say(f"writing {file}")
    earlier = file.read_text(encoding="utf-8") if file.exists() else None
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=file) from error
    try:
        loaded = load_site(file)
    except InputError as error:
        if earlier is None:
            file.unlink()
        else:
            file.write_text(earlier, encoding="utf-8")
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
            f"{file}: {len(topology.hosts)} hosts, {len(topology.switches)} switches, "
            f"{len(topology.links)} cables. Next: paisoar check -f {file}"
        )

    return Answer(document, show)
