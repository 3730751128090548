"""Sites brought in from what their owners have: inventory, NetBox, CSV, saved outputs."""

import json

import pytest
from ruamel.yaml import YAML

from fabric.bringin import merged, read_source, site_yaml
from fabric.bringin.head import size, starter_intent
from fabric.errors import InputError
from fabric.saved.layout import save_site
from fabric.site import load_site
from fabric.units import parse_size_bytes
from tests.fabric.saved.folders import edit, saved

INVENTORY = """\
all:
  children:
    leaves:
      vars: {ansible_network_os: cisco.nxos.nxos, model: N9K-C93180YC-FX}
      hosts:
        tor1: {ansible_host: 10.0.0.1, ansible_port: 2222, ansible_user: admin}
    spines:
      vars: {ansible_network_os: nxos, paisoar_model: N9K-C9336C-FX2}
      hosts:
        sp1:
    gpus:
      vars:
        paisoar_nics: {ens1f0: {family: mlx5, rdma: mlx5_0, speed: 100G}}
      hosts:
        dgx1:
        dgx2:
          paisoar_nics:
            ens1f0: {family: mlx5, rdma: mlx5_0, speed: 100G, address: 10.1.0.1}
"""
CABLES = """\
a,b,speed,length_m
tor1:Ethernet1/1,dgx1:ens1f0,100G,3
tor1:Ethernet1/2,dgx2:ens1f0,100G,3
tor1:Ethernet1/49,sp1:Ethernet1/1,100G,20
tor1:Ethernet1/50,sp1:Ethernet1/2,100G,20
"""


def written(source, folder):
    """The loaded site of a complete source."""
    result = site_yaml(source, site="mine")
    assert result.gaps == ()
    path = folder / "fabric.yaml"
    path.write_text(result.text)
    return load_site(path)


@pytest.fixture
def inventory(tmp_path):
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    (tmp_path / "cables.csv").write_text(CABLES)
    return tmp_path


def test_an_ansible_inventory_and_a_list_of_cables_are_a_site(inventory, tmp_path):
    sources = [read_source(inventory / "inventory.yml"), read_source(inventory / "cables.csv")]
    site = written(merged(sources), tmp_path)
    tor = site.switch("tor1")
    assert (tor.os, tor.model, tor.role) == ("nxos", "N9K-C93180YC-FX", "leaf")
    assert (tor.mgmt.address, tor.mgmt.port, tor.mgmt.user) == ("10.0.0.1", 2222, "admin")
    assert site.switch("sp1").role == "spine"
    nic = site.host("dgx2").nics["ens1f0"]
    assert (nic.family, nic.rdma, nic.speed, nic.address) == ("mlx5", "mlx5_0", 10**11, "10.1.0.1")
    assert site.intent.profile(10**11).kmin == 400_000
    assert site.environment == "site"


def test_group_vars_beside_an_inventory_count(tmp_path):
    folder = tmp_path / "inv"
    (folder / "group_vars").mkdir(parents=True)
    (folder / "hosts.ini").write_text("[leafs]\nl1\n\n[servers]\ns1\n")
    (folder / "group_vars/leafs.yml").write_text("ansible_network_os: arista.eos.eos\n")
    devices = read_source(folder).devices
    assert (devices["l1"].kind, devices["l1"].os, devices["l1"].role) == ("switch", "eos", "leaf")
    assert (devices["s1"].kind, devices["s1"].os) == ("host", "")


def test_what_no_source_tells_is_named_with_its_line(inventory):
    edit(inventory / "inventory.yml", ", model: N9K-C93180YC-FX", "")
    edit(inventory / "inventory.yml", "family: mlx5, ", "")
    result = site_yaml(read_source(inventory / "inventory.yml"), site="mine")
    lines = result.text.splitlines()
    gaps = {gap.key: gap for gap in result.gaps}
    assert set(gaps) == {
        "devices.tor1.model",
        "devices.tor1.buffer",
        "devices.dgx1.nics.ens1f0.family",
        "devices.dgx2.nics.ens1f0.family",
        "devices.dgx1.nics.ens1f0",
        "devices.dgx2.nics.ens1f0",
        "cables",
    }
    for gap in result.gaps:
        assert lines[gap.line - 1].lstrip().startswith("#"), gap
    YAML().load(result.text)


def netbox(**more):
    def device(name, role, model, **also):
        return {
            "name": name,
            "device_type": {"model": model, "slug": model.lower()},
            "role": {"slug": role},
            "config_context": {},
            **also,
        }

    def end(name, port):
        return [
            {"object_type": "dcim.interface", "object": {"device": {"name": name}, "name": port}}
        ]

    sfp28 = {"value": "25gbase-x-sfp28"}
    nics = {"paisoar": {"nics": {"ens1f0": {"family": "mlx5", "rdma": "mlx5_0"}}}}
    return {
        "devices": {
            "count": 3,
            "results": [
                device(
                    "leaf1", "leaf", "N9K-C93180YC-FX",
                    platform={"slug": "nx-os"},
                    primary_ip4={"address": "10.0.0.1/24"},
                ),
                device("n1", "server", "R750", config_context=nics),
                device("n2", "server", "R750", config_context=nics),
            ],
        },
        "cables": [
            {
                "a_terminations": end("leaf1", "Ethernet1/1"),
                "b_terminations": end("n1", "ens1f0"),
                "length": 200,
                "length_unit": {"value": "cm"},
            },
            {  # as NetBox before 3.3 exports it
                "termination_a_type": "dcim.interface",
                "termination_a": {"device": {"name": "leaf1"}, "name": "Ethernet1/2"},
                "termination_b_type": "dcim.interface",
                "termination_b": {"device": {"name": "n2"}, "name": "ens1f0"},
                "length": None,
            },
            {
                "a_terminations": [{"object_type": "dcim.powerport", "object": {"name": "p"}}],
                "b_terminations": end("leaf1", "psu"),
            },
            {
                "a_terminations": end("leaf1", "Ethernet1/9"),
                "b_terminations": end("elsewhere", "x"),
            },
        ],
        "interfaces": [
            {"device": {"name": "leaf1"}, "name": "Ethernet1/1", "type": sfp28},
            {"device": {"name": "leaf1"}, "name": "Ethernet1/2", "speed": 25_000_000},
        ],
        **more,
    }  # fmt: skip


def test_a_netbox_export_is_a_site_with_lengths_in_metres(tmp_path):
    path = tmp_path / "netbox.json"
    path.write_text(json.dumps(netbox()))
    source = read_source(path)
    site = written(source, tmp_path)
    assert (site.switch("leaf1").os, site.switch("leaf1").mgmt.address) == ("nxos", "10.0.0.1")
    assert {(str(k.a), k.speed_bps, k.length_m) for k in site.topology.links} == {
        ("leaf1:Ethernet1/1", 25 * 10**9, 2.0),
        ("leaf1:Ethernet1/2", 25 * 10**9, 3.0),
    }
    assert any("elsewhere" in note for note in source.notes)


def test_nics_of_a_netbox_host_are_its_fast_interfaces(tmp_path):
    data = netbox()
    del data["devices"]["results"][1]["config_context"]["paisoar"]
    data["interfaces"] += [
        {"device": {"name": "n1"}, "name": "ens1f0", "type": {"value": "25gbase-x-sfp28"}},
        {"device": {"name": "n1"}, "name": "eno1", "type": {"value": "1000base-t"}},
    ]
    path = tmp_path / "netbox.json"
    path.write_text(json.dumps(data))
    assert [nic.name for nic in read_source(path).devices["n1"].nics] == ["ens1f0"]


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"cables": []}', '{"devices": [3]}', '{"devices": {"results": 4}}']
)
def test_what_is_no_export_is_bad_input(tmp_path, text):
    path = tmp_path / "netbox.json"
    path.write_text(text)
    with pytest.raises(InputError):
        read_source(path)


def test_csv_tells_nics_and_buffers(tmp_path):
    (tmp_path / "devices.csv").write_text(
        "device,kind,os,model,role,buffer,address,nics\n"
        "leaf1,switch,nxos,Unheard-Of,leaf,24MB,10.0.0.9,\n"
        "h1,host,,,,,,ens1f0:mlx5:mlx5_0\n"
        "h2,host,,,,,,ens1f0:mlx5:mlx5_0\n"
    )
    (tmp_path / "cables.csv").write_text(
        "leaf1:Ethernet1/1,h1:ens1f0\nleaf1:Ethernet1/2,h2:ens1f0\n"
    )
    source = read_source(tmp_path / "devices.csv")
    site = written(source, tmp_path)
    assert site.switch("leaf1").buffer == 24_000_000
    assert any("speed 25G" in line for line in site_yaml(source, site="x").assumed)


def test_saved_outputs_are_a_site_whose_intent_is_what_they_do(tmp_path):
    original, folder = saved(tmp_path)
    source = read_source(folder)
    site = written(source, tmp_path)
    assert set(map(frozenset, ((k.a, k.b) for k in site.topology.links))) == set(
        map(frozenset, ((k.a, k.b) for k in original.topology.links))
    )
    for mine, theirs in (
        (site.intent.mtu, original.intent.mtu),
        (site.intent.dcqcn, original.intent.dcqcn),
    ):
        assert mine == theirs
    assert site.intent.profiles == original.intent.profiles


def test_the_first_source_is_right_and_the_next_fills_its_gaps(inventory, tmp_path):
    inventory_source = read_source(inventory / "inventory.yml")
    other = tmp_path / "devices.csv"
    other.write_text("device,kind,os,model,role,buffer\ntor1,switch,eos,Other,spine,1MB\n")
    tor = merged([inventory_source, read_source(other)]).devices["tor1"]
    assert (tor.os, tor.model, tor.buffer) == ("nxos", "N9K-C93180YC-FX", "1MB")


@pytest.mark.parametrize("name", ["nothing.yml", "nothing.csv", "nothing.json"])
def test_a_source_that_is_not_there_is_bad_input(tmp_path, name):
    with pytest.raises(InputError):
        read_source(tmp_path / name)


def test_an_inventory_without_hosts_is_bad_input(tmp_path):
    (tmp_path / "inventory.yml").write_text("all: {}\n")
    with pytest.raises(InputError, match="no host"):
        read_source(tmp_path / "inventory.yml")


@pytest.mark.parametrize("bytes_", [1, 999, 1000, 156_096, 1_234_567, 40_000_000])
def test_sizes_are_read_back_exactly(bytes_):
    assert parse_size_bytes(size(bytes_)) == bytes_


def test_the_starters_intent_survives_being_written(tmp_path):
    (tmp_path / "devices.csv").write_text(
        "leaf1,switch,nxos,N9K-C93180YC-FX\nh1,host,,\nh2,host,,\n"
    )
    (tmp_path / "cables.csv").write_text(
        "leaf1:Ethernet1/1,h1:e0,25G,3\nleaf1:Ethernet1/2,h2:e0,25G,3\n"
    )
    result = site_yaml(read_source(tmp_path / "devices.csv"), site="x")
    text = result.text.replace("        # missing: family", "        family: mlx5").replace(
        "        # missing: rdma", "        rdma: mlx5_0"
    )
    (tmp_path / "fabric.yaml").write_text(text)
    assert load_site(tmp_path / "fabric.yaml").intent.classes == starter_intent().classes
    save_site(tmp_path, load_site(tmp_path / "fabric.yaml"))
    assert "leaf1,switch,nxos" in (tmp_path / "devices.csv").read_text()
