"""PFC headroom: what still arrives after XOFF was decided.

Between the decision to pause and the last byte that comes in lie: our pause
frame waiting behind a frame that is being sent, its way down the cable, the
peer's reaction time, a frame that the peer has begun, and its way back up.

Sources: IEEE 802.3 annex 31B.3.7 (reaction time in pause quanta by speed); the
sum as in sonic-net/sonic-swss cfgmgr/buffer_headroom_mellanox.lua.
"""

from __future__ import annotations

PAUSE_QUANTUM_BITS = 512
MAX_PAUSE_QUANTA = 65535
PAUSE_FRAME_BYTES = 64
ETHERNET_OVERHEAD_BYTES = 38  # header 14, FCS 4, preamble 8, inter-packet gap 12
MAC_PHY_DELAY_BYTES = 800
SIGNAL_SPEED_M_PER_S = 2.0e8

# Pause quanta within which a MAC must stop, by speed in Gbit/s.
_REACTION_QUANTA = {1: 2, 10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}


def reaction_bytes(speed_bps: int) -> int:
    """Bytes that a peer may still begin to send after it received a pause frame."""
    for speed_gbps in sorted(_REACTION_QUANTA):
        if speed_bps <= speed_gbps * 10**9:
            return _REACTION_QUANTA[speed_gbps] * PAUSE_QUANTUM_BITS // 8
    raise ValueError(f"no PFC reaction time is known for {speed_bps} bit/s")


def headroom_bytes(speed_bps: int, cable_m: float, mtu_bytes: int) -> int:
    """Bytes to reserve above XOFF so that a lossless priority never drops.

    ``mtu_bytes`` is the largest IP packet on the link, in either direction.
    """
    on_cable = 2 * cable_m / SIGNAL_SPEED_M_PER_S * speed_bps / 8
    frame = mtu_bytes + ETHERNET_OVERHEAD_BYTES
    return round(
        PAUSE_FRAME_BYTES + 2 * frame + on_cable + reaction_bytes(speed_bps) + MAC_PHY_DELAY_BYTES
    )


def pause_us(quanta: int, speed_bps: int) -> float:
    """Microseconds for which this many pause quanta stop a port."""
    return quanta * PAUSE_QUANTUM_BITS / speed_bps * 1e6


MLX5_MAX_CABLE_M = 999
MLX5_MAX_MTU_BYTES = 9216
MLX5_MIN_SPEED_MBPS = 40_000
# Buffers are counted in cells of 128, 144 or 288 bytes, depending on the NIC. A
# multiple of all of them is stored as it is given, whichever NIC it is.
MLX5_MAX_CELL_BYTES = 288
# Above the largest MTU that mlx5 interfaces report.
MLX5_MAX_DRIVER_MTU_BYTES = 10_000
MLX5_BUFFER_STEP_BYTES = 1152


def mlx5_cable_m(length_m: float) -> int:
    """Whole metres that the mlx5 driver takes for a cable: 1 to 999."""
    return min(max(round(length_m), 1), MLX5_MAX_CABLE_M)


def mlx5_headroom_bytes(speed_bps: int, cable_m: int, mtu_bytes: int) -> int:
    """What a ConnectX NIC keeps free above XOFF in each lossless receive buffer.

    ``mtu_bytes`` is the interface's MTU. Integer arithmetic throughout, as in
    the driver: (301 + 2.16 * metres) * Gbit/s + 2.72 * MTU, with at least
    40 Gbit/s. Source: ``calculate_xoff`` in Linux
    drivers/net/ethernet/mellanox/mlx5/core/en/port_buffer.c.
    """
    speed_mbps = max(speed_bps // 10**6, MLX5_MIN_SPEED_MBPS)
    return (301 + 216 * cable_m // 100) * speed_mbps // 1000 + 272 * mtu_bytes // 100


def mlx5_thresholds_bytes(size_bytes: int, headroom: int) -> tuple[int, int]:
    """XOFF and XON of a ConnectX receive buffer of this size; 0 where it is too small.

    The distance to XON is the largest MTU that the interface can be set to, 9216
    at least. Source: ``update_xoff_threshold`` in the same file.
    """
    xoff = max(0, size_bytes - headroom)
    return xoff, max(0, xoff - MLX5_MAX_MTU_BYTES)


def mlx5_buffer_bytes(size_bytes: int) -> int:
    """The size rounded down to what every ConnectX NIC stores exactly."""
    return size_bytes // MLX5_BUFFER_STEP_BYTES * MLX5_BUFFER_STEP_BYTES


def mlx5_min_buffer_bytes(headroom: int) -> int:
    """The smallest lossless buffer that the driver accepts, after any rounding down.

    Source: the size check in ``update_xoff_threshold``.
    """
    reserve = MLX5_MAX_DRIVER_MTU_BYTES + MLX5_MAX_CELL_BYTES
    return headroom + reserve + MLX5_BUFFER_STEP_BYTES
