"""Settings that have another name now."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from muarl.basics.errors import ConfigError
from muarl.config.load import dump_config, load_config
from muarl.config.renamed import RENAMED, new_name, translated
from muarl.config.rollout import RolloutConfig
from muarl.config.sections import RunConfig, fields_of
from muarl.runs.config_changes import changes
from muarl.runs.own_settings import own_settings

OLD = {"max_turns": 7, "tokens_per_turn": 99, "max_tool_errors": 3, "concurrency": 5, "pack_tokens": 4000}


def old_run(folder: Path) -> Path:
    """A run's folder as an older muarl left it."""
    values = yaml.safe_load(dump_config(load_config("quickstart", ["rl.steps=4"])))
    del values["rollout"], values["learner"]["pack_tokens"]
    values["rl"] |= OLD
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(values))
    (folder / "status.json").write_text('{"command": "train"}')
    step = folder / "checkpoints" / "rl" / "step-000004"
    step.mkdir(parents=True)
    (step / "config.json").write_text('{"max_position_embeddings": 4096}')
    return folder


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_is_an_error_that_says_the_new_one(tmp_path: Path, old: str, new: str) -> None:
    values: object = 5
    for name in reversed(old.split(".")):
        values = {name: values}
    file = tmp_path / "config.yaml"  # a person's own, in no run's folder
    file.write_text(yaml.safe_dump(values))
    with pytest.raises(ConfigError, match=f"config.yaml: {old} is now {new}"):
        load_config(file)
    with pytest.raises(ConfigError, match=f"override '{old}=5': {old} is now {new}"):
        load_config("quickstart", [f"{old}=5"])


def test_every_new_name_is_a_setting_and_no_old_one_is() -> None:
    known = {name for name, _, _ in fields_of(RunConfig)}
    assert set(RENAMED.values()) <= known
    assert not set(RENAMED) & known


def test_settings_below_a_renamed_section_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muarl.config.renamed.RENAMED", {"world": "domain", "a.b": "c.d.e"})
    assert new_name("world.size") == "domain.size" and new_name("worlds.size") is None
    assert translated({"world": {"size": "tiny"}, "a": {"b": 1, "x": 2}, "c": {"y": 3}}) == {
        "domain": {"size": "tiny"},
        "a": {"x": 2},
        "c": {"y": 3, "d": {"e": 1}},
    }


def test_a_renamed_setting_of_a_renamed_section_is_found() -> None:
    assert new_name("sft.habits.slip") == "sft.error_profile.wrong_id"
    assert new_name("sft.habits.guess") == "sft.error_profile.guess"
    assert translated({"sft": {"steps": 2, "habits": {"slip": 0.1, "guess": 0.2}}}) == {
        "sft": {"steps": 2, "error_profile": {"guess": 0.2, "wrong_id": 0.1}}
    }


def test_of_both_names_the_new_one_counts() -> None:
    both = {"rl": {"max_turns": 7, "steps": 1}, "rollout": {"max_turns": 9}}
    assert translated(both) == {"rl": {"steps": 1}, "rollout": {"max_turns": 9}}


class TestTheFolderOfAnOldRun:
    def test_is_read_with_its_names_translated(self, tmp_path: Path) -> None:
        config = load_config(old_run(tmp_path / "old"))
        assert config.rollout == RolloutConfig(max_turns=7, tokens_per_turn=99, max_tool_errors=3, concurrency=5)
        assert (config.learner.pack_tokens, config.rl.steps) == (4000, 4)

    def test_differs_from_a_resumed_run_in_nothing(self, tmp_path: Path) -> None:
        run = old_run(tmp_path / "old")
        assert changes(run, load_config(run)) == {}
        longer = load_config(run, ["rl.steps=9", "rollout.concurrency=6"])
        assert changes(run, longer) == {"rl.steps": (4, 9), "rollout.concurrency": (5, 6)}

    def test_brings_its_limits_along_to_an_evaluation(self, tmp_path: Path) -> None:
        values = own_settings(str(old_run(tmp_path / "old"))).values
        assert (values["rollout.tokens_per_turn"], values["rollout.max_turns"]) == (99, 7)


def test_a_run_that_knew_of_no_choice_kept_thoughts(tmp_path: Path) -> None:
    """So it is resumed, evaluated and served as it was trained; a person's own file has the default."""
    folder = old_run(tmp_path / "old")
    values = yaml.safe_load((folder / "config.yaml").read_text())
    values["model"] |= {"thinking": True}
    del values["model"]["earlier_thoughts"]
    (folder / "config.yaml").write_text(yaml.safe_dump(values))
    config = load_config(folder / "config.yaml")
    assert config.model.earlier_thoughts == "keep"
    assert "model.earlier_thoughts" not in changes(folder, config)
    own = own_settings(str(folder))
    assert own.values["model.earlier_thoughts"] == "keep" and "earlier thoughts kept" in own.describe()
    values["model"] |= {"earlier_thoughts": "family"}
    (folder / "config.yaml").write_text(yaml.safe_dump(values))
    assert own_settings(str(folder)).values["model.earlier_thoughts"] == "family"
    assert translated({"model": {"thinking": False}}) == {"model": {"thinking": False}}
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: quickstart\nmodel: {thinking: true}\n")
    assert load_config(mine).model.earlier_thoughts == "family"
