"""Files as people save them: any encoding, pagers, prompts, echoes, names too long."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.errors import InputError
from fabric.saved.layout import (
    CableRow,
    DeviceRow,
    clean,
    decoded,
    file_name,
    load_folder,
    save_outputs,
    without_echo,
)
from fabric.topology import PortRef


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("show running-config", "show_running-config.txt"),
        ("mlnx_qos -i ens1f0", "mlnx_qos_-i_ens1f0.txt"),
        ("grep -rH . /sys/x 2>&1 || true", "grep_-rH_.__sys_x_2__1____true.txt"),
    ],
)
def test_a_file_is_named_as_its_command(command, name):
    assert file_name(command) == name


@given(st.text(min_size=1, max_size=300))
@settings(max_examples=30)
def test_every_name_is_one_that_a_file_system_takes(command):
    name = file_name(command)
    assert name.isascii()
    assert "/" not in name
    assert len(name) <= 255


def test_long_commands_that_begin_alike_have_different_files():
    assert file_name("x" * 300) != file_name("x" * 301)


def test_outputs_come_back_as_they_were_saved(tmp_path):
    outputs = {"leaf1": {"show version": "NXOS: version 10\n"}, "host1": {"uname -r": "6.8\n"}}
    save_outputs(tmp_path, outputs)
    files = load_folder(tmp_path).files
    assert files["leaf1"]["show_version.txt"] == "NXOS: version 10\n"
    assert (tmp_path / "host1/uname_-r.txt").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_any_encoding_is_read(encoding):
    assert decoded("Grüße\n".encode(encoding)) == "Grüße\n"


@pytest.mark.parametrize(
    ("saved", "text"),
    [
        ("a\r\nb\r\n", "a\nb\n"),
        ("\x1b[1mbold\x1b[0m\n", "bold\n"),
        ("one\n --More-- \x08\x08\x08\x08\x08\x08\x08\x08\x08two\n", "one\ntwo\n"),
        ("one\n--More--(33%)--\rtwo\n", "one\ntwo\n"),
        ("table\nleaf1# ", "table\n"),
        ("table\nroot@host1:~# \n", "table\n"),
        ("a line that # is kept\n", "a line that # is kept\n"),
        ("", ""),
    ],
)
def test_what_a_terminal_adds_is_taken_off(saved, text):
    assert clean(saved) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("leaf1# show version\nNXOS\n", "NXOS\n"),
        ("show version\nNXOS\n", "NXOS\n"),
        ("NXOS show version\nmore\n", "NXOS show version\nmore\n"),
    ],
)
def test_the_line_on_which_the_command_was_typed_is_taken_off(text, left):
    assert without_echo("show version", text) == left


def test_cables_and_devices_may_be_told(tmp_path):
    (tmp_path / "leaf1").mkdir()
    (tmp_path / "cables.csv").write_text(
        "a,b,speed,length_m\nleaf1:Ethernet1/1,host1:ens1f0,25G,3\nleaf1:Eth2,spine1:Eth1,,\n"
    )
    (tmp_path / "devices.csv").write_text("leaf1,switch,nxos,N9K\n# a remark\n\nhost1,host,,\n")
    saved = load_folder(tmp_path)
    assert saved.cables == (
        CableRow(PortRef("leaf1", "Ethernet1/1"), PortRef("host1", "ens1f0"), 25 * 10**9, 3.0),
        CableRow(PortRef("leaf1", "Eth2"), PortRef("spine1", "Eth1")),
    )
    assert saved.devices["leaf1"] == DeviceRow("leaf1", "switch", "nxos", "N9K")
    assert saved.devices["host1"].kind == "host"


@pytest.mark.parametrize("row", ["leaf1,host1:ens1f0,25G,3", "a:b,c:d,25,3", "a:b,c:d,25G,long"])
def test_a_wrong_line_is_named_with_its_number(tmp_path, row):
    (tmp_path / "leaf1").mkdir()
    (tmp_path / "cables.csv").write_text(f"a,b,speed,length_m\n{row}\n")
    with pytest.raises(InputError) as caught:
        load_folder(tmp_path)
    assert caught.value.line == 2


def test_a_folder_without_devices_is_refused_and_strange_files_are_named(tmp_path):
    with pytest.raises(InputError):
        load_folder(tmp_path / "nowhere")
    (tmp_path / "notes.md").write_text("x")
    with pytest.raises(InputError, match="no device"):
        load_folder(tmp_path)
    (tmp_path / "leaf1").mkdir()
    (tmp_path / "leaf1/picture.png").write_bytes(b"\x89PNG")
    notes = " ".join(load_folder(tmp_path).notes)
    assert "notes.md" in notes
    assert "leaf1/picture.png" in notes
