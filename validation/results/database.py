"""Opening the results database: SQLite beside the site, or what PAISOAR_DATABASE_URL names.

PostgreSQL goes through psycopg, whether the URL says so or not. No password is ever
part of a name that is shown.
"""

from __future__ import annotations

import sqlite3

from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from fabric.errors import InputError, ToolError

DATABASE_VARIABLE = "PAISOAR_DATABASE_URL"
_POSTGRESQL = ("postgres", "postgresql")
_SECRETS = ("password", "passfile", "sslpassword")
# A server that does not answer must not be waited for as long as TCP does.
_CONNECT_TIMEOUT_S = 10


def open_database(url: str | URL) -> tuple[str, Engine]:
    """A database that was named, and how to call it: its file, or its URL without secrets.

    InputError where it is no URL that SQLAlchemy knows, ToolError where its driver is not
    installed.
    """
    try:
        parsed = make_url(url)
        if parsed.drivername in _POSTGRESQL:
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.drivername == "postgresql+psycopg":
            engine = create_engine(
                parsed, pool_pre_ping=True, connect_args=_connect_arguments(parsed)
            )
        else:
            engine = create_engine(parsed)
    except ImportError as error:
        raise ToolError(
            f"the results database cannot be opened: {first_line(error)}",
            advice="Its driver is not installed. For PostgreSQL: "
            "pip install 'paisoar[postgresql]'.",
        ) from error
    except (SQLAlchemyError, ValueError) as error:
        raise InputError(
            f"this names no database: {first_line(error)}",
            key=DATABASE_VARIABLE,
            advice="Give a SQLAlchemy URL, as postgresql://USER@HOST/DATABASE, or unset it for "
            "SQLite.",
        ) from error
    if engine.dialect.name != "sqlite":
        return shown(parsed), engine
    event.listen(engine, "connect", _prepare_sqlite)
    return str(engine.url.database), engine


def shown(url: URL) -> str:
    """A URL without its secrets, wherever in it they are."""
    hidden = url.set(query={k: "***" if k in _SECRETS else v for k, v in url.query.items()})
    return hidden.render_as_string()


def _connect_arguments(url: URL) -> dict[str, int]:
    return {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_TIMEOUT_S}


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # WAL survives a crash at any moment and lets a report read while a run writes;
    # with it, NORMAL may lose the last commit on a power cut, but never consistency.
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0]
