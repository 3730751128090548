"""The program of each rank: the checks that it is told, in order."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path
from typing import Any

from trainer.rank import RankContext

# Now, not when a check is called: while this is imported libraries that nobody needs are hidden.
_MODULES = {
    path.stem: importlib.import_module(f"{__package__}.{path.stem}")
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "run")
}


def everything(context: RankContext, payload: Any) -> dict[str, str]:
    """``payload`` lists ``module.check``; what comes after one that fails is not reached."""
    results = {}
    for name in payload:
        module, _, check = name.partition(".")
        try:
            getattr(_MODULES[module], check)(context)
        except BaseException:
            results[name] = traceback.format_exc()
            break
        results[name] = "passed"
    return results
