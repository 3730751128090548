"""Run a script of yours on several ranks: ``python -m trainer.start --ranks 2 SCRIPT [ARGS]``.

The certificate gate is asked first, for all hosts of the site (``-f``, default
``fabric.yaml``). The script then runs once a rank, as ``__main__``, with its
arguments; ``ReplicatedVarsOptimizer`` and the other parts of the trainer find
their rank by themselves. What each rank prints is shown when the job has ended.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabric.errors import InputError, PaisoarError, PeerError
from fabric.site import load_site
from trainer.collective.communicator import TRANSPORTS, TransportName
from trainer.hosts import places_here
from trainer.launch import require_pass
from trainer.rank import RankContext
from trainer.supervise import Outcome, Place, run_ranks
from validation.gate import GatePass, open_gate


def script(context: RankContext, payload: dict[str, Any]) -> None:
    """The program of each rank: the user's script."""
    del context  # the script finds its rank through the current courier
    path = Path(payload["script"])
    sys.argv = [str(path), *payload["arguments"]]
    sys.path.insert(0, str(path.parent))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as ended:
        status = _exit_status(ended)
        if status:
            raise PeerError(f"the script ended with exit status {status}") from ended


def _exit_status(ended: SystemExit) -> int:
    """As the interpreter has it: what is no number is a message, and status 1."""
    if ended.code is None or isinstance(ended.code, int):
        return int(ended.code or 0)
    print(ended.code, file=sys.stderr)
    return 1


def run_script(
    gate_pass: GatePass,
    path: Path,
    arguments: Sequence[str] = (),
    *,
    ranks: int,
    transport: TransportName = "auto",
    places: Sequence[Place] | None = None,
) -> Outcome:
    """Run this script on so many ranks of this machine, past the gate.

    ``places`` say how each rank talks. GateRefusedError without a pass,
    PeerError where a rank failed.
    """
    require_pass(gate_pass)
    return run_ranks(
        "trainer.start:script",
        {"script": str(path.resolve()), "arguments": list(arguments)},
        ranks=ranks,
        transport=transport,
        places=places,
    )


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, run, print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trainer.start", description=__doc__)
    parser.add_argument("-f", "--file", type=Path, default=Path("fabric.yaml"))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--transport", choices=TRANSPORTS, default="auto")
    parser.add_argument("--network", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)
    try:
        if not chosen.script.is_file():
            raise InputError("there is no such script", file=chosen.script)
        site = load_site(chosen.file)
        places = places_here(site, chosen.ranks, wishes=chosen.network)
        outcome = run_script(
            open_gate(site, site.topology.hosts),
            chosen.script,
            chosen.arguments,
            ranks=chosen.ranks,
            transport=chosen.transport,
            places=places,
        )
    except PaisoarError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for rank, lines in enumerate(outcome.printed):
        for line in lines:
            print(f"rank {rank}: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
