"""NetBox exports: what is taken from them, what is left out, and that it is said.

The forms are those of NetBox's REST API; releases are named where they differ.
"""

import json

import pytest

from fabric.bringin import read_source, read_sources, site_yaml
from fabric.errors import InputError
from fabric.site import load_site


def device(name, role, model="N9K-C93180YC-FX", **also):
    return {
        "id": abs(hash(name)) % 1000,
        "name": name,
        "device_type": {"model": model, "slug": model.lower()},
        "role": {"slug": role, "name": role.title()},
        "site": {"slug": "dc1"},
        "status": {"value": "active", "label": "Active"},
        "config_context": {},
        **also,
    }


def end(name, port):
    return [{"object_type": "dcim.interface", "object": {"device": {"name": name}, "name": port}}]


def interface(name, port, kind="25gbase-x-sfp28", **also):
    return {"device": {"name": name}, "name": port, "type": {"value": kind}, "enabled": True} | also


def cable(a, b, **also):
    return {"a_terminations": a, "b_terminations": b, "status": {"value": "connected"}} | also


MLX5 = {"paisoar": {"nics": {"ens1f0": {"family": "mlx5", "rdma": "mlx5_0"}}}}


def netbox(**more):
    return {
        "devices": {
            "count": 3,
            "next": None,
            "results": [
                device(
                    "leaf1", "leaf",
                    platform={"slug": "nx-os"}, primary_ip4={"address": "10.0.0.1/24"},
                ),
                device("n1", "server", "R750", config_context=MLX5),
                device("n2", "server", "R750", config_context=MLX5),
            ],
        },
        "cables": [
            cable(
                end("leaf1", "Ethernet1/1"), end("n1", "ens1f0"),
                length=200, length_unit={"value": "cm"},
            ),
            {  # as NetBox before 3.3 exports it
                "termination_a_type": "dcim.interface",
                "termination_a": {"device": {"name": "leaf1"}, "name": "Ethernet1/2"},
                "termination_b_type": "dcim.interface",
                "termination_b": {"device": {"name": "n2"}, "name": "ens1f0"},
                "length": None,
            },
            cable(
                [{"object_type": "dcim.powerport", "object": {"name": "p"}}], end("leaf1", "psu")
            ),
            cable(end("leaf1", "Ethernet1/9"), end("elsewhere", "x")),
        ],
        "interfaces": [
            interface("leaf1", "Ethernet1/1"),
            {"device": {"name": "leaf1"}, "name": "Ethernet1/2", "speed": 25_000_000},
        ],
        **more,
    }  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def read(data):
        path = tmp_path / "netbox.json"
        path.write_text(json.dumps(data))
        return read_source(path)

    return read


def written(source, folder):
    result = site_yaml(source, site="mine")
    assert result.gaps == ()
    path = folder / "fabric.yaml"
    path.write_text(result.text)
    return load_site(path)


def notes_of(source):
    return "\n".join(source.notes)


def test_a_netbox_export_is_a_site_with_lengths_in_metres(tmp_path, read):
    source = read(netbox())
    site = written(source, tmp_path)
    assert (site.switch("leaf1").os, site.switch("leaf1").mgmt.address) == ("nxos", "10.0.0.1")
    assert {(str(k.a), k.speed_bps, k.length_m) for k in site.topology.links} == {
        ("leaf1:Ethernet1/1", 25 * 10**9, 2.0),
        ("leaf1:Ethernet1/2", 25 * 10**9, 3.0),
    }
    assert "elsewhere (1)" in notes_of(source)


@pytest.mark.parametrize(
    ("platform", "os_name"),
    [
        ("arista-eos", "eos"),
        ("cisco-nxos", "nxos"),
        ("cisco-nx-os", "nxos"),
        ("dell-os10", "os10"),
        ("dell-emc-smartfabric-os10", "os10"),
        ("cumulus-linux", "nvue"),
        ("nvidia-cumulus-linux-5", "nvue"),
        ("sonic", "sonic"),
        ("dell-enterprise-sonic", "sonic"),
        ("juniper-junos", "junos"),
        ("huawei-vrp", "cloudengine"),
        ("h3c-comware", "comware"),
        ("comware-7", "comware"),
    ],
)
def test_platforms_are_known_by_their_usual_slugs(read, platform, os_name):
    leaf = device("leaf1", "leaf", platform={"slug": platform})
    assert read([leaf]).devices["leaf1"].os == os_name


@pytest.mark.parametrize("platform", ["cisco-ios-xe", "nokia-srl", "dell-os9", "extreme-exos"])
def test_a_platform_that_is_not_known_is_named_and_left_to_be_filled_in(read, platform):
    source = read([device("leaf1", "leaf", platform={"slug": platform})])
    assert source.devices["leaf1"].os == ""
    gaps = {gap.key: gap.what for gap in site_yaml(source, site="x").gaps}
    assert f"'{platform}' is none that is known" in gaps["devices.leaf1.os"]
    assert "nxos" in gaps["devices.leaf1.os"]


@pytest.mark.parametrize(
    "other",
    [
        device("leaf1-pdu", "rack-pdu", "AP8886"),
        device("leaf1-feed", "infrastructure", "AP8886", power_outlet_count=24),
        device("ts1", "console-server", "LES1732", platform={"slug": "linux"}),
        device("leaf1-cs", "infrastructure", "LES1732", console_server_port_count=32),
        device("pp-spine-1", "patch-panel", "PP24"),
        device("fw1", "firewall", platform={"slug": "juniper-junos"}),
        device("edge1", "edge-router", platform={"slug": "juniper-junos"}),
        device("oob1", "oob-switch", platform={"slug": "arista-eos"}),
        device("cam1", "misc", "P3245"),
    ],
)
def test_what_is_no_part_of_the_fabric_is_left_out_and_named_with_its_reason(read, other):
    data = netbox()
    data["devices"]["results"].append(other)
    data["devices"]["count"] += 1
    data["cables"].append(cable(end("leaf1", "Ethernet1/40"), end(other["name"], "1")))
    source = read(data)
    assert set(source.devices) == {"leaf1", "n1", "n2"}
    (note,) = [note for note in source.notes if note.startswith("left out, ")]
    assert note.endswith(other["name"])
    assert len(source.cables) == 2
    assert f"{other['name']} (1)" not in notes_of(source)


def test_the_config_context_takes_in_what_would_be_left_out(read):
    other = device("x1", "misc", config_context={"paisoar": {"kind": "switch", "role": "spine"}})
    taken = read([other]).devices["x1"]
    assert (taken.kind, taken.role) == ("switch", "spine")


def test_routers_that_are_called_leaf_are_leaves(read):
    assert read([device("t0-1", "leaf-router", platform={"slug": "sonic"})]).devices["t0-1"]


@pytest.mark.parametrize("status", ["offline", "planned", "inventory", "failed", "decommissioning"])
def test_a_device_that_is_not_in_use_is_left_out(read, status):
    source = read([device("leaf1", "leaf"), device("leaf2", "leaf", status={"value": status})])
    assert set(source.devices) == {"leaf1"}
    assert source.notes == (f"left out, its status is {status}: leaf2",)


def test_a_staged_device_and_one_without_a_status_are_taken(read):
    devices = [device("leaf1", "leaf", status={"value": "staged"}), device("leaf2", "leaf")]
    del devices[1]["status"]
    assert set(read(devices).devices) == {"leaf1", "leaf2"}


def test_the_role_of_releases_before_3_6_counts(read):
    old = device("x1", "spine")
    old["device_role"] = old.pop("role")
    assert (read([old]).devices["x1"].kind, read([old]).devices["x1"].role) == ("switch", "spine")


def test_one_page_of_several_is_refused(read):
    data = netbox()
    data["devices"]["count"] = 120
    with pytest.raises(InputError, match="holds 3 of 120 devices") as caught:
        read(data)
    assert "limit=0" in caught.value.advice


def test_pages_may_stand_in_a_list(read):
    data = netbox()
    results = data["devices"]["results"]
    data["devices"] = [{"count": 3, "results": results[:2]}, {"count": 3, "results": results[2:]}]
    assert set(read(data).devices) == {"leaf1", "n1", "n2"}


def test_a_file_for_each_list_is_one_export(tmp_path):
    data = netbox()
    for name, value in data.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    paths = [tmp_path / f"{name}.json" for name in ("cables", "interfaces", "devices")]
    site = written(read_sources(paths), tmp_path)
    assert len(site.topology.links) == 2


def test_two_devices_of_one_name_are_refused(read):
    with pytest.raises(InputError, match="two devices are called leaf1, of sites dc1 and dc2"):
        read([device("leaf1", "leaf"), device("leaf1", "leaf", site={"slug": "dc2"})])


def test_a_port_is_found_behind_a_patch_panel(read):
    data = netbox(cables=[cable(end("leaf1", "Ethernet1/1"), PANEL), cable(PANEL, end("n1", "p"))])
    data["interfaces"] = [
        interface(
            "leaf1", "Ethernet1/1",
            connected_endpoints=[end("n1", "ens1f0")[0]["object"]],
            connected_endpoints_type="dcim.interface", connected_endpoints_reachable=True,
        ),
        interface(  # as NetBox before 3.3 has it
            "n2", "ens1f0",
            connected_endpoint={"device": {"name": "leaf1"}, "name": "Ethernet1/2"},
            connected_endpoint_type="dcim.interface", connected_endpoint_reachable=True,
        ),
    ]  # fmt: skip
    assert {frozenset(map(str, (row.a, row.b))) for row in read(data).cables} == {
        frozenset(("leaf1:Ethernet1/1", "n1:ens1f0")),
        frozenset(("leaf1:Ethernet1/2", "n2:ens1f0")),
    }


PANEL = [{"object_type": "dcim.frontport", "object": {"device": {"name": "pp1"}, "name": "1"}}]


def test_a_breakout_cable_is_as_many_cables_as_it_has_parts(read):
    data = netbox(
        cables=[
            cable(
                end("leaf1", "Ethernet1/1/1") + end("leaf1", "Ethernet1/1/2"),
                end("n1", "ens1f0") + end("n2", "ens1f0"),
            )
        ]
    )
    assert [str(row.b) for row in read(data).cables] == ["n1:ens1f0", "n2:ens1f0"]
    data["cables"][0]["a_terminations"].pop()
    source = read(data)
    assert source.cables == ()
    assert "1 ports on one end and 2 on the other" in notes_of(source)


def test_planned_cables_and_management_ports_are_left_out(read):
    data = netbox()
    data["cables"][0]["status"] = {"value": "planned"}
    data["cables"].append(cable(end("leaf1", "mgmt0"), end("n1", "ens1f0")))
    data["cables"].append(cable(end("leaf1", "Ethernet1/7"), end("n1", "eno1")))
    data["interfaces"].append(interface("n1", "eno1", mgmt_only=True))
    source = read(data)
    assert [str(row.a) for row in source.cables] == ["leaf1:Ethernet1/2"]
    assert "cables left out, planned or being removed: 1" in source.notes


@pytest.mark.parametrize(
    ("kind", "bps"),
    [
        ("400gbase-x-osfp", 4 * 10**11),
        ("100gbase-kr4", 10**11),
        ("1.6tbase-x-osfp1600", 16 * 10**11),
    ],
)
def test_speeds_are_those_of_the_interface_types(read, kind, bps):
    data = netbox()
    data["interfaces"] = [interface("leaf1", "Ethernet1/1", kind)]
    assert read(data).cables[0].speed_bps == bps


def test_nics_of_a_netbox_host_are_its_fast_interfaces(read):
    data = netbox()
    data["devices"]["results"][1]["config_context"] = {}
    data["interfaces"] += [
        interface("n1", "ens1f0"),
        interface("n1", "eno1", "1000base-t"),
        interface("n1", "bond0", "lag", speed=50_000_000),
        interface("n1", "ens9", enabled=False),
        interface("n1", "idrac", mgmt_only=True),
    ]
    assert [nic.name for nic in read(data).devices["n1"].nics] == ["ens1f0"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "[]",
        '{"cables": []}',
        '{"devices": [3]}',
        '{"devices": {"results": 4}}',
        '{"detail": "Invalid token"}',
        '[{"name": "a", "device_type": {}, "config_context": {"paisoar": 3}}]',
        '[{"name": "a", "role": {"slug": "leaf"}, "device_type": {}, "config_context": '
        '{"paisoar": {"kind": "host", "nics": ["ens1f0"]}}}]',
    ],
)
def test_what_is_no_export_is_bad_input(tmp_path, text):
    path = tmp_path / "netbox.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_source(path)
    assert str(path) in caught.value.message


def test_ansibles_own_list_is_told_from_an_export(tmp_path):
    path = tmp_path / "inventory.json"
    path.write_text('{"_meta": {"hostvars": {}}, "all": {"children": []}}')
    with pytest.raises(InputError, match="ansible-inventory --list"):
        read_source(path)


@pytest.mark.parametrize("missing", [[], None])
def test_a_cable_of_which_one_end_is_missing_is_named(read, missing):
    export = netbox()
    export["cables"].append(cable(end("leaf1", "Ethernet1/9"), missing))
    panel = [{"object_type": "dcim.frontport", "object": {"device": {"name": "p"}, "name": "1"}}]
    export["cables"].append(cable(end("leaf1", "Ethernet1/10"), panel))
    notes = [note for note in read(export).notes if "other end" in note]
    assert notes == ["cables left out, their other end is missing in NetBox: leaf1:Ethernet1/9"]


@pytest.mark.parametrize("key", ["device_type", "primary_ip4", "config_context"])
def test_a_device_that_is_not_as_netbox_writes_it_is_named_with_the_key(read, key):
    export = netbox()
    export["devices"]["results"][0][key] = "hunter2"
    with pytest.raises(InputError, match=f"device leaf1: {key} is a str, and no") as caught:
        read(export)
    # A context may hold passwords.
    assert "hunter2" not in str(caught.value)


def test_a_cable_whose_length_is_no_number_is_named(read):
    export = netbox()
    export["cables"][0] |= {"id": 17, "length": "long"}
    with pytest.raises(InputError, match="cable 17"):
        read(export)
