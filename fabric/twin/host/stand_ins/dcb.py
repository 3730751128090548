"""``dcb``: the kernel's view of PFC, ETS, DSCP map, buffers, rate limits, DCBX (iproute2).

``dcb [-j] [-N] [-s] pfc|ets|app|buffer|dcbx|maxrate show dev IF``, and ``set``, ``add``,
``del``, ``replace``, ``flush`` as far as drivers take them. Text, JSON and complaints
as iproute2 6.1 prints them (dcb/*.c). What a driver takes is in ``dcbnl``.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator

from . import driver
from .dcbnl import Mlx5, dcbnl_of
from .files import DSCPS, PRIORITIES, Host, Nic, NicState, read_pairs

DSCP_NAMES = {
    0: "CS0", 8: "CS1", 16: "CS2", 24: "CS3", 32: "CS4", 40: "CS5", 48: "CS6", 56: "CS7",
    10: "AF11", 12: "AF12", 14: "AF13", 18: "AF21", 20: "AF22", 22: "AF23",
    26: "AF31", 28: "AF32", 30: "AF33", 34: "AF41", 36: "AF42", 38: "AF43", 46: "EF",
}  # fmt: skip
FAILED = 1
SYNTAX = 255
FULL = 100


class Stop(Exception):  # noqa: N818 - ends the program with this status
    """Leave with a status after printing a complaint."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        sys.stderr.write(f"{text}\n")
        self.status = status


def main(host: Host, arguments: list[str]) -> int:
    """Run the program; its exit status."""
    try:
        return _run(host, arguments)
    except Stop as stop:
        return stop.status


def _run(host: Host, arguments: list[str]) -> int:
    flags = {word for word in arguments if word.startswith("-")}
    words = [word for word in arguments if not word.startswith("-")]
    if flags & {"-V", "--Version"}:
        print("dcb utility, iproute2-6.1.0")
        return 0
    kind = words.pop(0) if words else ""
    if kind not in SHOWS:
        raise Stop(f'Object "{kind}" is unknown, try "dcb help".', SYNTAX)
    command = words.pop(0) if words else "show"
    if "dev" not in words or words[-1] == "dev":
        raise Stop("Error: Interface is not specified", SYNTAX)
    at = words.index("dev")
    rest = words[:at] + words[at + 2 :]
    nic = host.nic(words[at + 1])
    if nic is None:
        raise Stop(f'Cannot find device "{words[at + 1]}"', SYNTAX)
    if command == "show":
        _show(nic, kind, flags, rest)
        return 0
    change = CHANGES.get((kind, command))
    if change is None or not rest:
        raise Stop(f'Command "{command}" is unknown, try "dcb {kind} help".', SYNTAX)
    with nic.edit() as state:
        try:
            change(dcbnl_of(nic), state, rest)
        except driver.Refused as refusal:
            raise Stop(f"Attribute write: {refusal}") from None
    return 0


def _show(nic: Nic, kind: str, flags: set[str], names: list[str]) -> None:
    numeric = bool(flags & {"-N", "--Numeric"} or "-Nj" in flags)
    text, values = SHOWS[kind](nic, nic.state(), numeric)
    if names:
        keys = {name.replace("-", "_") for name in names}
        text = "\n".join(line for line in text.splitlines() if line.split(" ")[0] in names)
        values = {name: value for name, value in values.items() if name in keys}
    if flags & {"-s", "--statistics"} and kind == "pfc":
        more = _statistics(nic)
        values |= more
        for name, counts in more.items():
            row = " ".join(f"{p}:{count}" for p, count in enumerate(counts))
            text += f"\n{name} {row} "
    if flags & {"-j", "--json", "-jp", "-pj"}:
        import json

        print(json.dumps(values, separators=(",", ":")))
    elif text:
        print(text)


def _statistics(nic: Nic) -> dict[str, list[int]]:
    """PFC frames sent (requests) and received (indications), as the driver counts them."""
    from .factory import pause_names

    counters = read_pairs(f"{nic.folder}/counters")
    sent, received = pause_names(nic.family)
    return {
        "requests": [int(counters.get(sent.format(p), 0)) for p in range(PRIORITIES)],
        "indications": [int(counters.get(received.format(p), 0)) for p in range(PRIORITIES)],
    }


def _mappings(words: list[str], highest: int) -> Iterator[tuple[int, str]]:
    """``KEY:VALUE`` words up to the next keyword, which stays; ``all`` for every key."""
    while words and ":" in words[0]:
        key, _, value = words.pop(0).partition(":")
        if key == "all":
            yield from ((number, value) for number in range(highest))
            continue
        if not key.isdigit() or int(key) >= highest:
            raise Stop(f'Invalid mapping "{key}:{value}"')
        yield int(key), value


def _number(text: str, highest: int, what: str) -> int:
    if not text.isdigit() or int(text) > highest:
        raise Stop(f"{text} is not a valid {what}, expected 0..{highest}")
    return int(text)


def _set_pfc(rules: Mlx5, state: NicState, words: list[str]) -> None:
    enabled = list(state.pfc)
    while words:
        keyword = words.pop(0)
        if keyword != "prio-pfc":
            raise Stop(f'What is "{keyword}"?')
        for priority, value in _mappings(words, PRIORITIES):
            if value not in ("on", "off"):
                raise Stop(f'Error: argument of "PFC" must be one of "on, off", not "{value}"')
            enabled[priority] = int(value == "on")
    rules.set_pfc(state, enabled)


def _set_ets(rules: Mlx5, state: NicState, words: list[str]) -> None:
    mapping, kinds, shares = list(state.prio_tc), list(state.tsa), list(state.tc_bw)
    numbers = {name: number for number, name in driver.TSA_NAMES.items()}
    willing = state.willing[0]
    while words:
        keyword = words.pop(0)
        if keyword == "willing":
            willing = int(words.pop(0) == "on")
        elif keyword == "tc-tsa":
            for index, name in _mappings(words, PRIORITIES):
                if name not in numbers:
                    raise Stop(f'Error: argument of "TSA" is wrong: "{name}"')
                kinds[index] = numbers[name]
        elif keyword == "tc-bw":
            for index, text in _mappings(words, PRIORITIES):
                shares[index] = _number(text, FULL, "BW")
        elif keyword == "prio-tc":
            for index, text in _mappings(words, PRIORITIES):
                mapping[index] = _number(text, PRIORITIES - 1, "TC")
        else:
            raise Stop(f'What is "{keyword}"?')
    has_ets = driver.ETS in kinds
    expected = FULL if has_ets else 0
    if sum(shares) != FULL and not (not has_ets and sum(shares) == 0):
        raise Stop(f"Bandwidth percentages in tc-bw sum to {sum(shares)}%, expected {expected}%")
    rules.set_ets(state, mapping, kinds, shares)
    state.willing = [willing]


def _entries(words: list[str]) -> list[tuple[int, int]]:
    keyword = words.pop(0)
    if keyword != "dscp-prio":
        raise Stop(f'What is "{keyword}"?')
    by_name = {name: str(dscp) for dscp, name in DSCP_NAMES.items()}
    words[:] = [
        f"{by_name.get(key, key)}:{value}"
        for key, _, value in (word.partition(":") for word in words)
    ]
    found = [(d, _number(p, PRIORITIES - 1, "PRIO")) for d, p in _mappings(words, DSCPS)]
    if words:
        raise Stop(f'What is "{words[0]}"?')
    return found


def _add_apps(rules: Mlx5, state: NicState, words: list[str]) -> None:
    for dscp, priority in _entries(words):
        rules.set_app(state, dscp, priority)


def _delete_apps(rules: Mlx5, state: NicState, words: list[str]) -> None:
    for dscp, priority in _entries(words):
        rules.delete_app(state, dscp, priority)


def _replace_apps(rules: Mlx5, state: NicState, words: list[str]) -> None:
    """As the program does: add, then delete what the new entries replace."""
    entries = _entries(words)
    before = state.app_table()
    for entry in entries:
        if entry not in before:
            rules.set_app(state, *entry)
    named = {dscp for dscp, _ in entries}
    for entry in before:
        if entry[0] in named and entry not in entries and entry in state.app_table():
            rules.delete_app(state, *entry)


def _flush_apps(rules: Mlx5, state: NicState, words: list[str]) -> None:
    if words != ["dscp-prio"]:
        raise Stop(f'What is "{words[0]}"?')
    for dscp, priority in state.app_table():
        rules.delete_app(state, dscp, priority)


def _set_dcbx(rules: Mlx5, state: NicState, words: list[str]) -> None:
    known = ("host", "lld-managed", "cee", "ieee", "static")
    for word in words:
        if word not in known:
            raise Stop(f'What is "{word}"?')
    rules.set_dcbx(state, words)


# lib/utils.c: what a suffix multiplies by to give bits a second.
_SUFFIXES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12, "bps": 8,
             "": 1}  # fmt: skip


def _set_maxrate(rules: Mlx5, state: NicState, words: list[str]) -> None:
    """Rates as 6.1 hands them on: bytes a second where the kernel wants kbit/s."""
    limits = list(state.maxrate_kbps)
    while words:
        keyword = words.pop(0)
        if keyword != "tc-maxrate":
            raise Stop(f'What is "{keyword}"?')
        for index, text in _mappings(words, PRIORITIES):
            digits = "".join(itertools.takewhile(str.isdigit, text))
            factor = _SUFFIXES.get(text[len(digits) :].lower())
            if factor is None or not digits:
                raise Stop(f'Invalid mapping "{index}:{text}"')
            limits[index] = int(digits) * factor // 8
    rules.set_maxrate(state, limits)


def _rate_text(bytes_a_second: int) -> str:
    """As print_rate writes it (lib/json_print.c)."""
    rate, unit = bytes_a_second * 8, 0
    while unit < 4 and rate >= 1000 and (rate % 1000 == 0 or rate >= 1000 * 1000):
        rate, unit = rate // 1000, unit + 1
    return f"{rate}{('', 'K', 'M', 'G', 'T')[unit]}bit"


def _maxrate(nic: Nic, state: NicState, _: bool) -> tuple[str, dict[str, object]]:
    if nic.family in ("bnxt", "irdma"):
        raise Stop("Attribute read: Operation not supported")
    # 6.1 takes the kernel's kbit/s for bytes a second.
    rates = " ".join(f"{tc}:{_rate_text(kbps)}" for tc, kbps in enumerate(state.maxrate_kbps))
    return f"tc-maxrate {rates} ", {"tc_maxrate": list(state.maxrate_kbps)}


def _pfc(nic: Nic, state: NicState, _: bool) -> tuple[str, dict[str, object]]:
    cap = dcbnl_of(nic).pfc_cap
    switches = " ".join(f"{p}:{'on' if on else 'off'}" for p, on in enumerate(state.pfc))
    text = f"pfc-cap {cap} macsec-bypass off delay {state.cable_len[0]} \nprio-pfc {switches} "
    return text, {
        "pfc_cap": cap,
        "macsec_bypass": False,
        "delay": state.cable_len[0],
        "prio_pfc": [bool(on) for on in state.pfc],
    }


def _ets(_: Nic, state: NicState, __: bool) -> tuple[str, dict[str, object]]:
    kinds = [driver.TSA_NAMES[kind] for kind in state.tsa]
    rows: dict[str, list[int] | list[str]] = {
        "tc_bw": state.tc_bw,
        "pg_bw": [0] * PRIORITIES,
        "tc_tsa": kinds,
        "prio_tc": state.prio_tc,
        "reco_tc_bw": [0] * PRIORITIES,
        "reco_tc_tsa": ["strict"] * PRIORITIES,
        "reco_prio_tc": [0] * PRIORITIES,
    }
    willing = "on" if state.willing[0] else "off"
    lines = [f"willing {willing} ets-cap {PRIORITIES} cbs off "]
    for name, values in rows.items():
        row = " ".join(f"{index}:{value}" for index, value in enumerate(values))
        lines.append(f"{name.replace('_', '-')} {row} ")
    head = {"willing": bool(state.willing[0]), "ets_cap": PRIORITIES, "cbs": False}
    return "\n".join(lines), {**head, **rows}


def _app(_: Nic, state: NicState, numeric: bool) -> tuple[str, dict[str, object]]:
    entries = sorted(state.app_table())
    names = [
        f"{dscp if numeric else DSCP_NAMES.get(dscp, dscp)}:{priority}"
        for dscp, priority in entries
    ]
    text = f"dscp-prio {' '.join(names)} " if names else ""
    return text, {"dscp_prio": [list(entry) for entry in entries]} if entries else {}


def _buffer(nic: Nic, state: NicState, _: bool) -> tuple[str, dict[str, object]]:
    if nic.family in ("bnxt", "irdma"):
        raise Stop("Attribute read: Operation not supported")
    sizes = " ".join(f"{i}:{size}" for i, size in enumerate(state.buffer_size))
    mapping = " ".join(f"{i}:{buffer}" for i, buffer in enumerate(state.prio2buffer))
    text = f"prio-buffer {mapping} \nbuffer-size {sizes} \ntotal-size {state.max_buffer[0]} "
    return text, {
        "prio_buffer": state.prio2buffer,
        "buffer_size": state.buffer_size,
        "total_size": state.max_buffer[0],
    }


def _dcbx(nic: Nic, state: NicState, _: bool) -> tuple[str, dict[str, object]]:
    flags = dcbnl_of(nic).dcbx(state)
    values: dict[str, object] = {flag.replace("-", "_"): True for flag in flags}
    return "".join(f"{flag} " for flag in flags), values


SHOWS: dict[str, Callable[[Nic, NicState, bool], tuple[str, dict[str, object]]]] = {
    "pfc": _pfc,
    "ets": _ets,
    "app": _app,
    "buffer": _buffer,
    "dcbx": _dcbx,
    "maxrate": _maxrate,
}
CHANGES: dict[tuple[str, str], Callable[[Mlx5, NicState, list[str]], None]] = {
    ("pfc", "set"): _set_pfc,
    ("ets", "set"): _set_ets,
    ("app", "add"): _add_apps,
    ("app", "del"): _delete_apps,
    ("app", "replace"): _replace_apps,
    ("app", "flush"): _flush_apps,
    ("dcbx", "set"): _set_dcbx,
    ("maxrate", "set"): _set_maxrate,
}
