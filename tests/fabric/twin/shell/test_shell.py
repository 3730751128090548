"""The emulated shell: bash's language as far as people type it on a switch."""

from __future__ import annotations

import pytest

from fabric.twin.shell.session import Answer, Shell
from fabric.twin.shell.tools import tools


def shell(user: str = "admin") -> Shell:
    files = {"/etc/motd": "one\ntwo\nthree\n"}
    programs = tools(lambda: "leaf1", lambda: files, user)
    programs["who"] = lambda call: Answer(f"{call.words} {call.root}\n")
    return Shell(user, lambda: "leaf1", programs)


@pytest.mark.parametrize(
    ("line", "text", "status"),
    [
        ("echo a 'b  c' \"d\"", "a b  c d\n", 0),
        ("echo '' a", " a\n", 0),
        ("cat /etc/motd | grep -v two | wc -l", "2\n", 0),
        ("cat /etc/motd | grep T", "", 1),
        ("cat /etc/motd | grep -i T | head -1", "two\n", 0),
        ("cat /etc/motd | tail -n 1", "three\n", 0),
        ("true && echo yes || echo no", "yes\n", 0),
        ("false && echo yes; false || echo no", "no\n", 0),
        ("echo a >/dev/null; echo b 2>/dev/null", "b\n", 0),
        ("uname; uname -n", "Linux\nleaf1\n", 0),
        ("", "", 0),
        ("# a comment", "", 0),
        ("sudo whoami; whoami", "root\nadmin\n", 0),
        ("nonsense", "-bash: nonsense: command not found\n", 127),
        ("sudo nonsense", "sudo: nonsense: command not found\n", 1),
        ("cat /etc/shadow", "cat: /etc/shadow: No such file or directory\n", 1),
        ("echo a > /etc/motd", "-bash: /etc/motd: Permission denied\n", 2),
        ("echo 'a", "-bash: unexpected EOF while looking for matching `''\n", 2),
        ("| grep a", "-bash: syntax error near unexpected token `|'\n", 2),
        ("echo a |", "-bash: syntax error: unexpected end of file\n", 2),
        ("echo $(uname)", "-bash: syntax error near unexpected token `('\n", 2),
    ],
)
def test_lines(line: str, text: str, status: int):
    assert shell().execute(line) == Answer(text, status)


def test_a_shell_becomes_root_and_back():
    session = shell()
    assert session.prompt == "admin@leaf1:~$ "
    session.execute("sudo -s")
    assert session.prompt == "root@leaf1:/home/admin# "
    assert session.execute("who").text == "('who',) True\n"
    session.execute("exit")
    assert session.prompt == "admin@leaf1:~$ "
    assert not session.closed
    session.execute("exit")
    assert session.closed


def test_root_is_root_from_the_start():
    session = shell("root")
    assert session.prompt == "root@leaf1:~# "
    assert session.execute("sudo who x").text == "('who', 'x') True\n"
