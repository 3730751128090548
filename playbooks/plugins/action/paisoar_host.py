"""Action plugin: carry out one host's change, or take it back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase

from fabric.devices.base import FileChange
from fabric.provisioning.hostscript import CHANGED, apply_script, rollback_script
from fabric.provisioning.outcome import Outcome

DOCUMENTATION = r"""
---
action: paisoar_host
short_description: Writes files and runs commands on one host in one round trip
description:
  - Forwards, writes O(files), reloads systemd where one of them changed, runs O(commands). The
    first that fails stops it and is named with what it said.
  - With O(back), runs O(commands), restores the files and reloads systemd. A failure keeps nothing
    else from being undone.
  - Sends one POSIX shell script over Ansible's own connection; the host needs no Python.
options:
  files:
    description: C(path), C(before), C(after) (whole contents, null for none) and C(mode) of each.
    type: list
    elements: dict
    default: []
  commands:
    description: Shell commands, in order.
    type: list
    elements: str
    default: []
  back:
    description: Take back instead of carry out.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Set what differs
  paisoar_host:
    files: "{{ roce_host_files }}"
    commands: "{{ roce_host_commands }}"
"""

RETURN = r"""
stderr:
  description: What failed, and what it said.
  returned: always
  type: str
outcome:
  description: That it would be changed (C(state)).
  returned: in check mode, where there is something to do
  type: dict
"""


class ActionModule(ActionBase):  # type: ignore[misc] # ansible has no types
    """Carries out one host's change."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = True
    _VALID_ARGS = frozenset({"files", "commands", "back"})

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send the script and say what came of it."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = self._task.args
        back = bool(args.get("back", False))
        files = [_file_change(file) for file in args.get("files") or []]
        commands = [str(command) for command in args.get("commands") or []]
        if self._task.diff:
            result["diff"] = _diff(files, commands, back=back)
        if not files and not commands:
            return result | {"changed": False, "stderr": ""}
        if self._task.check_mode:
            outcome = dataclasses.asdict(Outcome("would-change"))
            return result | {"changed": True, "stderr": "", "outcome": outcome}
        script = rollback_script(files, commands) if back else apply_script(files, commands)
        answer = self._low_level_execute_command(
            "/bin/sh -s", in_data=script.encode(), sudoable=True
        )
        said = str(answer.get("stderr", "")).strip()
        failed = answer.get("rc") != 0
        if failed and not said:
            said = _ended(answer.get("rc"))
        result |= {
            "changed": failed or CHANGED in str(answer.get("stdout", "")),
            "failed": failed,
            "stderr": said,
        }
        return result | {"msg": said} if failed else result


def _ended(code: object) -> str:
    """How a script ended that said nothing."""
    if isinstance(code, int) and code < 0:
        return f"the connection was cut off here, by signal {-code}"
    return f"it said nothing; exit status {code}"


def _file_change(file: Mapping[str, Any]) -> FileChange:
    before, after = file.get("before"), file.get("after")
    mode = file.get("mode", "0644")
    return FileChange(
        path=str(file["path"]),
        before=None if before is None else str(before),
        after=None if after is None else str(after),
        # YAML reads an unquoted 0644 as the number that it is.
        mode=f"{mode:04o}" if isinstance(mode, int) else str(mode),
    )


def _diff(files: list[FileChange], commands: list[str], *, back: bool) -> list[dict[str, str]]:
    parts = []
    for file in files:
        old, new = (file.after, file.before) if back else (file.before, file.after)
        parts.append(
            {
                "before_header": file.path,
                "after_header": file.path,
                "before": old or "",
                "after": new or "",
            }
        )
    if commands:
        parts.append({"prepared": "".join(f"run: {command}\n" for command in commands)})
    return parts
