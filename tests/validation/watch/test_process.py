"""The command as a service runs it: one at a time, stopped by signals, killed at any moment."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from fabric.provisioning.plan import make_plan
from fabric.provisioning.provision import provision
from fabric.reach.collect import read_states
from fabric.reach.hostssh import close_hosts
from fabric.reach.switchssh import close_switches
from fabric.twin.lifecycle import break_fabric, down, up
from validation.certificates import certificate
from validation.certificates.certify import certify
from validation.gate import open_gate_quickly
from validation.run import run_suites
from validation.watch.reading import reading_path


@contextlib.contextmanager
def running(site, *options):
    """A watch of this site in the background; it is gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "paisoar", "watch", "-f", site.path, "--interval", "1s", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def url_of(process):
    for line in process.stderr:
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise AssertionError("the watch ended before it served anything")


def scraped(url, name):
    with urllib.request.urlopen(url) as answer:
        lines = answer.read().decode().splitlines()
    return [line for line in lines if line.startswith(name)]


def wait_for(what):
    while not what():
        time.sleep(0.1)


def value_of(line):
    return float(line.rsplit(" ", 1)[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_cleanly(site, number):
    with running(site, "--listen", "127.0.0.1:0", "--json") as process:
        url = url_of(process)
        # No twin is up: every device is unread, and the watch goes on all the same.
        wait_for(lambda: value_of(scraped(url, "paisoar_watch_rounds_total{")[0]) >= 1)
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert len(json.loads(out)["unread"]) == len(site.devices)
    assert "Traceback" not in err


def test_killed_it_leaves_a_whole_reading_and_can_start_again(site):
    with running(site) as process:
        wait_for(reading_path(site).exists)
        process.kill()
        process.wait()
    before = reading_path(site).read_bytes()
    half = reading_path(site).with_name(".reading.dsse.json.1.partial")
    half.write_bytes(before[:100])
    with running(site) as process:
        wait_for(lambda: reading_path(site).read_bytes() != before)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0
    assert not half.exists()


def test_a_second_watch_is_refused_and_names_the_first(site):
    with running(site, "--listen", "127.0.0.1:0") as first:
        url_of(first)
        with running(site) as second:
            _, err = second.communicate()
        assert second.returncode == 3
        assert f"process {first.pid}" in err


def test_what_cannot_be_watched_is_bad_input(site):
    for options in (["--interval", "10ms"], ["--on-drift", "shrug"], ["--listen", "nowhere"]):
        with running(site, *options) as process:
            _, err = process.communicate()
        assert process.returncode == 2, err


@pytest.mark.slow
def test_the_watch_of_a_twin_revokes_when_a_port_is_broken(site):
    up(site)
    try:
        provision(site, make_plan(site, read_states(site)))
        signed = certify(site, run_suites(site))
        textfile = site.path.with_name("paisoar.prom")
        options = ("--listen", "127.0.0.1:0", "--textfile", str(textfile))
        with running(site, *options) as process:
            url = url_of(process)
            wait_for(lambda: scraped(url, "paisoar_certificate_valid"))
            assert value_of(scraped(url, "paisoar_certificate_valid")[0]) == 1
            assert scraped(url, "paisoar_port_transmit_packets_total")
            hosts = site.topology.hosts
            assert open_gate_quickly(site, hosts, max_age_s=3600).certificate_id == signed.id
            break_fabric(site, "pfc-off")
            wait_for(lambda: value_of(scraped(url, "paisoar_certificate_valid")[0]) == 0)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate()
        assert process.returncode == 0, err
        assert "drift: leaf1 Ethernet1/1: pfc_priorities: 3 -> none" in err
        shown = certificate.show(site)
        assert shown.reason == "revoked"
        assert "leaf1 Ethernet1/1" in shown.message
        assert "paisoar_certificate_valid" in textfile.read_text()
        once = subprocess.run(
            [sys.executable, "-m", "paisoar", "watch", "-f", site.path, "--once", "--json"],
            capture_output=True,
            text=True,
            env=os.environ,
            check=False,
        )
        assert once.returncode == 1
        assert json.loads(once.stdout)["reason"] == "revoked"
    finally:
        close_switches()
        close_hosts()
        down(site.path)
