"""Plans on disk: ``.paisoar/plans/ID.json``.

A plan file is not trusted. It carries a hash of what it says, every value is
checked against its type, and ``provision`` works the changes out again from the
site's file and the devices themselves: a plan says what was agreed to, it is never
a source of commands. The plan in a run's folder is one for ``rollback``, since
nobody else knows what was there before: a file that others may write is refused.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from fabric.errors import InputError
from fabric.provisioning.plan import SCHEMA, DevicePlan, Plan
from fabric.site import Site
from fabric.textfile import naming

_ID = re.compile(r"\d{8}-\d{4}-[0-9a-f]{4}")
_PLAN = TypeAdapter(Plan)
_ORDER = TypeAdapter(DevicePlan)
_Value = TypeVar("_Value")


def plans_dir(site: Site) -> Path:
    """Where the site's plans lie."""
    return site.state_dir / "plans"


def save_plan(site: Site, plan: Plan) -> Path:
    """Write the plan among the site's plans; returns its path."""
    path = plans_dir(site) / f"{plan.id}.json"
    write_plan(path, plan)
    return path


def write_plan(path: Path, plan: Plan) -> None:
    """Write the plan to this file, whole or not at all; only the user may read it."""
    write_private(path, json.dumps(_document(dataclasses.asdict(plan)), indent=1) + "\n")


def write_orders(folder: Path, plan: Plan) -> None:
    """Write each change of the plan as a plan of its own, ``FOLDER/DEVICE.json``.

    Whoever changes one device of many then reads no more than what concerns it.
    """
    body = dataclasses.asdict(plan)
    for name in plan.changed:
        only = body | {"devices": {name: body["devices"][name]}, "unreadable": {}}
        write_private(folder / f"{name}.json", json.dumps(_document(only)))


def _document(body: dict[str, Any]) -> dict[str, Any]:
    return {"schema": SCHEMA, "sha256": _sha256(body), "plan": body}


def write_private(path: Path, text: str) -> None:
    """Write a file, whole or not at all, with mode 0600."""
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def load_plan(site: Site, plan_id: str = "") -> Plan:
    """The site's plan of this ID, or its latest; InputError where there is none."""
    if not plan_id:
        plan_id = _latest(site)
    if not _ID.fullmatch(plan_id):
        raise InputError(
            f"{plan_id!r} is not the ID of a plan; one looks like 20261201-0412-ab12",
            advice="`paisoar plan` makes one and says its ID.",
        )
    return read_plan(plans_dir(site) / f"{plan_id}.json")


def _latest(site: Site) -> str:
    plans = [path for path in plans_dir(site).glob("*.json") if _ID.fullmatch(path.stem)]
    if not plans:
        raise InputError(
            f"there is no plan in {plans_dir(site)}", advice="Make one with `paisoar plan`."
        )
    return max(plans, key=lambda path: (path.stat().st_mtime_ns, path.stem)).stem


def read_plan(path: Path) -> Plan:
    """The plan in this file; InputError says what is wrong with the file."""
    plan = _validated(path, _PLAN, _body(path), "plan")
    for name, device in plan.devices.items():
        _require_name(path, name, device)
    return plan


def read_order(path: Path, device: str) -> DevicePlan:
    """One device's part of the plan in this file, without the work of all the others.

    InputError as for :func:`read_plan`, and where the plan says nothing of the device.
    """
    body = _body(path)
    try:
        part = body["devices"][device]
    except (KeyError, TypeError):
        raise InputError(f"says nothing of {device}", file=path, key="plan.devices") from None
    order = _validated(path, _ORDER, part, f"plan.devices.{device}")
    _require_name(path, device, order)
    return order


def _require_name(path: Path, name: str, order: DevicePlan) -> None:
    if not name == order.device == order.before.device == order.intended.device:
        raise InputError("names another device inside", file=path, key=f"plan.devices.{name}")


def _body(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """What the file says the plan is, its hash checked."""
    try:
        _refuse_others(path)
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            "there is no such plan", file=path, advice="Make one with `paisoar plan`."
        ) from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from error
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"is not JSON: {error}", file=path, line=line) from error
    if not isinstance(document, dict) or document.keys() != {"schema", "sha256", "plan"}:
        raise InputError("is not a plan", file=path)
    if document["schema"] != SCHEMA:
        raise InputError(
            f"is of schema {document['schema']!r}; this version reads {SCHEMA!r}",
            file=path,
            key="schema",
            advice="Make a new plan with `paisoar plan`.",
        )
    body = document["plan"]
    if document["sha256"] != _sha256(body):
        raise InputError(
            "has been changed since it was written: its hash does not match",
            file=path,
            key="sha256",
            advice="Make a new plan with `paisoar plan`.",
        )
    return body


def _refuse_others(path: Path) -> None:
    found = path.stat()
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or found.st_uid not in (0, os.geteuid()):
        raise InputError(
            "others may have written it: it is not this user's alone",
            file=path,
            advice=f"Look at it, then: chmod go-w {path}",
        )


def _validated(path: Path, adapter: TypeAdapter[_Value], body: object, at: str) -> _Value:
    try:
        value = adapter.validate_json(json.dumps(body), strict=True)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join((at, *map(str, fault["loc"])))
        raise InputError(fault["msg"], file=path, key=key) from error
    # Unknown keys are dropped by validation: what is left must be all there was.
    if _canonical(dataclasses.asdict(cast(Any, value))) != _canonical(body):
        raise InputError("holds keys or values that no plan has", file=path, key=at)
    return value


def _canonical(body: Any) -> str:  # noqa: ANN401 - JSON
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _sha256(body: Any) -> str:  # noqa: ANN401 - JSON
    return hashlib.sha256(_canonical(body).encode()).hexdigest()
