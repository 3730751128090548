"""``paisoar init``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fabric.errors import InputError
from fabric.site import load_site
from fabric.starter import refuse_impossible, starter_yaml
from fabric.textfile import read_text, write_text
from fabric.topology import ClosShape
from paisoar.commands.init_from import bring_in, may_write
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


# Of these the devices and cables of an existing site are the answer.
_SHAPE = {
    "hosts": "--hosts",
    "leaves": "--leaves",
    "spines": "--spines",
    "dual_homed": "--dual-homed",
}


def init(
    context: typer.Context,
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
    in saved outputs contradicts the cables of another source. --switch-os and --nic are
    then those of the switches and NICs of which no source tells it.
    """
    if from_:
        asked = {
            name
            for name in (*_SHAPE, "switch_os", "nic")
            if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
        }

        def bring(ui: Ui) -> Answer:
            for name, option in _SHAPE.items():
                if name in asked:
                    raise InputError(
                        "has no meaning with --from, whose sources tell the devices and cables",
                        key=option,
                        advice="Omit one of the two.",
                    )
            may_write(file, site, environment or "site", force)
            return bring_in(
                ui,
                file,
                from_,
                site=site,
                environment=environment or "site",
                switch_os=switch_os.split(",") if "switch_os" in asked else [],
                nic_family=nic if "nic" in asked else "",
            )

        run(as_json, bring)
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
    may_write(file, name, environment, force)
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
