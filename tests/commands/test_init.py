"""``muarl init``: a folder that runs at once, whole or not at all."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import IdleAgent
from muarl.cli import init
from muarl.cli.main import app
from muarl.environments import registry
from muarl.environments.play import evaluate


@pytest.fixture(autouse=True)
def own_approvals(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test approves counts for it alone."""
    monkeypatch.setattr(registry, "_approved", set())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def muarl(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


def last_line(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout.rstrip("\n").splitlines()[-1]


@pytest.mark.parametrize("name", ["zoo", pytest.param("garden_tours", marks=pytest.mark.slow), "Zoology2"])
def test_the_last_line_names_an_environment_that_works(name: str, here: Path) -> None:
    reference = last_line(muarl("init", name))
    assert reference == f"./{name}/{name}.py:{name.upper()}"
    found = registry.load_reference(reference)
    assert found.name == name
    report = asyncio.run(evaluate(found, ExpertAgent(make=found.expert), tasks=20))
    assert report.success.value >= 0.98
    assert asyncio.run(evaluate(found, IdleAgent(), tasks=50)).success.value <= 0.15
    assert set(found.sizes) == {"tiny", "small", "medium"}


def test_the_commands_that_it_names_work(here: Path) -> None:
    made = muarl("init", "zoo")
    commands = [line.split()[1:] for line in made.output.splitlines() if line.startswith("  muarl ")]
    assert [c[0] for c in commands] == ["generate", "chat", "eval", "domains"]
    for command in commands:
        more = {"generate": ("--count", "5"), "eval": ("eval.trials=1",), "domains": ("--tasks", "6")}.get(
            command[0], ()
        )
        done = muarl(*command, *more)
        assert done.exit_code == 0, done.output


def test_nothing_of_the_starter_is_left_in_another_name(here: Path) -> None:
    last_line(muarl("init", "garden_tours"))
    files = {file.name: file.read_text() for file in (here / "garden_tours").iterdir()}
    assert set(files) == {"policy.md", "README.md", "garden_tours.py", "test_garden_tours.py"}
    assert not [name for name, text in files.items() if "zoo" in text.lower()]
    assert "visitors of the garden tours" in files["policy.md"]
    assert "class GardenToursDesk(Domain)" in files["garden_tours.py"]


def test_one_with_documents_works_under_any_name(here: Path) -> None:
    reference = last_line(muarl("init", "--knowledge", "old_harbour"))
    assert reference == "./old_harbour/old_harbour.py:OLD_HARBOUR"
    found = registry.load_reference(reference)
    for size in (None, "small"):
        report = asyncio.run(evaluate(found, ExpertAgent(make=found.expert), tasks=15, size=size))
        assert report.success.value >= 0.98
    assert asyncio.run(evaluate(found, IdleAgent(), tasks=50)).success.value <= 0.15
    domain = found.make_domain("small")
    assert "book_winter_place_2283" not in domain.tool_names()
    assert {"KB_search", "grep", "call_discoverable_agent_tool"} <= set(domain.tool_names())
    assert {"winter/places", "fees/guest-nights-2025"} <= {one.id for one in domain.knowledge.documents}
    files = {file.name: file.read_text() for file in (here / "old_harbour").glob("**/*.*") if file.suffix != ".pyc"}
    assert not [name for name, text in files.items() if "marina" in f"{name} {text}".lower()]
    assert "boat owners of the old harbour" in files["policy.md"]


@pytest.mark.slow
def test_the_commands_that_it_names_work_for_one_with_documents(here: Path) -> None:
    made = muarl("init", "--knowledge", "harbour")
    commands = [line.split()[1:] for line in made.output.splitlines() if line.startswith("  muarl ")]
    more = {"generate": ("--count", "5"), "eval": ("eval.trials=1",), "domains": ("--tasks", "6")}
    for command in commands:
        done = muarl(*command, *more.get(command[0], ()))
        assert done.exit_code == 0, done.output
    assert "9 documents of" in done.output
    price = here / "harbour" / "documents" / "fees" / "guest-nights.md"
    price.write_text(re.sub(r"\$\d+", "$77", price.read_text()))
    found = registry.load_reference("./harbour/harbour.py:HARBOUR")
    told = {t.communicate_info for t in found.make_tasks("test", 30) if t.tags["intent"] == "guest_night"}
    assert told == {("77",)}  # right answers follow the document
    price.write_text("# Prices of guest nights\n\nNobody knows.")
    wrong = muarl("generate", "./harbour/harbour.py:HARBOUR", "--count", "5")
    said = " ".join(wrong.output.split())
    assert wrong.exit_code == 2
    assert "nothing in the document 'fees/guest-nights' matches" in said and "harbour.py, line " in said


def test_a_folder_can_be_named(here: Path) -> None:
    assert last_line(muarl("init", "zoo", "envs/my zoo")) == "./envs/my zoo/zoo.py:ZOO"
    whole = here / "whole"
    assert last_line(muarl("init", "zoo", whole)) == f"{whole}/zoo.py:ZOO"
    assert registry.load_reference(f"{whole}/zoo.py:ZOO").name == "zoo"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my zoo", "take a letter, then letters"),
        ("2zoo", "take a letter"),
        ("zoö", "take a letter"),
        ("../zoo", "take a letter"),
        ("json", "would hide the Python module json"),
        ("typer", "would hide the Python module typer"),
        ("muarl", "would hide the Python module muarl"),
        ("conftest", "taken for a test"),
        ("test_zoo", "taken for a test"),
        ("visitor", "calls something else VISITOR"),
        ("class", "word of Python"),
    ],
)
def test_a_name_that_cannot_be_a_module_is_refused(name: str, said: str, here: Path) -> None:
    refused = muarl("init", name)
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.split())
    assert not list(here.iterdir())


@pytest.mark.parametrize("starter", [init.ZOO, init.MARINA], ids=lambda starter: starter.name)
def test_what_is_taken_is_what_the_module_has(starter: init.Starter, repository: Path) -> None:
    tree = ast.parse((repository / "src/muarl/assets" / starter.folder / f"{starter.name}.py").read_text())
    names = {
        t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    }
    assert {name for name in names if name.isupper()} - {starter.name.upper()} == starter.taken


def test_nothing_is_overwritten(here: Path) -> None:
    for number, make in enumerate(
        (lambda p: p.mkdir(), lambda p: p.write_text("mine"), lambda p: p.symlink_to("gone"))
    ):
        target = here / f"there{number}"
        make(target)
        refused = muarl("init", "zoo", target)
        assert refused.exit_code == 2
        assert "there is something at" in refused.output
    assert (here / "there1").read_text() == "mine"
    assert not list((here / "there0").iterdir())


def test_nothing_is_left_half_written(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def full(path: Path, text: str, **more: Any) -> int:
        if path.name == "README.md":
            raise OSError(28, "No space left on device")
        return write(path, text, **more)

    monkeypatch.setattr(Path, "write_text", full)
    refused = muarl("init", "zoo")
    assert refused.exit_code in (1, 2)
    assert "disk is full" in refused.output or "free" in refused.output.lower()
    assert not list(here.iterdir())


def test_a_folder_without_permission_is_told(here: Path) -> None:
    (here / "file").write_text("")
    refused = muarl("init", "zoo", "file/zoo")
    assert refused.exit_code == 2
    assert "is not a folder" in refused.output
