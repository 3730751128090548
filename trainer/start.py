"""Run a script of yours on several ranks: ``python -m trainer.start --ranks 2 SCRIPT [ARGS]``.

The script runs once a rank, as ``__main__``, with its arguments;
``ReplicatedVarsOptimizer`` and the other parts of the trainer find their rank
by themselves. What each rank prints is shown when the job has ended. The gate
is not asked here: on certified hosts that is ``paisoar train``'s to do.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from typing import Any

from fabric.errors import InputError, PaisoarError
from trainer.collective.communicator import TRANSPORTS
from trainer.rank import RankContext
from trainer.supervise import run_ranks


def script(context: RankContext, payload: dict[str, Any]) -> None:
    """The program of each rank: the user's script."""
    del context  # the script finds its rank through the current courier
    path = Path(payload["script"])
    sys.argv = [str(path), *payload["arguments"]]
    sys.path.insert(0, str(path.parent))
    runpy.run_path(str(path), run_name="__main__")


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, run, print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trainer.start", description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--transport", choices=TRANSPORTS, default="auto")
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)
    try:
        if not chosen.script.is_file():
            raise InputError("there is no such script", file=chosen.script)
        outcome = run_ranks(
            "trainer.start:script",
            {"script": str(chosen.script.resolve()), "arguments": chosen.arguments},
            ranks=chosen.ranks,
            transport=chosen.transport,
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
