"""Running our playbooks: ansible-runner, its events, and nothing left behind.

Secrets reach Ansible through its environment only (``fabric.provisioning.playstart``); every
other file that a run writes lies in the folder that the caller names.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
from ansible_runner import AnsibleRunnerException, Runner, RunnerConfig

from fabric.errors import ToolError
from fabric.provisioning.playstart import PROMPT
from fabric.provisioning.stop import StopSwitch
from fabric.scratch import scratch_folder

AnsibleEvent = Mapping[str, Any]

# Nothing else of our environment goes to Ansible, and so into its artifacts.
_KEPT = frozenset(
    [
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "SSH_AGENT_PID",
        "SSH_AUTH_SOCK",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
    ]
)
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class PlaybookRun:
    """How a playbook ended. ``cut_off``: by force, in the middle of things.

    ``output`` is the end of what it printed. ``unheard`` says why what it did was heard of no
    more, and it was killed for that: its records could not be written.
    """

    exit_code: int
    cut_off: bool
    output: str
    unheard: str = ""


def playbooks_dir() -> Path:
    """Where our playbooks are installed."""
    spec = find_spec("playbooks")
    if spec is None or not spec.submodule_search_locations:
        raise ToolError(
            "the playbooks are not installed beside this program.",
            advice="Install the whole of paisoar (pip install .).",
        )
    return Path(spec.submodule_search_locations[0])


def run_playbook(
    name: str,
    folder: Path,
    inventory: Path,
    *,
    ident: str,
    extra_vars: Mapping[str, object],
    limit: tuple[str, ...] = (),
    check: bool = False,
    forks: int = 16,
    secrets: Mapping[str, str] | None = None,
    stop: StopSwitch | None = None,
    stop_file: Path | None = None,
    lock: Path | None = None,
    on_event: Callable[[AnsibleEvent], None] | None = None,
) -> PlaybookRun:
    """Run ``playbooks/NAME`` to its end; ``on_event`` is called in this thread.

    ``folder`` gets the artifacts, under ``artifacts/IDENT``. ``secrets`` are
    environment variables of the playbook. ``stop.stopping`` makes ``stop_file``
    appear, ``stop.cut_off`` kills the playbook, which holds ``lock`` until then
    (``fabric.provisioning.runlock``). ToolError where ansible-playbook
    is missing.
    """
    program = Path(sys.executable).parent / "ansible-playbook"
    if not program.exists():
        raise ToolError(
            f"{program} is missing.", advice="Install ansible-core into the same environment."
        )
    # Sockets of shared SSH connections lie here: their paths must be short.
    with scratch_folder() as scratch:
        # Ansible would expand a `$HOME` in the path of the inventory itself.
        named = scratch / "inventory.json"
        named.symlink_to(inventory.resolve())
        config = _config(name, folder, named, scratch, ident, extra_vars, limit, forks, secrets)
        config.command[0] = str(program)
        config.command += ["--check"] if check else []
        start = [
            sys.executable,
            "-m",
            "fabric.provisioning.playstart",
            "--parent",
            str(os.getpid()),
        ]
        start += ["--lock", str(lock)] if lock is not None else []
        start += ["--ask", ",".join(secrets)] if secrets else []
        config.command = [*start, *config.command]
        try:
            return _run(config, stop, stop_file, on_event)
        finally:
            _end_shared_connections(scratch)


def _config(
    name: str,
    folder: Path,
    inventory: Path,
    scratch: Path,
    ident: str,
    extra_vars: Mapping[str, object],
    limit: tuple[str, ...],
    forks: int,
    secrets: Mapping[str, str] | None,
) -> Any:  # noqa: ANN401 - untyped library
    playbooks = playbooks_dir()
    config = RunnerConfig(
        private_data_dir=str(folder),
        project_dir=str(playbooks),
        playbook=name,
        inventory=str(inventory),
        limit=",".join(limit) or None,
        forks=forks,
        ident=ident,
        extravars=dict(extra_vars),
        quiet=True,
        fact_cache_type="memory",
        settings={"pexpect_timeout": 1},
        passwords={PROMPT.format(name=key): value for key, value in (secrets or {}).items()},
        envvars={
            "ANSIBLE_CONFIG": str(playbooks / "ansible.cfg"),
            "ANSIBLE_HOST_KEY_CHECKING": "True",
            "ANSIBLE_HOME": str(scratch / "home"),
            "ANSIBLE_LOCAL_TEMP": str(scratch / "tmp"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(scratch / "cp"),
            # Ansible runs in no other locale, and glibc always has this one.
            "LC_ALL": "C.UTF-8",
        },
    )
    config.prepare()
    for key, value in os.environ.items():
        if key not in _KEPT and not key.startswith("LC_") and config.env.get(key) == value:
            del config.env[key]
    return config


def _run(
    config: Any,  # noqa: ANN401 - untyped library
    stop: StopSwitch | None,
    stop_file: Path | None,
    on_event: Callable[[AnsibleEvent], None] | None,
) -> PlaybookRun:
    events: queue.SimpleQueue[AnsibleEvent] = queue.SimpleQueue()

    def keep(event: AnsibleEvent) -> bool:
        events.put(event)
        return True

    failure: list[BaseException] = []
    runner = _Runner(config, event_handler=keep)
    runner.failure = failure

    def work() -> None:
        try:
            runner.run()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="paisoar-playbook", daemon=True)
    thread.start()
    cut_off = False
    tail: list[str] = []
    try:
        while thread.is_alive() or not events.empty():
            with contextlib.suppress(queue.Empty):
                event = events.get(timeout=_POLL_S)
                if event.get("stdout"):
                    tail = [*tail[-30:], str(event["stdout"])]
                if on_event is not None:
                    on_event(event)
            if stop is not None and stop.stopping and stop_file is not None:
                stop_file.touch()
            cut = bool(failure) or (stop is not None and stop.cut_off)
            if cut and not cut_off:
                cut_off = True
                _kill(Path(config.artifact_dir))
    except BaseException:
        _kill(Path(config.artifact_dir))
        thread.join()
        raise
    if failure and not cut_off:
        _kill(Path(config.artifact_dir))
    unheard = _unwritten(failure[0]) if failure else ""
    # A killed process has no exit code.
    code = -1 if runner.rc is None else int(runner.rc)
    return PlaybookRun(code, cut_off and not unheard, "\n".join(tail), unheard)


class _Runner(Runner):  # type: ignore[misc] # untyped library
    """Tells what could not be written without leaving its own files open for it."""

    failure: list[BaseException]

    def event_callback(self, event_data: dict[str, Any]) -> None:
        try:
            super().event_callback(event_data)
        except (OSError, AnsibleRunnerException) as error:
            self.failure.append(error)


def _unwritten(error: BaseException) -> str:
    """That the playbook's records could not be written; anything else is raised again."""
    cause = error.__cause__ if isinstance(error, AnsibleRunnerException) else error
    if not isinstance(cause, OSError):
        raise error
    return f"the run's records could not be written ({cause.strerror or cause})"


def _kill(artifacts: Path) -> None:
    """Kill the playbook and its workers; these have sessions of their own."""
    mine = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.environ().get("AWX_ISOLATED_DATA_DIR") == str(artifacts):
                mine.append(process)
    for process in mine:
        with contextlib.suppress(psutil.Error):
            process.kill()


def _end_shared_connections(scratch: Path) -> None:
    """End the SSH processes that Ansible leaves for a next task that never comes."""
    ends = []
    for socket in (scratch / "cp").glob("*"):
        command = ["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "-q", "paisoar"]
        ends.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    for end in ends:
        with contextlib.suppress(subprocess.TimeoutExpired):
            end.wait(timeout=5)
