"""Rounds one after another until somebody says stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server, write_to_textfile

from fabric.errors import InputError
from validation.files import not_written
from validation.watch.events import Finding
from validation.watch.metrics import Metrics
from validation.watch.stopping import Stopper
from validation.watch.watcher import Round, Watcher

# Told after each round: the round, and what in it is news.
OnRound = Callable[[Round, tuple[Finding, ...]], None]


def watch(
    watcher: Watcher,
    stopper: Stopper,
    metrics: Metrics,
    on_round: OnRound,
    *,
    once: bool = False,
) -> Round | None:
    """Rounds at the watcher's interval, counted from start to start; the last one.

    None where it was stopped before the first was done. A round that takes longer than
    the interval is followed by the next at once.
    """
    last: Round | None = None
    known: set[Finding] = set()
    while not stopper.asked:
        began = time.monotonic()
        seen = stopper.cut_off(watcher.read)
        if seen is None:
            break
        last = watcher.conclude(seen)
        news = tuple(finding for finding in last.findings if finding not in known)
        known = set(last.findings)
        metrics.tell(last, news)
        on_round(last, news)
        if once:
            break
        stopper.wait(began + watcher.interval_s - time.monotonic())
    return last


@contextmanager
def serve(metrics: Metrics, listen: str) -> Iterator[str]:
    """Serve the metrics at ``HOST:PORT``; yields the URL, with the port that was taken for 0.

    InputError where that is no address, or cannot be listened at.
    """
    host, port = address(listen)
    try:
        server, thread = start_http_server(port, host, registry(metrics))
    except OSError as error:
        raise InputError(
            f"cannot listen at {listen}: {error.strerror or error}",
            key="--listen",
            advice="Name an address of this machine and a port that is free.",
        ) from error
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_textfile(metrics: Metrics, path: Path) -> None:
    """Write the metrics for node_exporter's textfile collector, whole or not at all."""
    try:
        write_to_textfile(str(path), registry(metrics))
    except OSError as error:
        raise not_written(path, error) from error


def registry(metrics: Metrics) -> CollectorRegistry:
    """A registry with these metrics alone."""
    made = CollectorRegistry()
    made.register(metrics)
    return made


def address(listen: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, ``[V6]:PORT`` or ``:PORT``; InputError otherwise."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError(
            f"{listen!r} is no address", key="--listen", advice="Write it as 127.0.0.1:9817."
        )
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)  # noqa: S104 - as asked
