"""bnxt, E810 and generic NICs: intent, commands, what the host then does, and back.

The hosts are written from the kernel's drivers, not from these modules, and refuse
what those refuse (``fabric.twin.host.stand_ins.dcbnl``).
"""

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabric.counters import Counter
from fabric.devices.base import ReadError
from fabric.devices.dcb.paper import published
from fabric.devices.linux.script import render_script, reproduces
from fabric.qos import Dcqcn, Queue, Scheduler
from fabric.twin.host import counters as host_counters
from fabric.twin.host.stand_ins.factory import reset_nic
from tests.fabric.devices.linux.shells import Quick, Shell

FAMILIES = ("bnxt", "irdma", "generic")


@pytest.fixture
def host(request, tmp_path):
    shell = Shell(tmp_path, request.param)
    yield shell
    shell.namespace.close()


def every(test):
    return pytest.mark.parametrize("host", FAMILIES, indirect=True)(test)


def one(family):
    return pytest.mark.parametrize("host", [family], indirect=True)


def without(outputs, path):
    """These outputs of a host that does not have this folder."""
    return {
        command: "".join(
            line for line in text.splitlines(keepends=True) if not line.startswith(path)
        )
        + (f"grep: {path}: No such file or directory\n" if path in command else "")
        for command, text in outputs.items()
    }


@every
def test_a_host_out_of_the_box_becomes_what_is_intended_and_comes_back(host):
    if host.target.ports[0].family == "generic":  # nothing gives DCBX back to the firmware
        host.run("dcb dcbx set dev ens1f0 host ieee; dcb dcbx set dev ens1f1 host ieee")
    start = host.read()
    change = host.change()
    host.apply(change)
    live = host.read()
    assert live.ports == host.intended.ports
    assert live.saved is True
    # What no such NIC shows is named, and never passed over.
    assert any(fact.startswith("ens1f0: receive buffer") for fact in live.unread)
    assert any(fact.startswith("ens1f0: cable length") for fact in live.unread)
    assert host.change().empty
    host.undo(change)
    assert host.read() == start


@every
def test_the_boot_script_alone_brings_everything_back_after_a_reset(host):
    host.apply(host.change())
    for nic in host.host.nics():
        reset_nic(nic)
    assert host.read().ports != host.intended.ports
    script = "for name in ens1f0 ens1f1; do sh /etc/paisoar/roce-$name.sh; done"
    assert host.run(script).count("all settings are in place") == 2
    live = host.read()
    assert live.ports == host.intended.ports
    assert live.saved is True
    host.run("sh /etc/paisoar/roce-ens1f0.sh")  # does no harm on a port that is set
    assert host.read() == live


@every
def test_a_change_by_hand_is_seen_and_mended(host):
    host.apply(host.change())
    host.run("dcb app del dev ens1f0 dscp-prio 26:3; dcb app add dev ens1f0 dscp-prio 26:0")
    host.run("dcb pfc set dev ens1f1 prio-pfc all:off")
    live = host.read()
    assert live.port("ens1f0").priority_of_dscp(26) == 0
    assert live.port("ens1f1").pfc_priorities == ()
    assert live.saved is False
    host.apply(host.change())
    assert host.read().ports == host.intended.ports


@every
def test_counters_move_with_traffic(host):
    host.apply(host.change())
    deltas = [
        Counter("host1", "ens1f0", "rx_bytes", 4_000),
        Counter("host1", "ens1f0", "rx_packets", 2),
        Counter("host1", "ens1f0", "rx_pause_frames", 7, priority=3),
        Counter("host1", "ens1f0", "tx_pause_frames", 5, priority=3),
        Counter("host1", "ens1f0", "np_cnp_sent", 11),
        Counter("host1", "ens1f0", "rp_cnp_handled", 3),
    ]
    host_counters.add(host.host, deltas)
    outputs = host.outputs(host.module.counter_commands(host.target))
    shot = host.module.read_counters(host.target, outputs, 1.0)
    seen = {(c.port, c.name, c.priority): c.value for c in shot.counters}
    for delta in deltas:
        if delta.name in ("rx_bytes", "rx_packets") and host.target.ports[0].family == "generic":
            continue  # its driver's own names of these are not known
        assert seen[delta.port, delta.name, delta.priority] == delta.value, delta
        assert seen["ens1f1", delta.name, delta.priority] == 0


@one("bnxt")
def test_bnxt_gives_only_used_priorities_a_class(host):
    port = host.intended.ports[0]
    assert port.priority_to_class == (0, 0, 0, 1, 0, 0, 2, 0)
    assert [queue.scheduler for queue in port.queues[:3]] == [
        Scheduler("ets", 50), Scheduler("ets", 50), Scheduler("strict")
    ]  # fmt: skip
    assert port.nic.dcqcn == published((3,), 48, 6)
    assert port.nic.verbs_traffic_class == 106


@one("bnxt")
def test_bnxt_names_what_makes_priorities_come_from_tags(host):
    host.apply(host.change())
    assert host.read().remarks == ()
    cc = "/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc"
    host.run(f"echo 0x0 > {cc}/disable_prio_vlan_tx; echo 0x0 > {cc}/cc_mode")
    live = host.read()
    assert [(remark.rule, remark.port) for remark in live.remarks] == [("trust", "ens1f0")]
    assert live.port("ens1f0").nic.dcqcn is None


@one("bnxt")
def test_the_kernels_own_bnxt_re_has_no_configfs_and_keeps_the_rest(host):
    outputs = without(host.outputs(), "/sys/kernel/config/bnxt_re")
    change = host.module.change(host.target, outputs, host.intended)
    assert "congestion control" not in change.diff
    assert any(
        "DCQCN parameters (there is no" in fact
        for fact in host.module.read(host.target, outputs).unread
    )
    script = next(file.after for file in change.files if file.path.endswith("ens1f0.sh"))
    assert "if [ -e /sys/kernel/config/bnxt_re ]" in script


@one("irdma")
def test_nothing_is_set_while_the_firmwares_agent_runs(host):
    said = host.run("dcb pfc set dev ens1f0 prio-pfc 3:on", good=False)
    assert "Invalid argument" in said
    assert host.read().port("ens1f0").nic.dcbx == "firmware"
    first = host.change().commands[0]
    assert first == "ethtool --set-priv-flags ens1f0 fw-lldp-agent off"


@one("irdma")
def test_dcqcn_of_irdma_is_off_by_default_and_of_the_whole_device(host):
    assert host.read().port("ens1f0").nic.dcqcn is None
    host.apply(host.change())
    assert host.read().port("ens1f0").nic.dcqcn.np_priorities == tuple(range(8))
    folder = "/sys/kernel/config/irdma"
    outputs = without(host.outputs(), folder)
    live = host.module.read(host.target, outputs)
    assert live.port("ens1f0").nic.dcqcn is None  # by the module's parameter
    assert not any("DCQCN parameters" in fact for fact in live.unread)
    live = host.module.read(host.target, without(outputs, "/sys/module/irdma/parameters"))
    assert any("DCQCN parameters" in fact for fact in live.unread)
    assert "DCQCN" not in host.module.change(host.target, outputs, host.intended).diff


@one("irdma")
def test_another_driver_than_the_site_says_is_an_error(host):
    outputs = host.outputs()
    info = "ethtool -i ens1f0"
    outputs[info] = outputs[info].replace("driver: ice", "driver: mlx5_core")
    with pytest.raises(ReadError, match="its driver is mlx5_core"):
        host.module.read(host.target, outputs)


@one("generic")
def test_a_willing_port_is_remarked_on(host):
    host.apply(host.change())
    host.run("dcb ets set dev ens1f0 willing on")
    live = host.read()
    assert [remark.rule for remark in live.remarks] == ["dcbx"]
    host.apply(host.change())
    assert host.read().remarks == ()


@st.composite
def intents(draw, family, port):
    """What the family's driver may be asked for: any map, one lossless priority, shares."""
    lossless = draw(st.integers(0, 7))
    mapped = draw(st.dictionaries(st.integers(0, 63), st.integers(0, 7), max_size=8))
    table = [draw(st.integers(0, 7))] * 64
    for dscp, priority in mapped.items():
        table[dscp] = priority
    strict = draw(st.sets(st.integers(1, 7), max_size=3))
    ets = [tc for tc in range(8) if tc not in strict]
    cuts = sorted(draw(st.lists(st.integers(0, 100), min_size=len(ets) - 1, max_size=len(ets) - 1)))
    shares = [high - low for low, high in zip([0, *cuts], [*cuts, 100], strict=True)]
    percent = dict(zip(ets, shares, strict=True))
    queues = tuple(
        Queue(tc, Scheduler("strict") if tc in strict else Scheduler("ets", percent[tc]))
        for tc in range(8)
    )
    dcqcn = draw(st.none() | st.just(Dcqcn((lossless,), (lossless,), 48, draw(st.integers(0, 7)))))
    nic = dataclasses.replace(
        port.nic, dcqcn=dcqcn, verbs_traffic_class=draw(st.none() | st.integers(1, 255))
    )
    return dataclasses.replace(
        port,
        mtu_bytes=draw(st.integers(1280, 9500)),
        dscp_to_priority=tuple(table),
        pfc_priorities=(lossless,) if draw(st.booleans()) else (),
        queues=queues,
        nic=nic,
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_any_intent_is_reached_from_any_state(family, tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp(family), family, nics=1)
    quick, raw = Quick(shell), shell.intended.ports[0]
    if family == "generic":  # nothing gives DCBX back to the firmware
        quick.run("dcb dcbx set dev ens1f0 host ieee")

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(intents(family, raw))
    def reached(port):
        wanted = quick.family.normalise(port)
        assert quick.family.normalise(wanted) == wanted
        before, changes = quick.read(), quick.changes(wanted)
        quick.apply(changes)
        quick.undo(changes)
        assert quick.read() == before
        quick.apply(changes)
        live = quick.read()
        nic = dataclasses.replace(live.port.nic, persistent=True)
        assert dataclasses.replace(live.port, nic=nic) == wanted
        assert quick.changes(wanted) == ()
        script = render_script(port.name, quick.family.settings(wanted))
        assert reproduces(script, port.name, live.settings, live.shown)

    try:
        reached()
    finally:
        shell.namespace.close()


@one("generic")
def test_capped_classes_are_read_through_dcb_and_set_free_and_capped_again(host):
    host.apply(host.change())
    # 6.1 hands bytes a second on as kbit/s: 8 Mbit is 1 Gb/s.
    host.run("dcb maxrate set dev ens1f0 tc-maxrate 3:8mbit 5:800kbit")
    live = host.read()
    rates = [queue.max_rate_bps for queue in live.port("ens1f0").queues]
    assert rates == [0, 0, 0, 10**9, 0, 10**8, 0, 0]
    assert live.saved is not True
    change = host.change()
    assert "- ens1f0: rate limits tc3 1G, tc5 100M\n+ ens1f0: rate limits none\n" in change.diff
    host.apply(change)
    assert host.read().ports == host.intended.ports
    assert host.change().empty
    host.undo(change)
    assert host.read() == live
    host.run("sh /etc/paisoar/roce-ens1f0.sh")
    assert host.read().ports == host.intended.ports


@pytest.mark.parametrize("host", ["bnxt", "irdma"], indirect=True)
def test_of_limits_that_a_driver_does_not_know_nothing_is_said(host):
    assert "not supported" in host.run("dcb maxrate show dev ens1f0", good=False)
    host.apply(host.change())
    live = host.read()
    assert not any("rate limit" in fact or "maxrate" in fact for fact in live.unread)
    assert host.change().empty


def test_rates_are_bytes_a_second_since_6_18():
    from fabric.devices.dcb import text

    shown = '{"tc_maxrate":[0,0,0,125000000,0,0,0,0]}'
    old, new = "dcb utility, iproute2-6.17.0", "dcb utility, iproute2-6.18.0"
    assert text.max_rates(old, shown) == (0, 0, 0, 125 * 10**9, 0, 0, 0, 0)
    assert text.max_rates(new, shown) == (0, 0, 0, 10**9, 0, 0, 0, 0)
    assert text.max_rates("dcb utility, iproute2-ss200127", shown)[3] == 125 * 10**9
    assert text.rate_word(10**9, old) == "8000000bit"
    assert text.rate_word(10**9, new) == "1000000000bit"
