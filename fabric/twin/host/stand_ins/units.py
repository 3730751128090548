"""Unit files of an emulated host: where they are, what they say, what runs now."""

from __future__ import annotations

import os

from .files import Host, read_text

SECTIONLESS = ""
SUFFIXES = (".service", ".target", ".timer", ".socket", ".path", ".mount")


def full_name(name: str) -> str:
    """The unit's name with its suffix, ``.service`` where none is given."""
    return name if name.endswith(SUFFIXES) else f"{name}.service"


class Unit:
    """One unit by its full name; an instance ``a@b.service`` reads ``a@.service``."""

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.name = full_name(name)
        self.folder = f"{host.etc}/systemd/system"
        stem, dot, suffix = self.name.rpartition(".")
        prefix, at, self.instance = stem.partition("@")
        self.template = f"{prefix}@{dot}{suffix}" if at else self.name
        self._text: str | None = None

    @property
    def file_name(self) -> str:
        """The file that defines the unit: its own, else its template; empty where neither is."""
        for name in (self.name, self.template):
            if os.path.lexists(f"{self.folder}/{name}"):
                return name
        return ""

    @property
    def path(self) -> str:
        """Where the host sees the unit's file."""
        return f"/etc/systemd/system/{self.file_name}"

    @property
    def masked(self) -> bool:
        """Linked to /dev/null."""
        path = f"{self.folder}/{self.name}"
        return os.path.islink(path) and os.readlink(path) == "/dev/null"

    def values(self, section: str, key: str) -> list[str]:
        """Every value of a key, specifiers replaced; an empty assignment clears the list."""
        if self._text is None:
            self._text = read_text(f"{self.folder}/{self.file_name}") if self.file_name else ""
        found: list[str] = []
        current = SECTIONLESS
        for raw in self._text.replace("\\\n", " ").splitlines():
            line = raw.strip()
            if line.startswith("[") and line.endswith("]"):
                current = line[1:-1]
            elif line and line[0] not in "#;" and current == section:
                name, _, value = line.partition("=")
                if name.strip() == key:
                    found = [*found, self._expand(value.strip())] if value.strip() else []
        return found

    def value(self, section: str, key: str, default: str = "") -> str:
        """The last value of a key."""
        values = self.values(section, key)
        return values[-1] if values else default

    def _expand(self, text: str) -> str:
        prefix = self.template.split("@")[0].split(".")[0]
        replacements = {"i": self.instance, "I": self.instance.replace("-", "/"), "n": self.name}
        replacements |= {"N": self.name.rpartition(".")[0], "p": prefix, "%": "%"}
        parts = text.split("%")
        expanded = parts[0]
        index = 1
        while index < len(parts):
            part = parts[index]
            if not part and index + 1 < len(parts):  # %% is one percent sign
                expanded += f"%{parts[index + 1]}"
                index += 2
                continue
            expanded += replacements.get(part[:1], f"%{part[:1]}") + part[1:]
            index += 1
        return expanded

    def wants(self) -> list[str]:
        """Links that enabling makes, each relative to /etc/systemd/system."""
        links = []
        for key, folder in (("WantedBy", "wants"), ("RequiredBy", "requires")):
            for value in self.values("Install", key):
                links += [f"{target}.{folder}/{self.name}" for target in value.split()]
        for value in self.values("Install", "Alias"):
            links += [full_name(alias) for alias in value.split()]
        return links

    def file_state(self) -> str:
        """``enabled``, ``disabled``, ``static``, ``masked`` or empty where there is no file."""
        if self.masked:
            return "masked"
        if not self.file_name:
            return ""
        links = self.wants()
        if not links:
            return "static"
        on = any(os.path.lexists(f"{self.folder}/{link}") for link in links)
        return "enabled" if on else "disabled"

    def run_state(self) -> tuple[str, str, int]:
        """(active state, sub state, main pid) of what runs now."""
        words = read_text(self._run_path()).split()
        if not words:
            return "inactive", "dead", 0
        active, sub, pid = words[0], words[1], int(words[2])
        if pid and not os.path.isdir(f"/proc/{pid}"):
            return "inactive", "dead", 0
        return active, sub, pid

    def set_run_state(self, active: str, sub: str, pid: int = 0) -> None:
        """Remember what runs; forgotten at a reboot."""
        path = self._run_path()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{active} {sub} {pid}\n")

    def _run_path(self) -> str:
        return f"{self.host.run}/systemd/units/{self.name}"


def enabled_units(host: Host) -> list[Unit]:
    """Units that something pulls in at boot: a target, or the device of one of the NICs."""
    folder = f"{host.etc}/systemd/system"
    devices = {f"sys-subsystem-net-devices-{nic.name}.device" for nic in host.nics()}
    names: set[str] = set()
    for entry in os.listdir(folder) if os.path.isdir(folder) else []:
        puller, _, kind = entry.rpartition(".")
        if kind in ("wants", "requires") and (puller.endswith(".target") or puller in devices):
            names |= set(os.listdir(f"{folder}/{entry}"))
    return [Unit(host, name) for name in sorted(names)]
