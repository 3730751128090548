"""What ends a certificate after it was signed, and what does not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fabric.errors import GateRefusedError
from fabric.qos import PortFacts
from paisoar.commands.watch import _answer
from paisoar.console import console
from validation.certificates import certificate
from validation.gate import open_gate_quickly
from validation.watch.baseline import baseline_path
from validation.watch.reading import reading_path

HOSTS = ("host1", "host2")


def void(done):
    return {(f.kind, f.device, f.port) for f in done.findings if f.voids}


def shown(fabric):
    return certificate.show(fabric.site)


def test_a_quiet_fabric_keeps_its_certificate_and_opens_the_gate(fabric, signed, watching, clock):
    for _ in range(3):
        done = watching()
        assert done.good
        assert done.findings == ()
    assert shown(fabric).valid
    assert open_gate_quickly(fabric.site, HOSTS, clock=clock).certificate_id == signed.id


def test_drift_revokes_and_is_named_with_device_and_port(fabric, signed, watching, clock):
    watching()
    state = fabric.states["leaf2"]
    port = replace(state.ports[1], pfc_priorities=())
    fabric.states["leaf2"] = replace(state, ports=(state.ports[0], port, *state.ports[2:]))
    done = watching()
    assert void(done) == {("drift", "leaf2", "Ethernet1/2")}
    assert done.revoked
    assert done.reason == "revoked"
    assert "drift: leaf2 Ethernet1/2: pfc_priorities: 3 -> none" in shown(fabric).message
    with pytest.raises(GateRefusedError) as refused:
        open_gate_quickly(fabric.site, HOSTS, clock=clock)
    assert refused.value.reason == "revoked"


def test_warning_revokes_nothing_but_a_changed_fabric_stays_shut(fabric, signed, watching, clock):
    fabric.states["leaf2"] = replace(fabric.states["leaf2"], firmware="2")
    done = watching("warn")
    assert not done.good
    assert not done.revoked
    assert shown(fabric).valid
    with pytest.raises(GateRefusedError) as refused:
        open_gate_quickly(fabric.site, HOSTS, clock=clock)
    assert refused.value.reason == "fabric-changed"


def test_it_revokes_once(fabric, signed, watching):
    fabric.states["leaf2"] = replace(fabric.states["leaf2"], firmware="2")
    assert watching().revoked
    again = watching()
    assert not again.revoked
    assert again.reason == "revoked"
    assert [f.kind for f in again.findings if not f.voids] == ["certificate"]


COUNTED = [
    ("link_down_events", None, 1, "link-flap", "went down 1 times"),
    ("rx_prio_discards", 3, 7, "drops", "7 packets of the lossless priority 3"),
    ("tx_pause_storm_errors", None, 1, "pause-storm", "beyond the limit"),
    ("rx_pause_us", 3, 20_000_000, "pause-storm", "paused for 67% of 30 s"),
]


@pytest.mark.parametrize(("name", "priority", "by", "kind", "words"), COUNTED)
def test_counters_that_move_revoke(fabric, signed, watching, name, priority, by, kind, words):
    assert watching().good
    fabric.values["host1", "ens1f0", name, priority] += by
    done = watching()
    assert void(done) == {(kind, "host1", "ens1f0")}
    assert any(words in finding.message for finding in done.findings)
    assert done.revoked


@pytest.mark.parametrize(
    ("name", "priority", "by"),
    [
        ("rx_packets", None, 10**9),
        ("rx_prio_discards", 0, 500),  # the lossy class may lose
        ("rx_pause_us", 3, 1_000_000),  # congestion, not a storm
        ("np_cnp_sent", None, 10**6),
    ],
)
def test_what_traffic_does_to_counters_revokes_nothing(
    fabric, signed, watching, name, priority, by
):
    watching()
    fabric.values["host1", "ens1f0", name, priority] += by
    assert watching().good


def test_bad_checksums_are_told_and_no_more(fabric, signed, watching):
    watching()
    fabric.values["leaf1", "Ethernet1/1", "rx_crc_errors", None] += 2
    done = watching()
    assert done.good
    assert [(f.kind, f.device, f.port) for f in done.findings] == [
        ("errors", "leaf1", "Ethernet1/1")
    ]


def test_drops_of_a_switch_queue_revoke(fabric, signed, watching):
    watching()
    fabric.values["leaf1", "Ethernet1/1", "queue_drops", 3] += 1
    assert void(watching()) == {("drops", "leaf1", "Ethernet1/1")}


def test_drops_of_no_known_priority_are_told_only(fabric, signed, watching):
    fabric.hidden |= {("leaf1", "queue_drops")}
    watching()
    fabric.values["leaf1", "Ethernet1/1", "tx_discards", None] += 4
    done = watching()
    assert done.good
    assert "of which priority it does not show" in done.findings[0].message


def test_counters_that_went_back_are_a_reboot(fabric, signed, watching):
    fabric.values["host2", "ens1f0", "rx_packets", None] = 10**6
    watching()
    fabric.values["host2", "ens1f0", "rx_packets", None] = 12
    done = watching()
    assert void(done) == {("reboot", "host2", "")}
    assert "rx_packets of ens1f0: 1000000 -> 12" in done.findings[0].message


def test_an_uptime_that_went_back_is_a_reboot_with_both_times(fabric, signed, watching, clock):
    watching()
    fabric.up_s["leaf1"] = 12.0
    done = watching()
    assert void(done) == {("reboot", "leaf1", "")}
    message = done.findings[0].message
    seen = [(clock() - timedelta(seconds=s)).strftime("%Y-%m-%dT%H:%M:%SZ") for s in (30, 0)]
    assert f"it rebooted between {seen[0]} and {seen[1]}: up for 12 days, then for 12 s" in message
    assert done.revoked


def test_a_host_with_another_boot_id_rebooted_though_it_counts_on(fabric, signed, watching):
    fabric.boot_id["host1"] = "11111111-0000"
    watching()
    fabric.boot_id["host1"] = "22222222-0000"
    done = watching(restart=True)
    assert void(done) == {("reboot", "host1", "")}
    assert "boot id 11111111, then 22222222" in done.findings[0].message


def test_an_uptime_that_goes_on_is_none_whatever_a_clock_does(fabric, signed, watching, clock):
    fabric.up_s["leaf1"] = 600.0
    watching()
    clock.set_back = -timedelta(hours=5)
    fabric.up_s["leaf1"] = 630.0
    assert watching().good


def test_counters_that_were_cleared_on_a_device_that_runs_on_are_called_that(
    fabric, signed, watching
):
    fabric.values["host2", "ens1f0", "rx_packets", None] = 10**6
    watching()
    fabric.values["host2", "ens1f0", "rx_packets", None] = 12
    message = watching().findings[0].message
    assert "somebody cleared them" in message
    assert "it did not reboot" in message


def test_what_happened_while_the_watch_was_dead_is_seen_after_its_restart(fabric, signed, watching):
    watching()
    fabric.values["leaf1", "Ethernet1/1", "link_down_events", None] += 1
    assert void(watching(restart=True)) == {("link-flap", "leaf1", "Ethernet1/1")}


@pytest.mark.parametrize("kept", [b"", b"{", b"[]", b'{"leaf1": {}}', b'{"leaf1": 3}', b"null"])
def test_counters_that_were_kept_badly_only_start_anew(fabric, signed, watching, kept):
    watching()
    fabric.values["leaf1", "Ethernet1/1", "link_down_events", None] += 1
    baseline_path(fabric.site).write_bytes(kept)
    assert watching(restart=True).good


def test_a_warned_of_certificate_is_not_said_to_hold(fabric, signed, watching, capsys):
    fabric.states["leaf2"] = replace(fabric.states["leaf2"], firmware="2")
    answer = _answer(watching("warn"), once=True)
    answer.show(console())
    told = " ".join(capsys.readouterr().out.split())
    assert f"{signed.id} is not revoked (--on-drift warn), but does not survive" in told
    assert "holds" not in told
    assert (answer.good, answer.exit_code) == (False, 1)


def test_what_a_validation_did_before_its_certificate_is_not_held_against_it(
    fabric, signed, watching, clock
):
    clock.ahead = timedelta(seconds=-600)
    watching("warn")
    fabric.values["leaf1", "Ethernet1/1", "link_down_events", None] += 1
    clock.ahead = timedelta()
    assert void(watching("warn")) == set()


def test_a_dead_device_revokes_nothing_and_shuts_its_gate(fabric, signed, watching, clock):
    watching()
    fabric.dead.add("host4")
    done = watching()
    assert done.good
    assert [(f.kind, f.device) for f in done.findings] == [("unread", "host4")]
    assert open_gate_quickly(fabric.site, HOSTS, clock=clock)
    fabric.dead.clear()
    # Counters of before are still known: what happened meanwhile is seen.
    fabric.values["host4", "ens1f0", "link_down_events", None] += 1
    assert void(watching()) == {("link-flap", "host4", "ens1f0")}


def test_a_link_that_is_down_revokes(fabric, signed, watching):
    state = fabric.states["spine1"]
    fabric.states["spine1"] = replace(state, facts=(PortFacts("Ethernet1/1", up=False),))
    done = watching()
    assert {kind for kind, _, _ in void(done)} == {"link-down"}
    assert "spine1:Ethernet1/1 has no link" in shown(fabric).message


def test_an_expired_certificate_is_told(fabric, signed, watching, clock):
    clock.ahead = timedelta(days=30)
    done = watching()
    assert done.reason == "expired"
    assert not done.revoked
    assert "expired at" in done.findings[0].message


def test_without_a_certificate_it_reads_on(fabric, watching, signed):
    signed.path.unlink()
    done = watching()
    assert done.certificate is None
    assert done.reason == "no-certificate"
    assert reading_path(fabric.site).exists()


@pytest.mark.parametrize("back_s", [29, -3600])
def test_a_clock_that_is_set_makes_no_storm_and_hides_none(fabric, signed, watching, clock, back_s):
    clock.ahead += timedelta(minutes=10)
    watching()
    clock.set_back = timedelta(seconds=back_s)
    fabric.values[("host1", "ens1f0", "rx_pause_us", 3)] += 3_000_000  # a tenth of 30 s
    assert void(watching()) == set()
    clock.set_back = timedelta(seconds=back_s - 600)
    fabric.values[("host1", "ens1f0", "rx_pause_us", 3)] += 20_000_000
    assert void(watching()) == {("pause-storm", "host1", "ens1f0")}
