"""Sites brought in from what their owners have: inventory, NetBox, CSV, saved outputs."""

import json

import pytest
from ruamel.yaml import YAML

from fabric.bringin import merged, read_source, site_yaml
from fabric.bringin.head import size, starter_intent
from fabric.bringin.sources import SourceNic
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


def test_tables_in_an_inventorys_folder_are_no_inventories(tmp_path):
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "hosts.yml").write_text(INVENTORY)
    (tmp_path / "cables.csv").write_text(CABLES)
    (tmp_path / "devices.csv").write_text("device,buffer\nsp1,40MB\n")
    source = read_source(tmp_path)
    assert set(source.devices) == {"tor1", "sp1", "dgx1", "dgx2"}
    assert source.devices["sp1"].buffer == "40MB"
    assert len(written(source, tmp_path).topology.links) == 4


def test_a_folder_with_an_inventory_alone_is_one(tmp_path):
    folder = tmp_path / "inv"
    folder.mkdir()
    (folder / "hosts.yml").write_text(INVENTORY)
    assert set(read_source(folder).devices) == {"tor1", "sp1", "dgx1", "dgx2"}


def test_a_folder_of_tables_alone_is_read_as_these(tmp_path):
    (tmp_path / "devices.csv").write_text("device,kind,os\nleaf1,switch,nxos\n")
    assert set(read_source(tmp_path).devices) == {"leaf1"}


def test_an_empty_folder_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="empty folder"):
        read_source(tmp_path)


def test_what_else_an_inventory_holds_is_left_out_and_named(tmp_path):
    text = "[leafs]\nl1\n[pdus]\np1\np2\n[servers]\ns1\nlocalhost ansible_connection=local\n"
    (tmp_path / "hosts.ini").write_text(text)
    source = read_source(tmp_path / "hosts.ini")
    assert set(source.devices) == {"l1", "s1"}
    assert source.notes == (
        "left out, it is in group pdus (paisoar_kind takes it in): p1, p2",
        "left out, it is where Ansible runs: localhost",
    )
    (tmp_path / "hosts.ini").write_text("[pdus]\np1 paisoar_kind=switch\n")
    assert set(read_source(tmp_path / "hosts.ini").devices) == {"p1"}


def test_variables_that_name_others_are_resolved_and_programs_are_not_run(tmp_path):
    (tmp_path / "hosts.yml").write_text(
        "all:\n  vars: {net: 10.0.0, oob: '{{ net }}.{{ last }}'}\n  hosts:\n"
        "    leaf1: {last: 7, ansible_host: '{{ oob }}'}\n"
        f"    leaf2: {{ansible_host: \"{{{{ lookup('pipe', 'touch {tmp_path}/ran') }}}}\"}}\n"
        "    leaf3: {ansible_host: '{{ ansible_host }}'}\n"
    )
    source = read_source(tmp_path / "hosts.yml")
    assert [source.devices[f"leaf{n}"].address for n in (1, 2, 3)] == ["10.0.0.7", "", ""]
    assert not (tmp_path / "ran").exists()
    assert [note.partition(" is a template")[0] for note in source.notes] == [
        "leaf2: ansible_host",
        "leaf3: ansible_host",
    ]


def test_a_vault_is_opened_with_the_password_that_ansible_takes_or_named(tmp_path, monkeypatch):
    from ansible.parsing.vault import VaultLib, VaultSecret

    vault = VaultLib([("default", VaultSecret(b"s3cret"))])
    (tmp_path / "group_vars").mkdir()
    hidden = vault.encrypt("ansible_user: admin\nansible_password: hidden-4711\n")
    (tmp_path / "group_vars/all.yml").write_bytes(hidden)
    (tmp_path / "hosts.ini").write_text("[leafs]\nleaf1\n")
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    with pytest.raises(InputError) as caught:
        read_source(tmp_path)
    assert "ANSIBLE_VAULT_PASSWORD_FILE" in caught.value.advice
    (tmp_path / ".password").write_text("s3cret\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / ".password"))
    source = read_source(tmp_path)
    assert source.devices["leaf1"].user == "admin"
    assert "hidden-4711" not in site_yaml(source, site="x").text


def test_a_single_vaulted_value_is_opened_or_named_with_its_host(tmp_path, monkeypatch):
    from ansible.parsing.vault import VaultLib, VaultSecret

    def vaulted(text, password):
        lines = VaultLib([("default", VaultSecret(password))]).encrypt(text).decode().splitlines()
        return "!vault |\n" + "".join(f"  {line}\n" for line in lines)

    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.yml").write_text(
        f"ansible_host: {vaulted('10.0.0.7', b's3cret')}"
        f"ansible_password: {vaulted('hidden-4711', b'another')}"
    )
    (tmp_path / "hosts.ini").write_text("[leafs]\nleaf1\n")
    (tmp_path / ".password").write_text("s3cret\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / ".password"))
    assert read_source(tmp_path).devices["leaf1"].address == "10.0.0.7"
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE")
    with pytest.raises(InputError) as caught:
        read_source(tmp_path)
    assert "leaf1: ansible_host is vaulted" in caught.value.message
    assert "ANSIBLE_VAULT_PASSWORD_FILE" in caught.value.advice


def test_of_a_device_that_may_be_anything_only_that_is_asked(tmp_path):
    (tmp_path / "hosts.ini").write_text("thing ansible_host=10.0.0.9\n")
    result = site_yaml(read_source(tmp_path / "hosts.ini"), site="x")
    assert [gap.key for gap in result.gaps] == ["devices.thing.kind", "cables"]
    assert "kind:" not in result.text.partition("thing:")[2].replace("missing: kind", "")


NIC = SourceNic("ens1f0", "mlx5", "mlx5_0", 10**11, "10.1.0.1")
NIC_MAPPING = {
    "ens1f0": {"family": "mlx5", "rdma": "mlx5_0", "speed": "100G", "address": "10.1.0.1"}
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hosts.yml", json.dumps({"all": {"hosts": {"h1": {"paisoar_nics": NIC_MAPPING}}}})),
        ("hosts.ini", f"[servers]\nh1 paisoar_nics='{json.dumps(NIC_MAPPING)}'\n"),
        (
            "netbox.json",
            json.dumps(
                [
                    {
                        "name": "h1",
                        "role": {"slug": "server"},
                        "device_type": {},
                        "config_context": {"paisoar": {"nics": NIC_MAPPING}},
                    }
                ]
            ),
        ),
        ("devices.csv", "device,kind,nics\nh1,host,ens1f0:mlx5:mlx5_0:100G:10.1.0.1\n"),
    ],
)
def test_every_source_tells_all_of_a_nic_in_its_own_form(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_source(tmp_path / name).devices["h1"].nics == (NIC,)


def test_a_table_tells_as_much_of_a_nic_as_is_known(tmp_path):
    path = tmp_path / "devices.csv"
    path.write_text("device;kind;nics\nh1;host;ens1f0 ens1f1:bnxt ens2f0:::200G:fd00::7\n")
    assert read_source(path).devices["h1"].nics == (
        SourceNic("ens1f0"),
        SourceNic("ens1f1", "bnxt"),
        SourceNic("ens2f0", speed_bps=2 * 10**11, address="fd00::7"),
    )


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("leaf1,swtich,,", ":2: kind: 'swtich' is no kind: switch or host"),
        ("leaf1,switch,border,", ":2: role: 'border' is no role"),
        ("h1,host,,:mlx5", ":2: nics: ':mlx5' names no interface"),
        ("h1,host,,e0:mlx5:mlx5_0:fast", ":2: nics: 'fast' is not a speed"),
        ("h1,host,,e0:mlx5,e1:mlx5", ":2: has 5 values, and 4 columns"),
        ("h1,host,,\nh1,host,,", ":3: names h1 a second time"),
    ],
)
def test_a_wrong_line_of_a_table_is_named(tmp_path, row, words):
    path = tmp_path / "devices.csv"
    path.write_text(f"device,kind,role,nics\n{row}\n")
    with pytest.raises(InputError) as caught:
        read_source(path)
    assert words in caught.value.message


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


def test_a_device_whose_outputs_make_no_sense_is_left_out_and_named(tmp_path):
    _, folder = saved(tmp_path)
    for file in (folder / "spine1").glob("show_running*"):
        file.write_text("")
    source = read_source(folder)
    assert "spine1" not in source.devices
    assert any(note.startswith("left out, it cannot be read: spine1: ") for note in source.notes)


def test_the_first_source_is_right_and_the_next_fills_its_gaps(inventory, tmp_path):
    inventory_source = read_source(inventory / "inventory.yml")
    other = tmp_path / "devices.csv"
    other.write_text("device,kind,os,model,role,buffer\ntor1,switch,eos,Other,spine,1MB\n")
    tor = merged([inventory_source, read_source(other)]).devices["tor1"]
    assert (tor.os, tor.model, tor.buffer) == ("nxos", "N9K-C93180YC-FX", "1MB")


def test_nothing_is_said_to_be_assumed_of_a_cable_that_an_earlier_source_tells(tmp_path):
    outputs = read_source(saved(tmp_path)[1])
    lengths = [line for line in outputs.assumed if ": length " in line]
    assert len(lengths) > 1
    row = next(row for row in outputs.cables if lengths[0].startswith(f"{row.a} - {row.b}: "))
    table = tmp_path / "first.csv"
    table.write_text(f"a,b,speed,length_m\n{row.b},{row.a},25G,5\n")
    assert not any(": length " in line for line in merged([read_source(table), outputs]).assumed)
    # What the earlier one leaves open is taken from the outputs, and what these assumed with it.
    table.write_text(f"a,b,speed,length_m\n{row.a},{row.b},25G,\n")
    (kept,) = (
        line for line in merged([read_source(table), outputs]).assumed if ": length " in line
    )
    assert kept.startswith(f"{row.a} - {row.b}: ")


def test_outputs_that_show_no_device_are_refused_with_the_reasons(tmp_path):
    (tmp_path / "leaf1").mkdir()
    (tmp_path / "leaf1/notes.txt").write_text("x")
    with pytest.raises(InputError, match="shows no device: leaf1: no file is the output of"):
        read_source(tmp_path)


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
