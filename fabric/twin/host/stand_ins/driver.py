"""What the mlx5 driver accepts and refuses, over a :class:`NicState`.

Rules as in Linux drivers/net/ethernet/mellanox/mlx5/core/{en_dcbnl.c,
en/port_buffer.c,port.c}. A refusal raises :class:`Refused`; what the driver had
already changed by then stays changed, so callers keep the state all the same.
"""

from __future__ import annotations

from .files import DSCPS, PRIORITIES, NicState

STRICT, ETS, VENDOR = 0, 2, 255
TSA_NAMES = {STRICT: "strict", ETS: "ets", VENDOR: "vendor"}

CELL_BYTES = 144
STEP_KBPS = 100_000
MIN_MTU, MAX_MTU = 68, 9978
MAX_CABLE_LENGTH = 1000

# What the firmware gives itself as soon as PFC is on and nobody has set buffers.
AUTO_LOSSY_BYTES, AUTO_LOSSLESS_BYTES = 20016, 156096


class Refused(Exception):  # noqa: N818 - the driver's answer, not a failure of ours
    """The driver said no; the message is the kernel's errno text."""


def trust(state: NicState) -> str:
    """``dscp`` as soon as one DSCP has an entry, else ``pcp``."""
    return "dscp" if state.apps else "pcp"


def set_app(state: NicState, dscp: int, priority: int) -> None:
    """Map a DSCP to a priority; the first entry switches the port to trust DSCP."""
    if not (0 <= dscp < DSCPS and 0 <= priority < PRIORITIES):
        raise Refused("Invalid argument")
    table = [entry for entry in state.app_table() if entry[0] != dscp]
    state.set_app_table([(dscp, priority), *table])
    state.firmware_map[dscp] = priority


def delete_app(state: NicState, dscp: int, priority: int) -> None:
    """Remove an entry: the DSCP falls to priority 0, the last one switches back to PCP."""
    if (dscp, priority) not in state.app_table():
        raise Refused("No such file or directory")
    state.set_app_table([entry for entry in state.app_table() if entry[0] != dscp])
    state.firmware_map[dscp] = 0


def set_ets(state: NicState, prio_tc: list[int], tsa: list[int], tc_bw: list[int]) -> None:
    """Classes of priorities, arbiters and shares; shares of ETS classes must add up to 100."""
    if any(not 0 <= traffic_class < PRIORITIES for traffic_class in prio_tc):
        raise Refused("Invalid argument")
    shares = [share for share, kind in zip(tc_bw, tsa, strict=True) if kind == ETS]
    if shares and sum(shares) != 100:
        raise Refused("Invalid argument")
    state.prio_tc, state.tsa, state.tc_bw = list(prio_tc), list(tsa), list(tc_bw)


def set_maxrate(state: NicState, kbps: list[int]) -> None:
    """Limits of classes, 0 for none, in steps of 100 Mb/s, from 25.5 Gb/s on of 1 Gb/s."""
    for traffic_class, rate in enumerate(kbps):
        step = STEP_KBPS if rate < 255 * STEP_KBPS else 10 * STEP_KBPS
        state.maxrate_kbps[traffic_class] = max(rate // step, 1) * step if rate else 0


def set_pause(state: NicState, *, rx: bool, tx: bool) -> None:
    """Link-level pause (IEEE 802.3x)."""
    state.rx_pause, state.tx_pause = [int(rx)], [int(tx)]


def set_pfc(state: NicState, enabled: list[int], delay: int, mtu: int, speed_mbps: int) -> None:
    """PFC and cable length. Changing PFC clears link pause, as the port register does."""
    pfc_changed = enabled != state.pfc
    if pfc_changed:
        state.pfc = list(enabled)
        set_pause(state, rx=False, tx=False)
    old_length = state.cable_len
    cable_changed = 0 < delay < MAX_CABLE_LENGTH and [delay] != state.cable_len
    if cable_changed:
        state.cable_len = [delay]
    if not state.manual_buffer[0]:
        if pfc_changed:
            _automatic_buffers(state)
        return
    try:
        xoff = xoff_bytes(state, mtu, speed_mbps)
        if cable_changed:
            _check_thresholds(state.buffer_size, state.lossy, xoff)
        if pfc_changed:
            _update_lossy(state, state.prio2buffer, enabled, xoff)
    except Refused:
        state.cable_len = old_length
        raise


def set_buffers(
    state: NicState, sizes: list[int], prio2buffer: list[int], mtu: int, speed_mbps: int
) -> None:
    """Receive buffers by hand; from then on the firmware leaves them alone."""
    size_changed, map_changed = sizes != state.buffer_size, prio2buffer != state.prio2buffer
    if not (size_changed or map_changed):
        return
    state.manual_buffer = [1]
    xoff = xoff_bytes(state, mtu, speed_mbps)
    lossy = list(state.lossy)
    try:
        if map_changed:
            paused = state.rx_pause[0] or state.tx_pause[0]
            _update_lossy(state, prio2buffer, [1] * PRIORITIES if paused else state.pfc, xoff)
        if size_changed:
            if any(size == 0 and not lost for size, lost in zip(sizes, state.lossy, strict=True)):
                raise Refused("Invalid argument")
            if min(sizes) < 0 or sum(sizes) > state.max_buffer[0]:
                raise Refused("Invalid argument")
            _check_thresholds(sizes, state.lossy, xoff)
    except Refused:
        state.lossy = lossy
        raise
    state.buffer_size = [size // CELL_BYTES * CELL_BYTES for size in sizes]
    state.prio2buffer = list(prio2buffer)


def xoff_bytes(state: NicState, mtu: int, speed_mbps: int) -> int:
    """What may still arrive after XOFF: the headroom that the driver keeps in a buffer.

    port_buffer.c, calculate_xoff: (301 + 2.16 * metres) * Gb/s + 2.72 * MTU, at
    least as for 40 Gb/s, in integers.
    """
    speed = max(speed_mbps, 40000)
    return (301 + 216 * state.cable_len[0] // 100) * speed // 1000 + 272 * mtu // 100


def _check_thresholds(sizes: list[int], lossy: list[int], xoff: int) -> None:
    for size, lost in zip(sizes, lossy, strict=True):
        if not lost and size < xoff + MAX_MTU + CELL_BYTES:
            raise Refused("Cannot allocate memory")


def _update_lossy(state: NicState, prio2buffer: list[int], pfc: list[int], xoff: int) -> None:
    lossy = [1] * PRIORITIES
    for priority, buffer in enumerate(prio2buffer):
        if pfc[priority]:
            lossy[buffer] = 0
    if lossy != state.lossy:
        _check_thresholds(state.buffer_size, lossy, xoff)
        state.lossy = lossy


def _automatic_buffers(state: NicState) -> None:
    state.prio2buffer = list(state.pfc)
    any_pfc = any(state.pfc)
    sizes = [AUTO_LOSSY_BYTES, AUTO_LOSSLESS_BYTES] if any_pfc else [AUTO_LOSSLESS_BYTES, 0]
    state.buffer_size = sizes + [0] * 6
    state.lossy = [1, int(not any_pfc)] + [1] * 6
