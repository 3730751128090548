"""Sites and fake fabrics for the tests of validation."""

import pytest

from tests.sites import make_site
from tests.validation.fake import FakeFabric


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
