"""One module a command or command group; none of them holds logic."""

from collections.abc import Callable

import typer

from paisoar.commands.audit import audit
from paisoar.commands.certify import certificate, certify
from paisoar.commands.check import check
from paisoar.commands.demo import demo
from paisoar.commands.init import init
from paisoar.commands.plan import plan
from paisoar.commands.provision import provision, rollback
from paisoar.commands.report import report
from paisoar.commands.train import train
from paisoar.commands.twin import twin
from paisoar.commands.validate import validate

COMMANDS: tuple[Callable[..., None], ...] = (
    demo,
    init,
    check,
    plan,
    provision,
    rollback,
    audit,
    validate,
    certify,
    train,
    report,
)
GROUPS: dict[str, typer.Typer] = {"certificate": certificate, "twin": twin}
