"""A run folder from somebody else names code wherever it can; whoever looks at it, or goes on with it, imports none.

The code lies where it would be found: in the run's folder, in the current folder, under a whole path.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.environments import registry
from muarl_worlds import data
from support.marks import first_of
from support.viewing import make_run

EVIL = """
from pathlib import Path

Path({marker!r}).write_text("imported")
E = None
"""


@pytest.fixture(autouse=True)
def own_approvals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test approves counts for it alone; its modules and search path do, too."""
    monkeypatch.setattr(registry, "_approved", set())
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("evil", None)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that exists once somebody's code has run."""
    return tmp_path / "marker"


@pytest.fixture(params=["./evil.py:E", "evil:E", pytest.param("whole path", marks=pytest.mark.slow)])
def named(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """How the run names its code."""
    return f"{tmp_path / 'here' / 'evil.py'}:E" if request.param == "whole path" else str(request.param)


@pytest.fixture
def run(tmp_path: Path, marker: Path, named: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run folder. The current folder holds the same code, and Python would find it there."""
    here = tmp_path / "here"
    folder = make_run(here / "runs", "theirs").path
    for place in (here, folder):
        (place / "evil.py").write_text(EVIL.format(marker=str(marker)))
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))  # as `python -m` and PYTHONPATH=. do
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MUARL_DATA", str(data.home()))  # a domain made here keeps the place of its MCP server
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = load_config("quickstart", ["name=theirs"]).model_dump(mode="json")
    config["domain"]["name"] = named
    config["coldstart"]["scenarios"] = [named]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    (folder / "status.json").write_text(json.dumps({"state": "interrupted", "command": "train", "domain": named}))
    for lines in (folder / "tasks.jsonl", *(folder / "episodes").glob("*.jsonl")):
        text = lines.read_text().replace("retail-tiny", "evil-tiny")
        rows = [{**json.loads(line), "domain": named} for line in text.splitlines()]
        lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "audit-rules.yaml").write_text(yaml.safe_dump({"domain": named, "reads": ["get_order"]}))
    shutil.copytree(checkpoint_folder("base"), folder / "checkpoints" / "step-000001", dirs_exist_ok=True)
    return folder


def muarl(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


LOOKING = [
    ("audit", "RUN"),
    ("report", "RUN"),
    ("runs", "HERE/runs"),
    ("export", "RUN", "--as", "messages", "--out", "HERE/messages.jsonl"),
    ("export", "RUN", "--as", "csv", "--out", "HERE/table.csv"),
    ("export", "RUN", "--as", "hf", "--out", "HERE/exported"),
    ("domains",),
]
"""What works without the code of the run; for the pages of a run see the test of an episode's page."""

USING = [
    ("train", "--resume", "RUN"),
    ("train", "--resume", "RUN", "--dry-run"),
    ("quickstart", "--resume", "RUN"),
    ("eval", "--checkpoint", "RUN"),
    ("eval", "--checkpoint", "RUN", "--dry-run"),
    ("eval", "--resume", "RUN"),
    ("coldstart", "--resume", "RUN"),
    ("chat", "RUN"),
    ("plan", "RUN/config.yaml"),
    ("train", "--config", "RUN/config.yaml", "--name", "mine"),
    ("train", "--config", "RUN/config.yaml", "--name", "mine", "--dry-run"),
    ("seeds", "0", "train", "--config", "RUN/config.yaml"),
]
"""What needs it, and is refused."""


MOST_HIDDEN = first_of(["evil:E", "./evil.py:E", "whole path"])
"""Names of code, of which the first is found on Python's own search path."""


def given(arguments: tuple[str, ...], run: Path) -> list[str]:
    return [a.replace("RUN", str(run)).replace("HERE", str(run.parents[1])) for a in arguments]


def test_looking_at_a_run_imports_nothing(run: Path, marker: Path) -> None:
    for arguments in LOOKING:
        result = muarl(*given(arguments, run))
        assert not marker.exists(), arguments
        assert result.exit_code == 0, result.output


def test_going_on_with_a_run_names_what_to_add(run: Path, marker: Path) -> None:
    for arguments in USING:
        result = muarl(*given(arguments, run))
        assert not marker.exists(), arguments
        assert result.exit_code == 2, result.output
        said = " ".join(result.output.split())
        assert "--domain" in said or "--scenario" in said or "is a run of" in said, said


@pytest.mark.slow
@pytest.mark.parametrize("named", MOST_HIDDEN, indirect=True)
def test_an_episode_page_says_how_to_see_what_the_calls_changed(run: Path, marker: Path, named: str) -> None:
    assert muarl("view", run, "--export", "pages").exit_code == 0
    pages = " ".join(page.read_text() for page in Path("pages").rglob("*.html"))
    assert "Its environment is not loaded: give --domain" in pages
    assert not marker.exists()


@pytest.mark.parametrize("named", MOST_HIDDEN, indirect=True)
def test_files_of_tasks_and_conversations_import_nothing(run: Path, marker: Path, named: str) -> None:
    for arguments in (
        ("data", "overlap", "--training", "RUN/tasks.jsonl"),
        ("tasks", "show", "RUN/tasks.jsonl"),
        ("tasks", "confirm", "RUN/tasks.jsonl", "--clean"),
        ("tasks", "from-log", "RUN/episodes/eval-before.jsonl", "--out", "HERE/made.jsonl"),
        ("coldstart", "--check", "RUN"),
        ("audit", "RUN/episodes/eval-before.jsonl"),
        ("audit", "RUN/episodes/eval-before.jsonl", "--rules", "RUN/audit-rules.yaml"),
        ("train", "domain.tasks=RUN/tasks.jsonl", "--dry-run"),
        ("serve", "RUN/nothing"),
    ):
        result = muarl(*given(arguments, run))
        assert not marker.exists(), arguments
        assert result.exit_code in (0, 2), result.output


def test_the_checks_of_serve_import_nothing(run: Path, marker: Path) -> None:
    from muarl_tools.serve_model.recipe import ServeOptions, served_config, settings_told, tiny_hint

    options = ServeOptions(str(run), slots=1)
    served_config(options)
    assert tiny_hint(options) is not None
    settings_told(options)
    assert not marker.exists()


def test_what_the_person_names_is_imported(run: Path, marker: Path) -> None:
    result = muarl("eval", "--checkpoint", run, "--domain", "./evil.py:E", "--agent", "idle")
    assert marker.exists(), "the tests above would pass if it could not be imported at all"
    assert result.exit_code == 2
    assert "E is a NoneType, not an Environment" in result.output


@pytest.mark.parametrize("place", ["current folder", "beside", "library", "file", "installed"])
def test_a_configuration_may_refer_to_what_is_installed(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, configs, site = tmp_path / "here", tmp_path / "configs", tmp_path / "site"
    for folder in (here, configs, site):
        folder.mkdir()
    monkeypatch.chdir(here)
    for folder in (here, configs, site):
        monkeypatch.syspath_prepend(str(folder))
    where = {"current folder": here, "beside": configs, "installed": site, "file": configs}.get(place, tmp_path)
    marker = tmp_path / "marker"
    (where / "evil.py").write_text(EVIL.format(marker=str(marker)))
    name = {"library": "this:E", "file": "./evil.py:E"}.get(place, "evil:E")
    mine = configs / "mine.yaml"
    mine.write_text(yaml.safe_dump({"extends": "cpu", "domain": {"name": name}}))
    result = muarl("train", "--config", mine, "--dry-run")
    said = " ".join(result.output.split())
    assert result.exit_code == 2
    if place == "installed":
        assert marker.exists() and "not an Environment" in said, said
        return
    assert not marker.exists()
    wanted = f"--domain {configs / 'evil.py'}:E" if place == "file" else f"--domain {name}"
    assert f"{mine}: domain.name is {name}" in said and wanted in said, said
    if place != "library":
        muarl("train", "--config", mine, "--dry-run", *wanted.split())
        assert marker.exists(), "the remedy is one"
