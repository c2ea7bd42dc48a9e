"""Presets: what each experiment changes, and what MUA-RL's own share with the paper."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.config.load import load_config
from muarl.config.section import TRAIT_LEVELS
from muarl.config.sections import RunConfig, fields_of
from muarl.recipes.training.loss_settings import learner_config
from muarl.users.traits.levels import TraitRanges


def differences(preset: str, other: str) -> set[str]:
    """Settings in which two presets differ, names of runs aside."""
    found, base = load_config(preset), load_config(other)
    leaves = [name for name, section, _ in fields_of(RunConfig) if section is None and name != "name"]
    return {name for name in leaves if _at(found, name) != _at(base, name)}


def _at(config: Any, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part, None)
    return config


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("ablation-base", set()),
        ("ablation-cold", set()),
        ("ablation-both", set()),
        ("ablation-rl", {"rl.eval_every"}),
        ("ablation-user", {"rl.eval_every", "user.kind", "user.checkpoint"}),
    ],
)
def test_ablations_differ_from_their_quickstart_in_one_thing(preset: str, changes: set[str]) -> None:
    assert differences(preset, "quickstart-adamw") == changes
    assert load_config(preset).name == preset


@pytest.mark.parametrize("preset", ["mua-8b", "mua-14b", "mua-32b", "mua-30b-a3b", "one-gpu"])
def test_the_paper_s_presets_reward_the_database_and_take_the_ratio_to_the_learner(preset: str) -> None:
    config = load_config(preset)
    assert config.rl.reward_basis == "database"
    mix = [(domain.name, domain.size, domain.weight) for domain in config.domains]
    assert mix == [("retail-generated", "official", 115.0), ("airline-generated", "official", 50.0)]
    policy = learner_config(config.rl, config.model).policy
    assert policy.old_logprobs == "recompute" and policy.corrects
    cold = load_config("teacher")
    assert str(config.sft.demonstrations_file) == f"runs/{cold.name}/dataset/episodes.jsonl"


def test_a_mixture_changes_the_model_and_the_machines_alone() -> None:
    machines = {"learner.offload_optimizer", "cluster.samplers", "cluster.sampler_gpus"}
    machines |= {"engine.tensor_parallel", "engine.max_sequences"}
    found, base = (load_config(name).model_dump(mode="json") for name in ("mua-30b-a3b", "mua-8b"))
    differ = {s for s in base if base[s] != found[s]}
    changed = {f"{s}.{key}" for s in differ - {"name"} for key in base[s] if base[s][key] != found[s][key]}
    assert changed == {"model.checkpoint"} | machines


def test_one_gpu_trains_adapters_beside_the_model_that_plays_the_user() -> None:
    config = load_config("one-gpu")
    assert config.learner.kind == "torch" and config.learner.lora_rank == 32
    assert config.engine.kind == "vllm" and config.engine.servers == 1 and config.engine.first_device == 0
    assert config.cluster.address is None and config.cluster.sampler_gpus == config.cluster.learner_gpus == 0
    for user in (config.user, config.eval_user):
        assert user.kind == "llm" and user.endpoint is not None
        assert user.endpoint.base_url == "http://localhost:8000/v1" and not user.endpoint.api_key_env


def test_knowledge_is_the_quickstart_among_documents() -> None:
    found, base = (load_config(name).model_dump(mode="json") for name in ("knowledge", "quickstart-easy"))
    differ = {section for section in base if base[section] != found[section]}
    assert differ <= {"name", "domain", "model", "base", "sft", "rl", "eval"}
    assert {key for key in base["model"] if base["model"][key] != found["model"][key]} == {"checkpoint", "max_context"}
    assert {domain["size"] for domain in found["domain"]} == {"tiny"}
    assert all("-knowledge-" in domain["name"] for domain in found["domain"])
    assert found["sft"]["error_profile"] == base["sft"]["error_profile"]


def test_the_quickstart_practises_with_users_from_easy_to_hard_and_is_judged_with_all() -> None:
    config = load_config("quickstart")
    ranges = TraitRanges.of(config.user.traits.model_dump())
    assert ranges == TraitRanges.of({**TRAIT_LEVELS["mixed"], "where_possible": True})
    assert not config.eval_user.traits.any and config.eval.harder_users == ("typical", "hard")
    others = {d for d in differences("quickstart-easy", "quickstart") if not d.startswith("user.traits")}
    assert others == {"model.max_context", "sft.demonstrations", "sft.steps", "rollout.max_turns"}
    assert load_config("smollm2").user.traits == load_config("known-model").user.traits == config.user.traits
    for name in ("quickstart-adamw", "reproduce", "knowledge", "worlds", "user"):
        assert not load_config(name).user.traits.any, "what was measured with easy users stays so"
