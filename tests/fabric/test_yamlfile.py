"""Files that are no fabric.yaml: each is refused with its place, quickly and in our words."""

import os
import time
import warnings

import pytest

from fabric.errors import InputError, InputFaultsError
from fabric.site import load_site
from fabric.textfile import MAX_FILE_BYTES, read_text
from fabric.yamlfile import load_yaml
from tests.sites import write_site


def refused(path):
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError) as caught:
            load_site(path)
    assert time.process_time() - begun < 5
    assert str(path) in caught.value.message
    assert "Traceback" not in caught.value.message
    return caught.value


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
)
WRONG = {
    "a number of 5000 digits": (f"a: 1\nb: {'9' * 5000}\n", 2, "digits"),
    "a date that is none": ("a: 1\nb: 2026-13-45\n", 2, "month"),
    "3000 brackets": (f"a: 1\nb: {'[' * 3000}{']' * 3000}\n", 2, "deep"),
    "3000 open brackets": (f"a: 1\nb: {'[' * 3000}\n", 2, "deep"),
    "3000 dashes": (f"a: 1\nb:\n  {'- ' * 3000}x\n", 3, "deep"),
    "3000 indents": ("\n".join(f"{' ' * n}a:" for n in range(3000)), 51, "deep"),
    "a billion laughs": (BOMB, 7, "aliases"),
    "an alias of itself": ("&r\na: 1\nb: *r\n", None, "itself"),
    "an anchor twice": ("a: &x 1\nb: &x 2\nc: *x\n", 2, "anchor"),
    "a key twice": ("a: 1\nb: 1\na: 2\n", 3, "duplicate"),
    "a NUL byte": ("a: 1\nb: \0\n", 2, "byte 0x00"),
    "YAML of old": ("%YAML 1.1\n---\na: 1e3\n", None, "dot"),
    "two documents": ("a: 1\n---\nb: 1\n", 2, "single document"),
    "an unknown alias": ("a: 1\nb: *c\n", 2, "alias"),
    "no mapping": ("- a\n", 1, "mapping"),
    "nothing": ("", 1, "mapping"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_no_site_has_is_refused_with_its_line(tmp_path, wrong):
    text, line, words = WRONG[wrong]
    path = tmp_path / "fabric.yaml"
    path.write_text(text)
    error = refused(path)
    assert words in error.message
    assert error.line == line


def test_binary_files_and_other_encodings_are_named(tmp_path):
    path = tmp_path / "fabric.yaml"
    path.write_bytes(b"a: 1\n\x7fELF\x02\x01")
    assert refused(path).line == 2
    path.write_bytes("a: 1\nb: größe\n".encode("latin-1"))
    error = refused(path)
    assert (error.line, "UTF-8" in error.message) == (2, True)
    path.write_bytes("a: 1\n".encode("utf-16"))
    assert "UTF-8" in refused(path).message or "0x00" in refused(path).message


def test_a_mark_at_the_beginning_of_utf8_is_no_fault(tmp_path):
    path = write_site(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_site(path).name == "test"


def test_folders_huge_files_and_forbidden_ones_are_named(tmp_path):
    assert "is a folder" in refused(tmp_path).message
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(200 * 2**20)
    assert "larger than 64 MiB" in refused(huge).message
    assert "no such file" in refused(tmp_path / "none.yaml").message
    assert "paisoar init" in refused(tmp_path / "none.yaml").advice
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    with pytest.raises(InputError, match="levels of symbolic links|cannot be read"):
        read_text(loop)
    assert MAX_FILE_BYTES == 64 * 2**20


def test_a_name_that_no_file_can_have_is_refused():
    from pathlib import Path

    with pytest.raises(InputError, match="cannot be read"):
        read_text(Path("a\0b"))
    with pytest.raises(InputError, match="too long"):
        read_text(Path("x" * 5000))


def test_a_pipe_is_read_as_a_file(tmp_path):
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("a: 1\n"))
    writer.start()
    assert load_yaml(pipe).data["a"] == 1
    writer.join()


def test_a_hexadecimal_number_without_end_is_no_fault_of_ours(tmp_path):
    path = write_site(tmp_path)
    text = path.read_text()
    path.write_text(text.replace("priority: 3", f"priority: 0x{'f' * 5000}", 1))
    error = refused(path)
    assert "priority: 3" in text.splitlines()[error.line - 1]
    assert len(error.message) < 500


def test_merged_keys_have_the_line_of_what_they_are_merged_into(tmp_path):
    path = write_site(tmp_path)
    text = path.read_text()
    path.write_text(
        text.replace("    tcp:\n", "    tcp: &tcp\n").replace(
            "devices:\n", "devices:\n  odd:\n    <<: *tcp\n    more: 1\n", 1
        )
    )
    error = refused(path)
    assert any("devices.odd" in fault.key for fault in error.faults)


def test_every_mistake_is_said_ordered_by_line(tmp_path):
    path = write_site(tmp_path)
    text = path.read_text()
    text = text.replace("kmin: 100KB", "kmin: 100", 1)
    text = text.replace("valid_hours: 168", "valid_hours: 0")
    text = text.replace("os: nxos", "os: vxworks", 1)
    text = text.replace("family: mlx5", "family: mlx9", 1)
    text = text.replace("a: 'leaf1:Ethernet1/1'", "a: 'leaf7:Ethernet1/1'", 1)
    path.write_text(text)
    error = refused(path)
    assert isinstance(error, InputFaultsError)
    lines = [fault.line for fault in error.faults]
    assert lines == sorted(lines)
    keys = [fault.key for fault in error.faults]
    assert keys[:2] == ["intent.profiles.25G.kmin", "certify.valid_hours"]
    assert set(keys[2:]) == {
        "devices.leaf1.os",
        "devices.host1.nics.ens1f0.family",
        "cables[0].a",
    }
    for fault in error.faults:
        assert f"{path}:{fault.line}: {fault.key}: " in error.message


def test_all_mistakes_of_one_rule_book_are_said(tmp_path):
    path = write_site(tmp_path)
    text = path.read_text()
    text = text.replace("priority: 6", "priority: 3", 1).replace("dscp: [48]", "dscp: [26]", 1)
    text = text.replace("percent: 50}}\n\n  # Thr", "percent: 40}}\n\n  # Thr", 1)
    text = text.replace("xon: 140KB", "xon: 150KB", 1)
    path.write_text(text.replace("priority: 0", "priority: 3", 1))
    with pytest.raises(InputError) as caught:
        load_site(path)
    assert "xon (150000 B) must be below xoff" in caught.value.message
    path.write_text(path.read_text().replace("xon: 150KB", "xon: 140KB", 1))
    keys = [fault.key for fault in refused(path).faults]
    assert keys.count("intent.classes.cnp.dscp") == 1
    assert keys.count("intent.classes.cnp.priority") == 1
    assert keys.count("intent.classes.tcp.priority") == 1


def test_many_mistakes_are_cut_for_people_and_whole_for_programs(tmp_path):
    from fabric.topology import ClosShape

    path = write_site(tmp_path, ClosShape(64, 4, 2))
    path.write_text(path.read_text().replace("family: mlx5", "family: mlx9"))
    error = refused(path)
    assert len(error.faults) == 64
    assert error.message.count("\n") == 51
    assert "14 more" in error.message
