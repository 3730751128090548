"""Action plugin: read one host back."""

from __future__ import annotations

import dataclasses
from typing import Any

from ansible.plugins.action import ActionBase

from fabric.devices.registry import preload
from fabric.errors import PaisoarError
from fabric.provisioning.playside import verify_host

DOCUMENTATION = r"""
---
action: paisoar_verify
short_description: Reads one host back and compares it with a PAISoar plan
description:
  - Changes nothing. Fails where the host does not do what is expected on the ports of the plan,
    and always after a change was taken back, with what had gone wrong.
options:
  plan:
    description: The plan's file.
    type: path
    required: true
  expect:
    description: The state that the host should be in.
    type: str
    choices: [intended, before]
    default: intended
  cause:
    description: Why the change was taken back, with O(expect=before).
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Read back
  paisoar_verify:
    plan: .paisoar/plans/20261201-0412-ab12.json
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
    """Reads one host back."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset({"plan", "expect", "cause"})

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Read the host and say how the change ended."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        args = self._task.args
        try:
            outcome = verify_host(
                str(variables["inventory_hostname"]),
                variables,
                str(args["plan"]),
                "before" if str(args.get("expect")) == "before" else "intended",
                str(args.get("cause", "")),
            )
        except PaisoarError as error:
            return result | {"failed": True, "msg": str(error)}
        return result | {
            "changed": False,
            "failed": outcome.state != "done",
            "outcome": dataclasses.asdict(outcome),
            "msg": str(outcome),
        }
