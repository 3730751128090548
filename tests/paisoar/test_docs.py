"""What README and docs tell to type exists: every command, and every option of it."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from paisoar.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_COMMAND = re.compile(r"(?:`|^)(?:\.venv/bin/)?paisoar ([^`\n#]*)", re.MULTILINE)
_OPTION = re.compile(r"--[a-z][a-z-]*|-[a-z]")


def commands(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    return [found[1].split() for found in _COMMAND.finditer(text)]


def what_is_wrong(words):
    command = get_command(app)
    rest = list(words)
    while rest and hasattr(command, "commands") and not rest[0].startswith("-"):
        if rest[0] not in command.commands:
            return f"no command {rest[0]}"
        command = command.commands[rest.pop(0)]
    known = {"--help", *(o for p in command.params for o in (*p.opts, *p.secondary_opts))}
    asked = {word.partition("=")[0] for word in rest}
    unknown = {word for word in asked if _OPTION.fullmatch(word)} - known
    return f"no option {sorted(unknown)}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_the_documentation_exists(page):
    wrong = {" ".join(words): why for words in commands(page) if (why := what_is_wrong(words))}
    assert wrong == {}


def test_the_walk_of_the_readme_is_looked_at():
    seen = {words[0] for words in commands(ROOT / "README.md")}
    assert {"init", "check", "plan", "provision", "audit", "validate", "certify", "train"} <= seen


def test_what_does_not_exist_is_found():
    assert what_is_wrong(["nosuch"]) == "no command nosuch"
    assert "--nosuch" in what_is_wrong(["plan", "--nosuch"])
