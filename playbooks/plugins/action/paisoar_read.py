"""Action plugin: read one device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from fabric.devices.registry import preload
from fabric.errors import PaisoarError, UnreachableError
from fabric.provisioning.playside import read_to_folder

DOCUMENTATION = r"""
---
action: paisoar_read
short_description: Reads the QoS configuration and state of one device
description:
  - Runs the commands that show what the device does, on the controller's own SSH session.
  - Changes nothing; check mode is the same.
options:
  folder:
    description:
      - Folder for the outputs, in a file of the device's name that only this user may read.
      - Without it the outputs are part of the result.
    type: path
    default: ''
"""

EXAMPLES = r"""
- name: Read
  paisoar_read:
    folder: /run/user/1000/outputs
"""

RETURN = r"""
outputs:
  description: What the device printed, by command. Only without O(folder).
  returned: success
  type: dict
refused:
  description: What it said of the commands that it refused.
  returned: success
  type: dict
"""

# Workers are forked from the process that imports this: better once than in each.
preload()


class ActionModule(ActionBase):  # type: ignore[misc] # ansible has no types
    """Reads one device."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset({"folder"})

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Read, and keep or return what came back."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        folder = self._task.args.get("folder")
        device = str(variables["inventory_hostname"])
        try:
            reading = read_to_folder(device, variables, Path(folder) if folder else None)
        except UnreachableError as error:
            return result | {"unreachable": True, "msg": str(error)}
        except PaisoarError as error:
            return result | {"failed": True, "msg": str(error)}
        result |= {"changed": False, "refused": reading.refused}
        return result if folder else result | {"outputs": reading.outputs}
