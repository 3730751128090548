"""Constants of the hardware that is simulated, with their sources."""

from __future__ import annotations

PS_PER_S = 10**12

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
# 4.096 us * 2^14: perftest's default timeout exponent (InfiniBand Architecture
# Specification, 9.7.6.1.3), and the silent tail time-out of 67.109 ms that
# simllm #190 measured.
RETRANSMIT_PS = 4_096_000 << 14

# Header bytes beside fabric.sim.engine.sender.DATA_HEADER_BYTES: RETH in the
# first packet of an RDMA write.
RETH_BYTES = 16

# Linux include/rdma/ib_addr.h, iboe_get_mtu: GRH 40, UDP 8, BTH 12, extended
# transport headers 4 + 28, ICRC 4.
_ROCE_RESERVE_BYTES = 96
_ROCE_MTUS = (4096, 2048, 1024, 512)


def roce_mtu(ip_mtu_bytes: int) -> int:
    """Payload of a full RoCE packet on a NIC with this MTU, as Linux chooses it."""
    for payload in _ROCE_MTUS:
        if payload + _ROCE_RESERVE_BYTES <= ip_mtu_bytes:
            return payload
    return 256
