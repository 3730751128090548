"""The control channel of a running twin: one JSON line asked, one answered.

It listens on loopback; the inventory (mode 0600) holds port and token. What goes
over it: status, counters that traffic has moved, faults, and the order to stop.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fabric.counters import Counter
from fabric.errors import InputError, ToolError
from fabric.reach.access import twin_inventory_path
from fabric.site import Site

MAX_LINE_BYTES = 256 * 2**20
TIMEOUT_S = 60.0

Request = dict[str, Any]
Answering = Callable[[str, Request], Awaitable[object]]


class ControlError(Exception):
    """What was asked for cannot be done; the message goes back to who asked."""


async def serve_control(token: str, answer: Answering) -> asyncio.Server:
    """Listen for requests; ``answer(operation, request)`` gives the result.

    A ControlError becomes the answer's error, as does a wrong token.
    """

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            reply = await _reply(token, answer, await reader.readline())
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        except (ConnectionError, ValueError):
            return
        finally:
            writer.close()

    return await asyncio.start_server(talk, "127.0.0.1", 0, limit=MAX_LINE_BYTES)


async def _reply(token: str, answer: Answering, line: bytes) -> Request:
    try:
        request = dict(json.loads(line))
        given = str(request.pop("token", ""))
    except (ValueError, TypeError):
        return {"error": "not a request"}
    if not hmac.compare_digest(given.encode(), token.encode()):
        return {"error": "wrong token"}
    try:
        return {"result": await answer(str(request.pop("operation", "")), request)}
    except ControlError as error:
        return {"error": str(error)}
    except KeyError as error:
        return {"error": f"the request lacks {error}"}


def ask(site: Site, operation: str, **request: Any) -> Any:  # noqa: ANN401 - JSON
    """Ask the site's running twin. Raises ToolError where it is not up or does not answer.

    InputError is what the twin refuses to do.
    """
    reply = _exchange(site, {"operation": operation, **request})
    if "error" in reply:
        raise InputError(f"the twin refuses: {reply['error']}")
    return reply["result"]


def _exchange(site: Site, request: Request) -> Request:
    try:
        control = json.loads(twin_inventory_path(site).read_text())["control"]
        address = ("127.0.0.1", int(control["port"]))
        with socket.create_connection(address, timeout=TIMEOUT_S) as connection:
            line = json.dumps({"token": control["token"], **request}).encode() + b"\n"
            connection.sendall(line)
            with connection.makefile("rb") as stream:
                reply = json.loads(stream.readline())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolError(
            f"the twin of {site.path} is not up: asking it for {request['operation']!r} "
            f"failed ({type(error).__name__}).",
            advice=f"Start it with `paisoar twin up -f {site.path}`.",
        ) from error
    if not isinstance(reply, dict):
        raise ToolError(f"the twin of {site.path} answered something that is no answer")
    return reply


def post_counters(site: Site, counters: Iterable[Counter]) -> int:
    """Add deltas to the devices' own counters; how many there were.

    Raises ToolError where the twin is not up, InputError for a device or port
    that it does not have (then none of them is added).
    """
    rows = [[c.device, c.port, c.name, c.value, c.priority] for c in counters]
    return int(ask(site, "counters", rows=rows))
