"""gloo's allreduce as PyTorch runs it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from trainer.bench.worker import serve


def main() -> None:
    """Arguments: rank, ranks, path of a file that the ranks share."""
    rank, ranks, shared = sys.argv[1:]

    def start() -> Callable[[int], Callable[[], object]]:
        # Only in the peers' environment.
        torch: Any = importlib.import_module("torch")
        dist: Any = importlib.import_module("torch.distributed")
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo", init_method=f"file://{shared}", rank=int(rank), world_size=int(ranks)
        )

        def prepare(nbytes: int) -> Callable[[], object]:
            tensor = torch.zeros(nbytes // 4)
            return lambda: dist.all_reduce(tensor)

        return prepare

    serve("gloo", int(rank), start)


if __name__ == "__main__":
    main()
