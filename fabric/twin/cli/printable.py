"""Which keys print themselves: found once for all sessions.

asyncssh's line editor looks through 65,536 characters for them (16 ms) when it is made
and at each key that gets a handler: more than all the rest of a log-in.
"""

from __future__ import annotations

import re

from asyncssh.editor import SSHLineEditor

_NAME = "_build_printable"


def share_printable() -> None:
    """Let editors of the same keys share what they found; a release without it is left as is."""
    build = getattr(SSHLineEditor, _NAME, None)
    if build is None or hasattr(build, "shared"):
        return
    shared: dict[frozenset[str], re.Pattern[str]] = {}

    def build_once(editor: SSHLineEditor) -> None:
        keys = frozenset(editor._keymap)
        if keys not in shared:
            build(editor)
            shared[keys] = editor._printable
        editor._printable = shared[keys]

    build_once.shared = shared  # type: ignore[attr-defined]
    setattr(SSHLineEditor, _NAME, build_once)
