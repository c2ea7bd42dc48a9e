"""What docs/tutorial.md shows works, in its order: data, tools, intents, checks, and a training in made worlds."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import IdleAgent
from muarl.cli.main import app
from muarl.environments import registry
from muarl.environments.play import evaluate


@pytest.fixture(scope="module")
def written(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("library")
    page = (repository / "docs" / "tutorial.md").read_text()
    (policy,) = re.findall(r"^```markdown\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    script, *code = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (folder / "policy.md").write_text(policy)
    (folder / "library.py").write_text("\n\n".join(code))
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, timeout=60)
    return folder


@pytest.fixture
def folder(written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(written)
    return written


def muarl(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


@pytest.mark.parametrize("name", ["LIBRARY", "PRACTICE"])
def test_the_expert_serves_the_members(name: str, folder: Path) -> None:
    found = registry.load_reference(f"{folder}/library.py:{name}")
    report = asyncio.run(evaluate(found, ExpertAgent(make=found.expert), tasks=20))
    assert report.success.value >= 0.98
    assert asyncio.run(evaluate(found, IdleAgent(), tasks=20)).success.value <= 0.15
    intents = {task.tags["intent"] for task in found.make_tasks("train", 150)}
    assert intents >= {"renew", "reserve", "due", "forbidden", "reserve_unavailable", "outside", "two_requests"}


def test_the_splits_share_no_member(folder: Path) -> None:
    found = registry.load_reference(f"{folder}/library.py:LIBRARY")
    sets = [{(t.agenda or {})["identity"]["email"] for t in found.make_tasks(s, 30)} for s in found.splits]
    assert not sets[0] & sets[1] and not sets[0] & sets[2] and not sets[1] & sets[2]


def test_the_commands_before_training(folder: Path) -> None:
    before = (folder / "library.sqlite").read_bytes()
    reference = "./library.py:LIBRARY"
    for command in (
        ("generate", reference, "--count", "10"),
        ("chat", "expert", "--domain", reference, "--user", "agenda"),
        ("eval", reference, "--agent", "expert", "--user", "agenda", "--tasks", "5", "eval.trials=1"),
        ("domains", "check", reference, "--tasks", "6"),
    ):
        done = muarl(*command)
        assert done.exit_code == 0, done.output
    assert (folder / "library.sqlite").read_bytes() == before


def test_a_name_with_a_hyphen_is_a_name_like_any_other(folder: Path) -> None:
    renamed = (folder / "library.py").read_text().replace('name = "library"', 'name = "city-library"')
    (folder / "city.py").write_text(renamed)
    assert registry.load_reference(f"{folder}/city.py:LIBRARY").make_tasks("test", 1)[0].id == "city-library-test-0-0"
    done = muarl("domains", "check", "./city.py:LIBRARY", "--tasks", "6")
    assert done.exit_code == 0, done.output
    assert "city-library, 6 test tasks" in done.output and "No problems." in done.output


@pytest.mark.slow
def test_the_made_worlds_pass_the_checks_too(folder: Path) -> None:
    done = muarl("domains", "check", "./library.py:PRACTICE", "--tasks", "60")
    assert done.exit_code == 0, done.output


def test_the_mistake_that_it_suggests_is_told(folder: Path) -> None:
    wrong = (folder / "library.py").read_text().replace('"get_loan"', '"get_lone"')
    (folder / "wrong.py").write_text(wrong)
    told = muarl("generate", "./wrong.py:LIBRARY")
    assert told.exit_code == 2
    said = " ".join(told.output.split())
    assert "did you mean 'get_loan'?" in said and "wrong.py, line " in said


@pytest.mark.slow
def test_training_in_the_made_worlds(folder: Path) -> None:
    reference = "./library.py:PRACTICE"
    small = ("base.steps=30", "base.conversations=300", "base.batch=8", "base.hidden=64")
    made = muarl("base", "--domain", reference, "--name", "library-base", *small)
    assert made.exit_code == 0, made.output
    less = ("sft.steps=4", "sft.demonstrations=64", "rl.steps=2", "rl.tasks_per_step=4", "rl.group_size=4")
    few = ("rl.eval_every=0", "eval.tasks=8", "model.checkpoint=runs/library-base")
    done = muarl("quickstart", "--domain", reference, "--name", "library", *less, *few)
    assert done.exit_code == 0, done.output
    assert (folder / "runs" / "library" / "report.html").is_file()
    registry._approved.clear()  # as in another process
    longer = muarl("quickstart", "--resume", "runs/library", "rl.steps=3")
    assert longer.exit_code == 0, longer.output
    for command in (("audit", "runs/library"), ("view", "runs/library", "--export", "pages")):
        found = muarl(*command, "--domain", reference)
        assert found.exit_code == 0, found.output
