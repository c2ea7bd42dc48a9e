"""rLLM: a rollout that plays a task through rLLM's gateway, and the evaluator that reads its reward.

AgentTrainer(agent_flow=muarl_integrations.rllm.flow, evaluator=muarl_integrations.rllm.evaluator, ...)
"""

from __future__ import annotations

from typing import Any

from muarl.basics.extras import MissingExtra
from muarl_integrations.conversations import Conversations

try:
    import rllm
    from rllm.eval.types import EvalOutput, Signal
    from rllm.types import Episode, Trajectory
except ImportError as problem:
    if (problem.name or "").partition(".")[0] != "rllm":
        raise
    raise MissingExtra(
        "muarl_integrations.rllm needs rllm, which is not installed: its repository, rllm-org/rllm, says how",
        name="rllm",
    ) from None

RESULT = "muarl"
"""The artifact that holds what became of a conversation, ``PlayResult.to_json``."""


def make_flow(conversations: Conversations | None = None, name: str = "agent") -> Any:
    """A rollout for rows with a column ``task``. ``conversations``: None takes what the environment variables say.
    ``name``: of its trajectories.

    Whatever failed outside the policy is raised: rLLM plays the task again, and gives up without a trajectory.
    """

    @rllm.rollout(name=name)
    async def muarl_conversation(task: Any, config: Any) -> Any:
        led = conversations or Conversations.of_variables()
        row = task.metadata or {}
        played = await led.play(row, base_url=config.base_url, api_key="", model=config.model)
        if played.failure is not None:
            raise played.failure.error()
        # Without steps: rLLM takes them from its gateway.
        return Episode(task=row, trajectories=[Trajectory(name=name)], artifacts={RESULT: played.to_json()})

    return muarl_conversation


flow = make_flow()


@rllm.evaluator
def evaluator(task: Any, episode: Any) -> Any:
    """The reward that muarl gave while it played, and its parts as signals."""
    found = episode.artifacts[RESULT]
    reward = float(found["reward"])
    parts = [Signal(name=name, value=float(value)) for name, value in found["parts"].items()]
    return EvalOutput(reward=reward, is_correct=reward >= 1.0, signals=parts, metadata={"stop": found["stop"]})
