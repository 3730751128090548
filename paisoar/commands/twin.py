"""``paisoar twin up | down | status | break``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fabric.errors import InputError
from fabric.reach.access import twin_dir_of
from fabric.site import Site, load_site
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, command_line, run

if TYPE_CHECKING:
    from fabric.twin.lifecycle import TwinStatus

twin = typer.Typer(
    no_args_is_help=True,
    help="The emulated fabric: real SSH on loopback, emulated switches and NICs behind it.",
)


@twin.command()
def up(file: FileOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """Start the emulated devices of a site; they keep what was configured before."""
    run(as_json, lambda ui: _up(ui, file))


@twin.command()
def down(file: FileOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """Stop the emulated devices; nothing stays behind but their saved state."""
    run(as_json, lambda ui: _down(ui, file))


@twin.command()
def status(file: FileOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """Say whether the twin is up, and how to log in to each device."""
    run(as_json, lambda ui: _status(ui, file))


@twin.command("break")
def break_(
    kind: Annotated[
        str, typer.Argument(help="pfc-off, dscp-map, mtu, ecn-off, nic-reset or reboot.")
    ],
    device: Annotated[str | None, typer.Option(help="Which device.")] = None,
    port: Annotated[str | None, typer.Option(help="Which of its ports.")] = None,
    file: FileOption = DEFAULT_FILE,
    as_json: JsonOption = False,
) -> None:
    """Break something, as a mistake or a reboot would, to see it found."""
    run(as_json, lambda ui: _break(ui, file, kind, device, port))


def _site(file: Path) -> Site:
    site = load_site(file)
    if site.environment != "twin":
        raise InputError(
            f"environment is {site.environment}, which has no twin",
            file=file,
            key="environment",
            advice="Set it to twin to emulate this site.",
        )
    return site


def _up(ui: Ui, file: Path) -> Answer:
    from fabric.twin.lifecycle import up as start

    site = _site(file)
    with ui.steps("starting devices") as step:
        state = start(site, lambda done, total, what: step(what, done, total))
    return Answer(state.to_json(), lambda out: _show(out, state, file))


def _down(ui: Ui, file: Path) -> Answer:
    from fabric.twin.lifecycle import down as stop

    if not file.exists() and not twin_dir_of(file).exists():
        raise InputError("no such file", file=file, advice="Name the site's with -f.")
    ui.say("stopping the twin")
    stop(file)
    return Answer({"up": False}, lambda out: out.print("The twin is down."))


def _status(ui: Ui, file: Path) -> Answer:
    from fabric.twin.lifecycle import status as look

    site = _site(file)
    ui.say("asking the twin")
    state = look(site)
    return Answer(state.to_json(), lambda out: _show(out, state, file))


def _break(ui: Ui, file: Path, kind: str, device: str | None, port: str | None) -> Answer:
    from fabric.twin.lifecycle import break_fabric

    site = _site(file)
    ui.say(f"breaking {kind}")
    done = break_fabric(site, kind, device, port)

    def show(out: Console) -> None:
        out.print(f"{done}. Next: {command_line('audit', file)}")

    return Answer({"kind": kind, "done": done}, show)


def _show(out: Console, state: TwinStatus, file: Path) -> None:
    if not state.up:
        out.print(f"The twin is down. Start it with: {command_line('twin up', file)}")
        return
    for device in state.devices:
        key = f"-i {shlex.quote(str(state.folder / 'id_ed25519'))} " * (device.kind == "host")
        out.print(
            f"{device.name:<10} {device.kind:<7} ssh {key}-p {device.port} {device.user}@127.0.0.1",
            soft_wrap=True,
        )
    out.print(
        f"{len(state.devices)} devices up, {state.rss_bytes / 2**20:.0f} MiB of memory. "
        f"Next: {command_line('plan', file)}"
    )
