"""Line editors share what they know of keys that print themselves."""

import pytest
from asyncssh.editor import SSHLineEditor

from fabric.twin.cli.printable import share_printable


@pytest.fixture
def library(monkeypatch):
    """The library's own way, which is put back afterwards."""
    monkeypatch.setattr(SSHLineEditor, "_build_printable", SSHLineEditor._build_printable)
    return SSHLineEditor._build_printable


def editor(keys):
    made = SSHLineEditor.__new__(SSHLineEditor)
    made._keymap = dict.fromkeys(keys)
    return made


def printable(made):
    made._build_printable()
    return made._printable


def test_each_set_of_keys_is_looked_through_once_and_found_as_by_the_library(library):
    looked = []

    def counted(made):
        looked.append(frozenset(made._keymap))
        library(made)

    SSHLineEditor._build_printable = counted
    share_printable()
    share_printable()
    for keys in ("\t", "\t?", "\t", "\t?"):
        expected = editor(keys)
        library(expected)
        assert printable(editor(keys)) == expected._printable
    assert looked == [frozenset("\t"), frozenset("\t?")]
    assert printable(editor("\t?")).match("ab?c")[0] == "ab"
