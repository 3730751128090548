"""Where in an inventory something was told, for complaints that name the line.

Ansible tags what it reads with file and line (``Origin`` in ansible-core 2.19,
``ansible/_internal/_datatag/_tags.py``); names in an INI file carry no tag.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from fabric.errors import InputError
from fabric.saved.tables import Origin
from fabric.textfile import read_text


def origin_of(path: Path, value: object) -> Origin:
    """Where this value of the inventory stands; the inventory alone where nobody knows."""
    from ansible._internal._datatag._tags import (  # noqa: PLC0415 - a second to import
        Origin as Tag,
    )

    tag = Tag.get_tag(value)
    if tag is None or not tag.path:
        return Origin(path)
    base = path if path.is_dir() else path.parent
    file = Path(tag.path)
    if file.is_relative_to(base.resolve()):
        file = base / file.relative_to(base.resolve())
    return Origin(file, tag.line_num)


def origin_of_host(path: Path, name: str, files: Iterable[Path]) -> Origin:
    """Where this host is named first: a line that begins with it, in INI."""
    origin = origin_of(path, name)
    if origin.line is not None:
        return origin
    for file in files:
        for number, line in enumerate(read_text(file).splitlines(), start=1):
            if line.split(maxsplit=1)[:1] == [str(name)]:
                return Origin(file, number)
    return origin


def refuse_wrong_yaml(files: Iterable[Path]) -> None:
    """InputError at the line that is no YAML, in the first file that has one."""
    for file in files:
        try:
            for _document in YAML().compose_all(read_text(file)):
                pass
        except MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark is not None else None
            problem = (error.problem or "it is no YAML").splitlines()[0]
            raise InputError(f"Ansible cannot read it: {problem}", file=file, line=line) from None
