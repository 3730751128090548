"""``paisoar check``."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from fabric.headroom import headroom_bytes
from fabric.site import Site, load_site
from fabric.units import format_size, format_speed
from paisoar.console import (
    DEFAULT_FILE,
    Answer,
    FileOption,
    JsonOption,
    Ui,
    command_line,
    count_of,
    run,
)


def check(file: FileOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """Check intent and topology by static rules; touches nothing.

    Every fault is named with file, line and key, and ends with exit 2.
    """
    run(as_json, lambda ui: _check(ui, file))


def _check(ui: Ui, file: Path) -> Answer:
    ui.say(f"checking {file}")
    site = load_site(file)
    topology = site.topology
    ratios = {
        switch: topology.oversubscription(switch)
        for switch in topology.switches
        if site.switch(switch).role == "leaf"
    }
    document = {
        "site": site.name,
        "environment": site.environment,
        "hosts": len(topology.hosts),
        "switches": len(topology.switches),
        "cables": len(topology.links),
        "oversubscription": {name: r if r != float("inf") else None for name, r in ratios.items()},
        "valid": True,
    }
    return Answer(document, lambda out: _show(out, site, ratios))


def _show(out: Console, site: Site, ratios: dict[str, float]) -> None:
    intent = site.intent
    classes = Table("class", "DSCP", "priority", "PFC", "served", title=f"Site {site.name}")
    for name, cls in intent.classes.items():
        share = "strict" if cls.scheduler.mode == "strict" else f"{cls.scheduler.percent} %"
        dscps = ", ".join(map(str, cls.dscp)) or "all others"
        classes.add_row(name, dscps, str(cls.priority), "lossless" if cls.lossless else "", share)
    out.print(classes)
    links = Table("ports", "kmin", "kmax", "pmax", "xoff", "headroom (longest cable)")
    for speed_bps in sorted({link.speed_bps for link in site.topology.links}):
        profile = intent.profile(speed_bps)
        cable_m = max(k.length_m for k in site.topology.links if k.speed_bps == speed_bps)
        links.add_row(
            format_speed(speed_bps),
            format_size(profile.kmin),
            format_size(profile.kmax),
            f"{profile.pmax_percent} %",
            format_size(profile.xoff),
            f"{format_size(headroom_bytes(speed_bps, cable_m, intent.mtu.switch_port))} "
            f"({cable_m:g} m)",
        )
    out.print(links)
    worst = max(ratios.values(), default=0.0)
    shape = "have no uplinks"
    if worst != float("inf"):
        shape = "are not oversubscribed" if worst <= 1 else f"are oversubscribed {worst:g}:1"
    following = "twin up" if site.environment == "twin" else "plan"
    out.print(
        f"{count_of(len(site.topology.hosts), 'host')}, "
        f"{count_of(len(site.topology.switches), 'switch', 'switches')}, "
        f"{count_of(len(site.topology.links), 'cable')}; leaves {shape}. "
        f"{site.path} is valid; evidence from here is called {site.evidence_class!r}. "
        f"Next: {command_line(following, site.path)}",
        soft_wrap=True,
    )
