"""Stages that are not reinforcement learning read nothing of its section."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muarl.config.rl import RlConfig
from muarl.config.sections import RunConfig
from muarl.recipes import evaluate, redteam, rl, sft, user_model

Configure = Callable[..., RunConfig]


class Unread(RlConfig):
    """A section that nobody may look into."""

    def __getattribute__(self, name: str) -> Any:
        if name in RlConfig.model_fields:
            raise AssertionError(f"rl.{name} was read")
        return super().__getattribute__(name)


def unread(config: RunConfig) -> RunConfig:
    return config.model_copy(update={"rl": Unread.model_construct(**dict(config.rl))})


def test_reading_it_would_show(configure: Configure) -> None:
    with pytest.raises(AssertionError, match=r"rl\.\w+ was read"):
        rl.run(unread(configure()))


@pytest.mark.parametrize("agent", ["expert", "idle", "sampled"])
def test_an_evaluation(configure: Configure, agent: str) -> None:
    evaluate.run(unread(configure(f"eval.agent={agent}", "eval.tasks=3")))


def test_an_evaluation_against_hostile_users(configure: Configure) -> None:
    redteam.run(unread(configure("eval.agent=expert", "eval.red_team=[pressure]", "eval.red_team_tasks=2")))


def test_a_cold_start(configure: Configure) -> None:
    sft.run(unread(configure("sft.steps=1")))


@pytest.mark.slow
def test_a_user_model(configure: Configure) -> None:
    user_model.run(unread(configure("sft.steps=1", "sft.demonstrations=4", "eval.tasks=2")))
