"""Devices from an Ansible inventory, read by Ansible's own library.

Any form that it takes: YAML, INI, a folder, with ``group_vars`` and ``host_vars``
beside it. ``ansible_network_os`` names the system, groups and names the role; the
rest of what ``fabric.yaml`` wants may stand in ``paisoar_*`` variables. A folder's
CSV files are no inventories: Ansible would take each of their lines for a host.

Templates that name a variable are resolved, others are not: they may run programs.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabric.bringin.ansible_library import MAX_REASON, VAULT, Found, Parsed, ini_line, parse
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
from fabric.textfile import read_bytes, read_text
from fabric.units import parse_speed_bps
from fabric.yamlfile import refuse_bomb

_NAMED = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_MAX_DEPTH = 5
VARIABLES = ("group_vars", "host_vars")


def read_inventory(path: Path) -> Source:
    """Devices of an inventory. InputError where Ansible finds no host in it."""
    files = _files(path)
    for file in files:
        refuse_bomb(file, read_text(file))
    sources = _sources(path)
    for source in sources:
        _refuse_mark(source)
    yaml_files = [file for file in files if _is_yaml(file)]
    try:
        parsed = parse(path, sources)
    except InputError:
        refuse_wrong_yaml(yaml_files)
        raise
    unread = [source for source in sources if parsed.is_unread(source)]
    refuse_wrong_yaml(file for file in yaml_files if file in unread or not parsed.hosts)
    if not parsed.hosts:
        raise _no_host(path, sources, parsed)
    out = [(host.name, why) for host in parsed.hosts if (why := _not_ours(host))]
    beside = {name for name, _why in out}
    notes = [f"no inventory, left out: {file}: {parsed.why_not(file)}" for file in unread]
    notes += parsed.duplicates()
    devices = {
        str(host.name): _device(
            _Host(path, host.name, _opened(host.values, parsed.vault), notes), host.groups, files
        )
        for host in parsed.hosts
        if host.name not in beside
    }
    return Source(devices, notes=(*left_out(out), *notes))


def _no_host(path: Path, sources: Sequence[Path], parsed: Parsed) -> InputError:
    """That there is no host, and why, as far as Ansible says it."""
    file = sources[0] if len(sources) == 1 else path
    reason = parsed.why_not(file)
    is_ini = file.is_file() and not _is_yaml(file) and reason
    return InputError(
        f"no host in it{': ' if reason else ''}{reason}",
        file=file,
        line=ini_line(file, reason) if is_ini else None,
        advice="Name a file that `ansible-inventory -i FILE --list` reads. Where that needs a "
        "plugin: `ansible-inventory -i FILE --list --yaml > hosts.yml`, and name hosts.yml.",
    )


def _sources(path: Path) -> list[Path]:
    """What Ansible is given to read: a file, or what of a folder is an inventory."""
    from ansible import constants  # noqa: PLC0415 - a second to import

    if not path.is_dir():
        return [path]
    # Of a folder that it is named itself Ansible leaves these out, too.
    others = (".csv", *constants.INVENTORY_IGNORE_EXTS)
    return [
        entry
        for entry in sorted(path.iterdir())
        if not entry.name.lower().endswith(others)
        and entry.name not in VARIABLES
        and not entry.name.startswith(".")
    ]


def _refuse_mark(file: Path) -> None:
    """InputError for the mark of a UTF-8 file, which Ansible takes for a part of a name in INI."""
    if file.is_file() and not _is_yaml(file) and read_bytes(file).startswith(codecs.BOM_UTF8):
        raise InputError(
            "begins with a byte order mark, which Ansible does not read in INI",
            file=file,
            line=1,
            advice="Save it as UTF-8 without a mark.",
        )


def _not_ours(host: Found) -> str:
    """Why a host of the inventory is no part of the fabric; empty where it is one."""
    if host.values.get("paisoar_kind"):
        return ""
    if host.name == "localhost" or host.values.get("ansible_connection") == "local":
        return "it is where Ansible runs"
    odd = [group for group in host.groups if beside_fabric([group])]
    if odd:
        return f"it is in group {odd[0]} (paisoar_kind takes it in)"
    return ""


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


def _device(host: _Host, groups: Sequence[str], files: Sequence[Path]) -> SourceDevice:
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
            advice=f"{VAULT} names the file with the vault's password.",
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
