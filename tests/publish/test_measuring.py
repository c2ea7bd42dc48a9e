"""What is measured of an environment: baselines and expert with n and interval, and an episode that repeats."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from muarl.accounts.intervals import wilson
from muarl.basics.errors import ConfigError
from muarl.environments.registry import find
from muarl_tools.publish.measuring import EnvironmentFigures, measure


@pytest.fixture(scope="module")
def bank() -> EnvironmentFigures:
    return measure(find("bank-generated"), size=None, tasks=12, seed=0)


def test_baselines_and_the_expert_are_measured_on_held_out_tasks(bank: EnvironmentFigures) -> None:
    assert bank.split == "test"
    assert [score.agent for score in bank.scores] == ["do nothing", "always transfer", "scripted expert"]
    for score in bank.scores:
        assert score.n == 12 and score.interval == pytest.approx(wilson(score.success * 12, 12))
    assert bank.scores[0].success < 0.5 and bank.scores[-1].success == 1.0
    assert bank.prompt.policy and bank.prompt.tools[0]["function"]["name"]


def test_the_recorded_episode_is_one_that_the_expert_solves(bank: EnvironmentFigures) -> None:
    episode = bank.episode
    assert episode.reward == 1.0 and episode.task.startswith("bank-generated:test:")
    assert {message["role"] for message in episode.messages} == {"assistant"}
    assert any("tool_calls" in message for message in episode.messages)


def test_the_same_arguments_give_the_same_figures_and_they_survive_json(bank: EnvironmentFigures) -> None:
    again = measure(find("bank-generated"), size=None, tasks=12, seed=0)
    assert again == bank == EnvironmentFigures.of_json(json.loads(json.dumps(asdict(bank))))


def test_a_greeting_before_the_conversation_is_not_repeated() -> None:
    assert measure(find("bfcl-generated"), size=None, tasks=2, seed=0).episode.reward == 1.0


def test_without_an_expert_the_episode_is_one_in_which_nothing_is_done() -> None:
    alone = replace(find("bank-generated"), expert=None)
    measured = measure(alone, size=None, tasks=2, seed=0)
    assert [score.agent for score in measured.scores] == ["do nothing", "always transfer"]
    assert measured.episode.messages and not any("tool_calls" in message for message in measured.episode.messages)


def test_what_no_scripted_agent_can_play_is_refused() -> None:
    bank = find("bank-generated")
    with pytest.raises(ConfigError, match="has no rule-based user"):
        measure(replace(bank, rule_based_user=None), size=None, tasks=2, seed=0)
    (task,) = bank.make_tasks("test", 1)
    judged = replace(task, nl_assertions=("The agent is kind.",), reward_basis=("DB", "NL_ASSERTION"))
    with pytest.raises(ConfigError, match=f"reward of task {task.id} needs a judge"):
        measure(replace(bank, tasks={"test": [judged]}), size=None, tasks=2, seed=0)
    with pytest.raises(ConfigError, match="has no tasks in the split test"):
        measure(replace(bank, tasks={"test": []}), size=None, tasks=2, seed=0)
