"""Run a script of yours on several ranks: ``python -m trainer.start --ranks 2 SCRIPT [ARGS]``.

The certificate gate is asked first, for the hosts that the job uses (all of
the site's unless ``--host`` names some). The script then runs once a rank, as
``__main__``, with its arguments, in the folder that it was started from;
``ReplicatedVarsOptimizer`` and the other parts of the trainer find their rank
by themselves. What rank 0 prints is shown at once, what others print at the
end. Started by srun, mpirun or with RANK and WORLD_SIZE, each process is one
rank.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fabric.errors import InputError, PaisoarError, PeerError
from fabric.site import Site, load_site
from trainer.collective.communicator import TRANSPORTS, TransportName
from trainer.collective.rendezvous import SlowRank
from trainer.collective.scheduler import Share, detect
from trainer.launch import require_pass
from trainer.rank import Orders, RankContext
from trainer.spec import PATIENCE_S
from trainer.supervise import Meeting, Outcome, Place, run_one, run_ranks, threads_for
from trainer.ways import find_meeting, meeting, own_network, places_for
from validation.gate import GatePass, open_gate

PROGRAM = "trainer.start:script"
LOGS = Path("training", "last-failure")  # below the site's own folder
_INTERRUPTED = 130  # 128 and SIGINT, as shells have it


def script(context: RankContext, payload: dict[str, Any]) -> None:
    """The program of each rank: the user's script."""
    # On another host the folder may be absent; the script is needed.
    with contextlib.suppress(OSError):
        os.chdir(payload["folder"])
    path = Path(payload["script"])
    if not path.is_file():
        raise InputError(f"there is no such script on {os.uname().nodename}", file=path)
    sys.argv = [str(path), *payload["arguments"]]
    sys.path.insert(0, str(path.parent))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as ended:
        status = _exit_status(ended)
        if status:
            raise PeerError(f"the script ended with exit status {status}") from ended
    except Exception as error:
        # TensorFlow wraps what is raised inside a graph, and shows a page of its own; what
        # is the matter is kept here.
        failure = context.communicator.failure
        if failure is None:
            raise
        print(_where(error, path.parent), file=sys.stderr)
        raise failure from error


def _where(error: BaseException, folder: Path) -> str:
    """Where in the user's own files it happened, the innermost line last."""
    return "\n".join(
        f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n    {frame.line}'
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(folder) and "site-packages" not in frame.filename
    )


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
    patience_s: float = PATIENCE_S,
    places: Sequence[Place] | None = None,
    meeting: Meeting | None = None,
    on_slow: Callable[[SlowRank], None] | None = None,
    on_line: Callable[[int, str], None] | None = None,
    logs: Path | None = None,
) -> Outcome:
    """Run this script on so many ranks, past the gate.

    ``places`` say where each rank runs and how it talks (None: all on this
    machine); the rest as in :func:`~trainer.supervise.run_ranks`.
    GateRefusedError without a pass, PeerError where a rank failed.
    """
    require_pass(gate_pass)
    return run_ranks(
        PROGRAM,
        _payload(path, arguments),
        ranks=ranks,
        transport=transport,
        patience_s=patience_s,
        places=places,
        meeting=meeting or Meeting(),
        on_slow=on_slow,
        on_line=on_line,
        logs=logs,
    )


def _payload(path: Path, arguments: Sequence[str]) -> dict[str, Any]:
    return {
        "script": str(path.resolve()),
        "arguments": list(arguments),
        "folder": str(Path.cwd()),
    }


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, run, print; the exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        _start(chosen)
    except PaisoarError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer.start", description=__doc__)
    say = parser.add_argument
    say("-f", "--file", type=Path, default=Path("fabric.yaml"))
    say("--ranks", type=int, default=2, help="a scheduler has its own number")
    say("--transport", choices=TRANSPORTS, default="auto")
    say("--host", action="append", default=[], help="one that the job uses; all if not given")
    say("--launch", choices=("auto", "local", "ssh"), default="auto")
    say("--python", default=sys.executable, help="the interpreter on the hosts")
    say("--certificate", default="", help="an id or a file; the newest if not given")
    say("--network", action="append", default=[], metavar="KEY=VALUE")
    say("--patience", type=float, default=PATIENCE_S, help="seconds until a slow rank is lost")
    say("script", type=Path)
    say("arguments", nargs=argparse.REMAINDER)
    return parser


def _start(chosen: argparse.Namespace) -> None:
    if not 0 < chosen.patience < math.inf:
        raise InputError(
            f"{chosen.patience:g} s are no patience", key="--patience", advice="Give 1 or more."
        )
    # On other hosts each rank looks for itself.
    if chosen.launch != "ssh" and not chosen.script.is_file():
        raise InputError("there is no such script", file=chosen.script)
    share = detect(os.environ) if chosen.launch == "auto" else None
    site = load_site(chosen.file)
    if share and share.rank > 0:
        _show(share.rank, _join(chosen, site, share))
        return
    over_ssh = chosen.python if chosen.launch == "ssh" else ""
    ranks = share.size if share else chosen.ranks
    hosts = chosen.host or list(site.topology.hosts)
    if over_ssh:
        hosts = hosts[:ranks]
    own_network(site, share, chosen.network)  # what cannot be is said before the gate is asked
    gate_pass = open_gate(site, hosts, certificate=chosen.certificate or None)
    places = places_for(site, hosts, ranks, over_ssh=over_ssh, share=share, wishes=chosen.network)
    with meeting(site, hosts, over_ssh=over_ssh, share=share) as place_to_meet:
        outcome = run_script(
            gate_pass,
            chosen.script,
            chosen.arguments,
            ranks=ranks,
            transport=chosen.transport,
            patience_s=chosen.patience,
            places=places,
            meeting=place_to_meet,
            on_slow=lambda slow: print(slow, file=sys.stderr, flush=True),
            on_line=_show_first,
            logs=site.state_dir / LOGS,
        )
    # A scheduler's other ranks show their own.
    for rank, lines in enumerate(outcome.printed):
        if rank > 0:
            _show(rank, lines)


def _join(chosen: argparse.Namespace, site: Site, share: Share) -> tuple[str, ...]:
    network = own_network(site, share, chosen.network)
    address, token = find_meeting(site, share)
    orders = Orders(
        program=PROGRAM,
        payload=_payload(chosen.script, chosen.arguments),
        address=address,
        token=token,
        rank=share.rank,
        size=share.size,
        transport=chosen.transport,
        patience_s=chosen.patience,
        launcher_pid=os.getpid(),
        threads=threads_for(share.local_size),
        speaks=True,
    )
    return run_one(orders, network)


def _show_first(rank: int, line: str) -> None:
    if rank == 0:
        print(line, flush=True)


def _show(rank: int, lines: Sequence[str]) -> None:
    for line in lines:
        print(f"rank {rank}: {line}", flush=True)


if __name__ == "__main__":
    code = main()
    # All has ended; what comes now would only break the interpreter off amid its end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)
