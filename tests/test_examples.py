"""What lies in examples/ works as it stands."""

from pathlib import Path

import pytest

from fabric.site import load_site

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_an_example_site_is_valid(path):
    assert load_site(path).topology.endpoints
