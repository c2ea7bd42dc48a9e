"""What a configuration means to the learner."""

from __future__ import annotations

import pytest

from muarl.config.load import load_config
from muarl.config.rl import RlConfig
from muarl.learning.loss_options import PolicyLossOptions
from muarl.recipes.training.loss_settings import learner_config

OTHER = {
    "temperature": 0.7, "ratio": "sequence", "clip_low": 0.11, "clip_high": 0.31, "dual_clip": 4.0,
    "loss_aggregation": "dr_grpo", "kl_coef": 0.02, "kl_estimator": "k1", "entropy_coef": 0.03, "correction": "token",
    "correction_cap": 3.0, "sequence_mask": (0.5, 2.0), "minibatches": 3, "epochs": 2,
}  # fmt: skip
"""A value of each option that is not its default."""


def test_every_option_of_the_loss_is_a_key_of_rl_and_reaches_the_learner() -> None:
    assert set(OTHER) == set(PolicyLossOptions.model_fields) <= set(RlConfig.model_fields)
    given = [f"rl.{name}={list(v) if isinstance(v, tuple) else v}" for name, v in OTHER.items()]
    config = load_config("quickstart", given)
    policy = learner_config(config.rl, config.model).policy
    assert {name: getattr(policy, name) for name in OTHER} == OTHER
    assert (policy.constant_length, policy.old_logprobs) == (2048, "recompute")


@pytest.mark.parametrize(
    ("overrides", "old"),
    [([], "sampler"), (["rl.top_p=0.9"], "recompute"), (["rl.sequence_mask=[0.5, 2]"], "recompute")],
)
def test_log_probabilities_are_made_again_where_the_samplers_mean_something_else(
    overrides: list[str], old: str
) -> None:
    config = load_config("quickstart", overrides)
    assert learner_config(config.rl, config.model).policy.old_logprobs == old


def test_the_optimiser_of_rl_is_adamw_or_muon_with_rates_of_their_own() -> None:
    plain = load_config("quickstart-adamw")
    assert learner_config(plain.rl, plain.model).optimizer.kind == "adamw"
    config = load_config("quickstart", ["rl.optimizer=muon", "rl.matrix_lr=0.004", "rl.lr=2e-4"])
    optimizer = learner_config(config.rl, config.model).optimizer
    assert (optimizer.kind, optimizer.muon_lr, optimizer.lr) == ("muon", 0.004, 2e-4)
