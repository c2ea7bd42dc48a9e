"""Advantages by turn in TRL's trainer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="muarl[train] is not installed")
pytest.importorskip("renderers", reason="muarl[train] is not installed")

from muarl.basics.errors import ConfigError
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn
from support.trainers import as_if_installed

with as_if_installed():
    from muarl_integrations.trl_credit import TurnAdvantages, by_token
    from muarl_integrations.trl_rollouts import UserTurns

PROMPT = "retail-generated:train:3"


def episode(*turns: int) -> Episode:
    """One with turns of these lengths, two given tokens before each."""
    trace, said = TokenTrace(), [Turn(Message("user", "Hi"))]
    for length in turns:
        trace.append_given([1, 1])
        said.append(Turn(Message("assistant", "Hm."), span=trace.append_sampled([2] * length, [-0.5] * length, 0)))
    return Episode("e", "t", "retail", said, StopReason.USER_STOP, tokens=trace)


def test_rows_begin_with_the_first_sampled_token_and_given_ones_have_none() -> None:
    # Nothing was written, so that all turns are at one place: each is compared with the others' mean.
    rows = by_token([1.0, -0.5, -0.5], [PROMPT] * 3, [episode(2, 1), episode(3), episode(1)], 7)
    assert rows[0] == [1.5, 1.5, 0, 0, 1.5, 0, 0]
    assert rows[1] == [-0.75] * 3 + [0] * 4 and rows[2] == [-0.75] + [0] * 6
    assert by_token([1.0, -1.0], [PROMPT] * 2, [episode(9), episode(1)], 4)[0] == [2.0] * 4, "TRL has cut it"


def test_a_failed_conversation_is_compared_with_nobody() -> None:
    failed = episode(2)
    failed.stop, failed.tags = StopReason.INFRASTRUCTURE, {"boundary": "user", "retryable": False}
    rows = by_token([1.0, -1.0, 0.0], [PROMPT] * 3, [episode(1), episode(1), failed], 2)
    assert rows == [[2.0, 0], [-2.0, 0], [0, 0]]


class Trl:
    """What TRL's trainer does with a batch."""

    def __init__(self, turns: Any, rewards: list[float], group: int) -> None:
        self.rollout_func, self.num_generations, self.rewards = turns, group, rewards
        self.model = SimpleNamespace(training=True)

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        import torch

        return {"advantages": torch.tensor(self.rewards), "completion_ids": torch.zeros(len(self.rewards), 4)}


class Trainer(TurnAdvantages, Trl):
    pass


def test_trl_gets_a_row_for_each_rollout_group_by_group() -> None:
    turns = UserTurns()
    turns.prompts, turns.episodes = [PROMPT] * 4, [episode(1) for _ in range(4)]
    made = Trainer(turns, [1.0, -1.0, 0.0, 0.0], 2)._generate_and_score_completions([])
    assert made["advantages"].tolist() == [[2, 0, 0, 0], [-2, 0, 0, 0], [0] * 4, [0] * 4]
    with pytest.raises(ConfigError, match="no whole groups of 3"):
        Trainer(turns, [1.0] * 4, 3)._generate_and_score_completions([])
    with pytest.raises(ConfigError, match="UserTurns"):
        Trainer(lambda prompts, trainer: {}, [1.0] * 4, 2)._generate_and_score_completions([])


def test_trl_trains_with_it(tmp_path: Any) -> None:
    datasets = pytest.importorskip("datasets", reason="TRL and datasets are not installed")
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    from muarl_integrations.trl_rollouts import episode_reward
    from support.trl_runs import settings, tokenizer_and_model

    learned: list[Any] = []

    class Watched(TurnAdvantages, trl.GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            learned.append(super()._generate_and_score_completions(inputs))
            return learned[-1]

    tokenizer, model = tokenizer_and_model(trl_template=False)
    trainer = Watched(
        model=model,
        processing_class=tokenizer,
        train_dataset=datasets.Dataset.from_list([{"prompt": f"retail-generated:test:{n}"} for n in range(2)]),
        rollout_func=UserTurns(context=900),
        reward_funcs=episode_reward,
        args=settings(tmp_path, max_completion_length=48),
    )
    trainer.train()
    (batch,) = learned
    assert batch["advantages"].shape == batch["completion_ids"].shape
    assert not (batch["advantages"] * (1 - batch["tool_mask"])).any()
