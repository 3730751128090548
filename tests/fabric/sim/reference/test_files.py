"""What people's files may say, and where a mistake is said to be.

Formats: topology and flow files of HPCC (alibaba-edu/High-Precision-Congestion-Control,
simulation/mix/*.txt); paths as ``perflow.csv`` of the reference runs has them.
"""

from pathlib import Path

import pytest

from fabric.errors import InputError
from fabric.sim.reference import columns as c
from fabric.sim.reference.dcqcn import SETS, Ecn, read_dcqcn, read_ecn
from fabric.sim.reference.flowfile import read_flows
from fabric.sim.reference.memory import Setup
from fabric.sim.reference.pathfile import read_paths
from fabric.sim.reference.simulation import prepare
from fabric.sim.reference.topofile import read_topology
from fabric.sim.reference.wiring import Wiring

# Hosts 0 to 3, leaves 4 and 5, spines 6 and 7.
CLOS = """8 4 8
4 5 6 7
0 4 25Gbps 1000ns 0
1 4 25Gbps 1us 0
2 5 25Gbps 0.001ms 0
3 5 25Gbps 1000ns 0
4 6 100Gbps 1000ns 0
4 7 100Gbps 1000ns 0
5 6 100Gbps 1000ns 0
5 7 100Gbps 1000ns 0
"""
FLOWS = "2\n0 2 3 100 5000 0\n1 3 3 100 1 0.000001\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_reads_a_topology_in_all_its_units(tmp_path):
    topology = read_topology(write(tmp_path, "f.topo", CLOS))
    assert topology.hosts == (0, 1, 2, 3)
    assert topology.switches == (4, 5, 6, 7)
    assert {cable.delay_ns for cable in topology.cables} == {1000}
    assert {cable.rate_bps for cable in topology.cables} == {25 * 10**9, 100 * 10**9}


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("8 4 8", "8 4", 1, "NODES SWITCHES LINKS"),
        ("8 4 8", "8 4 9", 10, "9 links announced"),
        ("4 5 6 7", "4 5 6 6", 2, "numbered twice"),
        ("4 5 6 7", "4 5 6 9", 2, "node 9"),
        ("0 4 25Gbps", "0 4 0Gbps", 3, "at least 1Mbps"),
        ("0 4 25Gbps", "0 4 fast", 3, "no rate"),
        ("1 4 25Gbps 1us", "1 4 25Gbps -1us", 4, "no time"),
        ("1 4 25Gbps 1us", "1 4 25Gbps 0ns", 4, "1ns to 10ms"),
        ("1 4 25Gbps 1us 0", "1 4 25Gbps 1us 0.01", 4, "error rate"),
        ("1 4 25Gbps", "1 1 25Gbps", 4, "itself"),
        ("1 4 25Gbps", "1 2 25Gbps", 4, "both hosts"),
        ("1 4 25Gbps", "0 4 25Gbps", 4, "linked in line 3"),
        ("1 4 25Gbps", "0 5 25Gbps", 4, "host 0 has a link in line 3"),
        ("1 4 25Gbps", "-1 4 25Gbps", 4, "not a number from 0 up"),
    ],
)
def test_refuses_a_bad_topology_with_its_line(tmp_path, old, new, line, words):
    path = write(tmp_path, "f.topo", CLOS.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as caught:
        read_topology(path)
    assert (caught.value.file, caught.value.line) == (path, line)


def test_start_times_are_truncated_to_nanoseconds_as_the_reference_does(tmp_path):
    topology = read_topology(write(tmp_path, "f.topo", CLOS))
    flows = read_flows(write(tmp_path, "f.flow", FLOWS), topology)
    # 0.000001 as a double is a little less than a microsecond.
    assert [flow.start_ns for flow in flows.flows] == [0, 999]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("2\n", "3\n", 3, "3 flows announced"),
        ("0 2 3 100 5000 0", "0 0 3 100 5000 0", 2, "sends to itself"),
        ("0 2 3 100 5000 0", "0 6 3 100 5000 0", 2, "6 is no host"),
        ("0 2 3 100 5000 0", "0 2 3 100 -5000 0", 2, "not a number from 0 up"),
        ("0 2 3 100 5000 0", "0 2 3 100 0 0", 2, "0 bytes"),
        ("0 2 3 100 5000 0", "0 2 9 100 5000 0", 2, "priority group 9"),
        ("1 3 3 100 1", "1 3 4 100 1", 3, "one data priority"),
        ("5000 0\n", "5000 1\n", 3, "sort the flows"),
        ("5000 0\n", "5000 nan\n", 2, "start nan"),
        ("5000 0\n", "5000\n", 2, "a flow has 6"),
    ],
)
def test_refuses_bad_flows_with_their_line(tmp_path, old, new, line, words):
    topology = read_topology(write(tmp_path, "f.topo", CLOS))
    path = write(tmp_path, "f.flow", FLOWS.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as caught:
        read_flows(path, topology)
    assert (caught.value.file, caught.value.line) == (path, line)


def test_refuses_hosts_that_do_not_reach_each_other(tmp_path):
    apart = CLOS.replace("8 4 8", "8 4 6").replace("5 6 100Gbps 1000ns 0\n", "")
    apart = apart.replace("5 7 100Gbps 1000ns 0\n", "")
    topology = read_topology(write(tmp_path, "f.topo", apart))
    flows = read_flows(write(tmp_path, "f.flow", FLOWS), topology)
    with pytest.raises(InputError, match="host 0 does not reach host 2") as caught:
        prepare(topology, flows, Setup(SETS["P1"], None, 1000))
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 2 4-6-5-7-4", "cyclic: it passes switch 4 twice"),
        ("0 2 4-5", "4 and 5 are not linked"),
        ("0 2 6-5", "0 and 6 are not linked"),
        ("0 2 4-3-5", "3 in the path 4-3-5 is no switch"),
        ("0 2", "a path has 3 or 4"),
        ("2 0 5-6-4", "no flow from 2 to 0"),
        ("0 2 4-6-5\n0 2 4-7-5", "pins this flow to another path"),
    ],
)
def test_refuses_paths_that_packets_cannot_take(tmp_path, text, words):
    topology = read_topology(write(tmp_path, "f.topo", CLOS))
    flows = read_flows(write(tmp_path, "f.flow", FLOWS), topology)
    path = write(tmp_path, "paths.txt", text + "\n")
    with pytest.raises(InputError, match=words) as caught:
        read_paths(path, Wiring(topology), flows)
    assert caught.value.line == text.count("\n") + 1


@pytest.mark.parametrize("spine", [6, 7])
@pytest.mark.parametrize(
    "layout", ["0 2 4-{0}-5 5-{0}-4\n", "run,src,dst,switch_path,ack_path\nx,0,2,4-{0}-5,5-{0}-4\n"]
)
def test_a_pinned_flow_takes_its_path(tmp_path, spine, layout):
    topology = read_topology(write(tmp_path, "f.topo", CLOS))
    flows = read_flows(write(tmp_path, "f.flow", "1\n0 2 3 100 50000 0\n"), topology)
    wiring = Wiring(topology)
    pins = read_paths(write(tmp_path, "p", layout.format(spine)), wiring, flows)
    simulation = prepare(topology, flows, Setup(SETS["P1"], None, 100_000, 0), pins)
    simulation.run()
    sent = simulation.memory.ports.reshape(-1, c.PORT_WORDS)[:, c.TX_SINCE]
    busy = {
        port.node for port, at in zip(wiring.ports, sent, strict=True) if port.node > 5 and at > 0
    }
    assert simulation.result().messages
    assert busy == {spine}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("alpha_timer_us 1\nbyte_counter 10\n", 2, "unknown key 'byte_counter'"),
        ("g 2\n", 1, "between 0 and 1"),
        ("rate_ai_bps -5Mb/s\n", 1, "no rate"),
        ("rate_ai_bps 0Mb/s\n", 1, "above zero"),
        ("increase_timer_us 1.5\n", 1, "whole number"),
        ("alpha_timer_us 1\nALPHA_RESUME_INTERVAL 2\n", 2, "given twice"),
        ("alpha_timer_us\n", 1, "a name and a value"),
    ],
)
def test_refuses_dcqcn_files_with_their_line(tmp_path, text, line, words):
    path = write(tmp_path, "dcqcn.txt", text)
    with pytest.raises(InputError, match=words) as caught:
        read_dcqcn(str(path))
    assert (caught.value.file, caught.value.line) == (path, line)


def test_reads_a_dcqcn_file_under_either_name(tmp_path):
    ours = write(tmp_path, "ours", "alpha_timer_us: 55\nrate_ai_bps: 40Mb/s  # per step\n")
    hpcc = write(tmp_path, "hpcc", "ALPHA_RESUME_INTERVAL 55\nRATE_AI 40Mb/s\n")
    assert read_dcqcn(str(ours)) == read_dcqcn(str(hpcc))
    assert read_dcqcn(str(ours)).rate_ai_bps == 40_000_000


def test_reads_ecn():
    assert read_ecn("100KB,400000,0.2") == Ecn(100_000, 400_000, 0.2)
    assert read_ecn("off") is None
    for text in ("100KB,400KB", "400KB,100KB,0.2", "1KB,2KB,1.5", "a,b,c"):
        with pytest.raises(InputError, match="--ecn"):
            read_ecn(text)
