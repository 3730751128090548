"""``systemctl``: the unit files of an emulated host, enabled, started and asked about.

What Ansible's ``systemd_service`` module and an operator need of systemd 252:
``show``, ``status``, ``is-enabled``, ``is-active``, ``enable``, ``disable``,
``start``, ``stop``, ``restart``, ``mask``, ``daemon-reload`` and ``reboot``. A
oneshot unit runs its ``ExecStart`` lines; ``reboot`` resets every NIC as a power
cycle does and then starts what is enabled.
"""

from __future__ import annotations

import os
import sys
import uuid

from . import factory, registers
from .files import Host
from .units import Unit, enabled_units, full_name

VERSION = "systemd 252 (252.36-1~deb12u1)\n+PAM +AUDIT +SELINUX +APPARMOR +IMA +SMACK"
VALUED = ("-p", "--property", "-t", "--type", "-n", "--lines", "-o", "--output", "--state")


def main(host: Host, arguments: list[str]) -> int:
    """Run the program; its exit status."""
    words, options = _split(arguments)
    if "--version" in options:
        print(VERSION)
        return 0
    verb = words.pop(0) if words else "list-units"
    if verb in ("daemon-reload", "daemon-reexec", "reset-failed", "preset", "set-default"):
        return 0
    if verb == "is-system-running":
        print("running")
        return 0
    if verb in ("list-unit-files", "list-units"):
        return _list(host, verb, words)
    if verb == "reboot":
        return reboot(host)
    if verb == "show" and not words:
        print("Version=252\nSystemState=running")
        return 0
    handler = VERBS.get(verb)
    if handler is None:
        sys.stderr.write(f"Unknown command verb {verb}.\n")
        return 1
    if not words:
        sys.stderr.write("Too few arguments.\n")
        return 1
    return handler(host, words, options)


def _split(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    words: list[str] = []
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            words.append(word)
            continue
        name, equals, value = word.partition("=")
        if name in VALUED and not equals and rest:
            value = rest.pop(0)
        options[name] = value
    return words, options


def _show(host: Host, names: list[str], options: dict[str, str]) -> int:
    wanted = (options.get("-p") or options.get("--property") or "").split(",")
    for index, name in enumerate(names):
        if index:
            print()
        for key, value in _properties(Unit(host, name)).items():
            if wanted == [""] or key in wanted:
                print(value if "--value" in options else f"{key}={value}")
    return 0


def _properties(unit: Unit) -> dict[str, str]:
    active, sub, pid = unit.run_state()
    load = "masked" if unit.masked else "loaded" if unit.file_name else "not-found"
    properties = {
        "Type": unit.value("Service", "Type", "simple"),
        "Restart": unit.value("Service", "Restart", "no"),
        "RemainAfterExit": unit.value("Service", "RemainAfterExit", "no"),
        "MainPID": str(pid),
        "Result": "exit-code" if active == "failed" else "success",
        "Id": unit.name,
        "Names": unit.name,
        "Description": unit.value("Unit", "Description", unit.name),
        "LoadState": load,
        "ActiveState": active,
        "SubState": sub,
        "NeedDaemonReload": "no",
        "CanStart": "yes" if load == "loaded" else "no",
    }
    if unit.file_name:
        properties["FragmentPath"] = "/dev/null" if unit.masked else unit.path
        properties["UnitFileState"] = unit.file_state()
        properties["UnitFilePreset"] = "enabled"
    return properties


def _status(host: Host, names: list[str], _: dict[str, str]) -> int:
    status = 0
    for name in names:
        unit = Unit(host, name)
        if not unit.file_name:
            sys.stderr.write(f"Unit {unit.name} could not be found.\n")
            status = 4
            continue
        active, sub, pid = unit.run_state()
        print(f"* {unit.name} - {unit.value('Unit', 'Description', unit.name)}")
        print(f"     Loaded: loaded ({unit.path}; {unit.file_state()}; preset: enabled)")
        print(f"     Active: {active} ({sub})")
        if pid:
            print(f"   Main PID: {pid}")
        if active != "active":
            status = max(status, 3)
    return status


def _is_enabled(host: Host, names: list[str], options: dict[str, str]) -> int:
    status = 1
    for name in names:
        unit = Unit(host, name)
        state = unit.file_state()
        if not state:
            sys.stderr.write(
                f"Failed to get unit file state for {unit.name}: No such file or directory\n"
            )
            continue
        if "-q" not in options and "--quiet" not in options:
            print(state)
        if state in ("enabled", "static"):
            status = 0
    return status


def _is_active(host: Host, names: list[str], options: dict[str, str]) -> int:
    status = 3
    for name in names:
        active, _, _ = Unit(host, name).run_state()
        if "-q" not in options and "--quiet" not in options:
            print(active)
        if active == "active":
            status = 0
    return status


def _is_failed(host: Host, names: list[str], _: dict[str, str]) -> int:
    states = [Unit(host, name).run_state()[0] for name in names]
    print("\n".join(states))
    return 0 if "failed" in states else 1


def _enable(host: Host, names: list[str], options: dict[str, str]) -> int:
    units = [Unit(host, name) for name in names]
    for unit in units:
        if unit.masked:
            sys.stderr.write(f"Failed to enable unit: Unit file {unit.path} is masked.\n")
            return 1
        if not unit.file_name:
            sys.stderr.write(f"Failed to enable unit: Unit file {unit.name} does not exist.\n")
            return 1
    for unit in units:
        links = unit.wants()
        if not links:
            sys.stderr.write(
                "The unit files have no installation config (WantedBy=, RequiredBy=, Also=,\n"
                "Alias= settings in the [Install] section, and DefaultInstance= for template\n"
                "units). This means they are not meant to be enabled using systemctl.\n"
            )
        for link in links:
            path = f"{unit.folder}/{link}"
            if os.path.lexists(path):
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(unit.path, path)
            sys.stderr.write(f"Created symlink /etc/systemd/system/{link} \u2192 {unit.path}.\n")
    return _start(host, names, options) if "--now" in options else 0


def _disable(host: Host, names: list[str], options: dict[str, str]) -> int:
    for name in names:
        unit = Unit(host, name)
        if not unit.file_name and not unit.masked:
            sys.stderr.write(f"Failed to disable unit: Unit file {unit.name} does not exist.\n")
            return 1
        for link in unit.wants():
            path = f"{unit.folder}/{link}"
            if os.path.lexists(path):
                os.unlink(path)
                sys.stderr.write(f'Removed "/etc/systemd/system/{link}".\n')
    return _stop(host, names, options) if "--now" in options else 0


def _mask(host: Host, names: list[str], _: dict[str, str]) -> int:
    for name in names:
        unit = Unit(host, name)
        path = f"{unit.folder}/{unit.name}"
        if unit.masked:
            continue
        if os.path.lexists(path):
            sys.stderr.write(
                f"Failed to mask unit: File /etc/systemd/system/{unit.name} already exists.\n"
            )
            return 1
        os.symlink("/dev/null", path)
        sys.stderr.write(f"Created symlink /etc/systemd/system/{unit.name} \u2192 /dev/null.\n")
    return 0


def _unmask(host: Host, names: list[str], _: dict[str, str]) -> int:
    for name in names:
        unit = Unit(host, name)
        if unit.masked:
            os.unlink(f"{unit.folder}/{unit.name}")
            sys.stderr.write(f'Removed "/etc/systemd/system/{unit.name}".\n')
    return 0


def _start(host: Host, names: list[str], _: dict[str, str]) -> int:
    status = 0
    for name in names:
        unit = Unit(host, name)
        if unit.masked:
            sys.stderr.write(f"Failed to start {unit.name}: Unit {unit.name} is masked.\n")
            return 1
        if not unit.file_name:
            sys.stderr.write(f"Failed to start {unit.name}: Unit {unit.name} not found.\n")
            return 5
        if unit.run_state()[0] != "active" and not start(unit):
            sys.stderr.write(
                f"Job for {unit.name} failed because the control process exited with error code.\n"
                f'See "systemctl status {unit.name}" and "journalctl -xeu {unit.name}" for '
                "details.\n"
            )
            status = 1
    return status


def _stop(host: Host, names: list[str], _: dict[str, str]) -> int:
    for name in names:
        unit = Unit(host, name)
        if not unit.file_name:
            sys.stderr.write(f"Failed to stop {unit.name}: Unit {unit.name} not loaded.\n")
            return 5
        active, _sub, pid = unit.run_state()
        if active == "active":
            for line in unit.values("Service", "ExecStop"):
                _execute(unit, line)
            if pid:
                os.killpg(pid, 15)
        unit.set_run_state("inactive", "dead")
    return 0


def _restart(host: Host, names: list[str], options: dict[str, str]) -> int:
    if all(Unit(host, name).file_name for name in names):
        _stop(host, names, options)
    return _start(host, names, options)


def _reload(host: Host, names: list[str], _: dict[str, str]) -> int:
    for name in names:
        unit = Unit(host, name)
        lines = unit.values("Service", "ExecReload")
        if not lines:
            sys.stderr.write(
                f"Failed to reload {unit.name}: Job type reload is not applicable for unit "
                f"{unit.name}.\n"
            )
            return 1
        if not all(_execute(unit, line) for line in lines):
            return 1
    return 0


def _cat(host: Host, names: list[str], _: dict[str, str]) -> int:
    for name in names:
        unit = Unit(host, name)
        if not unit.file_name:
            sys.stderr.write(f"No files found for {unit.name}.\n")
            return 1
        print(f"# {unit.path}")
        with open(f"{unit.folder}/{unit.file_name}", encoding="utf-8") as file:
            sys.stdout.write(file.read())
    return 0


def start(unit: Unit) -> bool:
    """Run a unit: to its end for a oneshot, in the background for any other type."""
    for line in unit.values("Service", "ExecStartPre"):
        if not _execute(unit, line):
            unit.set_run_state("failed", "failed")
            return False
    lines = unit.values("Service", "ExecStart")
    if unit.value("Service", "Type", "simple") != "oneshot":
        pid = _spawn(unit, lines[-1], background=True) if lines else 0
        unit.set_run_state("active", "running", pid)
        return True
    if not all(_execute(unit, line) for line in lines):
        unit.set_run_state("failed", "failed")
        return False
    if unit.value("Service", "RemainAfterExit", "no") in ("yes", "true", "1", "on"):
        unit.set_run_state("active", "exited")
    else:
        unit.set_run_state("inactive", "dead")
    return True


def _execute(unit: Unit, line: str) -> bool:
    """Run one command line to its end; a leading ``-`` lets it fail."""
    forgiven = "-" in line[: len(line) - len(line.lstrip("-+!@:"))]
    pid = _spawn(unit, line, background=False)
    _, status = os.waitpid(pid, 0)
    return forgiven or status == 0


def _spawn(unit: Unit, line: str, *, background: bool) -> int:
    import shlex

    command = shlex.split(line.lstrip("-+!@:"))
    environment = {key: os.environ[key] for key in ("HOME", "PATH", "USER") if key in os.environ}
    for values in unit.values("Service", "Environment"):
        environment |= dict(pair.split("=", 1) for pair in shlex.split(values) if "=" in pair)
    pid = os.fork()
    if pid:
        return pid
    # A service has neither the session's input nor its output: its output goes to the journal.
    nowhere = os.open(os.devnull, os.O_RDWR)
    journal = os.open(f"{unit.host.run}/journal.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    for source, target in ((nowhere, 0), (journal, 1), (journal, 2)):
        os.dup2(source, target)
    if background:
        os.setsid()
    os.chdir("/")
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - a unit's own command line
    except OSError:
        os._exit(203)  # systemd's EXIT_EXEC


def reboot(host: Host) -> int:
    """Every NIC as after power-on, nothing running, then what is enabled is started."""
    factory.reset_host(host)
    with open(f"{host.folder}/boot_id", "w") as boot_id:  # in place: the file is mounted
        boot_id.write(f"{uuid.uuid4()}\n")
    folder = f"{host.run}/systemd/units"
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        os.unlink(f"{folder}/{name}")
    for unit in enabled_units(host):
        start(unit)
    registers.settle(host)
    return 0


def _list(host: Host, verb: str, patterns: list[str]) -> int:
    folder = f"{host.etc}/systemd/system"
    names = [n for n in sorted(os.listdir(folder)) if full_name(n) == n]
    if patterns:
        import fnmatch

        names = [n for n in names if any(fnmatch.fnmatch(n, full_name(p)) for p in patterns)]
    if verb == "list-unit-files":
        print("UNIT FILE STATE PRESET")
        for name in names:
            print(f"{name} {Unit(host, name).file_state()} enabled")
        print(f"\n{len(names)} unit files listed.")
        return 0 if names or not patterns else 1
    for name in names:
        active, sub, _ = Unit(host, name).run_state()
        if active != "inactive":
            print(f"{name} loaded {active} {sub} {Unit(host, name).value('Unit', 'Description')}")
    return 0


VERBS = {
    "show": _show,
    "status": _status,
    "is-enabled": _is_enabled,
    "is-active": _is_active,
    "is-failed": _is_failed,
    "enable": _enable,
    "disable": _disable,
    "mask": _mask,
    "unmask": _unmask,
    "start": _start,
    "stop": _stop,
    "restart": _restart,
    "try-restart": _restart,
    "reload": _reload,
    "reload-or-restart": _restart,
    "cat": _cat,
}
