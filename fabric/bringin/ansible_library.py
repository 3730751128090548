"""Reading an inventory by Ansible's own library, and what it says where it cannot."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabric.bringin.ansible_origin import origin_of
from fabric.errors import InputError
from fabric.textfile import read_text

VAULT = "ANSIBLE_VAULT_PASSWORD_FILE"
MAX_REASON = 300
_FAILED = re.compile(r"Failed to parse inventory with '(\w+)' plugin: (?:Failed to parse \w+: )?")
_SECTION = re.compile(r"\[[^\[\]]+\]\s*(?:[#;].*)?")
_QUOTED = re.compile(r"got: (.+)|'([^']+)'|(\[[^\]]+\])")


@dataclass(frozen=True)
class Found:
    """One host: its groups, and its variables as they are, not resolved."""

    name: str
    groups: tuple[str, ...]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Parsed:
    """All hosts, what Ansible warned of, and its vault with the passwords that are known."""

    hosts: tuple[Found, ...]
    told: tuple[str, ...]
    vault: Any

    def is_unread(self, file: Path) -> bool:
        """Whether no plugin of Ansible's read this inventory."""
        name = str(file.absolute())
        return any(f"Unable to parse {name} as an inventory source" in text for text in self.told)

    def duplicates(self) -> tuple[str, ...]:
        """Keys that a mapping holds twice, of which Ansible takes the last."""
        said = (_in_one_line(text) for text in self.told if "duplicate" in text.lower())
        return tuple(dict.fromkeys(said))

    def why_not(self, file: Path) -> str:
        """Why Ansible reads no inventory in this file, in a line; empty where it says nothing."""
        by_plugin = {
            match[1]: text[match.end() :]
            for text in self.told
            if str(file) in text and (match := _FAILED.search(text))
        }
        plugins = ("yaml", "ini") if file.suffix in (".yml", ".yaml", ".json") else ("ini", "yaml")
        named = next((by_plugin[plugin] for plugin in plugins if plugin in by_plugin), "")
        others = [text for text in self.told if "deprecat" not in text.lower()]
        return _in_one_line(named or next(iter(by_plugin.values()), "") or (*others, "")[0])


def parse(path: Path, sources: Sequence[Path]) -> Parsed:
    """What Ansible reads from these files of the inventory. Its own error where it cannot."""
    from ansible.inventory.manager import InventoryManager  # noqa: PLC0415 - a second to import
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415
    from ansible.parsing.vault import VaultLib, get_file_vault_secret  # noqa: PLC0415
    from ansible.vars.manager import VariableManager  # noqa: PLC0415

    secrets = []
    try:
        with _listening() as told:
            loader = DataLoader()
            if os.environ.get(VAULT):
                secret = get_file_vault_secret(os.environ[VAULT], loader=loader)
                secret.load()
                secrets.append(("default", secret))
                loader.set_vault_secrets(secrets)
            names = [str(source) for source in sources]
            inventory = InventoryManager(loader=loader, sources=names)
            variables = VariableManager(loader=loader, inventory=inventory)
            hosts = tuple(
                Found(
                    host.name,
                    tuple(str(group.name) for group in host.get_groups()),
                    dict(variables.get_vars(host=host, include_hostvars=False)),
                )
                for host in inventory.get_hosts()
            )
    except Exception as error:  # Ansible's own, of many classes
        vaulted = "vault" in str(error).lower()
        raise InputError(
            f"Ansible cannot read it: {_in_one_line(str(error))}",
            file=path,
            advice=f"{VAULT} names the file with the vault's password." if vaulted else "",
        ) from error
    return Parsed(hosts, tuple(told), VaultLib(secrets))


@contextmanager
def _listening() -> Iterator[list[str]]:
    """Collect what Ansible warns of: what is wrong is said by us, once."""
    from ansible.utils.display import Display  # noqa: PLC0415 - a second to import

    told: list[str] = []
    warning, display = Display.warning, Display.display
    Display.warning = lambda _self, msg, *_a, **k: told.append(_placed(str(msg), k.get("obj")))
    Display.display = lambda _self, msg, *_a, **_k: told.append(str(msg))
    try:
        yield told
    finally:
        Display.warning, Display.display = warning, display


def _placed(said: str, subject: object) -> str:
    """What is said of something that Ansible has read, with the file and line of that."""
    at = origin_of(Path(), subject) if subject is not None else None
    return f"{at}: {said}" if at is not None and at.line is not None else said


def _in_one_line(said: str) -> str:
    """What Ansible said first, without its account of what caused it."""
    text = re.split(r"\n+Failed to parse inventory with|<<< caused by >>>|\nOrigin: ", said)[0]
    return " ".join(text.replace("[WARNING]: ", "").split())[:MAX_REASON]


def ini_line(file: Path, reason: str) -> int | None:
    """The line of an INI inventory that Ansible complains of: it names what, and not where."""
    lines = [line.strip() for line in read_text(file).splitlines()]
    for number, line in enumerate(lines, start=1):
        if line.startswith("[") and not _SECTION.fullmatch(line):
            return number
    for match in _QUOTED.finditer(reason):
        token = next(group for group in match.groups() if group)
        for number, line in enumerate(lines, start=1):
            if token in line and not line.startswith(("#", ";")):
                return number
    return None
