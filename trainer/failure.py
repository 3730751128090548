"""What is said of a job that has failed: details first, what counts in the last line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fabric.errors import InputError, PaisoarError
from trainer.collective.errors import LostPeerError, MismatchError, WeightsDifferError
from trainer.collective.rendezvous import Rendezvous

TAIL_LINES = 12
_MAX_REPORTS = 16


def failure_of(
    rendezvous: Rendezvous,
    written: Mapping[int, Sequence[str]],
    ranks: int,
    logs: Path | None = None,
) -> PaisoarError:
    """The error of a failed job: what each rank reported, what it wrote, and who was lost.

    ``written`` are the lines of each rank that was started here. They are kept
    whole in files in the folder ``logs`` where they are more than is shown.
    """
    failure = rendezvous.failure
    assert failure is not None
    culprit = failure.culprit.rank if failure.culprit else None
    kind = rendezvous.failure_kind
    if kind == "InputError":
        # What the rank reported has the advice as well.
        own = rendezvous.reports.get(culprit, "") if culprit is not None else ""
        return InputError(own or failure.cause.removeprefix("failed: "))
    agreed = kind in {"MismatchError", "WeightsDifferError"}  # all ranks report the same
    reports = [] if agreed else _reports(rendezvous.reports, culprit)
    wrote = {rank: lines for rank, lines in written.items() if lines and culprit in (None, rank)}
    detail = "".join(f"{line}\n" for line in [*reports, *_tails(wrote), *_kept(wrote, logs)])
    doing = f"a job of {ranks} ranks was ended"
    if kind == "MismatchError":
        advice = rendezvous.failure_advice or MismatchError.ADVICE
        return MismatchError(_last(doing, detail, failure.cause), advice=advice)
    if kind == "WeightsDifferError":
        return WeightsDifferError(_last(doing, detail, failure.cause))
    advice = rendezvous.failure_advice
    return LostPeerError(failure, doing=doing, detail=detail, advice=advice)


def _last(doing: str, detail: str, cause: str) -> str:
    return f"{doing}:\n{detail}{cause}" if detail else cause


def _reports(reports: Mapping[int, str], culprit: int | None) -> list[str]:
    others = [(rank, report) for rank, report in sorted(reports.items()) if rank != culprit]
    lines = [f"rank {rank} reported: {report}" for rank, report in others[:_MAX_REPORTS]]
    if len(others) > _MAX_REPORTS:
        lines.append(f"{len(others) - _MAX_REPORTS} more ranks reported it, too.")
    return lines


def _tails(wrote: Mapping[int, Sequence[str]]) -> list[str]:
    lines: list[str] = []
    for rank, said in wrote.items():
        lines.append(f"rank {rank} wrote last:")
        lines += [f"  {line}" for line in said[-TAIL_LINES:]]
    return lines


def _kept(wrote: Mapping[int, Sequence[str]], logs: Path | None) -> list[str]:
    """Write what is not shown to files, in the place of those of an earlier failure."""
    if logs is None or all(len(lines) <= TAIL_LINES for lines in wrote.values()):
        return []
    try:
        logs.mkdir(parents=True, exist_ok=True)
        for old in logs.glob("rank-*.log"):
            old.unlink()
        for rank, lines in wrote.items():
            (logs / f"rank-{rank}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        return [f"What was written before that cannot be kept in {logs}: {error.strerror}"]
    return [f"All that was written is in {logs}."]
