"""Devices from an Ansible inventory, read by Ansible's own library.

Any form that it takes: YAML, INI, a folder, with ``group_vars`` and ``host_vars``
beside it. ``ansible_network_os`` names the system, groups and names the role; the
rest of what ``fabric.yaml`` wants may stand in ``paisoar_*`` variables. A folder's
CSV files are no inventories: Ansible would take each of their lines for a host.

Templates that name a variable are resolved, others are not: they may run programs.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabric.bringin.ansible_origin import origin_of, origin_of_host, refuse_wrong_yaml
from fabric.bringin.sources import (
    Source,
    SourceDevice,
    SourceNic,
    beside_fabric,
    kind_of,
    left_out,
    role_of,
)
from fabric.errors import InputError
from fabric.saved.systems import system
from fabric.saved.tables import Origin
from fabric.textfile import read_text
from fabric.units import parse_speed_bps
from fabric.yamlfile import refuse_bomb

MAX_REASON = 300
_VAULT = "ANSIBLE_VAULT_PASSWORD_FILE"
_NAMED = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_MAX_DEPTH = 5
VARIABLES = ("group_vars", "host_vars")


def read_inventory(path: Path) -> Source:
    """Devices of an inventory. InputError where Ansible finds no host in it."""
    from ansible.inventory.manager import InventoryManager  # noqa: PLC0415 - a second to import
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415
    from ansible.parsing.vault import VaultLib, get_file_vault_secret  # noqa: PLC0415
    from ansible.utils.display import Display  # noqa: PLC0415
    from ansible.vars.manager import VariableManager  # noqa: PLC0415

    files = _files(path)
    for file in files:
        refuse_bomb(file, read_text(file))
    # What is wrong is said by us, once; Ansible's warnings would go between.
    told: list[str] = []
    warning, display = Display.warning, Display.display
    Display.warning = lambda _self, msg, *_a, **_k: told.append(str(msg))
    Display.display = lambda _self, msg, *_a, **_k: told.append(str(msg))
    secrets = []
    try:
        loader = DataLoader()
        if os.environ.get(_VAULT):
            secret = get_file_vault_secret(os.environ[_VAULT], loader=loader)
            secret.load()
            secrets.append(("default", secret))
            loader.set_vault_secrets(secrets)
        sources = [str(source) for source in _sources(path)]
        inventory = InventoryManager(loader=loader, sources=sources)
        variables = VariableManager(loader=loader, inventory=inventory)
        hosts = [
            (
                host.name,
                [str(group.name) for group in host.get_groups()],
                dict(variables.get_vars(host=host, include_hostvars=False)),
            )
            for host in inventory.get_hosts()
        ]
    except Exception as error:  # Ansible's own, of many classes
        refuse_wrong_yaml(file for file in files if _is_yaml(file))
        vaulted = "vault" in str(error).lower()
        raise InputError(
            f"Ansible cannot read it: {_short(error)}",
            file=path,
            advice=f"{_VAULT} names the file with the vault's password." if vaulted else "",
        ) from error
    finally:
        Display.warning, Display.display = warning, display
    if not hosts:
        refuse_wrong_yaml(file for file in files if _is_yaml(file))
        raise InputError(
            f"no host in it{': ' + _short(told[0]) if told else ''}",
            file=path,
            advice="Name a file that `ansible-inventory -i FILE --list` reads. Where that needs a "
            "plugin: `ansible-inventory -i FILE --list --yaml > hosts.yml`, and name hosts.yml.",
        )
    out = [
        (name, why) for name, groups, values in hosts if (why := _not_ours(name, groups, values))
    ]
    beside = {name for name, _why in out}
    notes: list[str] = []
    vault = VaultLib(secrets)
    devices = {
        str(name): _device(_Host(path, name, _opened(values, vault), notes), groups, files)
        for name, groups, values in hosts
        if name not in beside
    }
    return Source(devices, notes=(*left_out(out), *notes))


def _sources(path: Path) -> list[Path]:
    """What Ansible is given to read: a file, or what of a folder is an inventory."""
    if not path.is_dir():
        return [path]
    return [
        entry
        for entry in sorted(path.iterdir())
        if entry.suffix != ".csv" and entry.name not in VARIABLES and not entry.name.startswith(".")
    ]


def _not_ours(name: str, groups: Sequence[str], values: Mapping[str, Any]) -> str:
    """Why a host of the inventory is no part of the fabric; empty where it is one."""
    if values.get("paisoar_kind"):
        return ""
    if name == "localhost" or values.get("ansible_connection") == "local":
        return "it is where Ansible runs"
    odd = [group for group in groups if beside_fabric([group])]
    if odd:
        return f"it is in group {odd[0]} (paisoar_kind takes it in)"
    return ""


def _short(said: object) -> str:
    """What Ansible said, in one line."""
    return " ".join(str(said).replace("[WARNING]: ", "").split())[:MAX_REASON]


def _files(path: Path) -> list[Path]:
    """What Ansible is going to read as text: the inventory, and variables beside it."""
    folder = path if path.is_dir() else path.parent
    roots = [path] if path.is_dir() else [folder / name for name in VARIABLES]
    beside = [file for root in roots for file in sorted(root.rglob("*")) if file.is_file()]
    named = [] if path.is_dir() else [path]
    return [*named, *(file for file in beside if file.suffix in (".yml", ".yaml", ".json", ""))]


def _is_yaml(file: Path) -> bool:
    """Whether Ansible reads this as YAML and as nothing else."""
    return file.suffix in (".yml", ".yaml") or any(part.name in VARIABLES for part in file.parents)


@dataclass(frozen=True)
class _Host:
    """A host's variables, and where to note what about them is odd."""

    path: Path
    name: str
    values: Mapping[str, Any]
    notes: list[str]

    def text(self, *keys: str) -> str:
        """The first of these variables that has a value."""
        for key in keys:
            with _unopened(self.path, self.name, key):
                given = self.values.get(key)
                text = _resolved(str(given), self.values) if given else ""
            if "{{" in text or "{%" in text:
                self.notes.append(f"{self.name}: {key} is a template that is not resolved: {text}")
            elif text:
                return text
        return ""

    def choice(self, key: str, *choices: str) -> str:
        """One of these words, or empty; InputError for another."""
        text = self.text(key)
        if text and text not in choices:
            raise self.fault(key, f"{text!r} is none of {', '.join(choices)}")
        return text

    def port(self) -> int | None:
        """The TCP port of SSH, if one is told."""
        text = self.text("ansible_port")
        if text and not (text.isdecimal() and 0 < int(text) < 65536):
            raise self.fault("ansible_port", f"{text!r} is no TCP port from 1 to 65535")
        return int(text) if text else None

    def fault(self, key: str, reason: str) -> InputError:
        """What is wrong with this variable, where it stands."""
        file, line = origin_of(self.path, self.values.get(key))
        return InputError(f"{self.name}: {key}: {reason}", file=file, line=line)


def _device(host: _Host, groups: list[str], files: Sequence[Path]) -> SourceDevice:
    words = [*(group for group in groups if group not in ("all", "ungrouped")), host.name]
    system_word = host.text("paisoar_os", "ansible_network_os", "network_os")
    os_name = system(system_word)
    kind = host.choice("paisoar_kind", "switch", "host") or kind_of(os_name, words)
    with _unopened(host.path, host.name, "paisoar_nics"):
        told = host.values.get("paisoar_nics")
        nics = nics_of(origin_of(host.path, told), host.name, told)
    return SourceDevice(
        str(host.name),
        kind,
        "" if kind == "host" else os_name,
        "" if kind == "host" or os_name else system_word,
        model=host.text("paisoar_model", "model", "device_model"),
        role=host.choice("paisoar_role", "leaf", "spine") or role_of(words),
        buffer=host.text("paisoar_buffer"),
        address=host.text("ansible_host"),
        port=host.port(),
        user=host.text("ansible_user"),
        nics=nics,
        origin=origin_of_host(host.path, host.name, files),
    )


def _opened(value: Any, vault: Any) -> Any:  # noqa: ANN401 - variables, and Ansible's VaultLib
    """The variables with single vaulted values opened; what does not open stays as it is."""
    from ansible.parsing.vault import VaultHelper  # noqa: PLC0415 - a second to import

    if isinstance(value, Mapping):
        return {key: _opened(one, vault) for key, one in value.items()}
    sealed = VaultHelper.get_ciphertext(value, with_tags=False)
    if sealed:
        with contextlib.suppress(Exception):  # a password that nobody asks for here, say
            return vault.decrypt(sealed).decode()
    return value


@contextlib.contextmanager
def _unopened(path: Path, device: str, key: str) -> Iterator[None]:
    """Name the variable whose vaulted value is looked at and could not be opened."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # Ansible's own, of many classes
        raise InputError(
            f"{device}: {key} is vaulted, and no password that is known opens it",
            file=path,
            advice=f"{_VAULT} names the file with the vault's password.",
        ) from error


def _resolved(text: str, values: Mapping[str, Any]) -> str:
    """The text with the variables that it names, and those that these name."""
    for _ in range(_MAX_DEPTH):
        found = _NAMED.sub(
            lambda match: str(values[match[1]]) if match[1] in values else match[0], text
        )
        if found == text or len(found) > MAX_REASON:
            break
        text = found
    return text


def nics_of(origin: Origin, device: str, nics: object) -> tuple[SourceNic, ...]:
    """NICs as ``fabric.yaml`` writes them: by interface, with family, rdma, speed, address."""
    file, line = origin
    if not nics:
        return ()
    if not isinstance(nics, Mapping) or not all(isinstance(v, Mapping) for v in nics.values()):
        raise InputError(
            f"{device}: its NICs are no mapping of interface to family, rdma, speed, address",
            file=file,
            line=line,
        )
    found = []
    for name, nic in nics.items():
        try:
            speed = parse_speed_bps(str(nic["speed"])) if nic.get("speed") else None
        except ValueError as error:
            raise InputError(f"{device}: {name}: {error}", file=file, line=line) from None
        found.append(
            SourceNic(
                str(name),
                str(nic.get("family", "")),
                str(nic.get("rdma", "")),
                speed,
                str(nic.get("address", "")),
            )
        )
    return tuple(found)
