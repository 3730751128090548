"""Run in a mount namespace of its own: a disk fills up in the middle of a validation.

    python full_disk.py FOLDER STEP

FOLDER is a small tmpfs. At the STEP-th step everything on it is taken by another file, to the
last byte; what came of it is printed, then there is room again and the run goes on.
"""

import errno
import json
import sys
from pathlib import Path

from fabric.errors import PaisoarError
from tests.validation.fake import FakeFabric
from tests.validation.judgement.test_judgement import site_with
from validation.certificates.certify import lacking
from validation.results.store import altered_evidence, latest_run, list_runs
from validation.run import run_suites
from validation.times import utc_now

# Of four hosts: 3 of preflight, 3 of latency, 6 of bandwidth, 5 of incast.
STEPS = 17
SUITES = ("preflight", "latency", "bandwidth", "incast")


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def main(folder: Path, step: int) -> None:
    fabric = FakeFabric(site_with(folder))
    filler = folder / "filler"

    def carry(flows):
        if fabric.steps_carried == step:
            fill(filler)

    def run(**options):
        return run_suites(
            fabric.site, SUITES, readers=fabric.readers(), probe=fabric.probe, **options
        )

    fabric.on_carry = carry
    said = ""
    try:
        run()
    except PaisoarError as error:
        said = f"{type(error).__name__}: {error.message}"
    filler.unlink()
    stopped = latest_run(fabric.site)
    fabric.on_carry = lambda flows: None
    done = run(resume=True)
    print(
        json.dumps(
            {
                "said": said,
                "status": stopped.status,
                "verdict": done.verdict,
                "lacking": lacking(fabric.site, done, utc_now()),
                "altered": [
                    name for kept in list_runs(fabric.site) for name in altered_evidence(kept)
                ],
                "sent_again": fabric.steps_carried - STEPS,
                "partial": [str(path) for path in folder.rglob("*.partial")],
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
