"""A resumed run knows the file of code that it was started with, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import dump_config, load_config
from muarl.config.sections import RunConfig
from muarl.config.trust import remember
from muarl.environments import registry
from muarl.runs.context import open_run
from muarl.runs.own_code import approve_remembered, code_to_remember


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(registry, "_approved", set())


@pytest.fixture
def reference(tmp_path: Path) -> str:
    """A file of code that the person has named on the command line."""
    (tmp_path / "clinic.py").write_text("CLINIC = 1\n")
    return registry.approve(f"{tmp_path / 'clinic.py'}:CLINIC")


def config_of(*names: str, folder: Path) -> RunConfig:
    named = ", ".join(f"{{name: '{name}'}}" for name in names)
    return load_config("cpu", [f"domain=[{named}]", f"runs_dir={folder / 'runs'}", "name=mine"])


def started(config: RunConfig) -> Path:
    """The folder of a run that began, in a process that has ended."""
    with open_run(config) as run:
        pass
    registry._approved.clear()
    return run.path


def test_its_file_may_be_imported_again(reference: str, tmp_path: Path) -> None:
    config = config_of(reference, folder=tmp_path)
    run = started(config)
    approve_remembered(load_config(run / "config.yaml").environments, run)
    assert registry.approved() == (reference,)


def test_of_several_each_is_known(reference: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("SHOP = 1\n")
    shop = registry.approve(f"{tmp_path / 'shop.py'}:SHOP")
    config = config_of(reference, "retail-generated", shop, folder=tmp_path)
    approve_remembered(config.environments, started(config))
    assert registry.approved() == (reference, shop)


def test_a_file_that_has_changed_must_be_named_again(reference: str, tmp_path: Path) -> None:
    config = config_of(reference, folder=tmp_path)
    run = started(config)
    (tmp_path / "clinic.py").write_text("CLINIC = 2\n")
    with pytest.raises(ConfigError, match=rf"clinic\.py has changed .* add --domain {reference}"):
        approve_remembered(config.environments, run)
    assert registry.approved() == ()
    registry.approve(reference)
    approve_remembered(config.environments, run)  # named: nothing to ask
    remember(run / "config.yaml", code_to_remember(config.environments))  # as a run does that goes on
    registry._approved.clear()
    approve_remembered(config.environments, run)
    assert registry.approved() == (reference,)


def test_a_file_that_is_gone_is_named(reference: str, tmp_path: Path) -> None:
    config = config_of(reference, folder=tmp_path)
    run = started(config)
    (tmp_path / "clinic.py").unlink()
    with pytest.raises(ConfigError, match=r"there is no file .*clinic\.py.*--domain FILE\.py:CLINIC"):
        approve_remembered(config.environments, run)


def test_a_run_cannot_name_other_code_than_it_was_started_with(reference: str, tmp_path: Path) -> None:
    run = started(config_of(reference, folder=tmp_path))
    (tmp_path / "other.py").write_text("OTHER = 1\n")
    for name in (f"{tmp_path / 'other.py'}:OTHER", "some_package.clinic:CLINIC"):
        changed = config_of(name, folder=tmp_path)
        (run / "config.yaml").write_text(dump_config(changed))
        approve_remembered(load_config(run / "config.yaml").environments, run)
        assert registry.approved() == ()
        with pytest.raises(ConfigError, match="if you trust it, name it yourself"):
            registry.find(name)


def test_a_folder_of_somebody_elses_approves_nothing(reference: str, tmp_path: Path) -> None:
    config = config_of(reference, folder=tmp_path)
    moved = started(config).rename(tmp_path / "theirs")
    approve_remembered(config.environments, moved)
    assert registry.approved() == ()


def test_what_was_not_approved_is_not_remembered(reference: str, tmp_path: Path) -> None:
    registry._approved.clear()
    assert code_to_remember(config_of(reference, folder=tmp_path).environments) == {}
