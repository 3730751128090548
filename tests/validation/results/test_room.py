"""No room, or nothing that may be written: said with the path; what there was stays whole."""

import hashlib
import os
import resource
from contextlib import contextmanager

import pytest

from fabric.errors import InputError
from paisoar.commands.report import write
from paisoar.console import Ui
from validation.certificates import certificate, revocation
from validation.certificates.certify import certify
from validation.certificates.keys import signer, signing_key_path, trusted_keys
from validation.files import write_whole
from validation.results.store import Store, database_path, latest_run, list_runs
from validation.run import run_suites


@contextmanager
def room_for(count_bytes):
    """No file may grow beyond this; the system refuses it as it does where a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files(folder):
    """Every file with a hash; what SQLite keeps beside a database is its own."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "file"
    write_whole(path, b"before")
    with (
        room_for(100),
        pytest.raises(InputError, match=f"{path}: cannot be written: File too large") as error,
    ):
        write_whole(path, b"x" * 1000)
    assert error.value.exit_code == 2
    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file/under: cannot be written"):
        write_whole(tmp_path / "file" / "under", b"")


def test_validating_without_room_for_evidence_keeps_earlier_runs(fabric, measured):
    with (
        room_for(400),
        pytest.raises(InputError, match=r"results\.sqlite: .*|states\.json: cannot"),
    ):
        run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)
    assert list_runs(fabric.site)[0] == measured
    assert fabric.steps_carried == 0


def test_validating_without_room_for_the_results_leaves_no_complete_run(fabric, measured):
    states_bytes = (measured.folder / "states.json").stat().st_size

    def fill(flows):
        resource.setrlimit(resource.RLIMIT_FSIZE, (states_bytes, resource.RLIM_INFINITY))

    fabric.on_carry = fill
    with room_for(resource.RLIM_INFINITY), pytest.raises(InputError, match="cannot be"):
        run_suites(fabric.site, readers=fabric.readers(), probe=fabric.probe)
    runs = list_runs(fabric.site)
    assert runs[0] == measured
    assert [run.status for run in runs[1:]] == ["running"]
    assert not list(measured.folder.parent.rglob("*.partial"))


def test_certifying_without_room_leaves_neither_certificate_nor_states(fabric, measured):
    before = files(certificate.certificates_dir(fabric.site).parent)
    with room_for(10_000), pytest.raises(InputError, match="cannot be written"):
        certify(fabric.site, measured, reader=fabric.read_states)
    assert certificate.ids(fabric.site) == ()
    after = files(certificate.certificates_dir(fabric.site).parent)
    assert set(after) - set(before) <= {
        "certificates/revocations.dsse.json",
        "keys/revocations.high-water.json",
    }


def test_states_are_taken_back_where_the_certificate_finds_no_room(fabric, measured, monkeypatch):
    def no_certificate(path, data, mode=0o644):
        if path.name.startswith("cert-") and path.name.endswith(certificate.SUFFIX):
            raise InputError("cannot be written: No space left on device", file=path)
        write_whole(path, data, mode)

    monkeypatch.setattr("validation.certificates.certify.write_whole", no_certificate)
    with pytest.raises(InputError, match="No space left"):
        certify(fabric.site, measured, reader=fabric.read_states)
    assert list(certificate.certificates_dir(fabric.site).glob("cert-*")) == []


def test_revoking_without_room_changes_nothing(fabric, signed):
    before = files(fabric.site.state_dir)
    with (
        room_for(100),
        pytest.raises(InputError, match=r"revocations\.dsse\.json: cannot be written"),
    ):
        certificate.revoke(fabric.site, signed.id, "because")
    assert files(fabric.site.state_dir) == before
    assert certificate.verify(fabric.site) == signed
    assert revocation.load(fabric.site, trusted_keys(fabric.site)).sequence == 1


def test_a_key_is_made_whole_or_not_at_all(site):
    with room_for(20), pytest.raises(InputError, match="cannot be written"):
        signer(site)
    assert not signing_key_path(site).exists()
    made = signer(site).public_key.keyid
    assert signer(site).public_key.keyid == made
    assert {path.name for path in signing_key_path(site).parent.iterdir()} == {
        "ed25519.pem",
        "trusted",
    }


def test_a_report_without_room_leaves_the_earlier_one(fabric, measured):
    ui = Ui(as_json=True)
    answer = write(ui, fabric.site.path)
    folder = fabric.site.state_dir / "report"
    before = files(folder)
    assert answer.document["page"] == str(folder / "index.html")
    assert len(answer.document["tables"]) == len(before) - 1
    with (
        room_for(40_000),
        pytest.raises(InputError, match=f"{folder}: the report cannot be written"),
    ):
        write(ui, fabric.site.path)
    assert files(folder) == before
    assert {path.name for path in folder.iterdir()} == {"index.html", "tables"}


def test_results_that_may_not_be_written_are_still_read(fabric, measured, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    before = files(fabric.site.state_dir)
    assert latest_run(fabric.site) == measured
    with (
        Store(fabric.site) as store,
        pytest.raises(InputError, match=f"{database_path(fabric.site)}: .*readonly database"),
    ):
        store.save(measured)
    assert files(fabric.site.state_dir) == before
