"""The parts of real traffic that need no host: GIDs, ports, command lines, causes, choices."""

import dataclasses
import json
import subprocess

import pytest

from fabric.devices.linux.dump import parse_dump
from fabric.errors import InputError
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape, PortRef
from tests.sites import make_site, write_site
from validation.probes.hosts import ends
from validation.probes.hosts.facts import HostFacts, PortFacts
from validation.probes.hosts.gids import Gid, choose, gids_of, plain_address
from validation.probes.hosts.instrument import ReportError
from validation.probes.hosts.options import Options
from validation.probes.hosts.pairtest import End, PairTest, iterations_of
from validation.probes.hosts.ports import FIRST_PORT, LAST_PORT, Ports
from validation.probes.hosts.probe import HostsProbe
from validation.probes.hosts.scripts import collect, read_files, read_view
from validation.probes.hosts.tcp import client_words, goodput_bps, sender
from validation.probes.perftest.commands import arguments
from validation.probes.perftest.complaints import complaints, noise
from validation.traffic import Stream

A, B = PortRef("host1", "ens1f0"), PortRef("host2", "ens1f0")
TABLE = (
    Gid(0, "fe80::1", "IB/RoCE v1", "ens1f0"),
    Gid(1, "fe80::1", "RoCE v2", "ens1f0"),
    Gid(2, "10.0.0.1", "IB/RoCE v1", "ens1f0"),
    Gid(3, "10.0.0.1", "RoCE v2", "ens1f0"),
    Gid(4, "10.7.0.1", "RoCE v2", "ens1f0.7"),
    Gid(5, "fd00::1", "RoCE v2", "ens1f0"),
)


@pytest.mark.parametrize(
    ("wanted", "index"), [("10.0.0.1", 3), ("", 3), ("fd00::1", 5), ("FD00:0::1", 5)]
)
def test_the_gid_is_v2_of_the_interface_and_of_the_address(wanted, index):
    assert choose(TABLE, "ens1f0", wanted).index == index


@pytest.mark.parametrize(
    ("table", "wanted", "why"),
    [
        ((), "10.0.0.1", "GID table is empty"),
        (TABLE[:1], "10.0.0.1", "no RoCE v2 entry of ens1f0, only IB/RoCE v1 on ens1f0"),
        (TABLE[4:5], "10.7.0.1", r"no RoCE v2 entry of ens1f0, only RoCE v2 on ens1f0\.7"),
        (
            TABLE,
            "10.0.0.9",
            r"no RoCE v2 entry of ens1f0 is 10\.0\.0\.9, only fe80::1, 10\.0\.0\.1",
        ),
        (TABLE[:2], "", "maps an IPv4 address"),
    ],
)
def test_a_table_without_it_is_told_from_another(table, wanted, why):
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(choose(table, "ens1f0", wanted))


def test_the_table_is_read_from_sysfs():
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    dump = parse_dump(
        f"{port}/gids/3:0000:0000:0000:0000:0000:ffff:0a00:0001\n"
        f"{port}/gids/4:0000:0000:0000:0000:0000:0000:0000:0000\n"
        f"{port}/gid_attrs/types/3:RoCE v2\n{port}/gid_attrs/ndevs/3:ens1f0\n"
    )
    assert gids_of(dump, "mlx5_0") == (TABLE[3],)
    assert plain_address("nonsense") == ""


def test_ports_that_are_taken_or_were_just_used_are_passed_over():
    ports = Ports()
    assert ports.take("a", {FIRST_PORT}) == FIRST_PORT + 1
    assert ports.take("a", ()) == FIRST_PORT + 2
    assert ports.take("b", ()) == FIRST_PORT
    everything = range(FIRST_PORT, LAST_PORT + 1)
    assert ports.take("a", everything) is None
    assert ports.take("a", set(everything) - {FIRST_PORT}) == FIRST_PORT


def words(stream, options, tos, **more):
    tool = options.tool(stream.kind)
    count = iterations_of(stream)
    seconds = options.seconds if count is None else None
    test = PairTest("0", A, B, stream, tool, count, seconds)
    return " ".join(arguments(test, End("mlx5_0", "3", tos), options, mtu=4096, port=18515, **more))


def test_software_waits_longer_for_an_acknowledgement():
    test = PairTest("0", A, B, Stream(((A, B),), 64), Options().tool("stream"), None, 8)
    patient, usual = (
        arguments(test, End("rxe0", "1", 106, code), Options(), mtu=4096, port=18515)
        for code in (19, None)
    )
    assert patient[patient.index("-u") + 1] == "19"
    assert "-u" not in usual


def test_command_lines():
    stream = Stream(((A, B),), 65536, qps=4)
    assert words(stream, Options(), 106, peer="10.0.0.2", json_file="/tmp/x.json") == (
        "ib_write_bw -d mlx5_0 -i 1 -x 3 -F -p 18515 -m 4096 -s 65536 -q 4 --report_gbits "
        "-D 8 -f 2 --tclass=106 --out_json --out_json_file=/tmp/x.json 10.0.0.2"
    )
    by_cm = Options(rdma_cm=True, bandwidth="send", seconds=20)
    assert words(stream, by_cm, 106).endswith("-D 20 -f 5 -R -T 106")
    ping = Stream(((A, B),), 64, messages=200, kind="ping")
    assert words(ping, Options(latency="write"), None) == (
        "ib_write_lat -d mlx5_0 -i 1 -x 3 -F -p 18515 -m 4096 -s 64 -U -n 5000"
    )
    # perftest refuses fewer than five.
    assert words(dataclasses.replace(stream, messages=1), Options(), None).endswith("-n 5")


def test_a_test_marks_only_where_its_host_cannot(tmp_path):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("family: mlx5", "family: irdma", 1))
    site = load_site(path)
    verbs, by_cm = Options(), Options(rdma_cm=True)
    assert [ends.own_tos(site, port, verbs) for port in (A, B)] == [106, None]
    assert [ends.own_tos(site, port, by_cm) for port in (A, B)] == [None, None]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"latency": "atomic"}, r"--latency-verb.*send, write, read"),
        ({"bandwidth": "read"}, r"--bandwidth-verb.*write, send"),
        ({"seconds": 3}, "3 seconds: a stream takes 4 to 600"),
    ],
)
def test_choices_that_perftest_does_not_have(options, why):
    with pytest.raises(InputError, match=why):
        Options(**options)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("sh: 1: ib_write_bw: not found", "install the package perftest"),
        ("bash: line 1: ib_send_lat: command not found", "install the package perftest"),
        ("IB device mlx5_9 not found", "rdma link"),
        (" Couldn't get device attributes", "rdma link"),
        ("Couldn't allocate MR", "locked memory"),
        (" Failed to modify QP 274 to RTR", "ip neigh"),
        ("Failed to modify QP to INIT, ret=22", "port of this NIC is down"),
        (" Failed status 12: wr_id 0 syndrom 0x81", "retransmissions ran out"),
        (" Failed status 13: wr_id 0 syndrom 0x0", "receiver was not ready"),
        ("Couldn't listen to port 18515", "another program took the port"),
        ("Couldn't connect to 10.0.0.2:18515", "let TCP ports 18515 to 20514 through"),
        ("Received 10 times ADDR_ERROR - aborting", "nothing answers on the RDMA path"),
        (" Unable to read from socket/rdma_cm", "the other end broke off"),
        ("Failed: margin is not long enough (taking samples before warmup ends)", "--seconds"),
        ("Current implementation is not compatible with versions older than 5.70", "same release"),
        (" Found Incompatibility issue with GID types.", "RoCE v2 GID"),
    ],
)
def test_what_perftest_says_comes_with_what_to_do(line, advice):
    (found,) = complaints(line)
    assert advice in found.advice


def test_a_cause_comes_before_its_consequence_and_noise_is_neither():
    text = "Conflicting CPU frequency values detected: 1.0 != 2.0. CPU Frequency is not max.\n"
    assert list(complaints(text)) == []
    assert noise(text + text) == (text.strip(),)
    said = [("client", c) for c in complaints(" Unable to read from socket/rdma_cm")]
    said += [("server", c) for c in complaints("Couldn't allocate MR")]
    assert min(said, key=lambda item: item[1].rank)[0] == "server"


def test_files_come_back_as_they_were(tmp_path):
    for name, text in (("client0.out", "a\n\n#b\n"), ("client0.rc", "0\n"), ("server0.err", "")):
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["/bin/sh", "-c", collect(str(tmp_path))], capture_output=True, text=True, check=True
    )
    files = read_files(done.stdout)
    assert files == {"client0.out": "a\n\n#b", "client0.rc": "0", "server0.err": ""}
    assert read_view("1700000000000000000\n4853\n0016\n") == (
        1_700_000_000_000_000_000,
        frozenset({18515, 22}),
    )
    with pytest.raises(ValueError, match="invalid literal"):
        read_view("%s%N\n")


def test_plain_tcp_is_what_the_receiver_got():
    assert sender({"iperf3", "python3"}, {"python3"}) == "python3"
    assert sender({"iperf3"}, {"python3"}) == ""
    report = json.dumps({"end": {"sum_received": {"bits_per_second": 9.4e9}}})
    assert goodput_bps("iperf3", report, "") == 9.4e9
    assert goodput_bps("python3", "", 'Waiting\n{"bytes": 1000, "seconds": 2}') == 4000
    for bad in ("", '{"error": "unable to connect"}', report.replace("9400000000.0", "-1")):
        with pytest.raises(ReportError, match="iperf3 reports"):
            goodput_bps("iperf3", bad, "")
    stream = Stream(((A, B),), 1000, messages=5, qps=2, role="default")
    assert "-S 4 -n 10000" in " ".join(client_words("iperf3", stream, "10.0.0.2", 1, 8, 4))
    endless = dataclasses.replace(stream, messages=None)
    assert "-P 2 -S 0 -t 8" in " ".join(client_words("iperf3", endless, "10.0.0.2", 1, 8, 0))


def test_releases_of_all_hosts_are_kept(tmp_path):
    probe = HostsProbe(make_site(tmp_path, environment="site"))
    port = {"ens1f0": PortFacts(TABLE[3], "", software=False)}
    for host, release in (("host1", "6.06"), ("host2", "6.20"), ("host3", "6.06")):
        probe._facts[host] = HostFacts(release=release, ports=port)
    assert probe.versions["perftest"] == "6.06 on host1, host3; 6.20 on host2"


def test_counters_are_read_when_every_device_shows_what_passed(tmp_path):
    path = tmp_path / "fabric.yaml"
    for systems, seconds in ((("nxos",), 1), (("sonic", "nxos"), 11)):
        shape = ClosShape(4, 2, 1)
        path.write_text(starter_yaml(shape, site="s", environment="site", switch_os=systems))
        assert HostsProbe(load_site(path)).settle_s == seconds
