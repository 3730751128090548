"""What people bring that is nearly a source: read as they mean it, or refused where it stands."""

import pytest

from fabric.bringin import read_source, read_sources, site_yaml
from fabric.errors import InputError
from fabric.units import format_speed
from tests.fabric.saved.folders import saved

DEVICES = """\
device,kind,os,model,role,buffer,nics
leaf1,switch,nxos,N9K-C93180YC-FX,leaf,40MB,
host1,host,,,,,ens1f0:mlx5:mlx5_0
host2,host,,,,,ens1f0:mlx5:mlx5_0
"""
CABLES = """\
a,b,speed,length_m
leaf1:Ethernet1/1,host1:ens1f0,100G,3
leaf1:Ethernet1/2,host2:ens1f0,100G,3
"""


def put(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text)
    return folder


def refused(*paths):
    with pytest.raises(InputError) as caught:
        read_sources(paths)
    return caught.value


def ends(source):
    return [(str(row.a), str(row.b), format_speed(row.speed_bps)) for row in source.cables]


class TestTables:
    def test_a_table_is_known_by_its_columns_whatever_its_file_is_called(self, tmp_path):
        put(tmp_path, links_csv=CABLES, machines_CSV=DEVICES)
        source = read_sources([tmp_path / "machines.CSV", tmp_path / "links.csv"])
        assert set(source.devices) == {"leaf1", "host1", "host2"}
        assert len(source.cables) == 2

    def test_a_table_of_devices_called_cables_is_one_of_devices(self, tmp_path):
        put(tmp_path, cables_csv=DEVICES)
        assert len(read_source(tmp_path / "cables.csv").devices) == 3

    def test_cables_without_a_header_are_known_by_their_ends(self, tmp_path):
        put(tmp_path, links_csv=CABLES.partition("\n")[2])
        assert len(read_source(tmp_path / "links.csv").cables) == 2

    def test_columns_may_stand_in_any_order(self, tmp_path):
        put(tmp_path, d_csv="kind,os,device\nswitch,eos,leaf1\n", c_csv="speed,b,a\n1G,h:e,l:e\n")
        assert read_source(tmp_path / "d.csv").devices["leaf1"].os == "eos"
        assert ends(read_source(tmp_path / "c.csv")) == [("l:e", "h:e", "1G")]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", ":1: is empty"),
            ("\n# nothing\n", ":1: is empty"),
            ("device_a,port_a,device_b\nl,e,h\n", ":1: names no columns that are known: device_a"),
            ("device,kind,kind\nl,switch,\n", ":1: names the column kind twice"),
            ("device,kind\n", ":1: names no device below its columns"),
            ("a,b\n", ":1: names no cable below its columns"),
            ("device,os\nl,windows\n", ":2: os: 'windows' is no system: "),
            ("device,kind,os\nl,switch,linux\n", ":2: os: 'linux' is no system: "),
            ("device,nics\nh,e0:mlx5 e0:bnxt\n", ":2: nics: names the interface 'e0' twice"),
            ("device,buffer\nl,big\n", ":2: buffer: 'big' is not a size"),
            ("device,kind\n\nl,switch\n\nl,switch\n", ":5: names l a second time, first in line 3"),
            ('device,model\n"a\nb",x\nl,y,z\n', ":4: has 3 values, and 2 columns"),
        ],
    )
    def test_what_is_wrong_with_a_table_is_said_with_its_line(self, tmp_path, text, words):
        put(tmp_path, x_csv=text)
        error = refused(tmp_path / "x.csv")
        assert f"{tmp_path / 'x.csv'}{words}" in error.message

    def test_a_comma_may_be_the_decimal_point(self, tmp_path):
        put(
            tmp_path,
            c_csv="a;b;speed;length_m\nl:1;h:1;2,5G;1,5\n",
            d_csv="device;kind;buffer;nics\nl;switch;1,5MB;\nh;host;;1:mlx5:m:2,5G\n",
            q_csv='a,b,speed,length_m\nl:1,h:1,"2,5G","1,5"\n',
        )
        for name in ("c.csv", "q.csv"):
            (row,) = read_source(tmp_path / name).cables
            assert (row.speed_bps, row.length_m) == (2_500_000_000, 1.5)
        devices = read_source(tmp_path / "d.csv").devices
        assert devices["l"].buffer == "1.5MB"
        assert devices["h"].nics[0].speed_bps == 2_500_000_000

    def test_a_comma_that_may_mean_thousands_is_refused(self, tmp_path):
        put(tmp_path, c_csv="a;b;length_m\nl:1;h:1;1,500\n")
        assert ":2: '1,500' is no length" in refused(tmp_path / "c.csv").message

    @pytest.mark.parametrize(
        "data",
        [
            CABLES.encode("utf-16"),
            CABLES.encode("utf-8-sig"),
            CABLES.replace("\n", "\r\n").encode(),
            CABLES.replace("\n", "\r").encode(),
            CABLES.replace(",", "\t").encode("utf-16"),
            ("# cables; of rack 7\n" + CABLES).encode(),
            ("sep=;\n" + CABLES.replace(",", ";")).encode(),
        ],
    )
    def test_however_a_spreadsheet_writes_it(self, tmp_path, data):
        put(tmp_path, c_csv=data)
        assert len(read_source(tmp_path / "c.csv").cables) == 2

    def test_a_cable_told_from_both_ends_is_one(self, tmp_path):
        put(tmp_path, c_csv="a,b,speed,length_m\nl:1,h:1,25G,\nh:1,l:1,,3\n")
        (row,) = read_source(tmp_path / "c.csv").cables
        assert (row.speed_bps, row.length_m) == (25 * 10**9, 3.0)

    @pytest.mark.parametrize(
        ("second", "words"),
        [
            ("h:1,l:1,100G,3", ":3: h:1 - l:1 runs at 100G here, at 25G in "),
            ("h:1,l:1,25G,5", ":3: h:1 - l:1 is 5 m long here, 3 m in "),
            ("l:1,h:2,25G,3", ":3: l:1 is in two cables, first in "),
            ("l:2,l:3,25G,3", ":3: the cable at l:2 ends on the device it starts from"),
        ],
    )
    def test_cables_that_cannot_be_are_refused_with_both_lines(self, tmp_path, second, words):
        put(tmp_path, c_csv=f"a,b,speed,length_m\nl:1,h:1,25G,3\n{second}\n")
        message = refused(tmp_path / "c.csv").message
        assert words in message
        assert "first in " not in words or message.endswith("c.csv:2")

    def test_cables_of_several_tables_are_one_site(self, tmp_path):
        head, first, second = CABLES.splitlines()
        put(tmp_path, x_csv=f"{head}\n{first}\n", y_csv=f"{head}\n{first}\n{second}\n")
        assert len(read_sources([tmp_path / "x.csv", tmp_path / "y.csv"]).cables) == 2
        put(tmp_path, y_csv=f"{head}\n{first.replace('100G', '25G')}\n")
        error = refused(tmp_path / "x.csv", tmp_path / "y.csv")
        assert error.message.startswith(f"{tmp_path / 'y.csv'}:2: ")

    def test_a_folder_of_tables_of_any_name_is_read_whole(self, tmp_path):
        put(tmp_path, links_csv=CABLES, machines_csv=DEVICES)
        source = read_source(tmp_path)
        assert (len(source.devices), len(source.cables)) == (3, 2)

    def test_another_table_beside_an_inventory_is_named_and_not_read(self, tmp_path):
        put(tmp_path, hosts_ini="[leafs]\nl1\n", vlans_csv="name,vlan\nblue,7\n")
        source = read_source(tmp_path)
        assert set(source.devices) == {"l1"}
        assert source.notes == (
            f"not looked at, unless it is named by itself: {tmp_path / 'vlans.csv'}",
        )


class TestNames:
    @pytest.mark.parametrize("name", ["le af/1", "lëaf1", "-leaf1", "x" * 64, "all", "hosts"])
    def test_what_no_device_can_be_called_is_refused_at_its_line(self, tmp_path, name):
        put(tmp_path, d_csv=f"device,kind\nok,switch\n{name},switch\n")
        message = refused(tmp_path / "d.csv").message
        assert message.startswith(f"{tmp_path / 'd.csv'}:3: no device can be called {name!r}")

    def test_every_wrong_name_is_said_at_once(self, tmp_path):
        put(tmp_path, d_csv="device,kind\nl 1,switch\nl 2,switch\n")
        assert [fault.line for fault in refused(tmp_path / "d.csv").faults] == [2, 3]

    def test_names_that_differ_by_case_alone_are_refused_with_both_lines(self, tmp_path):
        put(tmp_path, d_csv="device,kind\nleaf1,switch\nLeaf1,switch\n")
        path = tmp_path / "d.csv"
        assert refused(path).message == (
            f"{path}:3: Leaf1 and leaf1 ({path}:2) differ in upper and lower case alone"
        )

    def test_a_cable_that_writes_a_device_in_another_way_is_refused(self, tmp_path):
        put(tmp_path, d_csv=DEVICES, c_csv=CABLES.replace("leaf1", "LEAF1"))
        message = refused(tmp_path / "d.csv", tmp_path / "c.csv").message
        assert message.startswith(
            f"{tmp_path / 'c.csv'}:2: LEAF1 and leaf1 ({tmp_path / 'd.csv'}:2)"
        )

    @pytest.mark.parametrize(
        ("name", "text", "line"),
        [
            ("h.yml", "all:\n  hosts:\n    ok:\n    'l 2':\n", 4),
            ("h.ini", "[leafs]\nok\nlö2 ansible_host=10.0.0.1\n", 3),
        ],
    )
    def test_a_host_of_an_inventory_is_refused_at_its_line(self, tmp_path, name, text, line):
        (tmp_path / name).write_text(text)
        error = refused(tmp_path / name)
        assert (error.file, error.line) == (tmp_path / name, line)
        assert "no device can be called" in error.message


class TestInventories:
    @pytest.mark.parametrize(
        ("key", "value", "words"),
        [
            ("ansible_port", "22x", "'22x' is no TCP port from 1 to 65535"),
            ("ansible_port", "70000", "'70000' is no TCP port from 1 to 65535"),
            ("paisoar_kind", "swich", "'swich' is none of switch, host"),
            ("paisoar_role", "border", "'border' is none of leaf, spine"),
        ],
    )
    def test_a_wrong_value_is_refused_where_it_stands(self, tmp_path, key, value, words):
        (tmp_path / "group_vars").mkdir()
        (tmp_path / "group_vars/leafs.yml").write_text(f"x: 1\n{key}: {value}\n")
        put(tmp_path, hosts_ini="[leafs]\nl1\n")
        for path in (tmp_path, tmp_path / "hosts.ini"):
            file = tmp_path / "group_vars/leafs.yml"
            assert refused(path).message == f"{file}:2: l1: {key}: {words}"

    def test_nics_that_are_no_mapping_are_refused_where_they_stand(self, tmp_path):
        put(tmp_path, hosts_yml="all:\n  hosts:\n    h1:\n      paisoar_nics: [ens1f0]\n")
        assert refused(tmp_path / "hosts.yml").line == 4

    @pytest.mark.parametrize("folder", ["group_vars", "host_vars"])
    def test_variables_that_are_no_yaml_are_named_with_their_line(self, tmp_path, folder):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "l1"
        file.write_text("a: 1\nb: [1\nc: 2\n")
        put(tmp_path, hosts_ini="[l1]\nl1\n")
        error = refused(tmp_path)
        assert (error.file, error.line) == (file, 3)

    def test_an_inventory_that_is_no_yaml_is_named_with_its_line(self, tmp_path):
        put(tmp_path, hosts_yml="all:\n  hosts:\n    l1: {ansible_host: 10.0.0.1\n    l2:\n")
        assert refused(tmp_path / "hosts.yml").line in (3, 4)

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ("[a]\nl1\n[leafs\nl2\n", 3, "no host in it: "),
            ("[a]\nl1\n[leafs:children]\nnope\n", 3, "undefined group 'nope'"),
            ("[a]\nl1 it is\n", 2, "Expected key=value host variable assignment, got: it"),
            ("\ufeff[a]\nl1\n", 1, "begins with a byte order mark"),
        ],
    )
    def test_an_ini_inventory_that_is_none_is_named_with_its_line(
        self, tmp_path, text, line, words
    ):
        put(tmp_path, hosts_ini=text.encode())
        error = refused(tmp_path / "hosts.ini")
        assert (error.file, error.line) == (tmp_path / "hosts.ini", line)
        assert words in error.message
        assert "caused by" not in error.message

    @pytest.mark.parametrize("name", ["hosts.yml", "hosts.ini", "devices.json"])
    def test_utf_16_is_said_to_be_that(self, tmp_path, name):
        (tmp_path / name).write_bytes("all: {}\n".encode("utf-16"))
        assert f"{tmp_path / name}:1: is UTF-16" in refused(tmp_path / name).message

    def test_of_a_folder_what_ansible_leaves_out_or_cannot_read_is_no_inventory(self, tmp_path):
        put(tmp_path, hosts_ini="[leafs]\nl1\n", README_md="This is text\n", b_ini="[leafs\nl2\n")
        source = read_source(tmp_path)
        assert set(source.devices) == {"l1"}
        (note,) = source.notes
        assert note.startswith(f"no inventory, left out: {tmp_path / 'b.ini'}: ")

    def test_one_of_several_inventories_that_is_no_yaml_is_refused(self, tmp_path):
        put(tmp_path, hosts_ini="[leafs]\nl1\n", more_yml="all:\n\thosts:\n")
        error = refused(tmp_path)
        assert (error.file, error.line) == (tmp_path / "more.yml", 2)

    def test_a_host_that_stands_twice_is_said(self, tmp_path):
        put(tmp_path, hosts_yml="all:\n  hosts:\n    l1: {x: 1}\n    l1: {x: 2}\n")
        (note,) = read_source(tmp_path / "hosts.yml").notes
        assert note == f"{tmp_path / 'hosts.yml'}:4: Found duplicate mapping key 'l1'."

    def test_a_system_that_is_not_known_is_named_with_those_that_are(self, tmp_path):
        put(tmp_path, hosts_ini="[leafs]\nl1 ansible_network_os=acme.box.box\n")
        gaps = site_yaml(read_source(tmp_path / "hosts.ini"), site="x").gaps
        (what,) = [gap.what for gap in gaps if gap.key == "devices.l1.os"]
        assert "'acme.box.box' is none that is known" in what
        assert "nxos, os10, sonic" in what


class TestWhatIsMissing:
    def test_cables_to_devices_that_no_source_has_are_counted_and_named(self, tmp_path):
        put(tmp_path, d_csv=DEVICES.replace("host2,host,,,,,ens1f0:mlx5:mlx5_0\n", ""))
        put(tmp_path, c_csv=CABLES + "leaf1:Ethernet1/3,host2:ens2f0,100G,3\n")
        result = site_yaml(read_sources([tmp_path / "d.csv", tmp_path / "c.csv"]), site="x")
        (gap,) = result.gaps
        assert gap.key == "devices.host2"
        assert "2 cables end at it, first leaf1:Ethernet1/2 - host2:ens1f0" in gap.what
        assert f"({tmp_path / 'c.csv'}:3)" in gap.what
        assert "host2:ens1f0" in result.text.splitlines()[gap.line - 1]

    def test_a_nic_whose_cable_has_another_speed_is_said(self, tmp_path):
        put(tmp_path, c_csv=CABLES, d_csv=DEVICES.replace("mlx5_0\nhost2", "mlx5_0:200G\nhost2"))
        result = site_yaml(read_sources([tmp_path / "d.csv", tmp_path / "c.csv"]), site="x")
        assert "devices.host1.nics.ens1f0.speed: 100G of its cable, not 200G" in result.assumed

    def test_systems_and_families_that_nobody_tells_may_be_said_once(self, tmp_path):
        put(
            tmp_path,
            d_csv="device,kind,os,nics\nleaf1,switch,,\nspine1,switch,,\nleaf2,switch,eos,\n"
            "h1,host,,e0 e1:bnxt\n",
        )
        result = site_yaml(
            read_source(tmp_path / "d.csv"),
            site="x",
            switch_os=["sonic", "nxos"],
            nic_family="mlx5",
        )
        assert {
            "devices.leaf1.os: sonic, by --switch-os",
            "devices.spine1.os: nxos, by --switch-os",
            "devices.h1.nics.e0.family: mlx5, by --nic",
        } <= set(result.assumed)
        assert not any(key.endswith((".os", ".family")) for key in (g.key for g in result.gaps))
        assert "    os: eos" in result.text
        assert "        family: bnxt" in result.text


class TestSavedOutputs:
    def test_cables_of_a_table_beside_them_to_a_device_without_a_folder_are_missing(self, tmp_path):
        _, folder = saved(tmp_path)
        (folder / "cables.csv").write_text("a,b\nleaf1:Ethernet1/7,host9:ens1f0\n")
        gaps = {gap.key: gap.what for gap in site_yaml(read_source(folder), site="x").gaps}
        assert "no source has this device" in gaps["devices.host9"]
        assert "cables.csv:2" in gaps["devices.host9"]

    def test_what_a_table_does_not_tell_of_a_cable_the_outputs_do(self, tmp_path):
        site, folder = saved(tmp_path)
        rows = "".join(f"{link.a},{link.b}\n" for link in site.topology.links)
        (folder / "cables.csv").write_text("a,b\n" + rows)
        found = {(row.a, row.b): row.speed_bps for row in read_source(folder).cables}
        assert found == {(link.a, link.b): link.speed_bps for link in site.topology.links}

    def test_what_the_outputs_do_not_show_is_assumed_and_no_note(self, tmp_path):
        _, folder = saved(tmp_path)
        source = read_sources([folder])
        assert source.notes == ()
        lengths = [line for line in site_yaml(source, site="x").assumed if "length 30 m" in line]
        assert len(lengths) == 2

    def test_the_folder_of_one_device_is_told_from_one_of_devices(self, tmp_path):
        _, folder = saved(tmp_path)
        error = refused(folder / "leaf1")
        assert "holds no device's folder" in error.message
        assert str(folder) in error.advice
