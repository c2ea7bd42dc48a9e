"""miles: an agent function, its reward, and a filter for what failed. miles is not imported.

--custom-generate-function-path miles.rollout.generate_hub.agentic_tool_call.generate
--custom-agent-function-path    muarl_integrations.miles.run
--custom-rm-path                muarl_integrations.miles.reward
--dynamic-sampling-filter-path  muarl_integrations.miles.no_failures
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.environments.results import PlayResult
from muarl_integrations.conversations import Conversations

KEY = "muarl"
"""Where a sample's metadata hold what became of its conversation."""


async def run(
    base_url: str,
    prompt: Any,
    request_kwargs: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **_: Any,
) -> dict[str, Any]:
    """Play the task of a sample, whose metadata hold its address as ``task``, through its session at ``base_url``.

    What is returned becomes part of the metadata. There is no reward in it if something outside the policy failed.
    """
    asked = dict(request_kwargs or {})
    options = {name: asked.pop(name) for name in ("temperature", "top_p", "max_tokens") if name in asked}
    row = {**(metadata or {})}
    if "seed" in asked:
        row["seed"] = asked.pop("seed")
    played = await Conversations.of_variables().play(row, base_url=f"{base_url}/v1", api_key="", extra=asked, **options)
    return told(played)


async def reward(args: Any, samples: Any, **_: Any) -> Any:
    """The reward of a sample, or those of a list: not a number where something outside the policy failed.

    Such a sample is marked as aborted, so that ``no_failures`` drops its group, and would not be trained on.
    """
    return [_reward(args, each) for each in samples] if isinstance(samples, list) else _reward(args, samples)


def no_failures(args: Any, samples: Iterable[Any], **_: Any) -> bool:
    """Whether nothing failed in a group of samples, of which some may be lists."""
    every = [each for sample in samples for each in (sample if isinstance(sample, list) else [sample])]
    return not any(sample.status is type(sample).Status.ABORTED for sample in every)


def told(played: PlayResult) -> dict[str, Any]:
    """What metadata hold of a conversation."""
    found = played.to_json()
    kept = {name: found[name] for name in ("task_id", "parts", "failure", "stop", "usage", "seconds", "audit")}
    return {KEY: kept} if played.reward is None else {KEY: kept, "reward": played.reward}


def mark_failed(args: Any, sample: Any, evaluation: bool = False) -> None:
    """Mark a sample whose conversation something outside the policy broke. ConfigError where no filter would drop its
    group: a trainer would take it for an answer without merit."""
    if not evaluation and not getattr(args, "dynamic_sampling_filter_path", None):
        raise ConfigError(
            "a conversation failed for a reason outside the policy, and nothing would drop its group: set "
            f"--dynamic-sampling-filter-path {__name__}.no_failures. What failed: {_failure(sample)}"
        )
    sample.status = type(sample).Status.ABORTED
    sample.remove_sample = True
    sample.reward = math.nan


def _reward(args: Any, sample: Any) -> float:
    if "reward" in sample.metadata:
        return float(sample.metadata["reward"])
    mark_failed(args, sample)
    sample.reward = None  # miles sets what is returned, and refuses to do so twice
    return math.nan


def _failure(sample: Any) -> str:
    failure = (sample.metadata.get(KEY) or {}).get("failure") or {}
    return str(failure.get("text") or "see the log above")
