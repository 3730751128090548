"""Files as people save them: any encoding, pagers, prompts, echoes, names too long."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.errors import InputError
from fabric.saved.layout import file_name, load_folder, save_outputs
from fabric.saved.tables import CableRow, DeviceRow, decoded
from fabric.saved.terminal import clean, without_echo
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
    "pager",
    [
        "--More--\r        \r",
        "\x1b[7m--More--\x1b[27m\r\x1b[K",
        " --More-- " + "\x08" * 10 + " " * 10 + "\x08" * 10,
        " --More-- " + "\x08" * 10,
        "---(more 12%)---\r                                        \r",
        "  ---- More ----\x1b[16D                \x1b[16D",
    ],
)
def test_a_pager_leaves_the_next_line_its_indentation(pager):
    before, after = "  mtu 9216", "  priority-flow-control mode on"
    assert clean(f"{before}\r\n{pager}{after}\r\n") == f"{before}\n{after}\n"


@pytest.mark.parametrize(
    "line",
    [
        "leaf1# ",
        "leaf1#show clock",
        "leaf1(config-if)# end",
        "admin@leaf1> show interfaces",
        "admin@leaf1:~$ show version",
        "<leaf1>display version",
        "2026 Dec  1 10:00:00 leaf1 %ETHPORT-5-IF_UP: Interface Ethernet1/1 is up",
        "%LINK-3-UPDOWN: Interface Ethernet1/1, changed state to up",
        "*Dec  1 10:00:00.123: %LINK-3-UPDOWN: Interface Ethernet1/1, changed state to up",
        "Dec  1 10:00:00 leaf1 Ebra: %LINEPROTO-5-UPDOWN: Line protocol on Ethernet1 is up",
        "%Dec  1 10:00:00:123 2026 leaf1 IFNET/3/PHY_UPDOWN: Physical state changed to up.",
        "Dec  1 2026 10:00:00 leaf1 %%01IFNET/4/IF_STATE(l)[5]:Interface 25GE1/0/1 is up.",
        "<165>1 2026-12-01T10:00:00.0+00:00 leaf1 dn_ifm 1 - - %IFM-5-OSTATE_UP: ethernet1/1/1",
    ],
)
def test_a_prompt_or_a_log_message_between_two_lines_is_left_out(line):
    before, after = "interface Ethernet1/1\n  mtu 9216\n", "  no shutdown\n"
    assert clean(before + line + "\n" + after) == before + after


SESSION = """\
leaf1# terminal length 0
leaf1# show version
Cisco Nexus Operating System (NX-OS) Software
leaf1# ping 10.0.0.1 count 1
64 bytes from 10.0.0.1: icmp_seq=0 ttl=254 time=0.6 ms
leaf1# sh run
interface Ethernet1/1
  mtu 9216
leaf1# copy running-config startup-config
[########################################] 100%
Copy complete.
leaf1# configure terminal
leaf1(config)# interface Ethernet1/2
leaf1(config-if)# mtu 1500
leaf1(config-if)# end
leaf1# """


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("show_running-config", "interface Ethernet1/1\n  mtu 9216\n"),
        ("show_version", "Cisco Nexus Operating System (NX-OS) Software\n"),
    ],
)
def test_of_a_session_only_what_answers_the_command_is_read(command, text):
    assert clean(SESSION, command, "leaf1") == text
    # Whatever the folder is called: prompts tell the switch's name.
    assert clean(SESSION, command, "rack-7") == text


@pytest.mark.parametrize(
    ("prompt", "command"),
    [
        ("leaf1# ", "clear counters"),
        ("admin@leaf1> ", "request system snapshot"),
        ("admin@leaf1:~$ ", "tail -f /var/log/syslog"),
        ("<leaf1>", "reset counters interface"),
        ("leaf1>", "enable"),
        ("leaf1(config-if-Et1)#", "mtu 1500"),
    ],
)
def test_a_command_of_another_kind_and_what_it_printed_are_left_out(prompt, command):
    before, after = "interface Ethernet1/1\n  mtu 9216\n", "interface Ethernet1/2\n"
    text = f"{before}{prompt}{command}\nIt printed this.\n{prompt}\n{after}"
    assert clean(text, "show_running-config", "leaf1") == before + after


def test_what_was_typed_at_another_device_is_text():
    text = "hostname leaf1\nleaf2# ping\nmore\n"
    assert clean(text, "show_running-config", "leaf1") == text


@pytest.mark.parametrize(
    "typed", ["mlnx_qos -i ens1f0", "sudo mlnx_qos -i ens1f0", "/usr/bin/mlnx_qos -i ens1f0"]
)
def test_a_hosts_prompt_and_path_do_not_hide_what_was_typed(typed):
    text = f"root@gpu1:~# {typed}\nDCBX mode: OS controlled\nroot@gpu1:~# exit\n"
    assert clean(text, "mlnx_qos_-i_ens1f0", "gpu1") == "DCBX mode: OS controlled\n"


def test_a_file_that_holds_nothing_but_another_commands_output_is_kept():
    text = "root@gpu1:~# qos-report\nDCBX mode: OS controlled\n"
    assert clean(text, "mlnx_qos_-i_ens1f0", "gpu1") == "DCBX mode: OS controlled\n"


@pytest.mark.parametrize(
    "line",
    [
        "  description leaf2# spare",
        "username admin password 5 $5$abc#  role network-admin",
        "  description %LINK-3-UPDOWN: seen here",
        "#",
        "! leaf1#",
        "banner motd # leaf1 #",
        "banner motd #keep out\nWelcome#",
        "Dec is no month of this class",
        "set system login message leaf1>",
    ],
)
def test_a_line_that_can_be_configuration_is_kept(line):
    text = f"hostname leaf1\n{line}\nline vty\n"
    assert clean(text) == text


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


def test_what_cannot_be_read_is_a_note_and_the_rest_is_read(tmp_path):
    (tmp_path / "leaf1").mkdir()
    (tmp_path / "leaf1/show_version.txt").write_text("NXOS\n")
    (tmp_path / "leaf1/show_lldp.txt").symlink_to("show_lldp.txt")
    (tmp_path / "leaf1/show_clock.txt").mkdir()
    saved = load_folder(tmp_path)
    assert saved.files == {"leaf1": {"show_version.txt": "NXOS\n"}}
    (note,) = saved.notes
    assert note.startswith("leaf1/show_lldp.txt: cannot be read: ")


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
