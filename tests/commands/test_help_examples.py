"""Every example of every command's help is a command line that muarl takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.environments import registry
from support.command_lines import check, commands, suggested

EXAMPLES = sorted({line for _, command in commands() for line in suggested(command.help or "")})
FILES = ("clinic.py", "zoo/zoo.py", "my_package/clinic.py", "my_package/__init__.py")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that examples name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_approved", set())
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    for name in ("mine.yaml", "people.yaml"):
        (tmp_path / name).write_text("extends: cpu\n")
    for name in ("tasks.json", "logged.jsonl"):
        (tmp_path / name).write_text("")


def test_every_command_has_examples() -> None:
    without = [name for name, command in commands() if not suggested(command.help or "")]
    assert not without and len(EXAMPLES) > 120


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_is_taken(line: str, here: None) -> None:
    check(line)
