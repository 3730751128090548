"""How ranks meet that a scheduler has started: Slurm, Open MPI, Kubernetes, torchrun.

Each process learns its place from its environment
(:mod:`trainer.collective.scheduler`). They meet through rank 0:
where ``MASTER_ADDR`` and ``MASTER_PORT`` say so, at that address, proved by
the secret in ``PAISOAR_JOB_TOKEN``; else through a file that rank 0 writes for
its user alone, in a folder that all hosts share (the site's).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from fabric.errors import InputError, PeerError
from trainer.collective.scheduler import Share
from trainer.collective.wire import new_token
from trainer.hosts import own_address
from trainer.supervise import Meeting

TOKEN = "PAISOAR_JOB_TOKEN"  # noqa: S105 - a variable's name
_FOUND_WITHIN_S = 60.0
_POLL_S = 0.1


@contextlib.contextmanager
def hosting(share: Share, folder: Path, environ: Mapping[str, str]) -> Iterator[Meeting]:
    """Rank 0's meeting place; the file that leads to it is gone afterwards."""
    host, port = share.address
    if host:
        yield Meeting(host=host, port=port, token=_token(environ), join_within_s=_FOUND_WITHIN_S)
        return
    path = _path(share, folder)

    def announce(address: tuple[str, int], token: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump({"host": address[0], "port": address[1], "token": token}, file)
        partial.rename(path)

    try:
        yield Meeting(
            host="127.0.0.1" if share.one_host else own_address(),
            token=new_token(),
            join_within_s=_FOUND_WITHIN_S,
            announce=announce,
        )
    finally:
        path.unlink(missing_ok=True)


def find(share: Share, folder: Path, environ: Mapping[str, str]) -> tuple[tuple[str, int], str]:
    """Address and token of the meeting place, for ranks above 0; PeerError when 0 is late."""
    if share.address[0]:
        _wait_for_port(share.address)
        return share.address, _token(environ)
    path = _path(share, folder)
    said = "rank 0 has not said where to meet"
    deadline = time.monotonic() + _FOUND_WITHIN_S
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError, ValueError):
            document = json.loads(path.read_text())
            address = (str(document["host"]), int(document["port"]))
            # A job that was killed may have left its file: somebody must listen there.
            if path.stat().st_uid == os.geteuid():
                refusal = _refusal(address)
                if not refusal:
                    return address, str(document["token"])
                said = f"rank 0 has said {address[0]}:{address[1]}, but: {refusal}"
        time.sleep(_POLL_S)
    raise PeerError(
        f"rank {share.rank} of {share.size} ({share.scheduler} job {share.job}), after "
        f"{_FOUND_WITHIN_S:g} s: {said}, in {path}.",
        advice="Did the gate refuse rank 0? On several hosts share the site's folder, or set "
        f"MASTER_ADDR, MASTER_PORT and {TOKEN}.",
    )


def _wait_for_port(address: tuple[str, int]) -> None:
    deadline = time.monotonic() + _FOUND_WITHIN_S
    while refusal := _refusal(address):
        if time.monotonic() > deadline:
            raise PeerError(
                f"rank 0 does not answer at {address[0]}:{address[1]} within "
                f"{_FOUND_WITHIN_S:g} s: {refusal}.",
                advice="Did the gate refuse rank 0? Are MASTER_ADDR and MASTER_PORT its own?",
            )
        time.sleep(_POLL_S)


def _refusal(address: tuple[str, int]) -> str:
    """Why nobody can be talked to there (the resolver's reason, too); empty: somebody listens."""
    try:
        socket.create_connection(address, timeout=2.0).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _path(share: Share, folder: Path) -> Path:
    safe = re.sub(r"[^A-Za-z0-9.]+", "-", f"{share.scheduler}-{share.job}")
    return folder / f"meeting-{safe}.json"


def _token(environ: Mapping[str, str]) -> str:
    secret = environ.get(TOKEN, "")
    if len(secret) < 16:
        raise InputError(
            "ranks that meet at MASTER_ADDR need a common secret of 16 characters or more",
            key=TOKEN,
            advice=f"Set {TOKEN} to the same random text on every rank (a Kubernetes Secret).",
        )
    return hashlib.sha256(secret.encode()).hexdigest()
