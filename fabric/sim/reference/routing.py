"""Paths as the reference chooses them: shortest, one of equals by a hash of the addresses.

The hash is MurmurHash3 (32 bit; Appleby, public domain) over source and target
address and UDP ports, seeded with the switch's number. Found by comparison with
the reference's paths: equal next hops are numbered hosts first, ascending, then
switches, descending.
"""

from __future__ import annotations

from fabric.sim.reference.columns import (
    BACK_PATH,
    BACK_PINNED,
    HOST,
    MAX_HOPS,
    NODE_COUNT,
    NONE,
    OUT_PATH,
    OUT_PINNED,
    PEER,
    PINNED,
    SOURCE_NUMBER,
    SOURCE_PORT,
    SWITCH,
    TARGET_NUMBER,
    TARGET_PORT,
    Memory,
)
from fabric.sim.reference.jit import inline, outline

_WORD = 0xFFFFFFFF


@inline
def _address(number: int) -> int:
    return 0x0B000001 + (number // 256) * 0x10000 + (number % 256) * 0x100


@inline
def _stir(h: int, word: int) -> int:
    word = word * 0xCC9E2D51 & _WORD
    word = (word << 15 | word >> 17) & _WORD
    h ^= word * 0x1B873593 & _WORD
    h = (h << 13 | h >> 19) & _WORD
    return h * 5 + 0xE6546B64 & _WORD


@outline
def path_hash(source: int, target: int, ports: int, seed: int) -> int:
    """Hash of a packet's (source, target, source port | target port << 16) at a switch."""
    h = _stir(_stir(_stir(seed, _address(source)), _address(target)), ports)
    h ^= 12
    h = (h ^ h >> 16) * 0x85EBCA6B & _WORD
    h = (h ^ h >> 13) * 0xC2B2AE35 & _WORD
    return h ^ h >> 16


@outline
def _lay(m: Memory, at: int, port: int, source: int, target: int, ports: int) -> None:
    ingress = m.ports[port + PEER]
    last = at + 2 * (MAX_HOPS - 1)
    while m.ports[ingress + SWITCH] >= 0 and at < last:
        switch = m.ports[ingress + SWITCH]
        row = m.routes[(switch >> 1) * m.settings[NODE_COUNT] + target]
        count = m.choices[row]
        chosen = 0
        if count > 1:
            chosen = path_hash(source, target, ports, m.shares[switch + 1]) % count
        egress = m.choices[row + 1 + chosen]
        m.hops[at] = egress
        m.hops[at + 1] = ingress
        at += 2
        ingress = m.ports[egress + PEER]
    m.hops[at] = NONE
    m.hops[at + 1] = ingress


@outline
def lay_paths(m: Memory, f: int) -> None:
    """Write the flow's way out and the way back of its ACKs, which hash by themselves."""
    source, target = m.flows[f + SOURCE_NUMBER], m.flows[f + TARGET_NUMBER]
    out, back = m.flows[f + SOURCE_PORT], m.flows[f + TARGET_PORT]
    pinned = m.flows[f + PINNED]
    at = m.flows[f + OUT_PATH]
    if not pinned & OUT_PINNED:
        _lay(m, at, m.flows[f + HOST], source, target, out | back << 16)
    while m.hops[at] != NONE:
        at += 2
    receiver = m.hops[at + 1]
    if not pinned & BACK_PINNED:
        _lay(m, m.flows[f + BACK_PATH], receiver, target, source, back | out << 16)
