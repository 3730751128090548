"""``paisoar lab up | run | down | status``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from fabric.errors import InputError
from fabric.reach.access import lab_dir_of
from fabric.site import Site, load_site
from fabric.textfile import write_text
from paisoar.console import (
    DEFAULT_FILE,
    Answer,
    FileOption,
    JsonOption,
    Ui,
    command_line,
    console,
    count_of,
    run,
)

if TYPE_CHECKING:
    from fabric.lab import LabStatus, Sizes

DEFAULT_HOSTS = 2
HOSTS_OF_RUN = 3

HostMemory = Annotated[int, typer.Option(min=256, help="MiB of memory of a host.")]
SwitchMemory = Annotated[int, typer.Option(min=192, help="MiB of the switch.")]
HostCpus = Annotated[int, typer.Option(min=1, max=16, help="Processors of a host.")]

lab = typer.Typer(
    no_args_is_help=True,
    help="Virtual machines with Soft-RoCE, and one as their switch: real verbs without hardware.",
)


@lab.command()
def up(
    file: FileOption = DEFAULT_FILE,
    hosts: Annotated[
        int | None,
        typer.Option(min=2, max=4, help="How many hosts, where there is no site yet; 2 if unsaid."),
    ] = None,
    host_memory: HostMemory = 2048,
    switch_memory: SwitchMemory = 384,
    host_cpus: HostCpus = 1,
    as_json: JsonOption = False,
) -> None:
    """Start the guests of a site; without a fabric.yaml, write one for a lab first."""

    def work(ui: Ui) -> Answer:
        from fabric.lab import Sizes

        return _up(ui, file, hosts, Sizes(host_memory, switch_memory, host_cpus))

    run(as_json, work)


@lab.command(name="run")
def run_all(
    file: FileOption = DEFAULT_FILE,
    hosts: Annotated[
        int | None,
        typer.Option(min=2, max=4, help="How many hosts, where there is no site yet; 3 if unsaid."),
    ] = None,
    seconds: Annotated[
        int | None, typer.Option(help="How long a stream of bandwidth and incast runs.")
    ] = None,
    no_train: Annotated[bool, typer.Option("--no-train", help="Leave the training out.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the guests up at the end.")] = False,
    host_memory: HostMemory = 2048,
    switch_memory: SwitchMemory = 384,
    host_cpus: HostCpus = 1,
    as_json: JsonOption = False,
) -> None:
    """Walk all of it on virtual machines, from plan to report, and stop them.

    Two hosts cannot have an incast: they are validated, but neither certified nor trained on.
    """

    def work(ui: Ui) -> Answer:
        from fabric.lab import Sizes
        from paisoar.labline import LabLine
        from validation.probes.hosts.options import Options

        out = console()

        def tell(text: Text) -> None:
            if as_json:
                ui.say(text)
            else:
                out.print(text, soft_wrap=True)

        walked = LabLine(
            ui,
            file,
            tell,
            hosts=hosts or (None if file.exists() else HOSTS_OF_RUN),
            sizes=Sizes(host_memory, switch_memory, host_cpus),
            options=None if seconds is None else Options(seconds=seconds),
            training=not no_train,
            keep=keep,
        ).walk()

        def show(out: Console) -> None:
            out.print(f"The report is {walked.report}", soft_wrap=True)

        return Answer(walked.to_json(), show, good=walked.good, exit_code=walked.exit_code)

    run(as_json, work)


@lab.command()
def down(file: FileOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """Stop the guests; their console logs stay, their settings do not."""
    run(as_json, lambda ui: _down(ui, file))


@lab.command()
def status(file: FileOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """Say whether the guests are up, and how to log in to each."""
    run(as_json, lambda ui: _status(ui, file))


def _site(file: Path) -> Site:
    site = load_site(file)
    if site.environment != "lab":
        raise InputError(
            f"environment is {site.environment}, which has no lab",
            file=file,
            key="environment",
            advice="In an empty folder `paisoar lab up` writes a site of its own.",
        )
    return site


def _up(ui: Ui, file: Path, hosts: int | None, sizes: Sizes) -> Answer:
    wrote = not file.exists()
    state = start(ui, file, hosts, sizes)
    document = {**state.to_json(), "file": str(file), "wrote": wrote}
    return Answer(document, lambda out: _show(out, state, file))


def start(ui: Ui, file: Path, hosts: int | None, sizes: Sizes) -> LabStatus:
    """Start the guests with progress; without a file, write the site's first."""
    from fabric.lab import up as boot

    if not file.exists():
        _write_site(ui, file, hosts or DEFAULT_HOSTS)
    site = _site(file)
    there = len(site.topology.hosts)
    if hosts is not None and hosts != there:
        raise InputError(
            f"the site has {count_of(there, 'host')}, not {hosts}",
            file=file,
            key="devices",
            advice="Leave --hosts out, or start in another folder.",
        )
    with ui.steps("starting guests") as step:
        return boot(site, lambda done, total, what: step(what, done, total), sizes)


def _write_site(ui: Ui, file: Path, hosts: int) -> None:
    from fabric.lab.qemu import require_qemu
    from fabric.lab.starter import lab_yaml

    require_qemu()
    ui.say(f"writing {file}")
    write_text(file, lab_yaml(hosts))


def _down(ui: Ui, file: Path) -> Answer:
    from fabric.lab import down as stop

    if not file.exists() and not lab_dir_of(file).exists():
        raise InputError("no such file", file=file, advice="Name the site's with -f.")
    ui.say("stopping the guests")
    stop(file)
    return Answer({"up": False}, lambda out: out.print("The lab is down."))


def _status(ui: Ui, file: Path) -> Answer:
    from fabric.lab import status as look

    site = _site(file)
    ui.say("asking the lab's keeper")
    state = look(site)
    good = state.healthy or not state.up
    return Answer(state.to_json(), lambda out: _show(out, state, file), good=good, exit_code=3)


def _show(out: Console, state: LabStatus, file: Path) -> None:
    if not state.up:
        out.print(f"The lab is down. Start it with: {command_line('lab up', file)}")
        return
    config = shlex.quote(str(_near(state.ssh_config)))
    for guest in state.guests:
        how = f"ssh -F {config} {guest.name}"
        if guest.state != "ready":
            how = f"{guest.state}: {guest.reason or 'wait for it'} ({_near(guest.console)})"
        out.print(f"{guest.name:<10} {guest.kind:<7} {how}", soft_wrap=True)
    memory = sum(guest.rss_bytes for guest in state.guests) / 2**20
    took = f" in {state.seconds:.0f} s" if state.seconds else ""
    out.print(
        f"{count_of(len(state.guests), 'guest')}{took} ({state.accelerator}), "
        f"{memory:.0f} MiB of memory. Next: {command_line('plan', file)}"
    )


def _near(path: Path) -> Path:
    """As seen from here, where that is shorter to type."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
