"""``paisoar explain``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fabric.errors import InputError
from paisoar.console import Answer, JsonOption, Ui, run


def explain(
    rule: Annotated[str, typer.Argument(help="A rule of the audit; all are listed without.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Say what a rule of the audit holds, what a fault costs, how to see and mend it."""
    run(as_json, lambda ui: _explain(ui, rule))


def _explain(_ui: Ui, name: str) -> Answer:
    from fabric.audit import rules

    known = {rule.id: rule for rule in rules()}
    if not name:
        table = Table("rule", "severity", "checks", "what holds")
        for rule in known.values():
            checks = ", ".join(f"{number:02d}" for number in rule.checks)
            table.add_row(rule.id, rule.severity, checks, rule.what)
        document = {"rules": [_facts(rule) for rule in known.values()]}
        return Answer(document, lambda out: out.print(table))
    if name not in known:
        raise InputError(
            f"no rule is called {name!r}",
            key="RULE",
            advice=f"There are: {', '.join(known)}.",
        )
    facts = _facts(known[name])

    def show(out: Console) -> None:
        out.print(Text.assemble((name, "bold"), f" ({facts['severity']})"))
        for key, label in (
            ("what", "Holds"),
            ("cost", "Costs"),
            ("see", "See"),
            ("mend", "Mend"),
            ("source", "Source"),
        ):
            if facts[key]:
                out.print(Text.assemble((f"{label}:", "bold"), f" {facts[key]}"))
        if facts["checks"]:
            checks = ", ".join(map(str, facts["checks"]))
            out.print(Text.assemble(("Checks:", "bold"), f" {checks} of docs/audit.md"))

    return Answer(facts, show)


def _facts(rule: Any) -> dict[str, Any]:  # noqa: ANN401 - fabric.audit.rule.Rule, imported late
    return {
        "rule": rule.id,
        "severity": rule.severity,
        "what": rule.what,
        "cost": rule.cost,
        "see": rule.see,
        "mend": rule.mend,
        "source": rule.source,
        "checks": list(rule.checks),
    }
