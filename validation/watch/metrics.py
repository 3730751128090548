"""The last round as Prometheus metrics.

Names follow Prometheus' rules (prometheus.io/docs/practices/naming): base units,
``_total`` for counters, and its exporters' words (``receive``, ``transmit``, as
node_exporter has them for network devices). Counters are the devices' own, in their
state when they were read; what a device does not show is absent, never zero.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fabric.counters import COUNTER_NAMES, Counter
from fabric.site import Site
from fabric.topology import PortRef
from validation.times import from_text
from validation.watch.events import KINDS, Finding
from validation.watch.watcher import Round

_PREFIXES = {"rx_": "receive_", "tx_": "transmit_"}


def metric_name(counter: str) -> str:
    """The metric of a counter in ``fabric.counters``: ``paisoar_port_receive_packets_total``."""
    for short, word in _PREFIXES.items():
        if counter.startswith(short):
            counter = word + counter.removeprefix(short)
    if counter.endswith("_us"):
        counter = counter.removesuffix("_us") + "_seconds"
    return f"paisoar_port_{counter}_total"


class Metrics(Collector):
    """What is known now; ``tell`` it every round."""

    def __init__(self, site: Site) -> None:
        self._site = site
        # Other priorities are shown where they carry anything.
        self._priorities = {c.priority for c in site.intent.classes.values()}
        self._last: Round | None = None
        self._rounds = 0
        self._happened: Tally[str] = Tally()
        self._revoked = 0

    def tell(self, done: Round, news: Sequence[Finding]) -> None:
        """Take over a round; ``news`` are those of its findings that the last one had not."""
        self._happened.update(finding.kind for finding in news)
        self._rounds += 1
        self._revoked += done.revoked
        self._last = done

    def collect(self) -> Iterator[Metric]:
        """Everything, of one and the same round."""
        last = self._last
        yield self._counter("paisoar_watch_rounds_total", "Rounds since the start.", self._rounds)
        yield self._counter(
            "paisoar_watch_revocations_total",
            "Certificates revoked since the start.",
            self._revoked,
        )
        happened = CounterMetricFamily(
            "paisoar_watch_findings_total",
            "What happened since the start.",
            labels=["site", "kind"],
        )
        for kind in KINDS:
            happened.add_metric([self._site.name, kind], self._happened[kind])
        yield happened
        if last is None:
            return
        yield from self._watch(last)
        yield from self._certificate(last)
        yield from self._devices(last)
        yield from self._counters(last)

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(name, text, labels=["site"])
        family.add_metric([self._site.name], value)
        return family

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, text, labels=["site"])
        family.add_metric([self._site.name], value)
        return family

    def _watch(self, last: Round) -> Iterator[Metric]:
        yield self._gauge(
            "paisoar_watch_last_round_timestamp_seconds",
            "When the last round asked the first device.",
            from_text(last.reading.started_at).timestamp(),
        )
        yield self._gauge(
            "paisoar_watch_round_duration_seconds",
            "How long reading all devices took.",
            last.seen.seconds,
        )
        yield self._gauge(
            "paisoar_watch_interval_seconds", "Time between rounds.", last.reading.interval_s
        )
        now = GaugeMetricFamily(
            "paisoar_watch_findings", "Findings of the last round.", labels=["site", "kind"]
        )
        tally = Tally(finding.kind for finding in last.findings)
        for kind in KINDS:
            now.add_metric([self._site.name, kind], tally[kind])
        yield now

    def _certificate(self, last: Round) -> Iterator[Metric]:
        yield self._gauge(
            "paisoar_certificate_valid",
            "1 where the newest certificate holds and the watch has not revoked it.",
            float(not last.reason),
        )
        found = last.certificate
        if found is None:
            return
        yield self._gauge(
            "paisoar_certificate_not_after_timestamp_seconds",
            "Until when the newest certificate holds.",
            found.not_after.timestamp(),
        )
        info = InfoMetricFamily("paisoar_certificate", "The newest certificate.", labels=["site"])
        facts = {
            "certificate": found.id,
            "evidence_class": found.evidence_class,
            "profile": found.predicate.profile.name,
            "reason": last.reason,
        }
        info.add_metric([self._site.name], facts)
        yield info

    def _devices(self, last: Round) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "paisoar_device_up", "1 where the device answered.", labels=["site", "device", "kind"]
        )
        drift = GaugeMetricFamily(
            "paisoar_device_drifted",
            "1 where the device does not do what was certified.",
            labels=["site", "device"],
        )
        gone = {finding.device for finding in last.findings if finding.kind == "drift"}
        for name, device in last.reading.devices.items():
            kind = self._site.devices[name].kind
            up.add_metric([self._site.name, name, kind], float(not device.error))
            if not device.error and last.certificate is not None:
                drift.add_metric([self._site.name, name], float(name in gone))
        yield up
        yield drift
        links = GaugeMetricFamily(
            "paisoar_link_up",
            "1 unless an end of the cable is seen to be down.",
            labels=["site", "device", "port", "peer", "peer_port"],
        )
        down = {(PortRef.parse(link.a), PortRef.parse(link.b)) for link in last.reading.down}
        for cable in self._site.topology.links:
            labels = [self._site.name, *cable.a, *cable.b]
            links.add_metric(labels, float((cable.a, cable.b) not in down))
        yield links

    def _counters(self, last: Round) -> Iterator[Metric]:
        families: dict[str, Any] = {}
        for snapshot in last.seen.snapshots.values():
            for counter in snapshot.counters:
                self._add(families, counter)
        yield from families.values()

    def _add(self, families: dict[str, Any], counter: Counter) -> None:
        idle = counter.priority is not None and counter.priority not in self._priorities
        if idle and not counter.value:
            return
        if counter.name not in families:
            text = COUNTER_NAMES[counter.name].capitalize().replace("Microseconds", "Seconds") + "."
            families[counter.name] = CounterMetricFamily(
                metric_name(counter.name), text, labels=["site", "device", "port", "priority"]
            )
        value = counter.value / 1e6 if counter.name.endswith("_us") else counter.value
        priority = "" if counter.priority is None else str(counter.priority)
        labels = [self._site.name, counter.device, counter.port, priority]
        families[counter.name].add_metric(labels, value)
