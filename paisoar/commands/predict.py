"""``paisoar predict``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table

from fabric.errors import InputError
from paisoar.console import DEFAULT_FILE, Answer, JsonOption, Ui, run

if TYPE_CHECKING:
    from fabric.site import Site
    from trainer.predict.check import Row
    from trainer.predict.rates import Fabric
    from trainer.predict.setup import Prediction, Setup
    from trainer.predict.where import Wanted

MAX_GPUS = 1 << 13


@dataclass(frozen=True)
class _Asked:
    """The options about what trains, as they were given."""

    models: list[str]
    gpus: list[int] | None
    gpus_per_host: int
    gpu: str
    batch: int
    step_ms: list[float]
    ways: dict[str, Any]


def predict(
    models: Annotated[
        str, typer.Option(help="Of resnet50, resnet101, resnet152, inception_v3, vgg16, ...")
    ] = "resnet50",
    gpus: Annotated[
        str | None, typer.Option(help="Numbers of GPUs; 1,2,4,... up to the site or 128.")
    ] = None,
    gpus_per_host: Annotated[int, typer.Option(help="GPUs of one host.")] = 2,
    gpu: Annotated[
        str, typer.Option(help="Kind of GPU in the table: p100, v100, k80, pascal, pascal-40g.")
    ] = "p100",
    batch: Annotated[int, typer.Option(help="Images a GPU and step; 0: as published.")] = 0,
    step_ms: Annotated[
        str | None,
        typer.Option(help="Measured step of one GPU instead of the table, one for each model."),
    ] = None,
    sync: Annotated[str, typer.Option(help="ring, or ps: parameter servers.")] = "ring",
    transport: Annotated[str, typer.Option(help="verbs or tcp.")] = "verbs",
    overlap: Annotated[
        str, typer.Option(help="timeline, none or full: what computation hides.")
    ] = "timeline",
    wire: Annotated[str, typer.Option(help="fp32, fp16 or bf16 on the wire.")] = "fp32",
    hierarchical: Annotated[
        bool,
        typer.Option(
            "--hierarchical/--flat", help="Add up inside hosts first, as the trainer does."
        ),
    ] = True,
    servers: Annotated[int, typer.Option(help="Parameter servers; 0: one on every host.")] = 0,
    placement: Annotated[
        str, typer.Option(help="Of variables on servers: bytes, whole or round-robin.")
    ] = "bytes",
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="The site's file; fabric.yaml if there.")
    ] = None,
    read: Annotated[
        bool, typer.Option("--read", help="Read the site's devices, not what they should be.")
    ] = False,
    clos: Annotated[
        bool, typer.Option("--clos", help="A Clos of as many hosts as it takes, not the site.")
    ] = False,
    nic: Annotated[str | None, typer.Option(help="Speed of a host's NIC, such as 25G.")] = None,
    oversubscription: Annotated[
        float | None, typer.Option(help="Of the Clos's leaves: 4 is 4:1.")
    ] = None,
    order: Annotated[
        str, typer.Option(help="Ranks in the fabric's order, or scattered over the leaves.")
    ] = "fabric",
    lossy_port: Annotated[str | None, typer.Option(help="DEVICE:PORT that loses packets.")] = None,
    loss: Annotated[float, typer.Option(help="The part that it loses.")] = 1e-4,
    plot: Annotated[Path | None, typer.Option("--plot", help="Picture to write.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Published figures beside predicted ones.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Predict how training scales on this fabric: images a second, speed-up, efficiency.

    Nothing is measured. The network is simulated (flow level), computation is from a table
    or --step-ms, and --check says how far off published figures are.
    """
    from trainer.predict.where import Wanted

    if check:
        run(as_json, _check)
        return
    ways = {
        "sync": sync,
        "transport": transport,
        "overlap": overlap,
        "wire": wire,
        "hierarchical": hierarchical,
        "servers": servers,
        "placement": placement,
    }
    wanted = Wanted(nic, oversubscription, clos, order, lossy_port, loss)

    def work(ui: Ui) -> Answer:
        asked = _Asked(
            [name.strip() for name in models.split(",")],
            _numbers("--gpus", gpus) if gpus is not None else None,
            gpus_per_host,
            gpu,
            batch,
            _steps(step_ms),
            ways,
        )
        return _predict(ui, asked, wanted, file, read=read, plot=plot)

    run(as_json, work)


def _numbers(option: str, text: str) -> list[int]:
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError as error:
        raise InputError(f"{option} {text}: whole numbers with commas between them") from error
    if not found or found[0] < 1 or found[-1] > MAX_GPUS:
        raise InputError(f"{option} {text}: numbers from 1 to {MAX_GPUS:,}")
    return found


def _steps(text: str | None) -> list[float]:
    try:
        return [float(part) for part in text.split(",")] if text else []
    except ValueError as error:
        raise InputError(f"--step-ms {text}: milliseconds, one number for each model") from error


def _predict(
    ui: Ui, asked: _Asked, wanted: Wanted, file: Path | None, *, read: bool, plot: Path | None
) -> Answer:
    from reports.figures.scaling import FORMATS
    from trainer.predict.step import predict as foresee

    if plot is not None and plot.suffix not in FORMATS:
        raise InputError(f"--plot {plot}: neither .png nor .svg")
    setups, sources = _setups(asked)
    fabric, gpus, read_from = _fabric(ui, asked, wanted, file, read=read)
    rows: list[tuple[Setup, Prediction]] = []
    with ui.progress("predicting", len(setups)) as advance:
        for setup in setups:
            rows += [(setup, found) for found in foresee(setup, gpus, fabric)]
            advance(setup.model)
    document = _document(asked, fabric, read_from, rows, sources)
    if plot is not None:
        _draw(plot, document, rows)
        document["plot"] = str(plot)
    return Answer(document, lambda out: _show(out, document))


def _setups(asked: _Asked) -> tuple[list[Setup], dict[str, str]]:
    """One for each model, and where its computation is from."""
    from trainer.predict.gpus import compute, default_batch
    from trainer.predict.layers import model_named
    from trainer.predict.setup import Setup

    if asked.step_ms and len(asked.step_ms) != len(asked.models):
        raise InputError(
            f"--step-ms has {len(asked.step_ms)} times for {len(asked.models)} models",
            advice="Give one for each of --models, in their order.",
        )
    setups, sources = [], {}
    for number, name in enumerate(asked.models):
        model_named(name)
        batch = asked.batch or default_batch(name)
        if batch < 1:
            raise InputError(f"--batch {batch}: 1 or more")
        if asked.step_ms:
            step_s, sources[name] = asked.step_ms[number] / 1000, "--step-ms"
        else:
            found = compute(asked.gpu, name, batch)
            step_s, sources[name] = found.step_s, found.source
        setup = Setup(name, step_s, batch, asked.gpus_per_host, **asked.ways)
        if setup.sync == "ps":
            setup = replace(setup, software="tensorflow", copies=1)
        setups.append(setup)
    return setups, sources


def _fabric(
    ui: Ui, asked: _Asked, wanted: Wanted, file: Path | None, *, read: bool
) -> tuple[Fabric, list[int], str]:
    """Where it trains, on how many GPUs, and what devices were taken to hold."""
    from fabric.site import load_site
    from trainer.predict.where import clos_fabric, site_fabric

    here = DEFAULT_FILE.exists() and not wanted.elsewhere
    site = load_site(file or DEFAULT_FILE) if file or here else None
    if site is not None and wanted.fits(site):
        fabric = site_fabric(site, _states(ui, site, read=read), wanted)
        gpus = asked.gpus or _powers(fabric.hosts * asked.gpus_per_host, asked.gpus_per_host)
        return fabric, gpus, "read" if read else "intended"
    if file is not None:
        raise InputError(
            "--nic, --oversubscription and --clos describe another fabric than this file",
            file=file,
            advice="Leave -f out to predict for a Clos, or these to predict for the site.",
        )
    if read:
        raise InputError("--read needs a site", advice="Give -f fabric.yaml.")
    gpus = asked.gpus or _powers(128, asked.gpus_per_host)
    hosts = -(-max(gpus) // max(1, asked.gpus_per_host))
    ui.say(f"laying out {hosts:,} hosts")
    return clos_fabric(hosts, wanted), gpus, "as paisoar init sets them"


def _powers(most: int, per_host: int) -> list[int]:
    """1, 2, 4, ... GPUs of one host, then 1, 2, 4, ... whole hosts."""
    each = max(1, per_host)
    inside = [1 << power for power in range(each.bit_length())]
    whole = [each << power for power in range(most.bit_length())]
    return sorted({count for count in (*inside, *whole) if count <= most})


def _states(ui: Ui, site: Site, *, read: bool) -> dict[str, Any]:
    from fabric.devices.registry import expected_qos
    from fabric.reach.collect import read_states

    if not read:
        return {name: expected_qos(site, name) for name in site.devices}
    with ui.progress("reading devices", len(site.devices)) as advance:
        states = read_states(site, on_done=advance)
    states.raise_failed()
    return dict(states.states)


def _document(
    asked: _Asked,
    fabric: Fabric,
    read_from: str,
    rows: list[tuple[Setup, Prediction]],
    sources: dict[str, str],
) -> dict[str, Any]:
    from trainer.predict.check import TESTED_MEDIAN, TESTED_WORST
    from trainer.predict.frames import EVIDENCE

    return {
        "evidence": EVIDENCE,
        "published_error": {"median": TESTED_MEDIAN, "worst": TESTED_WORST},
        "fabric": fabric.name,
        "settings": read_from,
        "lossy_port": str(fabric.lossy.port) if fabric.lossy else None,
        "loss": fabric.lossy.loss if fabric.lossy else None,
        "gpus_per_host": asked.gpus_per_host,
        **asked.ways,
        "compute": [
            {"model": s.model, "batch": s.batch, "step_ms": 1000 * s.step_s, "source": source}
            for (s, source) in _firsts(rows, sources)
        ],
        "rows": [_row(found) for _, found in rows],
        "notes": list(dict.fromkeys(note for _, found in rows for note in found.notes)),
    }


def _firsts(
    rows: list[tuple[Setup, Prediction]], sources: dict[str, str]
) -> list[tuple[Setup, str]]:
    first = {setup.model: setup for setup, _ in reversed(rows)}
    return [(first[model], source) for model, source in sources.items()]


def _row(found: Prediction) -> dict[str, Any]:
    from trainer.predict.frames import EVIDENCE

    return {
        "evidence": EVIDENCE,
        "model": found.model,
        "gpus": found.gpus,
        "hosts": found.hosts,
        "images_per_s": found.images_per_s,
        "speedup": found.speedup,
        "efficiency": found.efficiency,
        "step_ms": 1000 * found.step_s,
        "compute_ms": 1000 * found.compute_s,
        "exposed_ms": 1000 * found.exposed_s,
        "exchange_ms": 1000 * found.exchange_s,
        "exchanges": found.exchanges,
        "bucket_bytes": found.bucket_bytes or None,
        "network_gbps": found.rate_bps / 1e9 if found.hosts > 1 else None,
    }


def _draw(path: Path, document: dict[str, Any], rows: list[tuple[Setup, Prediction]]) -> None:
    from reports.figures.scaling import draw_scaling
    from trainer.predict.frames import scaling_frame

    mode = f"{document['sync']} {document['transport']}"
    frame = scaling_frame(mode, [found for _, found in rows])
    title = f"predicted: {document['fabric']}, {document['gpus_per_host']} GPUs a host"
    try:
        draw_scaling(path, frame, title)
    except OSError as error:
        raise InputError(f"--plot: {path} cannot be written: {error}") from error


def _show(out: Console, document: dict[str, Any]) -> None:
    way = "parameter servers" if document["sync"] == "ps" else "ring"
    out.print(
        f"Predicted: {way} over {document['transport']}, {document['gpus_per_host']} GPUs a host, "
        f"on {document['fabric']}; devices {document['settings']}."
    )
    if document["lossy_port"]:
        out.print(f"{document['lossy_port']} loses {100 * document['loss']:g} % of packets.")
    table = Table(
        *("model", "GPUs", "images/s", "speed-up", "efficiency", "step, ms"),
        *("compute", "exposed", "exchange"),
        title="predicted",
    )
    for row in document["rows"]:
        table.add_row(
            row["model"],
            str(row["gpus"]),
            f"{row['images_per_s']:,.0f}",
            f"{row['speedup']:.1f}",
            f"{100 * row['efficiency']:.0f} %",
            f"{row['step_ms']:.1f}",
            f"{row['compute_ms']:.1f}",
            f"{row['exposed_ms']:.1f}",
            f"{row['exchange_ms']:.1f}",
        )
    out.print(table)
    for known in document["compute"]:
        out.print(
            f"{known['model']}: {known['step_ms']:.1f} ms for {known['batch']} images on one GPU "
            f"({known['source']})"
        )
    for note in document["notes"]:
        out.print(f"simulator: {note}")
    known = document["published_error"]
    out.print(
        f"Published figures are predicted {100 * known['median']:.0f} % off (median), "
        f"{100 * known['worst']:.0f} % at worst: paisoar predict --check"
    )
    if "plot" in document:
        out.print(f"Picture written to {document['plot']}.")


def _check(ui: Ui) -> Answer:
    from dataclasses import asdict

    from trainer.predict.check import check, summary
    from trainer.predict.constants import CHOICES, DEFAULTS, ORIGINS
    from trainer.predict.published import figures

    with ui.progress("predicting", len(figures())) as advance:
        rows = check(on_done=advance)
    document = {
        "evidence": "predicted",
        "rows": [_checked(row) for row in rows],
        "summary": {
            side: asdict(summary(rows, cast("Any", side))) for side in ("fitted", "tested")
        },
        "constants": [
            {
                "name": name,
                "value": getattr(DEFAULTS, name),
                **{key: value for key, value in asdict(origin).items() if value},
            }
            for name, origin in ORIGINS.items()
        ],
        "choices": [{"choice": text, "seen": list(keys)} for text, keys in CHOICES.items()],
    }
    return Answer(document, lambda out: _show_check(out, document))


def _checked(row: Row) -> dict[str, Any]:
    return {
        "evidence": "predicted",
        "source": row.figure.source,
        "figure": row.figure.what,
        "key": row.figure.key,
        "unit": row.figure.unit,
        "published": row.figure.published,
        "predicted": row.predicted,
        "error": row.error,
        "set": row.side,
        "assumed": row.figure.assumed or None,
    }


def _show_check(out: Console, document: dict[str, Any]) -> None:
    source = ""
    table = Table("figure", "unit", "published", "predicted", "error", "set")
    for row in document["rows"]:
        if row["source"] != source:
            source = row["source"]
            table.add_section()
            table.add_row(source, style="bold")
        table.add_row(
            row["figure"],
            row["unit"],
            f"{row['published']:.4g}",
            f"{row['predicted']:.4g}",
            f"{100 * row['error']:+.1f} %",
            row["set"],
        )
    out.print(table)
    for side, said in (
        ("fitted", "that constants were fitted on, or that decided a choice"),
        ("tested", "from which nothing was drawn"),
    ):
        found = document["summary"][side]
        out.print(
            f"{found['count']} figures {said}: median error {100 * found['median']:.1f} %, "
            f"worst {100 * found['worst']:.1f} % ({found['worst_figure']})"
        )
    out.print("What each constant and assumption rests on: docs/predictor.md, and --json.")
