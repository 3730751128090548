"""What takes a TCP connection and is no SSH server is said in our words."""

import socket
import threading

import pytest

import fabric.reach.switchlogin
from fabric.errors import UnreachableError
from fabric.reach.access import Access
from fabric.reach.switchssh import switch_session


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", "it took the connection and said nothing of SSH for 1 s"),
        (b"SSH-2.0-mute\r\n", "it took the connection and said nothing of SSH for 1 s"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "what listens there does not speak SSH"),
    ],
)
def test_a_port_without_ssh_is_named_with_seconds_and_a_next_step(
    tmp_path, monkeypatch, capfd, said, words
):
    monkeypatch.setattr(fabric.reach.switchlogin, "CONNECT_TIMEOUT_S", 1.0)
    (tmp_path / "known_hosts").touch()
    kept = []

    def serve(listener):
        connection, _ = listener.accept()
        kept.append(connection)
        if said:
            connection.sendall(said)
        if said.startswith(b"HTTP"):
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        access = Access("127.0.0.1", port, "me", tmp_path / "known_hosts", password="x")
        with (
            pytest.raises(UnreachableError) as caught,
            switch_session("leaf1", access, "cisco_nxos"),
        ):
            pass
    for connection in kept:
        connection.close()
    assert caught.value.message == f"leaf1: log in over SSH to 127.0.0.1:{port} as me: {words}"
    assert f"ssh -p {port} me@127.0.0.1" in caught.value.advice
    assert "aramiko" not in caught.value.message
    assert capfd.readouterr().err == ""
