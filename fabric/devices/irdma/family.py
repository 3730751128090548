"""The irdma family: ``dcb`` for the port, irdma's configfs for DCQCN.

The host decides only while the firmware's LLDP agent is off. The first DSCP entry
switches the port to DSCP mode: class N is priority N then, the classes go back to
100 % for class 0, and a DSCP that has an entry takes no second one.

Sources: Linux drivers/net/ethernet/intel/ice/{ice_dcb_nl.c,ice_dcb_lib.c,
ice_ethtool.c} and drivers/infiniband/hw/irdma/verbs.c (names of counters); Intel's
own irdma for configfs (configfs.c) and module parameters (main.c: ``dcqcn_enable``,
off by default); Intel, "Ethernet 800 Series Linux Flow Control Configuration Guide
for RDMA Use Cases" (635330): one class with PFC, four classes at most in use.

(unverified) The DSCP of CNPs; that ``roce_dcqcn_enable`` concerns queue pairs made
after it was written only, not those that are there.
"""

from __future__ import annotations

import dataclasses
import re

from fabric.devices.base import Outputs, TargetPort
from fabric.devices.dcb import DcbFamily, Traits
from fabric.devices.dcb.counters import CounterNames
from fabric.devices.dcb.facts import Facts
from fabric.devices.dcb.paper import published
from fabric.devices.dcb.settings import TOGETHER, Item
from fabric.devices.linux.dump import MISSING
from fabric.devices.nic import SettingChange
from fabric.qos import PRIORITY_COUNT, PortQos, Remark

FOLDER = "/sys/kernel/config/irdma"
PARAMETERS = "/sys/module/irdma/parameters"
DCQCN = "DCQCN"

_AGENT = re.compile(r"fw-lldp-agent\s*:\s*(on|off)")
_AGENT_ON = r"fw-lldp-agent[[:space:]]*: on"
# No priority of its own: DCQCN is of the whole device, and CNPs go as the firmware wants.
_ON = published(tuple(range(PRIORITY_COUNT)), 0, 0)

TRAITS = Traits(
    name="irdma",
    driver="ice",
    max_lossless=1,
    fixed_classes=True,
    unseen=(
        "receive buffer of every priority (ice sizes them itself and shows none)",
        "cable length (ice takes none)",
        "verbs traffic class (irdma has no default for it; set it in the application)",
        "DSCP of CNPs and rate parameters of DCQCN (irdma takes the latter when it is loaded)",
    ),
    notes=(
        "one lossless class; Intel supports four traffic classes in use",
        "DCQCN is of the whole device and needs Intel's own irdma, for its configfs",
    ),
    # The PCI ID Repository, vendor 8086.
    models={
        "0x1592": "E810-C for QSFP",
        "0x1593": "E810-C for SFP",
        "0x159b": "E810-XXV for SFP",
        "0x12d2": "E830-CC for QSFP",
    },
)
NAMES = CounterNames(
    port={
        "rx_packets": ("rx_unicast.nic", "rx_multicast.nic", "rx_broadcast.nic"),
        "tx_packets": ("tx_unicast.nic", "tx_multicast.nic", "tx_broadcast.nic"),
        "rx_bytes": ("rx_bytes.nic",),
        "tx_bytes": ("tx_bytes.nic",),
        "rx_discards": ("rx_dropped.nic",),
        "rx_mtu_drops": ("rx_oversize.nic",),
        "rx_crc_errors": ("rx_crc_errors.nic",),
    },
    priority={
        "rx_pause_frames": "rx_priority_{}_xoff.nic",
        "tx_pause_frames": "tx_priority_{}_xoff.nic",
    },
    # The second name is that of E830 and later, where there is one.
    rdma={
        "np_ecn_marked_packets": ("RxECNMrkd",),
        "np_cnp_sent": ("cnpSent",),
        "rp_cnp_handled": ("cnpHandled",),
        "rp_cnp_ignored": ("cnpIgnored",),
        "out_of_sequence": ("Rcvd Out of order packets",),
        "packet_seq_err": ("Nak Sequence Error",),
        "implied_nak_seq_err": ("Nak Sequence Error Implied",),
        "local_ack_timeout_err": ("RTO",),
        "rnr_nak_retry_err": ("RNR received",),
        "rx_icrc_errors": ("CRC errors",),
    },
    uncounted={
        "tx_discards": "ice counts no drops at egress",
        "link_down_events": "ice does not count them",
        "rx_prio_packets": "ice counts packets by port only",
        "tx_prio_packets": "ice counts packets by port only",
        "rx_prio_discards": "ice counts ingress drops by port: see rx_discards",
        "rx_pause_us": "ice counts pause frames, not their time",
        "tx_pause_us": "ice counts pause frames, not their time",
        "duplicate_request": "irdma does not count them",
        "out_of_buffer": "irdma does not count it",
        "tx_pause_storm_warnings": "ice has no such events",
        "tx_pause_storm_errors": "ice has no such events",
    },
)


class IrdmaFamily(DcbFamily):
    """Intel E810: DSCP mode of ice, DCQCN on or off."""

    def __init__(self) -> None:
        super().__init__(TRAITS, NAMES)

    def own_paths(self, port: TargetPort) -> tuple[str, ...]:  # noqa: ARG002
        """DCQCN in configfs, and what the module was loaded with."""
        return FOLDER, f"{PARAMETERS}/dcqcn_enable"

    def own_commands(self, port: TargetPort) -> tuple[str, ...]:
        """Whether the firmware's LLDP agent runs."""
        return (f"ethtool --show-priv-flags {port.name}",)

    def _agent(self, port: TargetPort, outputs: Outputs) -> str | None:
        match = _AGENT.search(outputs.get(self.own_commands(port)[0], ""))
        return match[1] if match else None

    def own_known(self, port: TargetPort, facts: Facts, outputs: Outputs) -> frozenset[str]:
        """DCBX by the agent's flag, DCQCN by configfs or the module's parameter."""
        names = []
        if self._agent(port, outputs) is not None:
            names.append("dcbx")
        if _enabled(facts) is not None:
            names.append(DCQCN)
        return frozenset(names)

    def own_read(
        self, port: TargetPort, facts: Facts, outputs: Outputs, state: PortQos
    ) -> tuple[PortQos, tuple[str, ...], tuple[Remark, ...]]:
        """Who decides, and whether DCQCN is on."""
        unread = []
        agent, enabled = self._agent(port, outputs), _enabled(facts)
        nic = state.nic
        if nic is not None and agent is not None:
            nic = dataclasses.replace(nic, dcbx="firmware" if agent == "on" else "os")
        elif agent is None:
            unread.append("DCBX mode (the flag fw-lldp-agent is not shown)")
        if enabled is None:
            unread.append(f"DCQCN parameters ({facts.why(_file(facts.rdma_device))})")
        if nic is not None:
            nic = dataclasses.replace(nic, dcqcn=_ON if enabled else None)
        return dataclasses.replace(state, nic=nic), tuple(unread), ()

    def own_fit(self, port: PortQos) -> PortQos:
        """DCQCN on or off; the application sets its own traffic class."""
        nic = port.nic
        if nic is not None:
            wanted = nic.dcqcn is not None and bool(nic.dcqcn.np_priorities)
            nic = dataclasses.replace(nic, dcqcn=_ON if wanted else None, verbs_traffic_class=None)
        return dataclasses.replace(port, nic=nic)

    def own_items(self, port: PortQos) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """The firmware's agent before everything: it refuses what the host sets."""
        nic = port.nic
        if nic is None:
            return (), ()
        agent = () if nic.dcbx == "off" else (_agent_item(port.name, nic.dcbx),)
        on = nic.dcqcn is not None
        folder = f"{FOLDER}/{nic.rdma_device}"
        command = f"mkdir -p {folder} && echo {int(on)} > {_file(nic.rdma_device)}"
        return agent, (Item(DCQCN, "on" if on else "off", (command,), needs=FOLDER),)

    def _changes(
        self, port: TargetPort, outputs: Outputs, facts: Facts, live: PortQos, intended: PortQos
    ) -> tuple[SettingChange, ...]:
        """Ours, of which the way back asks who decides.

        Where the change broke off before the agent was off, it has changed nothing
        that the agent refuses to take back.
        """
        changes = super()._changes(port, outputs, facts, live, intended)
        if self._agent(port, outputs) != "on":
            return changes
        decides = f"{self.own_commands(port)[0]} | grep -Eq '{_AGENT_ON}'"
        return tuple(
            dataclasses.replace(c, rollback=tuple(f"{decides} || {line}" for line in c.rollback))
            if c.name in TOGETHER
            else c
            for c in changes
        )

    def own_lacking(self, facts: Facts) -> frozenset[str]:
        """DCQCN, where the driver has no configfs (the kernel's own)."""
        lacks = facts.files.complaint(FOLDER) == MISSING
        return frozenset((DCQCN,)) if lacks else frozenset()


def _agent_item(interface: str, dcbx: str) -> Item:
    way = "on" if dcbx == "firmware" else "off"
    return Item("dcbx", dcbx, (f"ethtool --set-priv-flags {interface} fw-lldp-agent {way}",))


def _file(rdma_device: str) -> str:
    return f"{FOLDER}/{rdma_device}/roce_dcqcn_enable"


def _enabled(facts: Facts) -> bool | None:
    """Whether DCQCN is on; the module's parameter counts while nobody has made the folder."""
    value = facts.files.number(_file(facts.rdma_device))
    if value is not None:
        return bool(value)
    parameter = facts.files.text(f"{PARAMETERS}/dcqcn_enable")
    return parameter == "Y" if parameter in ("Y", "N") else None
