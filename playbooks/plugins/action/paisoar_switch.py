"""Action plugin: bring one switch to what a plan intends."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from fabric.devices.registry import preload
from fabric.errors import PaisoarError
from fabric.provisioning.planfile import read_order
from fabric.provisioning.playside import change_switch

DOCUMENTATION = r"""
---
action: paisoar_switch
short_description: Brings one switch to what a PAISoar plan intends
description:
  - Takes the vendor's checkpoint, sends the lines, reads back, and saves only what was found right.
  - A refused line or a failed read-back puts back what was there.
  - Does nothing on a switch that has changed since it was planned, or does it all already.
options:
  plan:
    description: The plan's file.
    type: path
    required: true
  run:
    description: The run's ID, for the checkpoint's name.
    type: str
    required: true
  broken_run:
    description: The run that broke off, where the plan takes one back; its checkpoint goes then.
    type: str
    default: ''
  save_unsaved:
    description:
      - Change a switch also where somebody has changed it without saving, and save that too.
      - Otherwise such a switch is left alone and fails.
    type: bool
    default: false
  stop:
    description: A file; where it exists, the switch is left untouched.
    type: path
    default: ''
"""

EXAMPLES = r"""
- name: Configure and read back
  paisoar_switch:
    plan: .paisoar/plans/20261201-0412-ab12.json
    run: 20261201-0413-cd34
"""

RETURN = r"""
outcome:
  description: How the change ended (C(state)), and why or what is left (C(detail)).
  returned: always
  type: dict
"""

# Workers are forked from the process that imports this: better once than in each.
preload()


class ActionModule(ActionBase):  # type: ignore[misc] # ansible has no types
    """Changes one switch."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = True
    _VALID_ARGS = frozenset({"plan", "run", "broken_run", "save_unsaved", "stop"})

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Change the switch and say how it ended."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        args = self._task.args
        device = str(variables["inventory_hostname"])
        try:
            outcome = change_switch(
                device,
                variables,
                str(args["plan"]),
                str(args["run"]),
                str(args.get("stop", "")),
                broken_run=str(args.get("broken_run", "")),
                check=self._task.check_mode,
                save_unsaved=boolean(args.get("save_unsaved", False)),
            )
        except PaisoarError as error:
            return result | {"failed": True, "msg": str(error)}
        result |= {
            "changed": outcome.state in ("done", "would-change"),
            "failed": outcome.state in ("failed", "rolled-back"),
            "outcome": dataclasses.asdict(outcome),
            "msg": str(outcome),
        }
        if self._task.diff and outcome.state in ("done", "would-change"):
            diff = read_order(Path(str(args["plan"])), device).change.diff
            result["diff"] = {"prepared": diff + "\n"}
        return result
