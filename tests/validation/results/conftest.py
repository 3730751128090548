"""The store on SQLite and on a real PostgreSQL."""

import os
import secrets

import pytest
from sqlalchemy import create_engine, make_url, text

from tests.validation.results.postgresql import Server, programs
from validation.results.database import DATABASE_VARIABLE

MISSING = "PostgreSQL is not installed: apt-get install postgresql"


@pytest.fixture(scope="session")
def server():
    binaries = programs()
    if binaries is None:
        # Where the tests have installed it, its absence is a fault.
        assert "PAISOAR_TEST_POSTGRESQL" not in os.environ, MISSING
        pytest.skip(MISSING)
    made = Server(binaries)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def postgresql(server, monkeypatch):
    """An empty database, named in the environment; returns its URL."""
    name = f"t{secrets.token_hex(6)}"
    admin = make_url(server.url).set(drivername="postgresql+psycopg")
    engine = create_engine(admin, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    url = make_url(server.url).set(database=name).render_as_string(hide_password=False)
    monkeypatch.setenv(DATABASE_VARIABLE, url)
    return url
