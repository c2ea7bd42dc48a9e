"""The skills for coding agents do what they say: files are written, commands run, in order, in an empty folder.

What a skill's text asks for is done to the letter: a block after "Write `NAME`:" becomes that file, other blocks of
Python and of the shell are run by ``python`` and ``bash``. A paragraph after a block that begins with "Expect:" quotes
what is printed. A heading that ends in "(needs MODULE)" begins a section that only an installed MODULE makes possible.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from support.command_lines import check

SKILLS = (
    "make-an-environment", "train-an-agent", "judge-a-result", "audit-a-user-simulator", "play-in-another-trainer",
)  # fmt: skip
LONGEST = 900
"""Seconds that a block may take on a slow machine."""

PARTS = re.compile(
    r"^## (?P<heading>[^\n]*)$|^```(?P<kind>\w+)\n(?P<text>.*?)^```$|^Expect: (?P<expected>.*?)\n\n", re.M | re.S
)
WRITE = re.compile(r"Write `([^`]+)`:\n\n$")
NEEDS = re.compile(r"\(needs `(\w+)`\)$")


@dataclass(frozen=True)
class Block:
    """One block of a skill. ``file``: what it is written to, empty for one that is run."""

    kind: str
    text: str
    file: str
    needs: str
    """The module without which its section cannot be done; empty for none."""
    expected: tuple[str, ...]
    """What its output must hold, but for the width of spaces."""


def text_of(repository: Path, skill: str) -> str:
    return (repository / "skills" / skill / "SKILL.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """The blocks of a skill, in order."""
    made: list[Block] = []
    needs = ""
    for part in PARTS.finditer(text + "\n\n"):
        if part["heading"] is not None:
            module = NEEDS.search(part["heading"])
            needs = module[1] if module else ""
        elif part["expected"] is not None:
            assert made, "what is expected has no block before it"
            last = made.pop()
            made.append(
                Block(last.kind, last.text, last.file, last.needs, tuple(re.findall(r"`([^`]+)`", part["expected"])))
            )
        else:
            written = WRITE.search(text, 0, part.start())
            made.append(Block(part["kind"], part["text"], written[1] if written else "", needs, ()))
    return made


def plain(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())


def environment(folder: Path) -> dict[str, str]:
    """What the commands of a skill see: muarl first on the path, and a state folder of their own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUARL_")}
    own = {"XDG_STATE_HOME": str(folder / ".state"), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    return kept | own | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def follow(block: Block, folder: Path) -> None:
    """Do what a block says. Fails with what it printed if it ends with an error, or prints something else."""
    if block.file:
        (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.file).write_text(block.text, encoding="utf-8")
        return
    command = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}[block.kind]
    # What a block leaves running in the background (a server) must not outlive it: it has a group of its own.
    process = subprocess.Popen(
        [*command, block.text], cwd=folder, env=environment(folder), text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        printed, _ = process.communicate(timeout=LONGEST)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, f"{block.text}\nended with {process.returncode}:\n{printed}"
    missing = [words for words in block.expected if plain(words) not in plain(printed)]
    assert not missing, f"{block.text}\ndid not print {missing}:\n{printed}"


def command_lines(text: str) -> Iterator[str]:
    """The command lines of muarl in a skill: those of its blocks, and those in its sentences."""
    for block in blocks(text):
        if block.kind == "bash":
            whole = re.sub(r"\\\n\s*", " ", block.text)
            yield from (line.strip() for line in whole.splitlines() if line.strip().startswith("muarl "))
    yield from (found for found in re.findall(r"`(muarl [^`]+)`", text) if re.search(r" --| \.?/", found))


def taken(line: str) -> str:
    """A command line without what belongs to the shell alone."""
    return re.sub(r"( \|.*| 2?>&?\d? ?\S+| &)+$", "", line)


@pytest.mark.parametrize("skill", SKILLS)
def test_it_is_a_skill(repository: Path, skill: str) -> None:
    text = text_of(repository, skill)
    _, front, body = text.split("---\n", 2)
    assert yaml.safe_load(front).keys() == {"name", "description"}
    assert yaml.safe_load(front)["name"] == skill
    assert 40 <= len(text.splitlines()) <= 100
    assert all(len(line) <= 120 for line in text.splitlines() if not line.startswith(("|", "description:")))
    assert any(block.expected for block in blocks(text)), "an agent can check what came of it"
    named = set(re.findall(r"`(docs/[\w/-]+\.md)`", body))
    assert named and [name for name in named if not (repository / name).is_file()] == []


def test_these_are_all_skills(repository: Path) -> None:
    assert sorted(path.parent.name for path in repository.glob("skills/*/SKILL.md")) == sorted(SKILLS)


@pytest.mark.parametrize("skill", SKILLS)
def test_its_command_lines_are_taken(
    repository: Path, skill: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = text_of(repository, skill)
    for name in re.findall(r"(\S+\.py):[A-Z]", text):
        path = Path(name.lstrip("`"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    lines = [taken(line) for line in command_lines(text)]
    assert lines
    for line in lines:
        check(" ".join(shlex.quote(word) for word in shlex.split(line)))


@pytest.mark.slow
@pytest.mark.parametrize("skill", SKILLS)
def test_it_does_what_it_says(repository: Path, skill: str, tmp_path: Path) -> None:
    wanted = [block for block in blocks(text_of(repository, skill)) if not block.needs]
    assert len(wanted) >= 3
    for block in wanted:
        follow(block, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["trl", "verifiers"])
def test_it_plays_in_another_trainer(repository: Path, module: str, tmp_path: Path) -> None:
    wanted = [block for block in blocks(text_of(repository, "play-in-another-trainer")) if block.needs == module]
    assert wanted
    for needed in (module, "datasets") if module == "trl" else (module,):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed: pip install 'muarl[{module}]'")
    for block in wanted:
        follow(block, tmp_path)


def test_a_text_is_read_as_it_stands() -> None:
    text = (
        "## A\n\nWrite `a/b.txt`:\n\n```text\nhello\n```\n\n"
        "## B (needs `trl`)\n\n```bash\necho x\n```\n\nExpect: `x  y`, `z`\n\nMore.\n"
    )
    assert blocks(text) == [
        Block("text", "hello\n", "a/b.txt", "", ()),
        Block("bash", "echo x\n", "", "trl", ("x  y", "z")),
    ]


def test_what_is_not_printed_or_ends_with_an_error_is_noticed(tmp_path: Path) -> None:
    follow(Block("bash", "echo one   two", "", "", ("one two",)), tmp_path)
    with pytest.raises(AssertionError, match="did not print"):
        follow(Block("bash", "echo one", "", "", ("two",)), tmp_path)
    with pytest.raises(AssertionError, match="ended with 1"):
        follow(Block("bash", "false\necho one", "", "", ()), tmp_path)
