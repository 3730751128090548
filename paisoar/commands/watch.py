"""``paisoar watch``."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from fabric.errors import InputError
from fabric.reach.access import check_twin_is_up
from fabric.site import load_site
from paisoar.asked import microseconds
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, count_of, run

if TYPE_CHECKING:
    from validation.watch.events import Finding
    from validation.watch.watcher import Round

MIN_INTERVAL_S = 1.0


def watch(
    file: FileOption = DEFAULT_FILE,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="From the start of one round to that of the next.")
    ] = "30s",
    once: Annotated[bool, typer.Option("--once", help="One round, and its answer.")] = False,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Serve metrics for Prometheus there.")
    ] = "",
    textfile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write metrics for node_exporter's textfile collector."),
    ] = None,
    on_drift: Annotated[
        str, typer.Option(metavar="revoke|warn", help="What to do with the certificate.")
    ] = "revoke",
    max_pause: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of the time paused that counts as a pause storm."),
    ] = 0.5,
    as_json: JsonOption = False,
) -> None:
    """Keep reading every device after the certificate; revoke it when it no longer holds.

    Drift from what was certified, a link that is down or went down, a pause storm,
    drops of a lossless class, and counters that went back revoke it; --on-drift warn
    only says so. Each is named with device and port on stderr. The last reading is what
    `paisoar gate` answers by. Ends on Ctrl-C or SIGTERM.

    With --once: exit 1 where the certificate does not hold or something happened that
    it does not survive, 3 where a device did not answer.
    """

    def work(ui: Ui) -> Answer:
        from validation.watch.alone import alone
        from validation.watch.loop import serve, write_textfile
        from validation.watch.loop import watch as go_on
        from validation.watch.metrics import Metrics
        from validation.watch.stopping import Stopper
        from validation.watch.watcher import Watcher

        if on_drift not in ("revoke", "warn"):
            raise InputError(f"there is no --on-drift {on_drift!r}", advice="Use revoke or warn.")
        interval_s = microseconds("--interval", interval) / 1e6
        if interval_s < MIN_INTERVAL_S:
            raise InputError("devices are asked at most once a second", key="--interval")
        site = load_site(file)
        if once:
            check_twin_is_up(site)
        watcher = Watcher(
            site,
            on_drift=cast(Any, on_drift),
            interval_s=interval_s,
            max_pause_share=max_pause,
        )
        metrics = Metrics(site)
        with contextlib.ExitStack() as stack:
            stopper = stack.enter_context(Stopper())
            stack.enter_context(alone(site.state_dir))
            if listen:
                url = stack.enter_context(serve(metrics, listen))
                ui.err.print(f"metrics at {url}")

            def tell(done: Round, news: tuple[Finding, ...]) -> None:
                _log(ui.err, done, news)
                if textfile is not None:
                    write_textfile(metrics, textfile)

            last = go_on(watcher, stopper, metrics, tell, once=once)
        return _answer(last, once=once)

    run(as_json, work)


def _log(err: Console, done: Round, news: tuple[Finding, ...]) -> None:
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    for finding in news:
        err.print(f"{at} {finding}")
    if done.revoked and done.certificate is not None:
        err.print(f"{at} revoked {done.certificate.id}: see what is above", style="bold red")


def _answer(last: Round | None, *, once: bool) -> Answer:
    if last is None:
        return Answer({"stopped": True}, lambda out: out.print("Stopped before the first round."))
    exit_code = 3 if last.seen.failed and not any(f.voids for f in last.findings) else 1
    good = last.good and not last.seen.failed

    def show(out: Console) -> None:
        for finding in last.findings:
            out.print(str(finding))
        name = last.certificate.id if last.certificate else "no certificate"
        state = f"does not hold ({last.reason})" if last.reason else "holds"
        if not last.reason and not last.good:
            state = "is not revoked (--on-drift warn), but does not survive what is above"
        out.print(
            f"{name} {state}; {count_of(len(last.reading.devices), 'device')} asked, "
            f"{len(last.seen.failed)} did not answer, {count_of(len(last.findings), 'finding')}."
        )

    return Answer(last.to_json(), show, good=good or not once, exit_code=exit_code)
