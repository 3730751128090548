"""Sites and fake fabrics for the tests of validation."""

import shutil

import pytest

from tests.sites import make_site
from tests.validation.fake import FakeFabric
from validation.certificates.certificate import ids, read
from validation.certificates.certify import certify
from validation.results.store import latest_run
from validation.run import run_suites


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch):
    for name in ("PAISOAR_DATABASE_URL", "PAISOAR_SIGNING_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site(tmp_path):
    """Four hosts, two leaves, one spine."""
    return make_site(tmp_path)


@pytest.fixture
def fabric(site):
    return FakeFabric(site)


@pytest.fixture(scope="session")
def measured_once(tmp_path_factory):
    """What a run of all suites over a sound fabric leaves behind."""
    made = FakeFabric(make_site(tmp_path_factory.mktemp("measured")))
    run_suites(made.site, readers=made.readers(), probe=made.probe)
    return made


@pytest.fixture(scope="session")
def signed_once(tmp_path_factory, measured_once):
    """The same with a certificate."""
    made = FakeFabric(make_site(tmp_path_factory.mktemp("signed")))
    shutil.copytree(measured_once.site.state_dir, made.site.state_dir)
    certify(made.site, latest_run(made.site), reader=made.read_states)
    return made


@pytest.fixture
def measured(site, measured_once):
    """A complete run of all suites, in this test's own folder."""
    shutil.copytree(measured_once.site.state_dir, site.state_dir)
    return latest_run(site)


@pytest.fixture
def signed(site, signed_once):
    """A certificate of a sound fabric, in this test's own folder."""
    shutil.copytree(signed_once.site.state_dir, site.state_dir)
    return read(site, ids(site)[-1])
