"""What a checkpoint brings along: its run's settings, and nothing that could send or read anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muarl.backends.checkpoint_names import checkpoint_folder, checkpoint_name, existing_checkpoint, run_of
from muarl.backends.model_notes import NotedRun
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.config.load import load_config
from muarl.config.sections import DomainConfig
from muarl.learning.release import BENCHMARKS
from muarl.runs.own_settings import TAKEN, own_settings, reward_of, trained_on_benchmark
from support.trained import make_run

LARGE = (
    "domain.name=airline-generated", "domain.size=official", "model.max_context=32768", "model.thinking=true",
    "rollout.tokens_per_turn=1024", "rollout.max_turns=25",
)  # fmt: skip


@pytest.mark.parametrize("below", ["", "checkpoints", "checkpoints/last", "checkpoints/rl/step-000003"])
def test_a_run_brings_its_own_settings(tmp_path: Path, below: str) -> None:
    run = make_run(tmp_path / "mine", *LARGE)
    own = own_settings(str(run / below))
    assert own.values == {
        "domain.name": "airline-generated", "domain.size": "official", "model.max_context": 32768,
        "model.thinking": True, "model.earlier_thoughts": "family",
        "rollout.tokens_per_turn": 1024, "rollout.max_turns": 25, "rollout.max_tool_errors": 10,
    }  # fmt: skip
    assert own.describe() == (
        "Settings from the run mine: domain airline-generated, size official, context of 32,768 tokens, thinking, "
        "1,024 tokens a turn, 25 turns, 10 tool errors."
    )
    config = load_config("cpu", own.overrides())
    assert (config.domain.name, config.model.max_context, config.rollout.max_turns) == ("airline-generated", 32768, 25)


@pytest.mark.parametrize(
    ("rl", "reward"),
    [
        ({}, "outcome"),
        ({"layers": {"policy": 0.5}}, "layers"),
        ({"layers": {"gates": ["safety"]}, "shaping": {"format": 0.1}}, "shaping and layers"),
        ({"layers": {"policy": "much"}}, None),
        ({"layers": {"manners": 1}}, None),
    ],
)
def test_what_a_policy_learned_from_is_told_by_its_run(tmp_path: Path, rl: dict[str, Any], reward: str | None) -> None:
    run = make_run(tmp_path / "mine", rl=rl)
    assert reward_of(str(run / "checkpoints" / "rl" / "step-000003")) == reward
    assert reward_of("base") is None, "no reinforcement learning has made it"


@pytest.mark.parametrize(
    ("trained_on", "domains", "seen"),
    [
        (["tau1-retail"], ["tau1-retail"], True),
        (["tau1-retail"], ["tau2-retail"], True),
        (["tau1-retail"], ["tau2-airline", "tau2-retail"], True),
        (["tau1-retail"], ["tau2-airline", "bfcl-v3"], False),
        (["tau1-retail"], ["retail-generated"], False),
        (["nobody-knows", "./theirs.py:BENCH"], ["tau1-retail"], False),
        ([], ["tau1-retail"], False),
    ],
)
def test_a_score_on_tasks_that_were_trained_on_is_known(
    tmp_path: Path, trained_on: list[str], domains: list[str], seen: bool
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({BENCHMARKS: trained_on}))
    assert trained_on_benchmark(str(tmp_path), [DomainConfig(name=name) for name in domains]) is seen


def test_a_run_notes_the_benchmarks_that_it_trains_on(tmp_path: Path) -> None:
    for domain, benchmarks in (("tau1-airline", ("tau1-airline",)), ("airline-generated", ())):
        config = load_config("cpu", [f"domain.name={domain}", f"runs_dir={tmp_path}"])
        assert NotedRun.of(config).notes(["rl"]).benchmarks == benchmarks
    played = make_run(tmp_path / "played", "domain.name=tau2-retail")
    (played / "status.json").write_text("{}")
    config = load_config("cpu", [f"runs_dir={tmp_path}", f"sft.demonstrations_file={played / 'episodes.jsonl'}"])
    assert NotedRun.of(config).notes(["cold_start"]).benchmarks == ("tau2-retail",)
    assert NotedRun.of(config).notes(["rl"]).benchmarks == (), "it plays tasks of its own"


def test_nothing_that_reads_files_or_sends_keys_is_taken_from_a_run(tmp_path: Path) -> None:
    evil = {
        "domain": {"name": "retail-generated", "policy": "/etc/passwd", "tasks": "/etc/shadow"},
        "eval_user": {"kind": "llm", "endpoint": {"model": "m", "base_url": "http://evil", "api_key_env": "SECRET"}},
        "eval": {"agent": "endpoint", "judge": "endpoint:m@http://evil"},
        "model": {"checkpoint": "/elsewhere", "device": "cuda", "max_context": 999},
        "runs_dir": "/elsewhere",
        "extends": "/etc/hostname",
    }
    own = own_settings(str(make_run(tmp_path / "evil", **evil)))
    assert set(own.values) <= set(TAKEN)
    assert not {"domain.policy", "model.checkpoint"} & set(own.values)
    assert own.left == ("domain.policy", "domain.tasks")
    assert "Not used: domain.policy, domain.tasks" in own.describe()
    assert "evil" not in " ".join(own.overrides()) and "/e" not in " ".join(own.overrides())


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ({"domain": {"name": "club-generated"}}, "domain.name"),
        ({"domain": {"name": ["retail-generated"]}}, "domain.name"),
        ({"domain": {"size": "x" * 1000}}, "domain.size"),
        ({"model": {"max_context": "768; rm"}}, "model.max_context"),
        ({"model": {"max_context": -1}}, "model.max_context"),
        ({"model": {"thinking": "yes"}}, "model.thinking"),
        ({"rollout": {"tokens_per_turn": 2.5}}, "rollout.tokens_per_turn"),
    ],
)
def test_a_value_that_no_setting_has_is_named(tmp_path: Path, section: dict[str, Any], named: str) -> None:
    run = make_run(tmp_path / "odd", **section)
    with pytest.raises(ConfigError, match=rf"config\.yaml: {named} is .*{named}=VALUE.*--config") as caught:
        own_settings(str(run))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["[1, 2]", "a: &x [1]\nb: *x\n", "!!python/object:os.system {}", "a: " + "[" * 5000])
def test_a_hostile_configuration_is_refused(tmp_path: Path, text: str) -> None:
    run = make_run(tmp_path / "evil")
    (run / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        own_settings(str(run))


def test_a_folder_of_no_run_brings_what_its_model_reads(tmp_path: Path) -> None:
    for reads, context, turn in ((40960, 32768, 1024), (2048, 2048, 512)):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3", "max_position_embeddings": reads}))
        own = own_settings(str(tmp_path))
        assert own.values == {"model.max_context": context, "rollout.tokens_per_turn": turn}
        assert own.source == f"{tmp_path.name}/config.json"


@pytest.mark.parametrize(
    ("name", "domain"),
    [("base", "retail-generated"), ("base-airline", "airline-generated"), ("base-telecom", "telecom-generated")],
)
def test_shipped_checkpoints_bring_their_presets(name: str, domain: str) -> None:
    values = own_settings(name).values
    assert (values["domain.name"], values["model.max_context"], values["rollout.tokens_per_turn"]) == (domain, 2048, 64)


def test_the_checkpoint_of_several_worlds_brings_them_all() -> None:
    values = own_settings("base-worlds").values
    worlds = [domain.name for domain in load_config("worlds").domains]
    assert [one["name"] for one in values["domain.name"]] == worlds
    assert {one["size"] for one in values["domain.name"]} == {"tiny"}
    resolved = load_config("quickstart", own_settings("base-worlds").overrides())
    assert [domain.name for domain in resolved.domains] == worlds
    alone = own_settings("base-worlds", {"domain.name"})
    assert "domain.name" not in alone.values and alone.values["model.max_context"] == values["model.max_context"]


def test_agents_are_called_by_run_stage_and_step(tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine")
    folder = checkpoint_folder(str(run))
    assert run_of(folder) == run
    assert checkpoint_name(folder) == "mine (RL step 3)"
    assert checkpoint_name(folder, run=False) == "RL step 3"
    assert checkpoint_name(run / "checkpoints" / "step-000060") == "mine (SFT step 60)"
    assert checkpoint_name(run / "checkpoints" / "base") == "mine (base)"
    assert checkpoint_name(checkpoint_folder("base")) == "base"
    (tmp_path / "Qwen3-8B").mkdir()
    assert checkpoint_name(tmp_path / "Qwen3-8B") == "Qwen3-8B"


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("runs/quikstart", "did you mean runs/quickstart?"),
        ("runs/quickstart/checkpoints/rl/step-000004", "did you mean runs/quickstart/checkpoints/rl/step-000003"),
        ("bsae", "did you mean base?"),
        ("gpt-4o", "endpoint:gpt-4o"),
        ("claude-sonnet-4", "endpoint:claude-sonnet-4"),
        ("somewhere/else/entirely", "the path of a folder with config.json"),
        ("Qwen/Qwen3-8B", "hf download Qwen/Qwen3-8B"),
        ("endpoint:m@http://localhost:1", "as the agent (muarl eval --agent endpoint:MODEL@URL)"),
    ],
)
def test_a_checkpoint_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, hint: str) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("runs/quickstart"))
    with pytest.raises(CheckpointError) as caught:
        existing_checkpoint(spec)
    assert spec in str(caught.value) and hint in str(caught.value)


def test_what_a_person_has_said_is_not_looked_at(tmp_path: Path) -> None:
    run = make_run(tmp_path / "club", domain={"name": "club", "size": "tiny"})
    with pytest.raises(ConfigError, match="domain.name is 'club'"):
        own_settings(str(run))
    own = own_settings(str(run), {"domain.name", "rollout.max_turns"})
    assert own.domain == "club"
    assert not {"domain.name", "rollout.max_turns"} & set(own.values) and "model.max_context" in own.values


@pytest.mark.parametrize("reads", ["Infinity", "1e999", "null", '"many"'])
def test_a_strange_context_of_a_model_is_no_crash(tmp_path: Path, reads: str) -> None:
    (tmp_path / "config.json").write_text(f'{{"max_position_embeddings": {reads}}}')
    assert own_settings(str(tmp_path)).values["model.max_context"] == 32768
