"""The shell script that carries out a host's change, or takes it back, in one round trip.

Plain POSIX sh, read from standard input: nothing has to be installed on the host.
Files are replaced whole or not at all. A second script waits for the first one (a
lock on ``/etc`` itself, which leaves nothing behind). A file that is not byte for byte
what the plan quotes of it (no newline at its end, another encoding) is kept beside
itself, as ``PATH.before-DIGEST``, and that is what a roll-back restores.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence

from fabric.devices.base import FileChange

# The script says so where it changed anything.
CHANGED = "paisoar: changed"

WAIT_S = 120
_BUSY = (
    f"a change that was sent earlier is still at work on this host after {WAIT_S} s; "
    "see what it waits for: fuser -v /etc"
)

_HEAD = f"""\
umask 022
# Where SSH broke, the script that was sent before this one may still be at work.
if command -v flock > /dev/null; then
    exec 9< /etc
    flock -w {WAIT_S} 9 || {{ echo {shlex.quote(_BUSY)} >&2; exit 1; }}
fi
files=0
failed=0
changed() {{ [ "$1" = 0 ] || echo {shlex.quote(CHANGED)}; }}
# write PATH MODE CONTENT: nothing where the file is so already. A mode that lets its
# owner do what MODE does stays: who has closed a file to others had a reason.
write() {{
    mode=$2
    if [ -f "$1" ]; then
        mode=0$(stat -c %a "$1")
        [ $((mode & $2 & 0700)) = $(($2 & 0700)) ] || mode=$2
        if [ "$(cat "$1"; echo x)" = "$3x" ]; then
            chmod "$mode" "$1"
            return
        fi
    fi
    mkdir -p "$(dirname "$1")" &&
        printf %s "$3" > "$1.paisoar" &&
        chmod "$mode" "$1.paisoar" &&
        mv -f "$1.paisoar" "$1" &&
        files=1
}}
# keep PATH KEPT CONTENT: a copy of what CONTENT does not hold; copies of earlier runs go.
keep() {{
    rm -f "$1".before-*
    [ ! -f "$1" ] || [ "$(cat "$1"; echo x)" = "$3x" ] || cp -p "$1" "$2"
}}
# restore PATH KEPT MODE CONTENT
restore() {{
    if [ -f "$2" ]; then
        mv -f "$2" "$1" && files=1
    else
        write "$1" "$3" "$4"
    fi
}}
# away PATH
away() {{
    [ -e "$1" ] || return 0
    rm -f "$1" && files=1
    rmdir "$(dirname "$1")" 2> /dev/null || :
}}
reload() {{ [ "$files" = 0 ] || systemctl daemon-reload; }}
"""


def apply_script(files: Sequence[FileChange], commands: Sequence[str]) -> str:
    """Write the files, reload systemd, run the commands; the first failure stops.

    What failed is on stderr, with what it said before it.
    """
    lines = [_HEAD, _stopping("stop")]
    for file in files:
        if file.before is not None:
            keep = ("keep", file.path, _kept(file), file.before)
            lines.append(_step(shlex.join(keep), f"keep {file.path}", "stop"))
        lines.append(_step(_file(file), f"write {file.path}", "stop"))
    lines.append(_step("reload", "systemctl daemon-reload", "stop"))
    lines += [_step(command, command, "stop") for command in commands]
    lines.append(f"changed {1 if commands else '$files'}")
    return "\n".join(lines) + "\n"


def rollback_script(files: Sequence[FileChange], commands: Sequence[str]) -> str:
    """Run the commands, restore the files, reload systemd; a failure stops nothing.

    Commands come first: a unit can only be disabled while its file is there. The
    script fails at its end where anything failed.
    """
    lines = [_HEAD, _stopping("note")]
    lines += [_step(command, command, "note") for command in commands]
    for file in files:
        lines.append(_step(_restored(file), f"restore {file.path}", "note"))
    lines.append(_step("reload", "systemctl daemon-reload", "note"))
    lines.append(f"changed {1 if commands else '$files'}")
    lines.append('exit "$failed"')
    return "\n".join(lines) + "\n"


def _file(file: FileChange) -> str:
    if file.after is None:
        return shlex.join(("away", file.path))
    return shlex.join(("write", file.path, file.mode, file.after))


def _restored(file: FileChange) -> str:
    if file.before is None:
        return shlex.join(("away", file.path))
    return shlex.join(("restore", file.path, _kept(file), file.mode, file.before))


def _kept(file: FileChange) -> str:
    digest = hashlib.sha256((file.before or "").encode()).hexdigest()[:8]
    return f"{file.path}.before-{digest}"


def _stopping(name: str) -> str:
    end = "exit 1" if name == "stop" else "failed=1"
    said = 'printf \'%s\\nThis command failed: %s\\n\' "$(cat "$said")" "$1" >&2'
    return f"said=$(mktemp) || exit 1\ntrap 'rm -f \"$said\"' EXIT\n{name}() {{ {said}; {end}; }}"


def _step(command: str, name: str, otherwise: str) -> str:
    # Its input is not the rest of this script. A newline ends what may be a comment.
    # A subshell would forget that a file was written; an ``exit`` inside needs one.
    if command.startswith(("keep ", "write ", "restore ", "away ")) or command == "reload":
        return f'{command} > "$said" 2>&1 || {otherwise} {shlex.quote(name)}'
    return f'( {command}\n) < /dev/null > "$said" 2>&1 9<&- || {otherwise} {shlex.quote(name)}'
