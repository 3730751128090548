"""What Prometheus gets, and that dashboards and alerts ask for nothing else."""

import json
import re
import urllib.request
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from fabric.counters import COUNTER_NAMES
from fabric.errors import InputError
from validation.scheduler.export import templates
from validation.watch.loop import address, serve, write_textfile
from validation.watch.metrics import Metrics, metric_name

NAME = re.compile(r"\bpaisoar_[a-z_]+")


@pytest.fixture
def told(fabric, watching):
    """Metrics after two rounds: a sound one, and one with a drifted and a dead device."""
    metrics = Metrics(fabric.site)
    first = watching("warn")
    metrics.tell(first, first.findings)
    fabric.states["leaf2"] = replace(fabric.states["leaf2"], firmware="2")
    fabric.dead.add("host4")
    fabric.values["host1", "ens1f0", "rx_pause_us", 3] += 1_500_000
    fabric.values["host1", "ens1f0", "link_down_events", None] += 1
    second = watching("warn")
    metrics.tell(second, second.findings)
    return metrics


def samples(metrics):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }


def value(metrics, name, **labels):
    return samples(metrics)[name, tuple(sorted({"site": "test", **labels}.items()))]


def test_the_state_of_the_fabric(told):
    assert value(told, "paisoar_certificate_valid") == 1
    assert value(told, "paisoar_watch_rounds_total") == 2
    assert value(told, "paisoar_device_up", device="host4", kind="host") == 0
    assert value(told, "paisoar_device_up", device="leaf1", kind="switch") == 1
    assert value(told, "paisoar_device_drifted", device="leaf2") == 1
    assert value(told, "paisoar_device_drifted", device="leaf1") == 0
    assert value(told, "paisoar_watch_findings", kind="drift") == 1
    assert value(told, "paisoar_watch_findings_total", kind="link-flap") == 1
    ends = {"device": "leaf1", "port": "Ethernet1/1", "peer": "host1", "peer_port": "ens1f0"}
    assert value(told, "paisoar_link_up", **ends) == 1


def test_counters_in_base_units_and_only_those_that_are_shown(told):
    at = {"device": "host1", "port": "ens1f0"}
    assert value(told, "paisoar_port_receive_pause_seconds_total", priority="3", **at) == 1.5
    assert value(told, "paisoar_port_link_down_events_total", priority="", **at) == 1
    names = {(name, dict(labels).get("device")) for name, labels in samples(told)}
    # A dead device shows nothing; absence is never zero.
    assert not {name for name, device in names if device == "host4"} - {
        "paisoar_device_up",
        "paisoar_device_drifted",
        "paisoar_link_up",
    }
    assert ("paisoar_device_drifted", "host4") not in names


def test_before_the_first_round_nothing_is_claimed(site):
    names = {name for name, _ in samples(Metrics(site))}
    assert names == {
        "paisoar_watch_rounds_total",
        "paisoar_watch_revocations_total",
        "paisoar_watch_findings_total",
    }


def exposed(metrics):
    # The fake shows no bytes; every counter of the schema has its metric all the same.
    return {name for name, _ in samples(metrics)} | set(map(metric_name, COUNTER_NAMES))


def test_every_metric_of_the_dashboard_exists(told):
    board = json.loads((templates() / "grafana" / "paisoar-fabric.json").read_text())
    asked = [t["expr"] for panel in board["panels"] for t in panel["targets"]]
    asked += [entry["expr"] for entry in board["annotations"]["list"]]
    asked += [v["definition"] for v in board["templating"]["list"] if "definition" in v]
    used = {name for text in asked for name in NAME.findall(text)}
    assert len(used) > 15
    assert used <= exposed(told)
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    cells = [
        (x, y)
        for p in board["panels"]
        for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])
        for y in range(p["gridPos"]["y"], p["gridPos"]["y"] + p["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert max(x for x, _ in cells) < 24


def test_labels_of_the_dashboard_exist(told):
    board = json.loads((templates() / "grafana" / "paisoar-fabric.json").read_text())
    labels = {label for _, pairs in samples(told) for label, _ in pairs}
    for panel in board["panels"]:
        for target in panel["targets"]:
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels


def test_every_metric_of_the_alerts_exists(told):
    rules = YAML(typ="safe").load((templates() / "prometheus" / "paisoar.rules.yml").read_text())
    (group,) = rules["groups"]
    asked = [rule["expr"] for rule in group["rules"]]
    assert {name for text in asked for name in NAME.findall(text)} <= exposed(told)
    assert all(rule["annotations"]["summary"] for rule in group["rules"])


def test_names_are_as_prometheus_wants_them():
    for counter in COUNTER_NAMES:
        name = metric_name(counter)
        assert re.fullmatch(r"paisoar_port_[a-z0-9_]+_total", name)
        assert "_us_" not in name
    assert len(set(map(metric_name, COUNTER_NAMES))) == len(COUNTER_NAMES)


def test_the_endpoint_serves_what_prometheus_parses(told):
    with serve(told, "127.0.0.1:0") as url:
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
        port = url.rsplit(":", 1)[1].partition("/")[0]
        with pytest.raises(InputError, match="cannot listen"), serve(told, f"127.0.0.1:{port}"):
            pass
    families = {family.name for family in text_string_to_metric_families(text)}
    assert "paisoar_certificate_valid" in families
    assert "paisoar_port_receive_packets" in families


def test_the_textfile_is_whole_and_parses(told, tmp_path):
    path = tmp_path / "paisoar.prom"
    write_textfile(told, path)
    families = {family.name for family in text_string_to_metric_families(path.read_text())}
    assert "paisoar_certificate_valid" in families
    assert [entry.name for entry in tmp_path.glob("*.prom*")] == ["paisoar.prom"]
    with pytest.raises(InputError, match="cannot be written"):
        write_textfile(told, tmp_path / "none" / "paisoar.prom")


@pytest.mark.parametrize(
    ("text", "at"),
    [("127.0.0.1:9817", ("127.0.0.1", 9817)), ("[::1]:1", ("::1", 1)), (":9", ("0.0.0.0", 9))],
)
def test_addresses(text, at):
    assert address(text) == at


@pytest.mark.parametrize("text", ["9817", "localhost", "a:b", "a:99999", ""])
def test_what_is_no_address(text):
    with pytest.raises(InputError, match="no address"):
        address(text)
