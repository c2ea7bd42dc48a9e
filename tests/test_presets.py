"""Presets: what each experiment changes, and what MUA-RL's own share with the paper."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.config import RunConfig, load_config
from muarl.config.sections import fields_of
from muarl.recipes.updates import learner_config


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
def test_ablations_differ_from_the_quickstart_in_one_thing(preset: str, changes: set[str]) -> None:
    assert differences(preset, "quickstart") == changes
    assert load_config(preset).name == preset


@pytest.mark.parametrize("preset", ["mua-8b", "mua-14b", "mua-32b"])
def test_the_paper_s_presets_reward_the_database_and_take_the_ratio_to_the_learner(preset: str) -> None:
    config = load_config(preset)
    assert config.rl.reward_basis == "database"
    policy = learner_config(config).policy
    assert policy.old_logprobs == "recompute" and policy.correction.active
    cold = load_config("teacher")
    assert str(config.sft.demonstrations_file) == f"runs/{cold.name}/dataset/episodes.jsonl"
