"""How TAU2's and TAU1's tasks are played (sierra-research/tau2-bench and tau-bench, MIT licence, Copyright Sierra
Research). The prompts are the benchmarks' own, word for word, because scores are only comparable with them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.conversation import Limits, Rules
from muarl.domains.base import Task, World
from muarl.endpoints import Endpoint
from muarl.episode import Episode, Verdict
from muarl.errors import ConfigError
from muarl.recipes.official.base import Official
from muarl.rewards.judge import Judge
from muarl.rollout import RolloutRequest
from muarl.users.guidelines import Style

TAU2_DOMAINS = ("retail", "airline", "telecom", "telecom-workflow", "mock", "banking_knowledge")
TAU1_DOMAINS = ("retail", "airline")

STEPS, ERRORS, SEED = 200, 10, 300
"""TAU2's: steps and tool errors that end an episode, seed of the trials' seeds."""

TRAINING_TURNS = 100
"""Agent turns at least in training on TAU2's tasks, which are longer than generated ones."""

TAU1_TURNS = 30
"""TAU1's: how often the agent may act."""

SOLO_PROMPT = """\
<instructions>
You are a customer service agent that helps the user according to the <policy> provided below.
You will be provided with a ticket that contains the user's request.
You will need to plan and call the appropriate tools to solve the ticket.

You cannot communicate with the user, only make tool calls.
Stop when you consider that you have solved the ticket.
To do so, send a message containing a single tool call to the `done` tool. Do not include any other tool calls in this \
last message.

Always follow the policy. Always make sure you generate valid JSON only.
</instructions>
<policy>
{policy}
</policy>
<ticket>
{ticket}
</ticket>"""

_TELECOM_SOLO = """\
<main_policy>
{}
</main_policy>
<tech_support_policy>
{}
</tech_support_policy>"""

_SOLO_POLICIES: Mapping[str, tuple[str, ...]] = {
    "telecom": (_TELECOM_SOLO, "domains/telecom/main_policy_solo.md", "domains/telecom/tech_support_manual.md"),
    "telecom-workflow": (
        _TELECOM_SOLO,
        "domains/telecom/main_policy_solo.md",
        "domains/telecom/tech_support_workflow_solo.md",
    ),
    "mock": ("{}", "domains/mock/policy_solo.md"),
}
"""What an agent that works alone is told in TAU2: a frame, and the files that fill it."""


class Tau2(Official):
    """A domain of TAU2."""

    splits: ClassVar[tuple[str, ...]] = ("base",)

    def rules(self, *, solo: bool = False) -> Rules:
        """A message that is empty or unreadable voids the attempt."""
        return Rules(broken="aborts", solo=solo)

    def limits(self, *, steps: int | None = None, errors: int | None = None) -> Limits:
        """Steps and tool errors."""
        return Limits(turns=None, tool_errors=errors or ERRORS, user_calls=None, steps=steps or STEPS)

    def training_limits(self, own: Limits) -> Limits:
        """The configuration's, but for ``TRAINING_TURNS``."""
        return replace(own, turns=max(own.turns or 0, TRAINING_TURNS))

    def prompt(self, policy: str, *, solo: bool = False) -> str:
        """TAU2's instructions around the policy."""
        if solo:
            return SOLO_PROMPT.replace("{policy}", policy)
        prompt: str = self.module.agent_prompt(policy)
        return prompt

    def endpoint_agent(self, endpoint: Endpoint, *, solo: bool = False) -> Agent:
        """One that works alone can only call tools."""
        return EndpointAgent(endpoint, tool_choice="required" if solo else "auto", keep_cut=True)

    def solo_policy(self) -> str:
        """The policy for an agent that works alone. ConfigError where the domain has none."""
        from muarl import data

        if self.own_name not in _SOLO_POLICIES:
            have = ", ".join(f"tau2-{name}" for name in _SOLO_POLICIES)
            raise ConfigError(f"eval.solo: {self.name} has no solo mode; {have} have one")
        frame, *files = _SOLO_POLICIES[self.own_name]
        texts = [data.read_text("tau2", file) for file in files]
        return frame.format(*texts)

    def requests(self, tasks: Sequence[Task], trials: int, seed: int, label: str) -> list[RolloutRequest]:
        """TAU2 draws a seed for each trial, the same for all tasks, for agent and user alike."""
        return [
            RolloutRequest(task, drawn, f"{label}/{task.id}", number, one_seed=True)
            for number, drawn in enumerate(trial_seeds(seed, trials))
            for task in tasks
        ]

    def seeds(self, seed: int, trials: int) -> Sequence[int]:
        """The trials' seeds."""
        return trial_seeds(seed, trials)


class Tau1(Official):
    """A domain of TAU1."""

    user_temperature: ClassVar[float | None] = None
    user_style: ClassVar[Style] = "tau1"

    def rules(self, *, solo: bool = False) -> Rules:
        """One call a message; a transfer ends, and so does what breaks off upstream."""
        from muarl.domains.tau1.world import NO_OBSERVATION

        return Rules(
            greeting_in_context=False,
            transfer_ends="any",
            stop_words=("###STOP###",),
            first_may_stop=False,
            one_call=True,
            fatal=(NO_OBSERVATION,),
            broken="ends",
        )

    def limits(self, *, steps: int | None = None, errors: int | None = None) -> Limits:
        """TAU1 counts turns, and has no limit for errors."""
        return Limits(turns=steps or TAU1_TURNS, tool_errors=errors, user_calls=None)

    def training_rules(self) -> Rules:
        """The same, and so MUA-RL's: it trains on these tasks as TAU1 plays them."""
        return self.rules()

    @property
    def training_split(self) -> str:
        """``train``; the airline has ``test`` alone, which is what MUA-RL trains on."""
        return self._own_split("train") or self.splits[0]

    @property
    def validation_split(self) -> str | None:
        """``dev``, which retail has."""
        return self._own_split("dev")

    def _own_split(self, split: str) -> str | None:
        return split if split in self.module.SPLITS[self.own_name] else None

    def prompt(self, policy: str, *, solo: bool = False) -> str:
        """The policy itself."""
        prompt: str = self.module.agent_prompt(policy)
        return prompt

    def endpoint_agent(self, endpoint: Endpoint, *, solo: bool = False) -> Agent:
        """Only the first call of a message is kept."""
        return EndpointAgent(endpoint, send_seed=False, keep_cut=True, one_call=True)

    async def score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        """By the hash of the state and what was said."""
        found: Verdict = self.module.score(task, world, episode.messages)
        return found


def trial_seeds(seed: int, trials: int) -> list[int]:
    """The seed of each trial, as TAU2 draws them."""
    draw = random.Random(seed)
    return [draw.randint(0, 1_000_000) for _ in range(trials)]


def has_ticket(task: Task) -> bool:
    """Whether an agent can work on a task alone: TAU2's own test, and a ticket to work from."""
    if task.history:
        return all(m.role != "user" and (m.role != "assistant" or bool(m.tool_calls)) for m in task.history)
    begun = task.initial_data is not None or bool(task.initial_actions)
    return task.ticket is not None and (begun or bool(task.actions))
