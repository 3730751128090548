"""Sources that are none: each is refused with its file, and what is odd stays text."""

import json
import time

import pytest

from fabric.bringin import read_source, site_yaml
from fabric.errors import InputError
from fabric.yamlfile import load_yaml


def refused(path):
    begun = time.process_time()
    with pytest.raises(InputError) as caught:
        read_source(path)
    assert time.process_time() - begun < 10
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    return caught.value


def put(path, content):
    path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content)
    return path


LAUGHS = "".join(
    f"    a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 10)}]\n" for n in range(10)
)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"device,kind\nleaf1\0,switch\n", ":2: is no text: it holds the byte 0x00"),
        ("a.csv", bytes(range(256)), ":1: is no text"),
        ("a.csv", "device,kind\n" + "x" * 200_000, ":2: is no CSV"),
        ("cables.csv", "a,b\nleaf1:e1,leaf2\n", ":2: "),
        ("cables.csv", "a,b,speed,length_m\na:1,b:1,25G,nan\n", ":2: 'nan' is no length"),
        ("cables.csv", "a,b,speed,length_m\na:1,b:1,25G,-1\n", ":2: '-1' is no length"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", '{"devices": [' + "9" * 5000 + "]}", "5000 digits"),
        ("a.json", '{"devices": 7}', "not as NetBox exports it"),
        ("a.json", '{"devices": [7]}', "not as NetBox exports it"),
        ("a.json", b'{"devices": "\0"}', "byte 0x00"),
        (
            "a.json",
            '{"devices": [{"name": "x"}], '
            '"interfaces": [{"device": "a", "name": "b", "speed": 1e999}]}',
            "not as NetBox exports it",
        ),
        ("a.yml", f"all:\n  vars:\n{LAUGHS}  hosts: {{leaf1: {{x: *a9}}}}\n", "aliases"),
        ("a.yml", "all: " + "[" * 3000, ":1: is nested"),
        ("a.yml", "all:\n  hosts: {leaf1: {ansible_port: " + "9" * 5000 + "}}\n", "5000 digits"),
        ("a.yml", b"all:\n  hosts: \0\n", ":2: is no text"),
        ("a.ini", bytes(range(256)), "is no text"),
    ],
)
def test_a_file_that_is_no_source_is_refused(tmp_path, name, content, words, capfd):
    error = refused(put(tmp_path / name, content))
    assert words in error.message
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["huge.csv", "huge.json", "huge.yml"])
def test_a_file_of_200_mb_is_refused(tmp_path, name):
    with (tmp_path / name).open("wb") as file:
        file.truncate(200 * 2**20)
    assert "larger than 64 MiB" in refused(tmp_path / name).message


def test_variables_beside_an_inventory_are_looked_at_too(tmp_path):
    (tmp_path / "group_vars").mkdir()
    put(tmp_path / "group_vars" / "all.yml", "x:\n" + LAUGHS)
    path = put(tmp_path / "hosts.ini", "leaf1\n")
    with pytest.raises(InputError, match="all.yml:1: its aliases"):
        read_source(path)


def test_a_saved_file_of_200_mb_is_left_out_with_a_note(tmp_path):
    from fabric.saved.layout import load_folder

    (tmp_path / "leaf1").mkdir()
    with (tmp_path / "leaf1" / "show_version.txt").open("wb") as file:
        file.truncate(200 * 2**20)
    saved = load_folder(tmp_path)
    assert saved.files == {"leaf1": {}}
    assert "leaf1/show_version.txt: larger than 64 MiB" in saved.notes[0]


def test_what_a_source_says_stays_text_in_the_file_that_is_written(tmp_path):
    odd = "a: b\n  c: [/x] # '\" \0"
    device = {"name": f"le{odd}", "config_context": {"paisoar": {"kind": "switch", "role": odd}}}
    path = put(tmp_path / "a.json", json.dumps({"devices": [device, {**device, "name": "true"}]}))
    text = site_yaml(read_source(path), site="mine").text
    data = load_yaml(put(tmp_path / "fabric.yaml", text)).data
    assert list(data["devices"]) == [f"le{odd}", "true"]
    assert data["devices"][f"le{odd}"]["role"] == odd
