"""Files as people save them: ``dcb`` without ``-j``, with other options, of other parts.

``dcb pfc show dev IF`` prints the same as text that ``dcb -j pfc show dev IF`` prints as
JSON; both are read (``fabric.devices.dcb.text``). Of EOS, ``show version`` as text is
taken for what ``show version | json`` has of it; text as in Arista's EOS User Manual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_FILE = re.compile(
    r"dcb_(?P<options>(?:-[A-Za-z]+_)*)(?P<kind>[a-z]+)_show_dev_(?P<port>[\w.-]+)\.txt"
)
_READ = ("pfc", "ets", "app", "dcbx")
_WHY_NOT = {
    "maxrate": "which unit its rates have depends on the release; save "
    "`for words in -V '-j maxrate show dev IF'; do dcb $words; done 2>/dev/null || true`",
    "buffer": "of buffers mlnx_qos is read",
}

_VERSION, _VERSION_JSON = "show_version.txt", "show_version___json.txt"
_EOS_MODEL = re.compile(r"^Arista (\S+)\s*$", re.MULTILINE)
_EOS_RELEASE = re.compile(r"^Software image version:\s*(\S+)", re.MULTILINE)


def named_as_read(files: Mapping[str, str], device: str, notes: list[str]) -> dict[str, str]:
    """The files, those of ``dcb`` and EOS under the names of the commands that are read.

    What is not read is noted, with the reason. A file that has such a name already goes
    before others; names of switches, which are asked with ``-N``, are left as they are.
    """
    found = dict(files)
    model = _EOS_MODEL.search(files.get(_VERSION, ""))
    if model and _VERSION_JSON not in files:
        release = _EOS_RELEASE.search(found.pop(_VERSION))
        told = {"modelName": model[1]} | ({"version": release[1]} if release else {})
        found[_VERSION_JSON] = json.dumps(told)
    for name, text in files.items():
        match = _FILE.fullmatch(name)
        if match is None or {"-N", "-j"} <= set(match["options"].split("_")):
            continue
        if match["kind"] in _WHY_NOT:
            del found[name]
            notes.append(f"{device}/{name}: not read: {_WHY_NOT[match['kind']]}")
        elif match["kind"] in _READ:
            rest = f"{match['kind']}_show_dev_{match['port']}.txt"
            names = [f"dcb_-j_{rest}"]
            if match["kind"] == "pfc" and "s" in match["options"]:
                names.insert(0, f"dcb_-j_-s_{rest}")
            if name not in names:
                del found[name]
            for wanted in names:
                if wanted not in files:
                    found[wanted] = text
    return found
