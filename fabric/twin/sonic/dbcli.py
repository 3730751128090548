"""``sonic-db-cli``: what Redis answers.

Source: sonic-net/sonic-swss-common sonic-db-cli/sonic-db-cli.cpp.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence

from fabric.twin.shell.session import FAILED, Answer, Call
from fabric.twin.sonic.configdb import ConfigDb

_USAGE = "usage: sonic-db-cli [-h] [-s] [-n NAMESPACE] db_or_op [cmd [cmd ...]]\n"
_DATABASES = ("APPL_DB", "ASIC_DB", "COUNTERS_DB", "CONFIG_DB", "STATE_DB")


def _hset(database: ConfigDb, words: Sequence[str]) -> str | None:
    if len(words) < 3 or len(words) % 2 == 0:
        return None
    return str(database.write(words[0], dict(zip(words[1::2], words[2::2], strict=True))))


def _hdel(database: ConfigDb, words: Sequence[str]) -> str | None:
    return str(database.remove_fields(words[0], words[1:])) if len(words) > 1 else None


def _del(database: ConfigDb, words: Sequence[str]) -> str | None:
    return str(sum(database.remove(key) for key in words)) if words else None


def _hget(database: ConfigDb, words: Sequence[str]) -> str | None:
    return database.rows.get(words[0], {}).get(words[1], "") if len(words) == 2 else None


def _hgetall(database: ConfigDb, words: Sequence[str]) -> str | None:
    return str(database.rows.get(words[0], {})) if len(words) == 1 else None


def _exists(database: ConfigDb, words: Sequence[str]) -> str | None:
    return str(sum(key in database.rows for key in words)) if words else None


def _keys(database: ConfigDb, words: Sequence[str]) -> str | None:
    if len(words) != 1:
        return None
    return "\n".join(fnmatch.filter(database.rows, words[0]))


_VERBS: dict[str, Callable[[ConfigDb, Sequence[str]], str | None]] = {
    "DEL": _del,
    "EXISTS": _exists,
    "HDEL": _hdel,
    "HGET": _hget,
    "HGETALL": _hgetall,
    "HSET": _hset,
    "KEYS": _keys,
}


def sonic_db_cli(database: ConfigDb, call: Call) -> Answer:
    """One command on CONFIG_DB; other databases are empty here."""
    words = call.arguments
    if words in (("PING",), ()):
        return Answer("PONG\n" if words else _USAGE)
    if words[0].startswith("-"):
        return Answer(f"Command Line Error: Unknown argument:{words[0]}\n{_USAGE}", FAILED)
    if words[0] not in _DATABASES:
        return Answer(f"Invalid database name input : '{words[0]}'\n", FAILED)
    if len(words) == 1:
        return Answer(_USAGE)
    verb = words[1].upper()
    if verb not in _VERBS:
        first = "".join(f" `{word}`," for word in words[2:3])
        return Answer(
            f"ERR unknown command `{words[1]}`, with args beginning with:{first} \n", FAILED
        )
    answer = _VERBS[verb](database if words[0] == "CONFIG_DB" else ConfigDb({}), words[2:])
    if answer is None:
        return Answer(f"ERR wrong number of arguments for '{verb.lower()}' command\n", FAILED)
    return Answer(f"{answer}\n")
