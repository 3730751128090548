"""Watchers over fake fabrics, with a clock that goes on as tests say."""

from dataclasses import replace
from datetime import timedelta

import pytest

from validation.times import utc_now
from validation.watch.watcher import Watcher


class Clock:
    """Stands still, however busy the machine is, until a test moves it."""

    def __init__(self):
        self.started = utc_now()
        self.ahead = timedelta()
        self.set_back = timedelta()

    def monotonic(self):
        """Seconds, whatever the clock on the wall is set to."""
        return self.ahead.total_seconds()

    def __call__(self):
        return self.started + self.ahead - self.set_back


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watching(fabric, signed, clock):
    """A function that carries out one round; counters are stamped by the clock."""
    plain = fabric.snapshot

    def stamped(name):
        return replace(plain(name), taken_at_s=clock().timestamp())

    fabric.snapshot = stamped
    watchers = {}

    def one_round(on_drift="revoke", *, restart=False, **options):
        if restart or on_drift not in watchers:
            watchers[on_drift] = Watcher(
                fabric.site,
                on_drift=on_drift,
                readers=fabric.readers(),
                clock=clock,
                monotonic=clock.monotonic,
                **options,
            )
        watcher = watchers[on_drift]
        clock.ahead += timedelta(seconds=30)
        return watcher.conclude(watcher.read())

    return one_round
