"""``paisoar sim run`` with the semantics of hardware: a site, or HPCC's files as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from fabric.errors import InputError
from fabric.site import Site, load_site
from paisoar.console import EXIT_INTERRUPTED, Answer, Ui

if TYPE_CHECKING:
    from fabric.qos import DeviceQos
    from fabric.sim.api import Flow, SimOptions, SimResult

MAX_SHOWN = 20
MAX_CLOS_HOSTS = 4096


def run_scenario(
    ui: Ui,
    file: Path | None,
    clos: int | None,
    scenario: str,
    duration_us: float,
    warmup_us: float,
    seed: int,
) -> Answer:
    """A scenario on a site, or on a Clos of ``clos`` hosts where there is no file.

    Devices are set as the twin's are now or as the intent has them.
    """
    from fabric.sim.api import SimOptions
    from fabric.sim.scenarios import check_scenario, scenario_flows

    check_scenario(scenario)
    site = load_site(file) if file is not None else _clos_site(ui, clos)
    flows = scenario_flows(site, scenario, duration_us, seed)
    states = states_of(ui, site)
    options = SimOptions(duration_us, warmup_us, sample_us=_sample_us(duration_us), seed=seed)
    return _simulate(ui, site, states, flows, options)


def run_files(
    ui: Ui,
    topology: Path,
    flows: Path,
    dcqcn: str,
    ecn: str,
    duration_us: float,
    warmup_us: float,
    seed: int,
    buffer_bytes: int,
    *,
    ecn_scale: bool,
    closed_loop: bool,
) -> Answer:
    """HPCC's files, simulated as a site of real devices."""
    from fabric.sim.api import SimOptions
    from fabric.sim.reference.dcqcn import read_dcqcn, read_ecn
    from fabric.sim.reference.flowfile import read_flows
    from fabric.sim.reference.site import flows_of_files, site_of_files
    from fabric.sim.reference.topofile import read_topology

    read = read_topology(topology)
    lines = read_flows(flows, read)
    marking = read_ecn(ecn, scaled=ecn_scale)
    site, states = site_of_files(read, read_dcqcn(dcqcn), marking, buffer_bytes)
    options = SimOptions(duration_us, warmup_us, sample_us=_sample_us(duration_us), seed=seed)
    return _simulate(
        ui, site, states, flows_of_files(read, lines, closed_loop=closed_loop), options
    )


def _clos_site(ui: Ui, hosts: int | None) -> Site:
    from fabric.sim.flowlevel.clos import shape_for, site_of

    assert hosts is not None
    shape = shape_for(hosts)
    if hosts > MAX_CLOS_HOSTS:
        raise InputError(
            f"--clos {hosts}: packets are simulated for up to {MAX_CLOS_HOSTS:,} hosts",
            advice="Use --level flow.",
        )
    ui.say(f"laying out {hosts:,} hosts")
    return site_of(shape)


def _sample_us(duration_us: float) -> float:
    return min(1.0, duration_us)


def states_of(ui: Ui, site: Site) -> Mapping[str, DeviceQos]:
    """What the twin's devices hold where it runs; else what the intent gives to them."""
    from fabric.devices.registry import expected_qos

    if site.environment == "twin":
        from fabric.reach.collect import read_states
        from fabric.twin.lifecycle import status

        if status(site).up:
            with ui.progress("reading devices", len(site.devices)) as advance:
                read = read_states(site, on_done=advance)
            read.raise_failed()
            return read.states
    return {name: expected_qos(site, name) for name in site.devices}


def _simulate(
    ui: Ui,
    site: Site,
    states: Mapping[str, DeviceQos],
    flows: Sequence[Flow],
    options: SimOptions,
) -> Answer:
    from fabric.sim.run import prepare, warm_up

    simulation = prepare(site, states, flows, options)
    ui.say("loading the simulator")
    warm_up()
    interrupted, reached = False, 0.0

    def tell(now_us: float) -> None:
        nonlocal reached
        reached = now_us
        step("us simulated", int(now_us), int(options.duration_us))

    with ui.steps("simulating") as step:
        try:
            simulation.advance(options.duration_us, tell)
        except KeyboardInterrupt:
            interrupted = True
    result = simulation.result()
    document = _document(site, result)
    if interrupted:
        document["partial"] = True
        document["simulated_us"] = reached
    return Answer(
        document,
        lambda out: _show(out, document),
        good=not interrupted,
        exit_code=EXIT_INTERRUPTED,
    )


def _document(site: Site, result: SimResult) -> dict[str, Any]:
    from fabric.sim.reference.result import peak_rss_bytes
    from fabric.sim.run import jain

    def total(name: str) -> int:
        return sum(counter.value for counter in result.counters if counter.name == name)

    rates = result.goodput_bps / 1e9
    return {
        "goodput_gbps": {"sum": float(rates.sum()), "per_flow": rates.tolist()},
        "jain": jain(result.goodput_bps),
        "ports": [
            {
                "switch": queue.port.device,
                "port": queue.port.port,
                "peer": site.topology.peer(queue.port).device,
                "queue_mean_bytes": queue.mean_bytes,
                "queue_p50_bytes": queue.p50_bytes,
                "queue_p99_bytes": queue.p99_bytes,
                "queue_max_bytes": queue.max_bytes,
            }
            for queue in result.queues
        ],
        "pauses": total("rx_pause_frames"),
        "drops": total("rx_discards") + total("tx_discards"),
        "marks": total("ecn_marked_packets"),
        "rate_cuts": total("rp_cnp_handled"),
        "data_hops": result.data_hops,
        "wall_s": result.wall_s,
        "hops_per_s": result.data_hops / result.wall_s if result.wall_s else 0.0,
        "peak_rss_bytes": peak_rss_bytes(),
        "messages": _messages(result),
        "notes": list(result.notes),
    }


def _messages(result: SimResult) -> list[dict[str, Any]]:
    """Start is known where a flow has one message, or one after the other with a known gap."""
    found = []
    for number, (flow, times) in enumerate(zip(result.flows, result.messages_us, strict=True)):
        start: float | None = flow.start_us
        chained = flow.qps == 1 and (flow.messages == 1 or flow.gap_us > 0)
        for time_us in times:
            took = float(time_us)
            found.append({"flow": number, "start_us": start if chained else None, "fct_us": took})
            if start is not None:
                start += took + flow.gap_us
    return found


def _show(out: Console, document: dict[str, Any]) -> None:
    if document.get("partial"):
        out.print(f"Partial: interrupted after {document['simulated_us']:.0f} us.", style="bold")
    rates = document["goodput_gbps"]["per_flow"]
    out.print(
        f"goodput {document['goodput_gbps']['sum']:.3f} Gb/s over {len(rates)} flows "
        f"({min(rates):.3f} to {max(rates):.3f}), Jain index {document['jain']:.4f}"
    )
    table = Table("port", "mean, KB", "p50", "p99", "max")
    names = ("queue_mean_bytes", "queue_p50_bytes", "queue_p99_bytes", "queue_max_bytes")
    for port in sorted(document["ports"], key=lambda port: -port[names[0]])[:MAX_SHOWN]:
        values = (f"{port[name] / 1000:.1f}" for name in names)
        table.add_row(f"{port['switch']}:{port['port']}", *values)
    out.print(table)
    out.print(
        f"{document['pauses']} pauses, {document['drops']} drops, {document['marks']} marks, "
        f"{document['rate_cuts']} rate cuts, {len(document['messages'])} messages completed"
    )
    out.print(
        f"{document['data_hops']:,} data-packet hops in {document['wall_s']:.2f} s "
        f"({document['hops_per_s']:,.0f}/s)"
    )
    for note in document["notes"]:
        out.print(note)
