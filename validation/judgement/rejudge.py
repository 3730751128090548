"""Judging a stored run again from its evidence: a verdict is believed only where both agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from fabric.errors import InputError
from fabric.site import Site
from validation.certificates.fingerprint import fingerprint
from validation.criteria import Check
from validation.judgement.judging import judged
from validation.results.kept import observation_of
from validation.results.result import SuiteResult, ValidationRun
from validation.suites import SUITES, Suite


def disagreements(site: Site, run: ValidationRun) -> list[str]:
    """What is stored of a run and not what its evidence says, one line each.

    Judges by the thresholds of ``site``, with the functions of the run itself.
    Evidence that is gone, altered or malformed is a line as well.
    """
    where = f"run {run.id}"
    lines = []
    wanted = site.document.certify.model_dump(mode="json")
    for name in sorted({*wanted, *run.criteria}):
        if run.criteria.get(name) != wanted.get(name):
            lines.append(
                f"{where}: criteria.{name}: stored {run.criteria.get(name)}, "
                f"{site.path} says {wanted.get(name)}"
            )
    for result in run.suites:
        suite = SUITES.get(result.name)
        if suite is None:
            lines.append(f"{where}: there is no suite {result.name!r}")
        elif result.status == "complete":
            lines += _suite(site, run, suite, result)
    return lines


def _suite(site: Site, run: ValidationRun, suite: Suite, result: SuiteResult) -> list[str]:
    where = f"run {run.id}, suite {suite.name}"
    try:
        observation = observation_of(site, suite.again(site, result.repetitions), run, result)
        again = judged(suite, observation)
    except InputError as error:
        return [error.message]
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        # Well-formed evidence of devices or ports that this site has not.
        return [f"{where}: its evidence cannot be judged: {type(error).__name__}: {error}"]
    lines = [
        f"{where}: {name}: stored {stored}, the evidence says {found}"
        for name, stored, found in (
            ("status", result.status, again.status),
            ("seen", dict(result.seen), dict(again.seen)),
        )
        if stored != found
    ]
    if run.before is not None and fingerprint(site, observation.states).sha256 != run.before.sha256:
        lines.append(f"{where}: the stored states are not those of the run's fingerprint")
    return [*lines, *_checks(where, result.checks, again.checks)]


def _checks(where: str, stored: Sequence[Check], found: Sequence[Check]) -> list[str]:
    kept = {(check.id, check.subject): check for check in stored}
    now = {(check.id, check.subject): check for check in found}
    lines = []
    if len(kept) != len(stored):
        lines.append(f"{where}: {len(stored) - len(kept)} checks are stored twice")
    for key in {**now, **kept}:
        at = f"{where}, check {key[0]} of {key[1]}"
        if key not in kept:
            lines.append(f"{at}: nothing is stored, the evidence says {_said(now[key])}")
        elif key not in now:
            lines.append(f"{at}: stored {_said(kept[key])}, the evidence knows no such check")
        elif kept[key] != now[key]:
            lines.append(f"{at}: {_difference(kept[key], now[key])}")
    return lines


def _said(check: Check) -> str:
    if check.value is None or check.limit is None:
        return check.verdict
    return f"{check.verdict} ({check.value:g} {check.unit}, {check.bound} {check.limit:g})"


def _difference(stored: Check, found: Check) -> str:
    if _said(stored) != _said(found):
        return f"stored {_said(stored)}, the evidence says {_said(found)}"
    name = next(
        field.name
        for field in fields(Check)
        if getattr(stored, field.name) != getattr(found, field.name)
    )
    return f"{name}: stored {getattr(stored, name)!r}, the evidence says {getattr(found, name)!r}"
