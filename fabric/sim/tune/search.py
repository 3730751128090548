"""Search: half of the budget spread over the whole space, the rest around the best so far.

The first half is a Latin hypercube (McKay, Beckman, Conover, Technometrics 1979); then
batches of children of the candidates that no other betters, each a mixture of two with
some numbers moved, as in genetic multi-objective search (NSGA-II: Deb et al., IEEE
Trans. Evol. Comput. 2002). Those that break no constraint come before those that do.
The few that are shown are simulated again with other seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.errors import InputError
from fabric.intent import Certify
from fabric.sim.sweep import Workers
from fabric.sim.tune.front import costs, pareto, spread
from fabric.sim.tune.space import Space, todays_settings
from fabric.sim.tune.traffic import Scene
from fabric.sim.tune.trial import Measures, Trial, broken, combine, run_trial, with_intent
from fabric.sim.variants import Variants
from fabric.site import Site

Floats = NDArray[np.float64]

# Called with what is being done, how many simulations are finished, and of how many.
Progress = Callable[[str, int, int], None]

MAX_CHOICES = 6
SEEDS = 3
MIN_BUDGET = 8
_DEFAULT_HOPS = 2e8
_MAX_DEFAULT_BUDGET = 200
_MIN_DEFAULT_BUDGET = 24
_PARENTS = 12
_MOVED = 0.3
_MOVE = 0.12


@dataclass(frozen=True)
class Candidate:
    """Settings and what they come to; ``broken`` names the constraints that do not hold."""

    settings: dict[str, str]
    measures: Measures
    broken: dict[str, float]


@dataclass(frozen=True)
class Tuning:
    """What a search found.

    ``today`` is the intent as it is; ``choices`` the candidates that hold all constraints
    and that no other betters, by tail; both are means over ``SEEDS`` seeds. ``tried`` are
    all candidates, with one seed each. ``partial``: interrupted.
    """

    today: Candidate
    choices: tuple[Candidate, ...]
    tried: tuple[Candidate, ...]
    budget: int
    partial: bool


class Search:
    """One search on one site."""

    def __init__(
        self,
        site: Site,
        small: Site,
        scenes: tuple[Scene, ...],
        duration_us: float,
        seed: int,
        workers: Workers,
        progress: Progress,
    ) -> None:
        self._small = small
        self._scenes = scenes
        self._duration_us = duration_us
        self._seed = seed
        self._workers = workers
        self._progress = progress
        self._limits: Certify = site.document.certify
        self._variants = Variants(site)
        self._space = Space(small)
        self._random = np.random.default_rng(seed)
        self._points: list[Floats] = []
        self._tried: list[Candidate] = []
        self._done = 0
        self._total = 0
        self._stopped = False

    def run(self, budget: int | None) -> Tuning:
        """Search with so many candidates; by default as many as take one to two minutes."""
        if budget is not None and budget < MIN_BUDGET:
            raise InputError(f"--budget {budget}: a search needs {MIN_BUDGET} candidates or more")
        today = run_trial(self._trial({}, self._seed))
        count = default_budget(today) if budget is None else budget
        self._total = count + (MAX_CHOICES + 1) * (SEEDS - 1)
        first = count // 2
        self._try([self._space.today(), *_hypercube(self._random, first - 1, self._size)])
        batch = max(4, count // 10)
        while len(self._points) < count and not self._stopped:
            self._try(self._children(min(batch, count - len(self._points))))
        return self._finish(today, count)

    @property
    def _size(self) -> int:
        return len(self._space.dimensions)

    def _trial(self, settings: dict[str, str], seed: int) -> Trial:
        site = self._small
        if settings:
            site = with_intent(site, self._variants.intent_with(settings))
        return Trial(site, self._scenes, self._duration_us, seed)

    def _try(self, points: Sequence[Floats]) -> None:
        settings = [self._space.settings(point) for point in points]
        for k, measures in self._sweep("candidates", [(s, self._seed) for s in settings]).items():
            self._points.append(points[k])
            found = broken(measures, self._limits)
            self._tried.append(Candidate(settings[k], measures, found))

    def _sweep(self, word: str, asked: Sequence[tuple[dict[str, str], int]]) -> dict[int, Measures]:
        """Measures of those that came in, by their place in ``asked``."""
        before = self._done

        def tell(done: int, _of: int) -> None:
            self._done = before + done
            self._progress(word, self._done, self._total)

        trials = [self._trial(settings, seed) for settings, seed in asked]
        swept = self._workers.sweep(run_trial, trials, tell)
        self._stopped = self._stopped or swept.partial
        for outcome in swept.outcomes:
            if outcome.value is None:
                raise InputError(f"a candidate cannot be simulated: {outcome.error}")
        return {o.index: o.value for o in swept.outcomes if o.value is not None}

    def _children(self, count: int) -> list[Floats]:
        parents = [self._points[k] for k in self._best(_PARENTS)]
        found = []
        for _ in range(count):
            a, b = (parents[k] for k in self._random.integers(len(parents), size=2))
            child = np.where(self._random.random(self._size) < 0.5, a, b)
            moved = self._random.random(self._size) < _MOVED
            moved[self._random.integers(self._size)] = True
            child = child + np.where(moved, self._random.normal(0, _MOVE, self._size), 0.0)
            found.append(np.clip(child, 0.0, 1.0))
        return found

    def _best(self, most: int) -> list[int]:
        """Candidates to go on from: the front of those that hold, or the nearest to holding."""
        holding = [k for k, candidate in enumerate(self._tried) if not candidate.broken]
        if not holding:
            off = [sum(candidate.broken.values()) for candidate in self._tried]
            return [int(k) for k in np.argsort(off, kind="stable")[:most]]
        cost = costs([self._tried[k].measures for k in holding])
        front = pareto(cost)
        return [holding[front[k]] for k in spread(cost[front], most)]

    def _finish(self, today: Measures, budget: int) -> Tuning:
        """Simulate the front again with other seeds, and keep what still holds."""
        if not self._tried:
            raise KeyboardInterrupt
        holding = any(not candidate.broken for candidate in self._tried)
        shown = [self._tried[k] for k in self._best(MAX_CHOICES)] if holding else []
        seeds = range(self._seed + 1, self._seed + SEEDS)
        asked = [(c.settings, seed) for c in shown for seed in seeds]
        asked += [({}, seed) for seed in seeds]
        again = {} if self._stopped else self._sweep("other seeds", asked)
        means = []
        for number, measures in enumerate([*(c.measures for c in shown), today]):
            more = [again.get(number * len(seeds) + k) for k in range(len(seeds))]
            means.append(combine([measures, *(m for m in more if m is not None)]))
        choices = [
            Candidate(candidate.settings, mean, broken(mean, self._limits))
            for candidate, mean in zip(shown, means[:-1], strict=True)
        ]
        choices = [choice for choice in choices if not choice.broken and self._fits(choice)]
        front = pareto(costs([choice.measures for choice in choices])) if choices else []
        todays = todays_settings(self._variants.site.intent, list(self._tried[0].settings))
        return Tuning(
            today=Candidate(todays, means[-1], broken(means[-1], self._limits)),
            choices=tuple(sorted((choices[k] for k in front), key=lambda c: c.measures.tail)),
            tried=tuple(self._tried),
            budget=budget,
            partial=self._stopped,
        )

    def _fits(self, choice: Candidate) -> bool:
        """The whole site, not only the small one, can hold these settings."""
        try:
            self._variants.with_settings(choice.settings)
        except InputError:
            return False
        return True


def default_budget(today: Measures) -> int:
    """Candidates that simulate some 2e8 hops: one to two minutes on two cores."""
    found = int(_DEFAULT_HOPS / max(1, today.hops))
    return min(_MAX_DEFAULT_BUDGET, max(_MIN_DEFAULT_BUDGET, found))


def _hypercube(random: np.random.Generator, count: int, size: int) -> list[Floats]:
    places = np.array([random.permutation(count) for _ in range(size)]).reshape(size, count)
    return list((places.T + random.random((count, size))) / max(1, count))
