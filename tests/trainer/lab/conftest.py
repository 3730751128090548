"""The test that ends a guest comes after all others."""

LAST = "test_killed_guest.py"


def pytest_collection_modifyitems(items):
    """Others keep their order."""
    items.sort(key=lambda item: item.path.name == LAST)
