"""Devices of every vendor as people save them: from the factory, and configured."""

from pathlib import Path

from fabric.saved.layout import file_name
from tests.fabric.devices.eos.listings import outputs as eos
from tests.fabric.devices.junos.listings import outputs as junos
from tests.fabric.devices.nvue.samples import sample as nvue
from tests.fabric.devices.nxos.listings import listing as nxos
from tests.fabric.devices.sonic.samples import sample as sonic

FACTORY = Path(__file__).parent / "factory"
DEVICES = Path(__file__).parents[1] / "devices"
SWITCHES = tuple(sorted(path.name for path in FACTORY.iterdir() if path.is_dir()))
# The file that holds what a switch of each system does.
CONFIGURATIONS = {
    "bridge": "ip_-j_-d_link_show.txt",
    "cloudengine": "display_current-configuration.txt",
    "comware": "display_current-configuration.txt",
    "eos": "show_running-config.txt",
    "junos": "show_configuration___display_set.txt",
    "nvue": "nv_config_show_-r_applied_-o_json.txt",
    "nxos": "show_running-config.txt",
    "os10": "show_running-configuration.txt",
    "sonic": "show_runningconfiguration_all.txt",
    "switchdev": "ip_-j_-d_link_show.txt",
}


def factory(system: str) -> dict[str, str]:
    """File -> text of a switch as it comes."""
    return {path.name: path.read_text() for path in (FACTORY / system).iterdir()}


def configured() -> dict[str, dict[str, str]]:
    """System -> file -> text of the switches that the device modules' own tests read."""
    outputs = {
        "eos": eos(),
        "junos": junos(),
        "nxos": {
            "show running-config": nxos("running-config"),
            "show interface priority-flow-control": nxos("pfc"),
            "show version": nxos("version"),
            "show lldp neighbors": nxos("lldp"),
            "show interface": nxos("interface"),
            "show queuing interface": nxos("queuing-new"),
            "show queuing pfc-queue detail": nxos("pfc-queue"),
        },
        "sonic": {
            "show runningconfiguration all": sonic("config_db.json"),
            "cat /etc/sonic/config_db.json": sonic("config_db.json"),
            "show version": sonic("version.txt"),
            "show lldp table": sonic("lldp.txt"),
            "show interfaces counters": sonic("interfaces.txt"),
            "show queue counters": sonic("queues.txt"),
            "show queue wredcounters": sonic("marks.txt"),
            "show pfc counters": sonic("pfc.txt"),
            "show priority-group drop counters": sonic("groups.txt"),
            "show pfcwd stats": sonic("pfcwd.txt"),
        },
        "nvue": {
            "nv config show -r applied -o json": nvue("config.json"),
            "nv config show -r startup -o json": nvue("config.json"),
            "sudo lldpctl -f json": nvue("lldp.json"),
            "nv show interface counters -o json": nvue("counters.json"),
        },
        "cloudengine": {
            "display current-configuration": _of("cloudengine/display-current-configuration.txt")
        },
        "comware": {
            "display current-configuration": _of("comware/display-current-configuration.txt")
        },
        "os10": {"show running-configuration": _of("os10/running-configuration.txt")},
        "bridge": {
            "ip -j -d link show": _of("switchdev/ip-link.json"),
            "tc -j -d qdisc show": _of("switchdev/tc-qdisc.json"),
            "tc -j filter show dev swp1 ingress": _of("switchdev/tc-filter-ingress.json"),
            "ip -j -s -s link show": _of("switchdev/ip-link-stats.json"),
            "tc -j -s qdisc show": _of("switchdev/tc-qdisc-stats.json"),
            "grep -H . /sys/class/net/*/carrier_down_count": _of("switchdev/carrier-down.txt"),
        },
    }
    return {system: named(by_command) for system, by_command in outputs.items()}


def named(outputs: dict[str, str]) -> dict[str, str]:
    """File -> text of command -> text."""
    return {file_name(command): text for command, text in outputs.items()}


def _of(name: str) -> str:
    system, file = name.split("/")
    return (DEVICES / system / "fixtures" / file).read_text()


def write(folder: Path, files: dict[str, str]) -> None:
    """One device's folder."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
