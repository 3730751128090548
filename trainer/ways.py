"""The three ways to start a job's ranks: on this machine, over SSH, by a scheduler.

``share`` is the place that a scheduler gave this process; ``over_ssh`` is the
interpreter on the hosts, empty where no rank is started over SSH.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from fabric.site import Site
from trainer.collective.scheduler import Share
from trainer.collective.settings import NetworkSettings, settings_for
from trainer.hosts import meeting_for, own_name, places_here, places_on
from trainer.scheduled import find, hosting
from trainer.supervise import Meeting, Place


def own_network(site: Site, share: Share | None, wishes: Sequence[str] = ()) -> NetworkSettings:
    """How the rank of this process talks, on this machine."""
    return settings_for(site, own_name(), share.local_rank if share else 0, wishes)


def places_for(
    site: Site,
    hosts: Sequence[str],
    ranks: int,
    *,
    over_ssh: str = "",
    share: Share | None = None,
    wishes: Sequence[str] = (),
) -> list[Place]:
    """Where each rank runs and how it talks; a scheduler's other ranks are only waited for."""
    if over_ssh:
        return places_on(site, hosts, ranks, python=over_ssh, wishes=wishes)
    if share is None:
        return places_here(site, ranks, wishes=wishes)
    own = own_network(site, share, wishes)
    return [
        Place("" if rank < share.local_size else "elsewhere", launched=rank == 0, network=own)
        for rank in range(ranks)
    ]


@contextlib.contextmanager
def meeting(
    site: Site, hosts: Sequence[str], *, over_ssh: str = "", share: Share | None = None
) -> Iterator[Meeting]:
    """Where the ranks meet, for the process that launches the job."""
    if over_ssh:
        yield meeting_for(site, hosts)
    elif share is None:
        yield Meeting()
    else:
        with hosting(share, _folder(site), os.environ) as found:
            yield found


def find_meeting(site: Site, share: Share) -> tuple[tuple[str, int], str]:
    """Address and token of a scheduled job, for its ranks above 0; PeerError when 0 is late."""
    return find(share, _folder(site), os.environ)


def _folder(site: Site) -> Path:
    return site.state_dir / "training" / "meetings"
