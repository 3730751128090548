"""``paisoar bench sim`` and ``paisoar bench allreduce``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from paisoar.console import Answer, JsonOption, Ui, run

bench = typer.Typer(no_args_is_help=True, help="Our speed, and our peers' beside it.")


@bench.command("sim")
def sim(
    fidelity: Annotated[
        bool, typer.Option("--fidelity", help="Compare results with the reference's instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the reference scenarios; print data-packet hops a second beside the peers'.

    With --fidelity: each reference run, ours, the reference, the difference, and
    a verdict; exit 1 where one fails.
    """
    run(as_json, lambda ui: _fidelity(ui) if fidelity else _speed(ui))


@bench.command("allreduce")
def allreduce(
    ranks: Annotated[str, typer.Option(help="Numbers of ranks.")] = "2,4",
    sizes: Annotated[
        str, typer.Option(help="Sizes, or FROM:TO for every fourfold between.")
    ] = "4KiB:256MiB",
    transport: Annotated[str, typer.Option(help="Of ours: shm, tcp.")] = "shm,tcp",
    against: Annotated[
        str, typer.Option(help="Peers: openmpi, openmpi-tcp, gloo, tf-ring; none with ''.")
    ] = "openmpi,openmpi-tcp,gloo,tf-ring",
    as_json: JsonOption = False,
) -> None:
    """Measure our allreduce and peers', in turns, beside what the machine itself can move.

    Installs nothing: `make bench` brings the peers. A ratio above 1 means that
    ours is faster; `limit` is how near it comes to copying memory (shm) or to
    plain sockets in both directions (tcp). Medians.
    """
    run(as_json, lambda ui: _allreduce(ui, ranks, sizes, transport, against))


def _allreduce(ui: Ui, ranks: str, sizes: str, transport: str, against: str) -> Answer:
    from fabric.errors import InputError
    from trainer.bench.allreduce import compare, parse_sizes

    def names(text: str) -> list[str]:
        return [part.strip() for part in text.split(",") if part.strip()]

    try:
        counts = [int(part) for part in names(ranks)]
    except ValueError:
        raise InputError(f"{ranks!r} are no numbers of ranks", key="ranks") from None
    peers = names(against)
    with ui.steps("measuring allreduce") as step:
        result = compare(counts, parse_sizes(sizes), names(transport), peers, on_step=step)

    def show(out: Console) -> None:
        columns = [*(peer for peer in peers if peer not in result.absent), "limit"]
        lines = [("transport", "ranks", "size", "latency", "busbw", *columns)]
        lines += [
            (
                row.transport,
                str(row.ranks),
                _binary(row.bytes),
                f"{row.latency_us:,.0f} us",
                f"{row.busbw_GBps:.2f} GB/s",
                *(f"{row.ratio[name]:.2f}x" if name in row.ratio else "-" for name in columns),
            )
            for row in result.rows
        ]
        # Plain columns: a table would cut figures off where the terminal is narrow.
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            out.print("  ".join(cells), markup=False, soft_wrap=True)
        for peer, reason in result.absent.items():
            out.print(f"{peer} is absent: {reason}", markup=False)
        out.print("Ratios: how many times as fast as the peer ours is, and its part of the limit.")

    document = {"rows": [row.to_json() for row in result.rows], "absent": result.absent}
    return Answer(document, show)


def _binary(nbytes: int) -> str:
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if nbytes >= 1 << shift and nbytes % (1 << shift) == 0:
            return f"{nbytes >> shift} {unit}"
    return f"{nbytes} B"


def _speed(ui: Ui) -> Answer:
    from fabric.sim.reference.speed import measure_all

    with ui.steps("running the reference scenarios") as step:
        rows = measure_all(step)

    def show(out: Console) -> None:
        table = Table("scenario", "hops/s", "hops/CPU s", "events/hop", "peer", "hops/s", "ratio")
        for row in rows:
            table.add_row(
                row.scenario,
                f"{row.hops_per_s:,.0f}",
                f"{row.hops_per_cpu_s:,.0f}",
                f"{row.events_per_hop:.2f}",
                row.peer,
                f"{row.peer_hops_per_s:,.0f}",
                f"{row.ratio:.1f}",
            )
        out.print(table)
        out.print(
            "One thread, best of three. Ours runs with every mechanism on; htsim's scenarios "
            "have neither ECN nor DCQCN."
        )

    return Answer({"rows": [row.to_json() for row in rows]}, show)


def _fidelity(ui: Ui) -> Answer:
    from fabric.sim.reference.fidelity import compare_all

    with ui.steps("repeating the reference runs") as step:
        rows = compare_all(step)
    passed = all(row.passed for row in rows)

    def show(out: Console) -> None:
        table = Table("run", "column", "ours", "reference", "difference", "limit", "verdict")
        for row in rows:
            table.add_row(
                row.run,
                row.column,
                f"{row.ours:.4f}",
                f"{row.reference:.4f}",
                f"{row.difference:+.4f}",
                f"{row.limit:.4f}",
                "PASS" if row.passed else "FAIL",
            )
        out.print(table)

    document = {"rows": [row.to_json() for row in rows], "verdict": "PASS" if passed else "FAIL"}
    return Answer(document, show, good=passed)
