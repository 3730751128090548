"""Messages between a rank and the job's rendezvous, and how both prove that they belong.

A message is one line of JSON. Whoever joins proves knowledge of the job's
random token by HMAC-SHA256 (RFC 2104) over a nonce of the other side; the
token itself never travels.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
from typing import Any

MAX_LINE_BYTES = 64 << 20
PROOF_BYTES = 32

Message = dict[str, Any]


def new_token() -> str:
    """A token for one job: 32 random bytes in hex."""
    return secrets.token_hex(32)


def new_nonce() -> str:
    """A number used once, in hex."""
    return secrets.token_hex(16)


def prove(token: str, purpose: bytes) -> bytes:
    """HMAC of ``purpose`` under the job's token, 32 bytes."""
    return hmac.new(bytes.fromhex(token), purpose, hashlib.sha256).digest()


def proves(token: str, purpose: bytes, proof: bytes) -> bool:
    """Whether ``proof`` was made with the same token, compared in constant time."""
    return hmac.compare_digest(prove(token, purpose), proof)


def encode(message: Message) -> bytes:
    """The message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class LineReader:
    """Cuts a stream into messages; ValueError on what is none."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are complete with ``data``."""
        self._buffer += data
        if len(self._buffer) > MAX_LINE_BYTES:
            raise ValueError(f"a message exceeds {MAX_LINE_BYTES} bytes")
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        messages = [json.loads(line) for line in lines]
        if not all(isinstance(message, dict) for message in messages):
            raise ValueError("a message is no object")
        return messages


def receive_exactly(sock: socket.socket, nbytes: int) -> bytes:
    """Read ``nbytes``; ConnectionError when the other side closes before that."""
    data = bytearray()
    while len(data) < nbytes:
        part = sock.recv(nbytes - len(data))
        if not part:
            raise ConnectionError("the other side closed the connection")
        data += part
    return bytes(data)
