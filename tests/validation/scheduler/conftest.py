"""A site with a certificate and a reading of the watch."""

import pytest

from tests.validation.readings import keep_reading


@pytest.fixture
def watched(fabric, signed):
    """The certified fabric, read just now."""
    keep_reading(fabric)
    return fabric
