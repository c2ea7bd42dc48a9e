"""What the base reads, in a real environment, and all stages in small."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.environments.configure import places_of
from muarl.environments.registry import find
from muarl.learning.checkpoints import load_policy
from muarl.learning.packing import Sample
from muarl.observe.progress import Progress
from muarl.observe.rundir import RunDirectory
from muarl.types.episode import Episode
from muarl_tools.experiments.reproduce import base
from muarl_tools.experiments.reproduce.plan import base_folder, stages

ALREADY = "finished before"


@pytest.fixture(scope="module")
def config() -> RunConfig:
    """The base's stage, reading two environments."""
    two = "reproduce.read=[retail-generated, hotel-generated]"
    small = ["reproduce.rl=[retail-generated]", two, "base.conversations=24", "reproduce.materials=12"]
    return stages(load_config("reproduce-smoke", small), [0])[0].config


@pytest.fixture(scope="module")
def read(config: RunConfig) -> list[Episode]:
    return made(config)


def made(config: RunConfig) -> list[Episode]:
    with Progress() as progress:
        return base.conversations(
            config.base, config.user, config.reproduce.materials, places_of(config, with_rl=False), progress
        )


def test_wandering_agents_call_real_tools_with_real_arguments(read: list[Episode]) -> None:
    calls = dict.fromkeys(("retail-generated", "hotel-generated"), 0)
    for episode in read:
        world = find(str(episode.tags["domain"]))
        known = world.make_domain("tiny").tool_names()
        for call in (call for m in episode.messages if m.role == "assistant" for call in m.tool_calls):
            assert call.name in known
            calls[world.name] += 1
        said = [m.content or "" for m in episode.messages if m.role == "tool"]
        assert not any("argument" in text.lower() for text in said), said
    assert len(read) == 24 and all(count > 10 for count in calls.values())


def test_the_same_settings_give_the_same_conversations(config: RunConfig, read: list[Episode]) -> None:
    def shown(episodes: list[Episode]) -> list[Any]:
        return [(e.task_id, e.stop, [m.content for m in e.messages]) for e in episodes]

    assert shown(made(config)) == shown(read)


def test_an_eighth_of_what_is_read_are_drills() -> None:
    found = base.drills(70, list(range(100)), seed=1)
    assert len(found) == 10 and found[0] == base.drills(70, list(range(100)), seed=1)[0]


def test_some_of_the_others_tokens_are_learnt_with_the_weight_of_all_and_every_token_of_the_agent() -> None:
    read = [(Sample.supervised(list(range(2000)), [n % 4 == 0 for n in range(2000)], 0.1),)]
    (thinned,) = base.thinned(read, seed=1)[0]
    agent, others = thinned.weights[::4], [w for n, w in enumerate(thinned.weights) if n % 4]
    assert thinned.ids == read[0][0].ids and set(agent) == {1.0}
    assert set(others) == {0.0, 0.1 / base.OTHERS_LEARNT}
    assert sum(others) == pytest.approx(0.1 * len(others), rel=0.15)
    assert base.thinned(read, seed=1) == [(thinned,)] != base.thinned(read, seed=2)


def test_a_base_that_reads_words_knows_the_tools_names_by_them(
    config: RunConfig, read: list[Episode], tmp_path: Path
) -> None:
    reads_words = config.model_copy(update={"base": config.base.model_copy(update={"words": True})})
    base._make_start(reads_words.base, reads_words.reproduce, tmp_path, read)
    policy = load_policy(tmp_path)
    assert policy.model.config.max_position_embeddings == 4096
    names = {call.name for e in read for m in e.messages for call in m.tool_calls}
    tokens = {name: policy.tokenizer.tokenize(name) for name in names}
    assert len(names) > 10 and all("_" in found for found in tokens.values()), tokens
    whole = [word for name in names for word in name.split("_") if len(policy.tokenizer.tokenize(word)) == 1]
    assert len(whole) > 0.9 * sum(len(name.split("_")) for name in names)


def test_an_environment_without_expert_cannot_be_read(config: RunConfig) -> None:
    wanted = config.reproduce.model_copy(update={"read": ("tau2-retail",)})
    with pytest.raises(ConfigError, match=r"reproduce.read: tau2-retail has no scripted expert"):
        base.check_environments(wanted.read)


@pytest.mark.slow
def test_all_stages_and_the_page_by_one_command(tmp_path: Path) -> None:
    words = ["reproduce", "--config", "reproduce-smoke", "--seeds", "0", "--runs-dir", str(tmp_path)]
    words += ["reproduce.read=[retail-generated, hotel-generated]", "reproduce.rl=[retail-generated]"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    root = tmp_path / "reproduce-smoke"
    summary = json.loads((root / "base" / "summary.json").read_text())
    assert set(summary["wandering"]) == {"retail-generated", "hotel-generated"} and summary["vocabulary"] > 1000
    assert (root / "both-0" / "checkpoints" / "rl" / "step-000002").is_dir()
    tables = (root / "reproduce.md").read_text()
    assert "8 of 8 stages are finished" in tables and "| both |" in tables

    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0 and again.output.count(ALREADY) == 8, again.output
    (root / "rl-0" / "status.json").write_text('{"state": "interrupted", "command": "train"}')
    page = CliRunner().invoke(app, [*words, "--page-only"])
    assert page.exit_code == 0, page.output
    assert "7 of 8 stages are finished" in (root / "reproduce.md").read_text()
    other = CliRunner().invoke(app, [*words, "rl.lr=0.5"])
    assert other.exit_code == 2 and "begun with other settings" in other.output


@pytest.mark.slow
def test_a_base_that_was_killed_becomes_the_same(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "CHECKPOINT_EVERY", 2)
    longer = config.base.model_copy(update={"steps": 4})
    model = config.model.model_copy(update={"checkpoint": str(tmp_path / "base" / "start")})
    wanted = config.model_copy(update={"base": longer, "runs_dir": tmp_path, "model": model})
    folder = base.run(wanted)
    weights = base_folder(folder) / "model.safetensors"
    whole = weights.read_bytes()
    shutil.rmtree(base_folder(folder))
    shutil.rmtree(folder / "checkpoints" / "step-000004")
    (folder / "status.json").write_text('{"state": "interrupted"}')
    assert base.run(wanted.model_copy(update={"resume": folder})) == folder
    assert weights.read_bytes() == whole
    assert [row["step"] for row in RunDirectory.at(folder).read_metrics()] == [0, 1, 2, 3]


def test_no_page_without_runs(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["reproduce", "--page-only", "--runs-dir", str(tmp_path)])
    assert found.exit_code == 2 and "there are no runs" in found.output
