"""``dcb``: the kernel's own view of PFC, ETS, DSCP map and buffers (iproute2).

``dcb [-j] [-N] pfc|ets|app|buffer show dev IF``, and ``dcb pfc set dev IF
prio-pfc P:on ...``. Text and JSON as iproute2 6.1 prints them.
"""

from __future__ import annotations

import sys

from . import driver
from .files import PRIORITIES, Host, Nic, NicState

DSCP_NAMES = {
    0: "CS0", 8: "CS1", 16: "CS2", 24: "CS3", 32: "CS4", 40: "CS5", 48: "CS6", 56: "CS7",
    10: "AF11", 12: "AF12", 14: "AF13", 18: "AF21", 20: "AF22", 22: "AF23",
    26: "AF31", 28: "AF32", 30: "AF33", 34: "AF41", 36: "AF42", 38: "AF43", 46: "EF",
}  # fmt: skip


def main(host: Host, arguments: list[str]) -> int:
    """Run the program; its exit status."""
    flags = {word for word in arguments if word.startswith("-")}
    words = [word for word in arguments if not word.startswith("-")]
    if flags & {"-V", "--Version"}:
        print("dcb utility, iproute2-6.1.0")
        return 0
    kind = words.pop(0) if words else ""
    if kind not in SHOWS:
        sys.stderr.write(f'Object "{kind}" is unknown, try "dcb help".\n')
        return 255
    command = words.pop(0) if words else "show"
    if "dev" not in words or words[-1] == "dev":
        sys.stderr.write("Error: Interface is not specified\n")
        return 255
    at = words.index("dev")
    name = words[at + 1]
    rest = words[:at] + words[at + 2 :]
    nic = host.nic(name)
    if nic is None:
        sys.stderr.write(f'Cannot find device "{name}"\n')
        return 255
    if command == "show":
        text, values = SHOWS[kind](nic.state(), bool(flags & {"-N", "--Numeric"}))
        if flags & {"-j", "--json", "-jp", "-pj"}:
            import json

            print(json.dumps(values, separators=(",", ":")))
        else:
            print(text)
        return 0
    if kind == "pfc" and command == "set" and rest and rest[0] == "prio-pfc":
        return _set_pfc(nic, rest[1:])
    sys.stderr.write(f'Command "{command}" is unknown, try "dcb {kind} help".\n')
    return 255


def _set_pfc(nic: Nic, changes: list[str]) -> int:
    with nic.edit() as state:
        enabled = list(state.pfc)
        for change in changes:
            priority, _, value = change.partition(":")
            if value not in ("on", "off") or priority not in ("all", *"01234567"):
                sys.stderr.write(f'Command "prio-pfc" is wrong at "{change}"\n')
                return 255
            for index in range(PRIORITIES) if priority == "all" else (int(priority),):
                enabled[index] = int(value == "on")
        try:
            driver.set_pfc(state, enabled, 0, nic.mtu, int(nic.facts["speed_mbps"]))
        except driver.Refused as refusal:
            sys.stderr.write(f"Attribute write: {refusal}\n")
            return 255
    return 0


def _pfc(state: NicState, _: bool) -> tuple[str, dict[str, object]]:
    switches = " ".join(f"{p}:{'on' if on else 'off'}" for p, on in enumerate(state.pfc))
    text = f"pfc-cap 8 macsec-bypass off delay {state.cable_len[0]}\nprio-pfc {switches} "
    return text, {
        "pfc_cap": PRIORITIES,
        "macsec_bypass": False,
        "delay": state.cable_len[0],
        "prio_pfc": [bool(on) for on in state.pfc],
    }


def _ets(state: NicState, _: bool) -> tuple[str, dict[str, object]]:
    kinds = [driver.TSA_NAMES[kind] for kind in state.tsa]
    lines = ["willing off ets-cap 8 cbs off"]
    lines += ["tc-bw " + " ".join(f"{i}:{v}" for i, v in enumerate(state.tc_bw))]
    lines += ["tc-tsa " + " ".join(f"{i}:{v}" for i, v in enumerate(kinds))]
    lines += ["prio-tc " + " ".join(f"{i}:{v}" for i, v in enumerate(state.prio_tc))]
    return "\n".join(lines), {
        "willing": False,
        "ets_cap": PRIORITIES,
        "cbs": False,
        "tc_bw": state.tc_bw,
        "tc_tsa": kinds,
        "prio_tc": state.prio_tc,
    }


def _app(state: NicState, numeric: bool) -> tuple[str, dict[str, object]]:
    entries = sorted(state.app_table())
    names = [
        f"{dscp if numeric else DSCP_NAMES.get(dscp, dscp)}:{priority}"
        for dscp, priority in entries
    ]
    text = f"dscp-prio {' '.join(names)} " if names else ""
    return text, {"dscp_prio": [list(entry) for entry in entries]} if entries else {}


def _buffer(state: NicState, _: bool) -> tuple[str, dict[str, object]]:
    sizes = " ".join(f"{i}:{size}" for i, size in enumerate(state.buffer_size))
    mapping = " ".join(f"{i}:{buffer}" for i, buffer in enumerate(state.prio2buffer))
    text = f"prio-buffer {mapping} \nbuffer-size {sizes} \ntotal-size {state.max_buffer[0]} "
    return text, {
        "prio_buffer": state.prio2buffer,
        "buffer_size": state.buffer_size,
        "total_size": state.max_buffer[0],
    }


SHOWS = {"pfc": _pfc, "ets": _ets, "app": _app, "buffer": _buffer}
