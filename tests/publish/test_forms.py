"""What the three forms of published folders hold."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from muarl.basics.version import __version__
from muarl.environments.registry import find, load_task
from muarl_tools.publish import forms
from muarl_tools.publish.contents import Contents
from muarl_tools.publish.folder import Content
from muarl_tools.publish.forms import FORMS
from muarl_tools.publish.measuring import EnvironmentFigures, measure
from muarl_tools.publish.own_files import OwnFiles
from support.publishing import small_wheel


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    environment = find("bank-generated")
    return Contents(
        environment=environment,
        own=None,
        size="tiny",
        tasks=5,
        seed=7,
        measured=measure(environment, size="tiny", tasks=5, seed=7),
        license="apache-2.0",
        wheel=small_wheel(tmp_path_factory.mktemp("wheel")),
        licenses={"LICENSE": b"", "NOTICE": b""},
    )


@pytest.fixture(scope="module")
def own(bank: Contents) -> Contents:
    """The same, as if it were a person's own."""
    files = {"my bank.py": Path("my bank.py"), "data/rates.csv": Path("rates.csv")}
    about = replace(bank.environment, name="Our-Bank", about='Says "hello" \\ and\n"""more"""', sizes=())
    copied = OwnFiles("my bank.py", "BANK", files, packages=["rates>=2"])
    return replace(bank, own=copied, environment=about, license="unknown")


def text(files: dict[str, Content], name: str) -> str:
    found = files[name]
    assert isinstance(found, str)
    return found


def front_matter(card: str) -> dict[str, Any]:
    _, matter, _ = card.split("---\n", 2)
    found: dict[str, Any] = yaml.safe_load(matter)
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("whose", ["bank", "own"])
def test_every_form_has_a_card_a_wheel_an_episode_and_code_that_parses(
    form: str, whose: str, request: pytest.FixtureRequest
) -> None:
    it: Contents = request.getfixturevalue(whose)
    files = FORMS[form](it)
    assert f"wheels/{it.wheel.name}" in files and {"LICENSE", "NOTICE"} <= files.keys()
    card = text(files, "README.md")
    for score in it.measured.scores:
        assert (
            f"| {score.agent} | {score.success:.1%} | {score.interval[0]:.1%} to" in card and f"| {score.n} |" in card
        )
    assert f"{len(it.measured.prompt.policy)} characters" in card and it.license in card
    assert all(tool["function"]["name"] in card for tool in it.measured.prompt.tools)
    assert re.search(r"\{[{%]|[%}]\}", card) is None and "\n\n\n" not in card
    episode = json.loads(text(files, "episode.json"))
    assert episode["reward"] == 1.0 and load_task(episode["task"]).id.startswith("bank")
    assert episode["split"] == "test" and isinstance(episode["index"], int)
    for name, content in files.items():
        if name.endswith(".py") and isinstance(content, str):
            ast.parse(content, name, feature_version=(3, 11))
        if name.endswith(".toml"):
            tomllib.loads(str(content))


def test_openenv_has_manifest_server_client_and_container(bank: Contents) -> None:
    files = FORMS["openenv"](bank)
    manifest = yaml.safe_load(text(files, "openenv.yaml"))
    assert manifest["name"] == "muarl_bank_generated" and manifest["app"] == "server.app:app"
    assert manifest["validation"]["task_distribution"] == {"generator_seed": 7}
    matter = front_matter(text(files, "README.md"))
    assert (matter["sdk"], matter["app_port"], matter["license"]) == ("docker", 8000, "apache-2.0")
    project = tomllib.loads(text(files, "pyproject.toml"))["project"]
    assert project["dependencies"] == ["openenv>=0.10,<0.11"]
    assert project["optional-dependencies"]["server"] == [f"muarl=={__version__}"]
    assert 'make_app(ENVIRONMENT, split="train", size="tiny")' in text(files, "server/app.py")
    assert "COPY --chown=user . ." in text(files, "server/Dockerfile")


def test_verifiers_has_a_package_with_load_environment(bank: Contents) -> None:
    files = FORMS["verifiers"](bank)
    project = tomllib.loads(text(files, "pyproject.toml"))
    assert project["project"]["name"] == "muarl-bank-generated"
    assert project["project"]["dependencies"] == ["verifiers>=0.4,<0.5", f"muarl=={__version__}"]
    module = ast.parse(text(files, "muarl_bank_generated/__init__.py"))
    assert "load_environment" in [node.name for node in module.body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("with_pyarrow", [True, False])
def test_a_data_set_has_a_row_for_each_task(
    bank: Contents, with_pyarrow: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if with_pyarrow:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    else:
        monkeypatch.setattr(forms, "find_spec", lambda name: None)
    files = FORMS["hf-dataset"](bank)
    card = text(files, "README.md")
    (config,) = front_matter(card)["configs"]
    assert [part["split"] for part in config["data_files"]] == ["train", "validation", "test"]
    for part in config["data_files"]:
        content = files[part["path"]]
        assert isinstance(content, bytes)
        rows = rows_of(content, tmp_path)
        tasks = bank.environment.make_tasks(part["split"], 5, size="tiny", seed=7)
        assert [row["id"] for row in rows] == [task.id for task in tasks]
        assert [load_task(row["task"]).id for row in rows] == [task.id for task in tasks]
        for row, task in zip(rows, tasks, strict=True):
            assert row["scenario"] == task.scenario and row["policy"] == bank.measured.prompt.policy
            assert json.loads(row["tools"]) == list(bank.measured.prompt.tools)
            assert [call["name"] for call in json.loads(row["actions"]) or ()] == [a.name for a in task.actions or ()]


def test_a_data_set_of_fixed_tasks_has_their_splits_by_names_that_hubs_take(bank: Contents) -> None:
    tasks = bank.environment.make_tasks("test", 3)
    fixed = replace(bank.environment, name="fixed-bank", tasks={"held-out": tasks, "empty": []}, sizes=())
    files = FORMS["hf-dataset"](
        replace(bank, environment=fixed, size=None, tasks=2, measured=figures(bank, "held-out"))
    )
    assert [name.partition(".")[0] for name in files if name.startswith("data/")] == ["data/held_out"]
    card = text(files, "README.md")
    assert "held-out (3 tasks), empty (0 tasks)" in card and "- `held_out`: 2 tasks" in card and "| size |" not in card


def figures(bank: Contents, split: str) -> EnvironmentFigures:
    return replace(bank.measured, split=split)


def rows_of(content: bytes, folder: Path) -> list[dict[str, str]]:
    if content.startswith(b"PAR1"):
        from pyarrow import parquet

        (folder / "rows.parquet").write_bytes(content)
        found: list[dict[str, str]] = parquet.read_table(folder / "rows.parquet").to_pylist()
        return found
    return [json.loads(line) for line in content.splitlines()]


def test_own_files_lie_beside_the_code_that_loads_them(own: Contents) -> None:
    for form, folder, code in (
        ("openenv", "server/environment", "server/app.py"),
        ("verifiers", "muarl_our_bank/environment", "muarl_our_bank/__init__.py"),
        ("hf-dataset", "environment", "smoke.py"),
    ):
        files = FORMS[form](own)
        assert {f"{folder}/my bank.py", f"{folder}/data/rates.csv"} <= files.keys()
        assert '"environment" / "my bank.py"' in text(files, code) and ':BANK"' in text(files, code)
        assert f"(in `{folder}`): their author has not said" in text(files, "README.md")
        assert form == "hf-dataset" or '"rates>=2"' in text(files, "pyproject.toml")
