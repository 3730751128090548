"""Sessions of an emulated host through the real OpenSSH client."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.fabric.twin.host.server import serve


@pytest.fixture
def served(host, tmp_path):
    with serve(host, tmp_path / "ssh") as served:
        yield served


def test_a_command_runs_at_home_on_the_host_with_its_own_status(served):
    done = served.run("hostname; uname -n; pwd; echo ~ $USER; exit 7")

    home = str(served.host._home)
    assert done.stdout.decode().split("\n")[:4] == ["host1", "host1", home, f"{home} root"]
    assert done.returncode == 7


def test_bytes_pass_unchanged_and_errors_apart(served):
    blob = os.urandom(300_000)

    done = served.run("cat; echo 'Zürich' >&2", stdin=blob)

    assert done.stdout == blob
    assert done.stderr.decode() == "Zürich\n"


def test_a_terminal_has_the_hosts_prompt_and_status(served):
    done = served.run("", stdin=b"tty\nexit 5\n", tty=True)

    shown = done.stdout.decode()
    assert "root@host1:~# " in shown
    assert "/dev/pts/" in shown
    assert done.returncode == 5


def test_programs_that_debian_links_through_etc_alternatives_run(served):
    assert served.out("echo lossless | awk '{print length($1)}'") == "8\n"


def test_sessions_at_once_share_one_view(served):
    with ThreadPoolExecutor(4) as pool:
        names = list(pool.map(lambda i: served.out(f"echo {i} >> ~/log; hostname"), range(4)))

    assert names == ["host1\n"] * 4
    assert sorted(served.out("cat ~/log").split()) == ["0", "1", "2", "3"]


def test_files_travel_by_sftp_into_the_hosts_own_view(served, tmp_path):
    (tmp_path / "file").write_text("from outside\n")
    batch = f"put {tmp_path}/file /etc/from-sftp\nput {tmp_path}/file at-home\n"
    options = served.options()
    options[options.index("-p")] = "-P"
    login = options.index("-l")
    del options[login : login + 2]
    subprocess.run(
        ["sftp", "-q", "-b", "-", *options, f"{served.host.user}@127.0.0.1"],
        input=batch,
        text=True,
        check=True,
        capture_output=True,
        timeout=30,
    )

    assert served.out("cat /etc/from-sftp ~/at-home") == "from outside\n" * 2
    assert not Path("/etc/from-sftp").exists()


def test_a_client_that_goes_away_takes_its_command_with_it(served):
    client = subprocess.Popen(
        ["ssh", *served.options(), "127.0.0.1", "echo here; sleep 271828"],
        stdout=subprocess.PIPE,
    )
    assert client.stdout is not None
    assert client.stdout.readline() == b"here\n"
    assert _running("271828")

    client.kill()
    client.wait()
    client.stdout.close()

    assert _gone("271828")


def test_nothing_is_left_when_the_daemon_is_killed(tmp_path, site):
    daemon = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(f"""
                import subprocess, sys, time
                from pathlib import Path
                from fabric.site import load_site
                from fabric.twin.host import EmulatedHost
                from fabric.twin.host.namespace import Namespace
                site = load_site(Path({str(site.path)!r}))
                host = EmulatedHost("host1", Path({str(tmp_path)!r}) / "host1", site)
                namespace = Namespace("host1", host._binds)
                command = "nohup sleep 314159 >/dev/null 2>&1 & sleep 314160"
                subprocess.Popen([*namespace.command, "sh", "-c", command])
                time.sleep(0.3)
                print("up", flush=True)
                time.sleep(60)
            """),
        ],
        stdout=subprocess.PIPE,
    )
    assert daemon.stdout is not None
    assert daemon.stdout.readline() == b"up\n"
    assert _running("314159")

    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    daemon.stdout.close()

    assert _gone("314159")
    assert _gone("314160")


def _running(argument: str) -> bool:
    return _becomes(argument, running=True)


def _gone(argument: str) -> bool:
    return _becomes(argument, running=False)


def _becomes(argument: str, *, running: bool) -> bool:
    """Whether ``sleep ARGUMENT`` comes to run, or to an end, within five seconds."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        if running == (["sleep", argument] in lines):
            return True
        time.sleep(0.05)
    return False
