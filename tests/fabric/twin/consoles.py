"""Typing on an emulated switch without a network between."""

from __future__ import annotations

from fabric.twin.nxos import EmulatedSwitch
from fabric.twin.nxos.cli import Cli

# The smallest complete lossless configuration, in the order in which people type it.
ROCE = """\
class-map type qos match-any ROCE
match dscp 26
class-map type qos match-any CNP
match dscp 48
policy-map type qos IN
class ROCE
set qos-group 3
class CNP
set qos-group 6
policy-map type queuing OUT
class type queuing c-out-8q-q6
priority level 1
class type queuing c-out-8q-q3
bandwidth remaining percent 50
random-detect minimum-threshold 100 kbytes maximum-threshold 400 kbytes drop-probability 20 \
weight 0 ecn
class type queuing c-out-8q-q-default
bandwidth remaining percent 50
policy-map type queuing BUFFERS
class type queuing c-in-q3
pause buffer-size 174586 pause-threshold 150000 resume-threshold 140000
policy-map type network-qos NQ
class type network-qos c-8q-nq3
mtu 9216
pause pfc-cos 3
class type network-qos c-8q-nq-default
mtu 9216
priority-flow-control watch-dog-interval on
priority-flow-control watch-dog shutdown-multiplier 2
system qos
service-policy type network-qos NQ
service-policy type queuing output OUT
interface Ethernet1/1
mtu 9216
priority-flow-control mode on
priority-flow-control watch-dog-interval on
service-policy type qos input IN
service-policy type queuing input BUFFERS
end
"""


class Console:
    """A session that keeps its place in the modes, as a person at a terminal does."""

    def __init__(self, switch: EmulatedSwitch) -> None:
        self.cli = Cli(switch)

    def type(self, *lines: str) -> str:
        """Type lines that must be accepted; the last one's output."""
        text = ""
        for line in lines:
            answer = self.cli.execute(line)
            assert answer.accepted, f"{self.cli.prompt}{line}\n{answer.text}"
            text = answer.text
        return text

    def refused(self, line: str) -> str:
        """Type a line that must be refused; what the switch says."""
        answer = self.cli.execute(line)
        assert not answer.accepted, f"{self.cli.prompt}{line} was accepted"
        return answer.text

    def configure_roce(self) -> None:
        self.type("configure terminal", *ROCE.splitlines())

    def running(self) -> str:
        """The running configuration without its comment header."""
        return self.type("show running-config").partition("version ")[2]
