"""Check 47: what reads a device changes nothing on it, whatever system it runs."""

import re

import pytest

from fabric.devices.base import Target, TargetPort
from fabric.devices.registry import NICS, SWITCHES, known, load

# How a command begins that only shows. Options that set something are named below.
SHOWS = (
    r"show ",
    r"display ",
    r"nv (?:-o json )?(?:show|config show|config diff|config history)\b",
    r"nv (?:show|config show) ",
    r"(?:sudo )?sonic-cfggen -d --print-data",
    r"(?:sudo )?sonic-db-cli \S+ (?:HGETALL|HGET|KEYS|GET)\b",
    r"(?:sudo )?(?:cat|grep|ls|uname|head|readlink|test) ",
    r"ip (?:-[djs] )*(?:link|addr|address) show\b",
    r"ethtool (?:-[iaSm]|--show-[\w-]+|--statistics) ",
    r"ethtool \w+$",
    r"mlnx_qos -i \S+$",
    r"dcb (?:-[jNs] )*(?:pfc|ets|app|buffer|dcbx|maxrate|rewr) show\b",
    r"tc (?:-[djs] )*(?:qdisc|class|filter) show\b",
    r"rdma (?:-[jd] )*(?:link|dev|statistic|resource)(?: show)?\b",
    r"devlink (?:-[jv] )*(?:\w+ ){1,3}(?:show|info)\b",
    r"(?:sudo )?(?:lldptool -t |lldpctl|lldpcli show )",
    r"niccli .*--show|bnxt_setupcc\.sh -h|mlxconfig -d \S+ q",
    r"systemctl is-(?:enabled|active) ",
    r"for \w+ in ",
)
# Words that would write, wherever they stand in a command.
WRITES = re.compile(
    r"(?<![-\w])(?:tee|rm|mv|cp|dd|touch|mkdir|ln|kill|reboot|reload|configure|clear|reset|write|"
    r"commit|apply|delete|unset)(?![-\w])"
    r"|(?:^|[^2&0-9])>(?!&)|[^2]>\s*/(?!dev/null)|--(?:pfc|trust|dscp2prio|cable_len|dcbx|set)\b"
)


def targets():
    for name in known(SWITCHES):
        if name == "linux":
            continue
        ports = (TargetPort("Ethernet0", 100 * 10**9, 3.0), TargetPort("swp1", 100 * 10**9, 3.0))
        yield name, Target("box", name, "", ports)
    for family in known(NICS):
        port = TargetPort("ens1f0", 100 * 10**9, 3.0, family, f"{family}_0")
        yield "linux", Target("host", "linux", "", (port,))


@pytest.mark.parametrize(
    ("name", "target"), [pytest.param(*t, id=f"{t[0]}-{t[1].ports[0].family}") for t in targets()]
)
def test_read_and_counter_commands_only_read(name, target):
    module = load(SWITCHES, name)
    for command in (*module.read_commands(target), *module.counter_commands(target)):
        assert re.match("|".join(SHOWS), command), command
        # What a switch's own show commands are called says nothing of the shell.
        if not re.match("(?:show|display|nv show) ", command):
            plain = command.replace("2>/dev/null", "").replace("2>&1", "")
            assert not WRITES.search(plain), command


@pytest.mark.parametrize(
    "command",
    [
        "mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0",
        "echo 1 > /sys/class/net/ens1f0/ecn/roce_np/enable/3",
        "clear counters",
        "sudo tee /etc/x",
    ],
)
def test_a_command_that_writes_would_be_seen(command):
    shows = re.match("|".join(SHOWS), command)
    assert shows is None or WRITES.search(command)
