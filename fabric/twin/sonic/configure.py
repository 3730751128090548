"""``config``: saving, checkpoints, roll-back, and the few settings people type.

Source: sonic-net/sonic-utilities config/main.py, doc/Command-Reference.md and
generic_config_updater/. Roll-back goes through the generic updater, which refuses
to touch some tables on ASICs that it does not list.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fabric.twin.cli.store import Checkpoint
from fabric.twin.shell.session import FAILED, USAGE, Answer, Call
from fabric.twin.sonic.click import Command, Group, UsageError, dispatch
from fabric.twin.sonic.configdb import load

if TYPE_CHECKING:
    from fabric.twin.sonic.switch import EmulatedSwitch

# Beginnings of HwSKUs whose ASIC the updater knows (gcu_field_operation_validators.conf.json).
_KNOWN_ASICS = ("ACS-", "Mellanox-", "Arista-70", "Arista-72", "Force10-", "Nokia-IXR", "Seastone")
_GUARDED = ("PFC_WD", "BUFFER_POOL", "BUFFER_PROFILE", "WRED_PROFILE")
_VALIDATOR = "generic_config_updater.field_operation_validators.rdma_config_update_validator"


class ConfigCommand:
    """The program ``config`` of one switch."""

    def __init__(self, switch: EmulatedSwitch) -> None:
        self._switch = switch
        self._group: Group = {
            "checkpoint": Command(self._checkpoint, ("CHECKPOINT_NAME",), flags=("-v",)),
            "delete-checkpoint": Command(self._delete, ("CHECKPOINT_NAME",), flags=("-v",)),
            "hostname": Command(self._set_hostname, ("<new_hostname>",)),
            "interface": {
                "mtu": Command(self._mtu, ("<interface_name>", "<interface_mtu>")),
                "pfc": {
                    "priority": Command(self._pfc, ("<interface_name>", "<priority>", "<status>")),
                },
                "shutdown": Command(lambda w: self._admin(w, "down"), ("<interface_name>",)),
                "startup": Command(lambda w: self._admin(w, "up"), ("<interface_name>",)),
            },
            "list-checkpoints": Command(self._list),
            "rollback": Command(self._rollback, ("CHECKPOINT_NAME",), flags=("-v", "-d")),
            "save": Command(self._save, flags=("-y",)),
        }

    def __call__(self, call: Call) -> Answer:
        """Carry out one command; every one of them needs root."""
        if not call.root:
            return Answer("Root privileges are required for this operation\n", FAILED)
        answer = dispatch("config", self._group, call.arguments)
        self._switch.configured()
        return answer

    def _save(self, words: Sequence[str]) -> Answer:
        if "-y" not in words:
            return Answer(
                "Existing files will be overwritten, continue? [y/N]: \nAborted!\n", FAILED
            )
        self._switch.save_startup()
        return Answer(
            "Running command: /usr/local/bin/sonic-cfggen -d --print-data > "
            "/etc/sonic/config_db.json\n"
        )

    def _checkpoint(self, words: Sequence[str]) -> Answer:
        name = words[-1]
        text = self._switch.running_text()
        self._switch.checkpoints[name] = Checkpoint(text, time.time())
        return Answer(
            f"Config Rollbacker: Config checkpoint starting.\n"
            f"Config Rollbacker: Checkpoint name: {name}.\n"
            "Config Rollbacker: Config checkpoint completed.\n"
            "Checkpoint created successfully.\n"
        )

    def _delete(self, words: Sequence[str]) -> Answer:
        if self._switch.checkpoints.pop(words[-1], None) is None:
            return self._failed(
                "delete-checkpoint", "delete checkpoint", f"Checkpoint '{words[-1]}' does not exist"
            )
        return Answer("Checkpoint deleted successfully.\n")

    def _list(self, _words: Sequence[str]) -> Answer:
        names = "".join(f'    "{name}",\n' for name in self._switch.checkpoints)
        return Answer(f"[\n{names.rstrip(chr(10)).rstrip(',')}\n]\n" if names else "[]\n")

    def _rollback(self, words: Sequence[str]) -> Answer:
        name = words[-1]
        held = self._switch.checkpoints.get(name)
        if held is None:
            return self._failed(
                "rollback", "rollback config", f"Checkpoint '{name}' does not exist"
            )
        target = load(held.text)
        if not self._switch.model.startswith(_KNOWN_ASICS):
            for table in _GUARDED:
                if target.table(table) != self._switch.config.table(table):
                    return self._failed(
                        "rollback",
                        "rollback config",
                        f"Modification of {table} table is illegal- validating function "
                        f"{_VALIDATOR} returned False",
                    )
        self._switch.replace_config(held.text)
        return Answer(
            "Config Rollbacker: Config rollbacking starting.\n"
            f"Config Rollbacker: Checkpoint name: {name}.\n"
            "Config Rollbacker: Config rollbacking completed.\n"
            "Config rolled back successfully.\n"
        )

    def _failed(self, command: str, what: str, why: str) -> Answer:
        return Answer(
            f"Failed to {what}\nUsage: config {command} [OPTIONS] CHECKPOINT_NAME\n"
            f'Try "config {command} -h" for help.\n\nError: {why}\n',
            USAGE,
        )

    def _set_hostname(self, words: Sequence[str]) -> Answer:
        self._switch.config.write("DEVICE_METADATA|localhost", {"hostname": words[0]})
        return Answer("Please note loaded setting will be lost after system reboot.\n")

    def _port(self, name: str) -> str:
        if name not in self._switch.config.table("PORT"):
            raise UsageError("Interface name is invalid. Please enter a valid interface name!!")
        return name

    def _mtu(self, words: Sequence[str]) -> Answer:
        port, mtu = self._port(words[0]), words[1]
        if not mtu.isdecimal() or not 68 <= int(mtu) <= 9216:
            raise UsageError("Interface MTU is invalid. Please enter a valid MTU")
        self._switch.config.write(f"PORT|{port}", {"mtu": mtu})
        return Answer()

    def _pfc(self, words: Sequence[str]) -> Answer:
        port, priority, status = self._port(words[0]), words[1], words[2]
        if priority not in tuple("01234567"):
            raise UsageError(f'Invalid value for "<priority>": invalid choice: {priority}.')
        if status not in ("on", "off"):
            raise UsageError(f'Invalid value for "<status>": invalid choice: {status}.')
        held = self._switch.config.get("PORT_QOS_MAP", port, "pfc_enable") or ""
        priorities = {number for number in held.split(",") if number}
        if status == "on":
            priorities.add(priority)
        else:
            priorities.discard(priority)
        value = ",".join(sorted(priorities))
        self._switch.config.write(f"PORT_QOS_MAP|{port}", {"pfc_enable": value})
        return Answer()

    def _admin(self, words: Sequence[str], status: str) -> Answer:
        self._switch.config.write(f"PORT|{self._port(words[0])}", {"admin_status": status})
        return Answer()
