"""What a provisioned fabric's devices would print: outputs from an intended state.

For the bench of reading and auditing at size, and for tests of saved folders:
NX-OS switches and hosts with ConnectX NICs, in the layouts that their readers'
fixtures name the sources of. Ports without a cable are there too, as on a switch
with as many ports as its model has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from fabric.devices.base import Outputs
from fabric.devices.linux.module import FILES, KERNEL, enabled_command
from fabric.devices.linux.portfacts import fec_command, gid_command, link_command
from fabric.devices.linux.script import UNIT, UNIT_PATH, render_script, script_path
from fabric.devices.mlx5 import FAMILY, paths
from fabric.devices.mlx5.facts import commands as mlx5_commands
from fabric.devices.nxos import MODULE as NXOS
from fabric.devices.nxos.read import INTERFACE, LLDP, PFC, RUNNING, STARTUP, VERSION
from fabric.devices.registry import expected_qos, target_of
from fabric.errors import InputError
from fabric.qos import PRIORITY_COUNT, DeviceQos, PortQos
from fabric.site import HostSpec, Site
from fabric.topology import PortRef

MODEL = "N9K-C9364C"
_RULE = "=" * 60
_MAX_BUFFER = 1027728


def sample_outputs(site: Site, device: str, *, ports: int = 0) -> dict[str, str]:
    """Every output that the device's module reads, as after provisioning.

    ``ports`` is how many front ports a switch has, cabled or not. InputError for
    a system whose layouts are not known here.
    """
    spec = site.devices[device]
    state = expected_qos(site, device)
    if isinstance(spec, HostSpec):
        if any(nic.family != "mlx5" for nic in spec.nics.values()):
            raise InputError(f"{device}: only mlx5 NICs can be sampled")
        return dict(_host(site, state))
    if spec.os != "nxos":
        raise InputError(f"{device}: only NX-OS switches can be sampled, not {spec.os}")
    return dict(_switch(site, state, ports))


def _switch(site: Site, state: DeviceQos, ports: int) -> Outputs:
    names = [f"Ethernet1/{number}" for number in range(1, ports + 1)]
    names += [port.name for port in state.ports if port.name not in set(names)]
    cabled = {port.name: port for port in state.ports}
    running = "".join(_running(state, names, cabled))
    speeds = {name: site.topology.link_of[PortRef(state.device, name)].speed_bps for name in cabled}
    return {
        RUNNING: running,
        STARTUP: running,
        PFC: "\n".join(_pfc(names, cabled)) + "\n",
        VERSION: _version(state.device),
        LLDP: "\n".join(_lldp(site, state)) + "\n",
        INTERFACE: "".join(_interface(name, speeds.get(name)) for name in names),
    }


def _running(state: DeviceQos, names: Sequence[str], cabled: dict[str, PortQos]) -> Iterator[str]:
    yield "\n!Command: show running-config\nversion 10.5(2) Bios:version\n"
    yield f"hostname {state.device}\nfeature lldp\n\n"
    yield NXOS.render(state)
    yield from (f"\ninterface {name}\n  no switchport\n" for name in names if name not in cabled)
    yield "\nline console\nline vty\n"


def _pfc(names: Sequence[str], cabled: dict[str, PortQos]) -> Iterator[str]:
    yield from (_RULE, "Port               Mode Oper(VL bmap)  RxPPP      TxPPP     ", _RULE)
    for name in names:
        port = cabled.get(name)
        if port is None:
            yield f"{name:<19}Auto Off           0          0         "
        else:
            bits = sum(1 << priority for priority in port.pfc_priorities)
            yield f"{name:<19}On   On  ({bits:x})       0          0         "


def _version(device: str) -> str:
    return (
        "Cisco Nexus Operating System (NX-OS) Software\nSoftware\n  NXOS: version 10.5(2)\n"
        "Hardware\n  cisco Nexus9000 C9364C Chassis \n  Processor Board ID FDO21120U8N\n"
        f"\n  Device name: {device}\n"
    )


def _lldp(site: Site, state: DeviceQos) -> Iterator[str]:
    yield "Capability codes:"
    yield "  (R) Router, (B) Bridge, (T) Telephone, (C) DOCSIS Cable Device"
    yield "Device ID            Local Intf      Hold-time  Capability  Port ID  "
    for port in state.ports:
        peer = site.topology.peer(PortRef(state.device, port.name))
        local = port.name.replace("Ethernet", "Eth")
        yield f"{peer.device:<21}{local:<16}120        BR          {peer.port}"
    yield f"Total entries displayed: {len(state.ports)}"


def _interface(name: str, speed_bps: int | None) -> str:
    gbps = (speed_bps or 0) // 10**9
    head = f"{name} is up\n" if speed_bps else f"{name} is down (Link not connected)\n"
    return (
        f"{head}admin state is up, Dedicated Interface\n"
        "  Hardware: 100/1000/10000/25000/40000/100000 Ethernet, address: 00de.fb12.0001\n"
        f"  MTU 9216 bytes, BW {gbps * 10**6} Kbit , DLY 10 usec\n"
        "  reliability 255/255, txload 1/255, rxload 1/255\n  Encapsulation ARPA\n"
        f"  full-duplex, {gbps} Gb/s, media type is {gbps}G\n"
        "  Auto-Negotiation is turned on  FEC mode is Auto\n"
        "  Input flow-control is off, output flow-control is off\n"
        "    admin fec state is auto, oper fec state is Rs-fec\n  RX\n"
        "    0 unicast packets  0 multicast packets  0 broadcast packets\n"
        "    0 input packets  0 bytes\n    0 runts  0 giants  0 CRC  0 no buffer\n"
        "    0 input with dribble  0 input discard\n  TX\n"
        "    0 output packets  0 bytes\n    0 lost carrier  0 babble  0 output discard\n\n"
    )


def _host(site: Site, state: DeviceQos) -> Iterator[tuple[str, str]]:
    target = target_of(site, state.device)
    yield KERNEL, "6.8.0-45-generic\n"
    yield enabled_command(target), "enabled\n" * len(target.ports)
    scripts = {
        script_path(port.name): render_script(port.name, FAMILY.settings(port))
        for port in state.ports
    }
    yield (
        FILES,
        "".join(
            f"{path}:{line}\n"
            for path, text in {**scripts, UNIT_PATH: UNIT}.items()
            for line in text.splitlines()
        ),
    )
    for index, (wanted, port) in enumerate(zip(target.ports, state.ports, strict=True)):
        link, info, pause, qos, sysfs, rdma, debugfs = mlx5_commands(wanted)
        name, pci, device = port.name, f"0000:3b:00.{index}", wanted.rdma_device
        digest = hashlib.sha256(f"{state.device}/{name}".encode()).hexdigest()
        mac = f"0c:42:a1:{digest[:2]}:{digest[2:4]}:{digest[4:6]}"
        yield (
            link,
            f'[{{"ifindex":{index + 2},"ifname":"{name}","flags":["UP"],"mtu":{port.mtu_bytes},'
            f'"operstate":"UP","link_type":"ether","address":"{mac}"}}]\n',
        )
        yield (
            info,
            "driver: mlx5_core\nversion: 24.10-1.1.4\n"
            f"firmware-version: 22.43.1014 (MT_0000000359)\nbus-info: {pci}\n",
        )
        yield pause, f"Pause parameters for {name}:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n"
        yield qos, "".join(_mlnx_qos(port))
        yield sysfs, "".join(_ecn(port))
        yield rdma, _rdma(port, device)
        yield debugfs, f"grep: {paths.DEBUGFS}/*/cc_params: No such file or directory\n"
        net = f"/sys/class/net/{name}"
        speed = wanted.speed_bps // 10**6
        yield (
            link_command(wanted),
            f"{net}/address:{mac}\n{net}/operstate:up\n{net}/speed:{speed}\n",
        )
        gids = f"/sys/class/infiniband/{device}/ports/1/gid_attrs"
        yield (
            gid_command(wanted),
            f"{gids}/ndevs/0:{name}\n{gids}/ndevs/1:{name}\n"
            f"{gids}/types/0:IB/RoCE v1\n{gids}/types/1:RoCE v2\n",
        )
        yield (
            fec_command(wanted),
            f"FEC parameters for {name}:\nSupported/Configured FEC encodings: Auto RS BaseR\n"
            "Active FEC encoding: RS\n",
        )


def _mlnx_qos(port: PortQos) -> Iterator[str]:
    yield "DCBX mode: OS controlled\nPriority trust state: dscp\ndscp2prio mapping:\n"
    for priority in range(PRIORITY_COUNT):
        dscps = [dscp for dscp in range(63, -1, -1) if port.dscp_to_priority[dscp] == priority]
        for at in range(0, len(dscps), 8):
            row = "".join(f"{dscp:02d}," for dscp in dscps[at : at + 8])
            yield f"\tprio:{priority} dscp:{row}\n"
    sizes, buffers = [20736] + [0] * 7, [0] * PRIORITY_COUNT
    for index, buffer in enumerate(port.ingress_buffers, start=1):
        sizes[index], buffers[buffer.priority] = buffer.size_bytes, index
    yield "default priority:\n"
    row = ",".join(map(str, sizes))
    yield f"Receive buffer size (bytes): {row},max_buffer_size={_MAX_BUFFER}\n"
    yield f"Cable len: {port.nic.cable_m if port.nic else 0}\nPFC configuration:\n"
    enabled = [int(priority in port.pfc_priorities) for priority in range(PRIORITY_COUNT)]
    for label, values in (
        ("priority", range(PRIORITY_COUNT)),
        ("enabled ", enabled),
        ("buffer  ", buffers),
    ):
        yield f"\t{label}    " + "".join(f"{value}   " for value in values) + "\n"
    for queue in port.queues:
        served = queue.scheduler
        tail = "strict" if served.mode == "strict" else f"ets, bw: {served.percent}%"
        yield f"tc: {queue.traffic_class} ratelimit: unlimited, tsa: {tail}\n"
        for priority, traffic_class in enumerate(port.priority_to_class):
            if traffic_class == queue.traffic_class:
                yield f"\t priority:  {priority}\n"


def _ecn(port: PortQos) -> Iterator[str]:
    dcqcn = port.nic.dcqcn if port.nic else None
    folder = paths.ecn_folder(port.name)
    if dcqcn is None:
        yield f"grep: {folder}: No such file or directory\n"
        return
    for parameter in paths.PARAMETERS:
        yield f"{folder}/{parameter.sysfs}:{getattr(dcqcn, parameter.field)}\n"
    for point, on in (("np", dcqcn.np_priorities), ("rp", dcqcn.rp_priorities)):
        for priority in range(PRIORITY_COUNT):
            yield f"{folder}/roce_{point}/enable/{priority}:{int(priority in on)}\n"


def _rdma(port: PortQos, device: str) -> str:
    nic = port.nic
    tos = nic.rdma_cm_tos if nic else 0
    verbs = nic.verbs_traffic_class if nic else 0
    return (
        f"/sys/class/infiniband/{device}/hca_type:MT4125\n"
        f"{paths.traffic_class_file(device)}:Global tclass={verbs}\n"
        f"/sys/kernel/config/rdma_cm/{device}/ports/1/default_roce_tos:{tos}\n"
    )
