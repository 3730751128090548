"""Constants of the hardware that is simulated, with their sources."""

from __future__ import annotations

PS_PER_S = 10**12
PS_PER_MS = 10**9

# What a switch (last bit in to first bit out) and a receiving NIC (last bit in
# to application or ACK) add beside cable and serialisation. openfabric-systems
# simllm #189 measures 2.08 us for a small flow over two tiers of 100G, four
# pipes of 515 ns: of each, 15 ns are three metres of cable.
SWITCH_LATENCY_PS = 500_000
NIC_LATENCY_PS = 500_000
CABLE_PS_PER_M = 5_000  # 2e8 m/s, as in fabric.headroom

# perftest's default: work requests that a stream keeps outstanding.
STREAM_DEPTH = 128
# Packets after which a receiver acknowledges within a long message.
PACKETS_PER_ACK = 16
# 4.096 us * 2^14: perftest's default timeout exponent (the local ACK timeout of the
# InfiniBand Architecture Specification; formula as in Linux drivers/infiniband/sw/rxe/
# rxe_qp.c), and the silent tail time-out of 67.109 ms that simllm #190 measured.
RETRANSMIT_PS = 4_096_000 << 14

# sonic-net/sonic-utilities pfcwd/main.py: what a watchdog without times of its own does.
WATCHDOG_DETECT_MS = 200
WATCHDOG_RESTORE_MS = 200
# Linux mlx5 en_ethtool.c, MLX5E_PFC_PREVEN_TOUT_MAX_MSEC: the default timeout.
STALL_LIMIT_PS = 8_000 * PS_PER_MS
# Receive buffer of a NIC's lossy priorities, each: an assumption, of the order of a
# ConnectX NIC's whole receive buffer; it matters to slow receivers only.
NIC_LOSSY_BUFFER_BYTES = 262_144

# Linux TCP_RTO_MIN (include/net/tcp.h), and the default limit of a receive buffer that
# grows by itself (tcp_init in net/ipv4/tcp.c, until 6.15).
TCP_RTO_PS = 200 * PS_PER_MS
TCP_MAX_WINDOW_BYTES = 6_291_456

# Header bytes beside fabric.sim.engine.sender.DATA_HEADER_BYTES: RETH in the
# first packet of an RDMA write.
RETH_BYTES = 16

# Linux include/rdma/ib_addr.h, iboe_get_mtu (which mlx5_ib calls too): GRH 40, UDP 8,
# BTH 12, extended transport headers 4 (XRC) + 28 (atomic), ICRC 4.
_ROCE_RESERVE_BYTES = 96
_ROCE_MTUS = (4096, 2048, 1024, 512)


def roce_mtu(ip_mtu_bytes: int) -> int:
    """Payload of a full RoCE packet on a NIC with this MTU, as Linux chooses it."""
    for payload in _ROCE_MTUS:
        if payload + _ROCE_RESERVE_BYTES <= ip_mtu_bytes:
            return payload
    return 256
