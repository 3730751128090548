"""``mlnx_qos``: trust, DSCP map, PFC, ETS and receive buffers of a ConnectX port.

Options, order of execution, output and error texts follow version 1.2 of the
program (Mellanox/mlnx-tools, python/mlnx_qos), in its netlink form: what it
prints when the driver has no ``/sys/class/net/IF/qos``.
"""

from __future__ import annotations

import sys

from . import driver
from .files import DSCPS, PRIORITIES, Host, Nic, NicState

USAGE = "Usage: mlnx_qos -i <interface> [options]\n"
BAD_VALUE = "Netlink error: Bad value. see dmesg."
VERSION = "mlnx_qos 1.2"

# Short and long names of the options that take a value, then of the flags.
VALUED = {
    "-f": "pfc",
    "-F": "specific_pfc",
    "-P": "get_pfc",
    "-p": "prio_tc",
    "-s": "tsa",
    "-t": "tcbw",
    "-r": "ratelimit",
    "-d": "dcbx",
    "-i": "interface",
    "": "trust dscp2prio defltprio cable_len prio2buffer buffer_size",
}
FLAGS = {"-a": "a", "-h": "help", "--help": "help", "--version": "version"}


class Stop(Exception):  # noqa: N818 - ends the program with this status, often a good one
    """Leave with a status after printing what is to be printed."""

    def __init__(self, status: int, text: str = "", *, usage: bool = False) -> None:
        super().__init__(text)
        if text:
            print(text)
        if usage:
            print(USAGE)
        self.status = status


def main(host: Host, arguments: list[str]) -> int:
    """Run the program; its exit status."""
    try:
        options = parse(arguments)
        names = options.get("interface")
        if not names:
            raise Stop(1, "Interface name is required", usage=True)
        nic = host.nic(names[-1])
        if nic is None:
            return _no_such_interface(options)
        if not set(options) - {"interface", "a"}:
            show(nic.state(), show_all="a" in options)
            return 0
        with nic.edit() as state:
            return _set_and_show(nic, state, options)
    except Stop as stop:
        return stop.status


def parse(arguments: list[str]) -> dict[str, list[str]]:
    """Values of each option by its long name, as optparse reads them."""
    longs = [name for short, names in VALUED.items() for name in names.split()]
    options: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in FLAGS:
            if FLAGS[word] == "version":
                raise Stop(0, VERSION)
            if FLAGS[word] == "help":
                print(USAGE)
                print("Options: " + " ".join(f"--{name}" for name in longs))
                raise Stop(0)
            options[FLAGS[word]] = []
            continue
        if word.startswith("--") and len(word) > 2:
            typed, equals, value = word[2:].partition("=")
            matches = [typed] if typed in longs else [n for n in longs if n.startswith(typed)]
            if len(matches) != 1:
                _usage_error(f"no such option: --{typed}" if not matches else f"ambiguous: {word}")
            name, given = matches[0], value if equals else None
            shown = f"--{name}"
        elif word.startswith("-") and word[:2] in VALUED and word != "-":
            name, shown, given = VALUED[word[:2]], word[:2], word[2:] or None
        elif word.startswith("-") and word != "-":
            _usage_error(f"no such option: {word[:2]}")
        else:
            raise Stop(1, "Bad arguments", usage=True)
        if given is None:
            if not rest:
                _usage_error(f"{shown} option requires 1 argument")
            given = rest.pop(0)
        options.setdefault(name, []).append(given)
    return options


def _usage_error(text: str) -> None:
    sys.stderr.write(f"{USAGE}\nmlnx_qos: error: {text}\n")
    raise Stop(2)


def _no_such_interface(options: dict[str, list[str]]) -> int:
    """What the program prints when netlink does not know the interface."""
    if {"dcbx", "cable_len", "get_pfc", "specific_pfc", "pfc"} & set(options):
        sys.stderr.write("OSError: Netlink error: No such device (19)\n")
        return 1
    if "dscp2prio" in options:
        raise Stop(1, "dscp2prio command failed")
    print("Priority trust state is not supported on your system")
    if "trust" in options:
        return 1
    print("Buffers commands are not supported on your system")
    if {"buffer_size", "prio2buffer"} & set(options):
        return 1
    print("Rate limit is not supported on your system!")
    print("ETS features are not supported on your system")
    return 1


def _set_and_show(nic: Nic, state: NicState, options: dict[str, list[str]]) -> int:
    """Carry out the options in the program's own order; what was set before an error stays."""
    last = {name: values[-1] for name, values in options.items() if values}
    try:
        _set_dcbx(state, last.get("dcbx", ""))
        if _set_pfc(nic, state, last):
            return 0
        _set_dscp_map(state, options.get("dscp2prio", []), last.get("trust", ""))
        _set_default_priority(last.get("defltprio", ""))
        _set_trust(state, last.get("trust", ""))
        _set_buffers(nic, state, last.get("prio2buffer", ""), last.get("buffer_size", ""))
        _set_rate_limit(state, last.get("ratelimit", ""))
        _set_ets(state, last.get("prio_tc", ""), last.get("tsa", ""), last.get("tcbw", ""))
    except Stop as stop:
        return stop.status
    show(state, show_all="a" in options)
    return 0


def _integer(text: str, low: int, high: int, what: str) -> int:
    try:
        value = int(text)
    except ValueError as error:
        raise Stop(1, f"Bad value for {what}: {error}", usage=True) from None
    if not low <= value <= high:
        raise Stop(
            1, f"Bad value for {what}: {value} is not in the range {low}..{high}", usage=True
        )
    return value


def _list_of(text: str, too_many: str) -> list[str]:
    items = text.split(",")
    if len(items) > PRIORITIES:
        raise Stop(1, f"Too many items {too_many}")
    return items


def _set_dcbx(state: NicState, mode: str) -> None:
    if mode == "os":
        state.dcbx_os = [1]
    elif mode == "fw":
        state.dcbx_os = [0]
    elif mode and mode != "get":
        raise Stop(1, "Invalid dcbx mode command. Refer to the help.")


def _set_pfc(nic: Nic, state: NicState, last: dict[str, str]) -> bool:
    """Cable length and PFC; True where the option prints for itself and ends."""
    speed = int(nic.facts["speed_mbps"])
    if last.get("cable_len"):
        metres = _integer(last["cable_len"], 0, 0xFFFF, "cable_len")
        _drive_pfc(nic, state, state.pfc, metres, speed, "pfc delay")
    if last.get("get_pfc"):
        index = _integer(last["get_pfc"], -(1 << 31), 1 << 31, "pfc index")
        if index not in range(PRIORITIES):
            raise Stop(1, "pfc index must be in range of 0-7")
        print(state.pfc[index])
        return True
    if last.get("specific_pfc"):
        items = last["specific_pfc"].split(",")
        if len(items) != PRIORITIES:
            raise Stop(1, "pfc list must have 8 items")
        enabled = []
        for item, now in zip(items, state.pfc, strict=True):
            if item not in ("x", "0", "1"):
                raise Stop(1, f"Bad value for 'PFC': {item}")
            enabled.append(now if item == "x" else int(item))
        _drive_pfc(nic, state, enabled, state.cable_len[0], speed, "pfc")
        return True
    if last.get("pfc"):
        items = _list_of(last["pfc"], "for PFC")
        enabled = [_integer(item, 0, 1, "PFC") for item in items]
        if len(enabled) != PRIORITIES:
            raise Stop(1, "pfc list must have 8 items")
        _drive_pfc(nic, state, enabled, state.cable_len[0], speed, "pfc")
    return False


def _drive_pfc(
    nic: Nic, state: NicState, enabled: list[int], metres: int, speed: int, what: str
) -> None:
    try:
        driver.set_pfc(state, enabled, metres, nic.mtu, speed)
    except driver.Refused:
        sys.stderr.write(f"mlnx_qos: Error setting {what}: {BAD_VALUE}\n")
        raise Stop(1) from None


def _set_dscp_map(state: NicState, changes: list[str], trust: str) -> None:
    if changes and trust:
        raise Stop(1, "trust and dscp2prio commands cannot be used at the same time.")
    wanted = []
    for change in changes:
        if change == "flush":
            wanted.append((change, 0, 0))
            continue
        try:
            action, dscp_text, priority_text = change.split(",")
            dscp, priority = int(dscp_text), int(priority_text)
        except ValueError:
            action, dscp, priority = "", 0, 0
        if action not in ("set", "del") or not (0 <= dscp < DSCPS and 0 <= priority < PRIORITIES):
            raise Stop(1, "Invalid dscp2prio command. Refer to the help.")
        wanted.append((action, dscp, priority))
    try:
        for action, dscp, priority in wanted:
            if action == "set":
                driver.set_app(state, dscp, priority)
            elif action == "del":
                driver.delete_app(state, dscp, priority)
            else:
                _flush(state)
    except driver.Refused:
        raise Stop(1, "dscp2prio command failed") from None


def _flush(state: NicState) -> None:
    for dscp, priority in state.app_table():
        driver.delete_app(state, dscp, priority)


def _set_default_priority(change: str) -> None:
    if not change:
        return
    action, _, text = change.partition(",")
    if action not in ("set", "del") or text not in "01234567" or not text:
        raise Stop(1, "Invalid defltprio command. Refer to the help.")
    # The mlx5 driver takes DSCP entries only.
    raise Stop(1, "defltprio command failed")


def _set_trust(state: NicState, wanted: str) -> None:
    if not wanted:
        return
    if wanted not in ("dscp", "pcp"):
        raise Stop(1, "Invalid trust state command. Refer to the help.")
    if wanted == driver.trust(state):
        return
    if wanted == "pcp":
        _flush(state)
    else:
        for dscp in range(DSCPS):
            driver.set_app(state, dscp, dscp >> 3)


def _set_buffers(nic: Nic, state: NicState, prio2buffer: str, sizes: str) -> None:
    if not (prio2buffer or sizes):
        return
    mapping, buffers = list(state.prio2buffer), list(state.buffer_size)
    if prio2buffer:
        for index, item in enumerate(_list_of(prio2buffer, "for prio2buffer")):
            mapping[index] = _integer(item, 0, PRIORITIES - 1, "prio buffer")
    try:
        if sizes:
            for index, item in enumerate(_list_of(sizes, "for buffer_size")):
                buffers[index] = int(item)
        driver.set_buffers(state, buffers, mapping, nic.mtu, int(nic.facts["speed_mbps"]))
    except (ValueError, driver.Refused):
        raise Stop(1, "Buffers commands error") from None


def _set_rate_limit(state: NicState, limits: str) -> None:
    if not limits:
        return
    items = _list_of(limits, "for ratelimit")
    gbps = [_integer(item, 0, 1_000_000, "ratelimit") for item in items]
    if len(gbps) != PRIORITIES:
        raise Stop(1, "ratelimit must have 8 items")
    driver.set_maxrate(state, [value * 1_000_000 for value in gbps])


def _eight(text: str, what: str) -> None:
    if len(text.split(",")) != PRIORITIES:
        raise Stop(1, f"{what} list must have 8 items")


def _set_ets(state: NicState, prio_tc: str, tsa: str, tc_bw: str) -> None:
    mapping, kinds, shares = list(state.prio_tc), list(state.tsa), list(state.tc_bw)
    if tsa:
        numbers = {name: number for number, name in driver.TSA_NAMES.items()}
        for index, item in enumerate(_list_of(tsa, "for TSA")):
            if item not in numbers:
                raise Stop(1, f"('Bad TSA value: ', '{item}')", usage=True)
            kinds[index] = numbers[item]
        _eight(tsa, "tsa")
    if tc_bw:
        for index, item in enumerate(_list_of(tc_bw, "for ETS BW")):
            shares[index] = _integer(item, 0, 100, "ETS BW")
            if kinds[index] != driver.ETS and shares[index]:
                raise Stop(1, "ETS BW for a strict/vendor TC must be 0", usage=True)
        _eight(tc_bw, "tcbw")
    if prio_tc:
        for index, item in enumerate(_list_of(prio_tc, "in UP => TC mapping")):
            mapping[index] = _integer(item, 0, PRIORITIES - 1, "UP => TC mapping")
        _eight(prio_tc, "prio_tc")
    if prio_tc or tsa or tc_bw:
        try:
            driver.set_ets(state, mapping, kinds, shares)
        except driver.Refused:
            raise Stop(1, BAD_VALUE) from None


def show(state: NicState, *, show_all: bool) -> None:
    """Print the port as the program does."""
    print(f"DCBX mode: {'OS' if state.dcbx_os[0] else 'Firmware'} controlled")
    print(f"Priority trust state: {driver.trust(state)}")
    if state.apps:
        print("dscp2prio mapping:")
        for priority in range(PRIORITIES):
            dscps = [dscp for dscp, mapped in state.app_table() if mapped == priority]
            for first in range(0, len(dscps), 8):
                line = "".join(f"{dscp:02d}," for dscp in dscps[first : first + 8])
                print(f"\tprio:{priority} dscp:{line}")
    print("default priority:")
    sizes = "".join(f"{size}," for size in state.buffer_size)
    print(f"Receive buffer size (bytes): {sizes}max_buffer_size={state.max_buffer[0]}")
    print(f"Cable len: {state.cable_len[0]}")
    print("PFC configuration:")
    print("\tpriority    " + "   ".join(str(priority) for priority in range(PRIORITIES)))
    print("\tenabled     " + "".join(f"{on}   " for on in state.pfc))
    print("\tbuffer      " + "".join(f"{buffer}   " for buffer in state.prio2buffer))
    for traffic_class in range(PRIORITIES):
        priorities = [p for p, mapped in enumerate(state.prio_tc) if mapped == traffic_class]
        if priorities or show_all:
            _show_class(state, traffic_class, priorities)


def _show_class(state: NicState, traffic_class: int, priorities: list[int]) -> None:
    rate = state.maxrate_kbps[traffic_class]
    limit = f"{rate / 1_000_000:.1f} Gbps" if rate else "unlimited"
    arbiter = driver.TSA_NAMES[state.tsa[traffic_class]]
    if arbiter == "ets":
        arbiter += f", bw: {state.tc_bw[traffic_class]}%"
    print(f"tc: {traffic_class} ratelimit: {limit}, tsa: {arbiter}")
    for priority in priorities:
        print(f"\t priority:  {priority}")
