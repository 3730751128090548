"""Action plugin: compare one host with a plan."""

from __future__ import annotations

import dataclasses
from typing import Any

from ansible.plugins.action import ActionBase

from fabric.devices.registry import preload
from fabric.errors import PaisoarError
from fabric.provisioning.plan import undo
from fabric.provisioning.playside import ready_host

DOCUMENTATION = r"""
---
action: paisoar_ready
short_description: Compares one host with a PAISoar plan
description:
  - Reads the host. As it was when it was planned, it is ready for the change.
  - Where it already does what is intended, nothing is to be done.
  - Anything else fails, since the plan is not of this state.
options:
  plan:
    description: The plan's file.
    type: path
    required: true
  stop:
    description: A file; where it exists, the host is left untouched.
    type: path
    default: ''
  back:
    description: The plan takes a change back; what is returned is that change.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Compare with the plan
  paisoar_ready:
    plan: .paisoar/plans/20261201-0412-ab12.json
  register: paisoar_ready
"""

RETURN = r"""
todo:
  description: Whether there is something to be changed.
  returned: success
  type: bool
files:
  description: Files to be written, with C(path), C(before), C(after) and C(mode).
  returned: when RV(todo) is true
  type: list
commands:
  description: Shell commands of the change, in order.
  returned: when RV(todo) is true
  type: list
rollback:
  description: Shell commands that take it back, in order.
  returned: when RV(todo) is true
  type: list
outcome:
  description: How it ended (C(state), C(detail)), where nothing is to be done.
  returned: when RV(todo) is false
  type: dict
"""

# Workers are forked from the process that imports this: better once than in each.
preload()


class ActionModule(ActionBase):  # type: ignore[misc] # ansible has no types
    """Compares one host with a plan."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = True
    _VALID_ARGS = frozenset({"plan", "stop", "back"})

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Read the host and say what is to be done."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        args = self._task.args
        device = str(variables["inventory_hostname"])
        try:
            ready = ready_host(device, variables, str(args["plan"]), str(args.get("stop", "")))
        except PaisoarError as error:
            return result | {"failed": True, "todo": False, "msg": str(error)}
        outcome = ready.outcome
        if outcome is not None:
            return result | {
                "todo": False,
                "failed": outcome.state == "failed",
                "outcome": dataclasses.asdict(outcome),
                "msg": str(outcome),
            }
        diff = ready.order.change.diff
        change = undo(ready.order.change) if args.get("back") else ready.order.change
        result |= {
            "todo": True,
            "files": [dataclasses.asdict(file) for file in change.files],
            "commands": list(change.commands),
            "rollback": list(change.rollback),
        }
        if self._task.diff and diff:
            result["diff"] = {"prepared": diff + "\n"}
        return result
