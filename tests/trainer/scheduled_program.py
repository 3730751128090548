"""One process of a job, as a scheduler starts it: ``FOLDER PROGRAM``; prints what ranks gave."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from fabric.errors import PaisoarError
from trainer.collective.scheduler import detect
from trainer.rank import Orders
from trainer.scheduled import find, hosting
from trainer.supervise import Place, run_one, run_ranks

ROOT = Path(__file__).parents[2]


def main(folder: Path, program: str) -> None:
    share = detect(os.environ)
    assert share is not None, "nobody has started this as a rank"
    name = f"tests.trainer.programs:{program}"
    if share.rank == 0:
        places = [Place(launched=rank == 0) for rank in range(share.size)]
        with hosting(share, folder, os.environ) as meeting:
            outcome = run_ranks(
                name, None, ranks=share.size, path=[ROOT], places=places, meeting=meeting
            )
        print(json.dumps([share.scheduler, outcome.results]))
        return
    address, token = find(share, folder, os.environ)
    orders = Orders(
        program=name,
        payload=None,
        address=address,
        token=token,
        rank=share.rank,
        size=share.size,
        transport="auto",
        patience_s=30.0,
        launcher_pid=os.getpid(),
        threads=1,
        path=(str(ROOT),),
        speaks=True,
    )
    run_one(orders)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except PaisoarError as error:
        sys.exit(f"{error}")
