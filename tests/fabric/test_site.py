"""fabric.yaml: what is accepted, and where every complaint points."""

import pytest

from fabric.errors import InputError
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape, PortRef
from tests.sites import make_site, write_site


def line_of(text, part):
    part, _, further = part.partition("+")
    found = next(i for i, line in enumerate(text.splitlines(), start=1) if part in line)
    return found + int(further or 0)


# What to replace, by what, which line the message must name, and its words.
WRONG = {
    "unknown key": ("  watchdog: {action", "  watchdg: {action", "watchdg", "unknown key"),
    "no unit": ("kmin: 100KB", "kmin: 100", "25G:", "has no unit"),
    "bad unit": ("kmin: 100KB", "kmin: 100Kb", "25G:", "is not a size"),
    "bad speed": ("rdma: mlx5_0, speed: 25G", "rdma: mlx5_0, speed: 25", "ens1f0:", "has no unit"),
    "duplicate DSCP": ("dscp: [48]", "dscp: [26]", "    cnp:+2", "DSCP 26 is listed twice"),
    "DSCP out of range": ("dscp: [26]", "dscp: [64]", "dscp: [64]", "less than 64"),
    "kmin not below kmax": ("kmax: 400KB", "kmax: 100KB", "25G:", "must be below kmax"),
    "kmin not below xoff": ("xoff: 150KB, xon: 140KB", "xoff: 90KB, xon: 80KB", "25G:", "ECN has"),
    "xon above xoff": ("xon: 140KB", "xon: 150KB", "25G:", "must be below xoff"),
    "ETS sum": ("percent: 50}", "percent: 60}", "  classes:", "add up to 110, not 100"),
    "priority used twice": ("priority: 6", "priority: 3", "    cnp:+3", "priority 3 is used by"),
    "lossless CNPs": (
        "priority: 6",
        "priority: 6\n      lossless: true",
        "    cnp:",
        "not be pause",
    ),
    "ETS class of no share": ("{mode: ets, percent: 50}", "{mode: ets}", "mode: ets}", "above 0"),
    "no such role": ("role: cnp ", "role: cpn ", "role: cpn", "'roce', 'cnp' or 'default'"),
    "host MTU too large": ("host: 9000", "host: 9300", "host: 9300", "less than or equal to 9216"),
    "host MTU above switch": ("switch_port: 9216", "switch_port: 8000", "  mtu:", "switches pass"),
    "unknown peer": ("b: 'host1:ens1f0'", "b: 'host9:ens1f0'", "host9:ens1f0", "called 'host9'"),
    "unknown NIC": ("b: 'host1:ens1f0'", "b: 'host1:ens9'", "host1:ens9", "no NIC 'ens9'"),
    "cabled twice": ("a: 'leaf1:Ethernet1/2'", "a: 'leaf1:Ethernet1/1'", "host2:ens1f0", "twice"),
    "cable to itself": (
        "b: 'spine1:Ethernet1/1'",
        "b: 'leaf1:Ethernet1/50'",
        "1/50",
        "starts from",
    ),
    "speeds differ": (
        "speed: 25G, length_m: 3}",
        "speed: 100G, length_m: 3}",
        "b: 'host1:",
        "cable runs",
    ),
    "no thresholds": ("    100G: {", "    200G: {", "leaf1:Ethernet1/49", "no thresholds for 100G"),
    "oversubscribed": ("max_oversubscription: 1.0", "max_oversubscription: 0.1", "leaf1:", "0.5:1"),
    "buffer too small": (
        "FX, buffer: 40MB",
        "FX, buffer: 900KB",
        "leaf1:",
        "lossless buffers need",
    ),
    "not a port": ("a: 'leaf1:Ethernet1/1'", "a: 'leaf1'", "a: 'leaf1'", "is not a port"),
    "another schema": ("fabric/v1", "fabric/v9", "schema:", "paisoar/fabric/v1"),
    "duplicate key": ("site: test", "site: test\nsite: other", "site: other", "duplicate key"),
    "shell in a name": ("  host1:", "  'host1;reboot':", "host1;reboot", "letters, digits"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_file_is_refused_with_its_line_and_reason(tmp_path, fault):
    old, new, at, words = WRONG[fault]
    path = write_site(tmp_path)
    text = path.read_text()
    assert old in text
    text = text.replace(old, new, 1)
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_site(path)
    assert words in str(caught.value)
    assert caught.value.line == line_of(text, at), str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_missing_section_is_named(tmp_path):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("    cnp:", "    cnq:", 1).split("devices:")[0])
    with pytest.raises(InputError, match="missing key 'devices'"):
        load_site(path)


def test_a_file_that_is_no_mapping_or_not_there_is_refused(tmp_path):
    path = tmp_path / "fabric.yaml"
    with pytest.raises(InputError, match="no such file"):
        load_site(path)
    path.write_text("- 1\n")
    with pytest.raises(InputError, match="not a YAML mapping"):
        load_site(path)
    path.write_text("a: [1\n")
    with pytest.raises(InputError) as caught:
        load_site(path)
    assert caught.value.line is not None


def test_hosts_without_a_path_between_them_are_refused(tmp_path):
    path = write_site(tmp_path, ClosShape(4, 2, 2))
    cut = ("a: 'leaf1:Ethernet1/49'", "a: 'leaf2:Ethernet1/50'")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not any(part in line for part in cut)))
    with pytest.raises(InputError, match="no path leads from host3:ens1f0 to host1:ens1f0"):
        load_site(path)


def test_the_starter_is_a_one_to_one_clos_with_both_ends_of_every_cable(tmp_path):
    site = make_site(tmp_path, ClosShape(32, 4, 2, nics_per_host=2))
    topology = site.topology
    assert len(topology.hosts) == 32
    assert {topology.oversubscription(f"leaf{n}") for n in (1, 2, 3, 4)} == {1.0}
    first, second = topology.ports_of["host1"]
    assert topology.peer(first).device == "leaf1"
    assert topology.peer(second).device == "leaf2"
    assert all(topology.peer(topology.peer(port)) == port for port in topology.link_of)


def test_paths_are_all_shortest_ones_and_go_through_every_spine(tmp_path):
    site = make_site(tmp_path, ClosShape(8, 2, 2))
    source, target = PortRef("host1", "ens1f0"), PortRef("host8", "ens1f0")
    paths = site.topology.paths(source, target)
    assert {path[1:2][0].device for path in paths} == {"leaf1"}
    assert {path[2].device for path in paths} == {"spine1", "spine2"}
    assert all(path[0] == source and site.topology.peer(path[-1]) == target for path in paths)
    neighbor = PortRef("host2", "ens1f0")
    assert [len(path) for path in site.topology.paths(source, neighbor)] == [2]


def test_unknown_products_are_refused_with_the_known_ones():
    for key, options in (("--switch-os", {"switch_os": ["ios"]}), ("--nic", {"nics": ["x540"]})):
        with pytest.raises(InputError, match="Known are") as caught:
            starter_yaml(ClosShape(2, 2, 1), site="s", environment="twin", **options)
        assert caught.value.key == key


@pytest.mark.parametrize(
    "management",
    [
        "{user: \"{{ lookup('pipe', 'touch here') }}\"}",
        "{address: \"{{ lookup('pipe', 'touch here') }}\"}",
        "{address: '-oProxyCommand=touch here'}",
        "{user: '-l root'}",
    ],
)
def test_management_holds_names_and_no_commands(tmp_path, management):
    path = write_site(tmp_path, ClosShape(2, 2, 1), environment="site")
    text = path.read_text()
    path.write_text(
        text.replace(
            "# mgmt: {address: 192.0.2.1, port: 22, user: admin}", f"mgmt: {management}", 1
        )
    )
    with pytest.raises(InputError) as caught:
        load_site(path)
    assert caught.value.line
    assert "mgmt" in str(caught.value)


def test_a_folder_that_ansible_would_read_as_a_template_is_refused(tmp_path):
    folder = tmp_path / "{{ 1 }}"
    folder.mkdir()
    path = write_site(folder, ClosShape(2, 2, 1))
    with pytest.raises(InputError, match="Ansible"):
        load_site(path)


def test_a_number_of_many_digits_is_refused(tmp_path):
    path = write_site(tmp_path, ClosShape(2, 2, 1))
    path.write_text(path.read_text().replace("buffer: 40MB", f"buffer: {'9' * 400}MB", 1))
    with pytest.raises(InputError, match="too large"):
        load_site(path)


def test_every_limit_of_a_new_file_says_beside_it_where_it_is_from(tmp_path):
    lines = write_site(tmp_path).read_text().partition("\ncertify:\n")[2].partition("\n\n")[0]
    limits = [line for line in lines.splitlines() if line.lstrip().startswith(("min_", "max_"))]
    assert len(limits) == 11
    assert [line for line in limits if " # " not in line] == []
