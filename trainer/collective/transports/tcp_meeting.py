"""How ranks connect by TCP.

Connections are proved by HMAC over a nonce that came through the rendezvous: a
stranger on the machine cannot take a place.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import secrets
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import InputError
from trainer.collective.party import Party
from trainer.collective.wire import PROOF_BYTES, receive_exactly

_OPENING = struct.Struct(f"<I{PROOF_BYTES}s")
_OPENING_WITHIN_S = 2.0
_CONNECT_S = 30.0
_SLICE_S = 0.05
# It is part of every Linux kernel, and any user may choose it (tcp(7)).
WITHIN_A_HOST = "reno"
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@dataclass(frozen=True)
class Channel:
    """A connection to the right neighbour and one from the left one."""

    right: socket.socket
    left: socket.socket


@dataclass(frozen=True)
class Met:
    """All connections of a rank.

    ``rights[i]`` leads to the rank ``i + 1`` places to the right, ``lefts[i]``
    comes from the one as many places to the left; the first of them are those
    of the first channel.
    """

    channels: tuple[Channel, ...]
    rights: tuple[socket.socket, ...]
    lefts: tuple[socket.socket, ...]

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """All of them, each once."""
        ring = [sock for channel in self.channels for sock in (channel.right, channel.left)]
        return (*ring, *self.rights[1:], *self.lefts[1:])


def meet(
    party: Party, host: str, channels: int, congestion_control: str, *, everybody: bool
) -> Met:
    """Connect with both neighbours by ``channels``, and with ``everybody``; we listen at ``host``.

    ``congestion_control`` is the kernel's name of an algorithm. If it is empty,
    connections to another host have that of this host; those within a host
    have no network that could be congested, and one that does not pace them.
    InputError for one that the kernel does not let us have, and for a host that is not ours.
    """
    rank, size = party.rank, party.size
    # By hop and channel.
    wanted = [(1, channel) for channel in range(channels)]
    wanted += [(hop, 0) for hop in range(2, size)] if everybody else []
    nonce = secrets.token_hex(16)
    outgoing = {}
    with _listening(host, max(16, len(wanted))) as listener:
        places = party.gather("tcp address", [*listener.getsockname()[:2], nonce])
        for hop, channel in wanted:
            peer = (rank + hop) % size
            address, port, theirs = places[peer]
            chosen = congestion_control
            if not chosen and _on_our_host(address, places[rank][0]):
                chosen = WITHIN_A_HOST
            try:
                sock = outgoing[hop, channel] = _connect(address, port, chosen)
                hello = _hello(party.number(rank), party.number(peer), channel, theirs)
                sock.sendall(_OPENING.pack(channel, party.prove(hello)))
            except OSError as error:
                raise party.lost(peer, f"refused our connection ({error})") from error
        openings = {}
        for hop, channel in wanted:
            sender = party.number((rank - hop) % size)
            hello = _hello(sender, party.number(rank), channel, nonce)
            openings[_OPENING.pack(channel, party.prove(hello))] = hop, channel
        incoming = _welcome(party, listener, openings)
    hops = [1, *(hop for hop, _ in wanted[channels:])]
    return Met(
        tuple(Channel(outgoing[1, channel], incoming[1, channel]) for channel in range(channels)),
        tuple(outgoing[hop, 0] for hop in hops),
        tuple(incoming[hop, 0] for hop in hops),
    )


def _listening(host: str, backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, 0), family=family, backlog=backlog)
    except OSError as error:
        raise InputError(
            f"{socket.gethostname()} cannot listen at {host} for TCP ({error.strerror})",
            key="network.address",
            advice="It is the NIC's address in fabric.yaml: does this host have it? "
            "`--network address=` takes the interface by which the launcher is reached.",
        ) from error


def _hello(sender: int, receiver: int, channel: int, nonce: str) -> bytes:
    return f"tcp ring {sender} to {receiver} by {channel} {nonce}".encode()


def _on_our_host(address: str, ours: str) -> bool:
    return address == ours or ipaddress.ip_address(address).is_loopback


def _connect(address: str, port: int, congestion_control: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if congestion_control:
            # Before connecting: pacing starts with it (bbr_init in Linux net/ipv4/tcp_bbr.c).
            _choose(sock, congestion_control)
        sock.settimeout(_CONNECT_S)
        sock.connect((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def _choose(sock: socket.socket, congestion_control: str) -> None:
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    except OSError as error:
        raise InputError(
            f"the kernel does not let us have {congestion_control!r} ({error.strerror})",
            key="network.tcp_congestion_control",
            advice=f"It has: {_AVAILABLE.read_text().strip()}. What users may choose of it is in "
            "tcp_allowed_congestion_control beside it.",
        ) from error


def _welcome(
    party: Party, listener: socket.socket, openings: dict[bytes, tuple[int, int]]
) -> dict[tuple[int, int], socket.socket]:
    """Accept until all have come, by hop and channel; strangers are sent away."""
    listener.settimeout(_SLICE_S)
    began = time.monotonic()
    come: dict[tuple[int, int], socket.socket] = {}
    while len(come) < len(openings):
        missing = next(hop for hop, channel in openings.values() if (hop, channel) not in come)
        party.check((party.rank - missing) % party.size, time.monotonic() - began)
        try:
            sock, _ = listener.accept()
        except TimeoutError:
            continue
        sock.settimeout(_OPENING_WITHIN_S)
        said = b""
        with contextlib.suppress(OSError):
            said = receive_exactly(sock, _OPENING.size)
        known = [place for opening, place in openings.items() if hmac.compare_digest(opening, said)]
        if known and known[0] not in come:
            come[known[0]] = sock
        else:
            sock.close()
    return come
