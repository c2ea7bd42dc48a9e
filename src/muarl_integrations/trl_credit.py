"""Credit by turn in TRL's GRPOTrainer: an advantage for each of the policy's messages.

    class Trainer(TurnAdvantages, GRPOTrainer): ...

    trainer = Trainer(..., rollout_func=UserTurns(), reward_funcs=episode_reward)

Each message is compared with the group's other rollouts in which the world was as far on the way to its right final
state (rewards/known_outcomes.py), in place of all. TRL takes advantages of shape (B, T) from such classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.environments.registry import load_task
from muarl.rewards.known_outcomes import KnownOutcomes, state_means
from muarl.rewards.progress import progress_of
from muarl.types.episode import Episode
from muarl_integrations.trl_rollouts import UserTurns, failure_of
from muarl_integrations.turn_values import domain_of


class TurnAdvantages:
    """Put before a trainer's class whose ``rollout_func`` is a ``UserTurns``. ConfigError for another one, and where a
    process has only a part of a group."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        trainer: Any = self
        turns = trainer.rollout_func
        if not isinstance(turns, UserTurns):
            raise ConfigError("rollout_func: advantages by turn need muarl_integrations.trl_rollouts.UserTurns")
        made = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        whole, width = made["advantages"], made["completion_ids"].shape[1]
        group = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
        if len(whole) % group:
            raise ConfigError(
                f"per_device_train_batch_size x steps_per_generation: {len(whole)} rollouts a process are no whole "
                f"groups of {group}, and turns are compared within a group"
            )
        rows: list[list[float]] = []
        for start in range(0, len(whole), group):
            own = slice(start, start + group)
            rows += by_token(whole[own].tolist(), turns.prompts[own], turns.episodes[own], width)
        made["advantages"] = whole.new_tensor(rows)
        return made


def by_token(
    advantages: Sequence[float], prompts: Sequence[str], episodes: Sequence[Episode], width: int
) -> list[list[float]]:
    """The advantages of one group's tokens, each row ``width`` long and beginning with the first sampled token.

    ``advantages``: of the rollouts, whatever rewards they were made of: turns keep their scale, and are compared with
    those of the other rollouts at the same place, drawn towards the mean of all others.
    """
    counted = [n for n, e in enumerate(episodes) if failure_of(e) is None and e.tokens and e.tokens.sampled_count]
    places = [_places(prompts[n], episodes[n]) for n in counted]
    values = [advantages[n] for n in counted]
    means = state_means(values, places, [str(n) for n in counted], KnownOutcomes())
    rows = [[0.0] * width for _ in episodes]
    for n, value, own in zip(counted, values, means, strict=True):
        trace = episodes[n].tokens
        assert trace is not None
        first = trace.loss_mask.index(True)
        spans = [turn.span for turn in episodes[n].turns if turn.span is not None]
        for (begin, end), mean in zip(spans, own, strict=True):
            end = min(end - first, width)
            rows[n][begin - first : end] = [0.0 if mean is None else value - mean] * max(0, end - begin + first)
    return rows


def _places(prompt: str, episode: Episode) -> list[str]:
    """Where the world was before each of the policy's messages; the same place where that is not known."""
    task = load_task(prompt)
    progress = progress_of(domain_of(task), task, episode)
    count = sum(turn.span is not None for turn in episode.turns)
    return [""] * count if progress is None else [p.key("") for p in progress]
