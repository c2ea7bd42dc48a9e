"""How TAU2's and TAU1's tasks are played (sierra-research/tau2-bench and tau-bench, MIT licence, Copyright Sierra
Research). The prompts are the benchmarks' own, word for word, because scores are only comparable with them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.base import Domain, World
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.environments.benchmark import Benchmark, BenchmarkPlace, Mode
from muarl.rewards.judge import Judge
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rules import Limits, Rules, VoidReply, is_empty
from muarl.types.chat import STOP_WORDS, Message, Requestor, ToolCall, ToolSpec
from muarl.types.episode import Episode, StopReason, Verdict
from muarl.users.guidelines import Style
from muarl_worlds.tau.tau1_source import TAU1_SPLITS

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


DONE = ToolSpec(
    "done",
    "Call this function when you are done with the task.",
    {"properties": {}, "title": "parameters", "type": "object"},
)
"""The tool with which an agent that works alone says so (TAU2's, to the letter)."""


class Tau2Rules(Rules):
    """A message of either side with nothing in it, or with a call that cannot be read, voids the attempt."""

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        """VoidReply, unless a limit cut the message."""
        if stop in (None, StopReason.EMPTY_REPLY):
            if is_empty(message):
                raise VoidReply("the agent said nothing", boundary="agent")
            _check_calls(message, "agent")
        return message, stop

    def check_user(self, message: Message) -> None:
        """VoidReply for a call that cannot be read."""
        super().check_user(message)
        _check_calls(message, "user")


def _check_calls(message: Message, side: str) -> None:
    unreadable = next((c.invalid for c in message.tool_calls if c.invalid is not None), None)
    if unreadable is not None:
        raise VoidReply(f"the {side} wrote a tool call that cannot be read: {unreadable}", boundary=side)


class Tau2SoloRules(Tau2Rules):
    """The agent works alone, with the user's tools beside its own, until it calls ``done``."""

    solo: ClassVar[bool] = True

    def opening(self, task: Task) -> tuple[list[Message], Requestor]:
        """Nobody is greeted."""
        return list(task.history), "assistant"

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        """It may only call tools. ``done`` leaves nothing of the message but a stop word."""
        message, stop = super().read_agent(message, stop, steps)
        if stop is not None:
            return message, stop
        if not message.tool_calls:
            raise VoidReply("an agent that works alone can only call tools, and this one spoke", boundary="agent")
        if any(c.name == DONE.name for c in message.tool_calls):
            return replace(message, content=STOP_WORDS[0], tool_calls=()), StopReason.AGENT_STOP
        if STOP_WORDS[0] in (message.content or ""):  # with calls still waiting: TAU2 breaks off
            raise VoidReply(f"the agent wrote {STOP_WORDS[0]} beside a tool call", boundary="agent")
        return message, None

    def side_of(self, call: ToolCall, domain: Domain) -> Requestor:
        """A tool that both sides have is the user's."""
        return "user" if call.name in domain.tool_names("user") else "assistant"


class Tau2(BenchmarkPlace):
    """A domain of TAU2."""

    @classmethod
    def rules_of(cls, benchmark: Benchmark, mode: Mode, *, solo: bool = False) -> Rules:
        """A message that is empty or unreadable voids the attempt."""
        return Tau2SoloRules() if solo else Tau2Rules()

    @classmethod
    def limits_of(cls, benchmark: Benchmark, *, steps: int | None = None, errors: int | None = None) -> Limits:
        """Steps and tool errors."""
        return Limits(turns=None, tool_errors=errors or ERRORS, user_calls=None, steps=steps or STEPS)

    @classmethod
    def training_limits_of(cls, benchmark: Benchmark, configured: Limits) -> Limits:
        """The configuration's, but for ``TRAINING_TURNS``."""
        return replace(configured, turns=max(configured.turns or 0, TRAINING_TURNS))

    @classmethod
    def prompt_of(cls, benchmark: Benchmark, policy: str, *, solo: bool = False) -> str:
        """TAU2's instructions around the policy."""
        if solo:
            return SOLO_PROMPT.replace("{policy}", policy)
        prompt: str = benchmark.module.agent_prompt(policy)
        return prompt

    @classmethod
    def solo_policy_of(cls, benchmark: Benchmark) -> str:
        """The policy for an agent that works alone. ConfigError where the domain has none."""
        from muarl_worlds import data

        if benchmark.own_name not in _SOLO_POLICIES:
            have = ", ".join(f"tau2-{name}" for name in _SOLO_POLICIES)
            raise ConfigError(f"eval.solo: {benchmark.name} has no solo mode; {have} have one")
        frame, *files = _SOLO_POLICIES[benchmark.own_name]
        texts = [data.read_text("tau2", file) for file in files]
        return frame.format(*texts)

    def own_prompt(self, task: Task) -> str:
        """TAU2's instructions around the task's own policy (golden_retrieval's)."""
        return self.prompt_of(self.benchmark, self.domain.policy_for(task))

    def tools(self, task: Task) -> Sequence[ToolSpec]:
        """One that works alone has the user's tools too, and one to say that it is done."""
        own = self.domain.specs_for(task)
        return (*own, *self.domain.tool_specs("user"), DONE) if self.rules.solo else own

    def endpoint_agent(self, endpoint: Endpoint) -> Agent:
        """One that works alone can only call tools."""
        return EndpointAgent(endpoint, tool_choice="required" if self.rules.solo else "auto", keep_cut=True)

    def has_ticket(self, task: Task) -> bool:
        """TAU2's own test, and a ticket to work from."""
        if task.history:
            return all(m.role != "user" and (m.role != "assistant" or bool(m.tool_calls)) for m in task.history)
        begun = task.initial_data is not None or bool(task.initial_actions)
        return task.ticket is not None and (begun or bool(task.actions))

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


def _tau2_module() -> Any:
    """The benchmark's module, whose import takes a while."""
    from muarl_worlds.tau import tau2_benchmark

    return tau2_benchmark


def tau2(domain: str) -> Benchmark:
    """A domain of TAU2. It has the split ``base``, and, where it is divided, its halves; telecom's has a larger and a
    smaller set, too."""
    halves = () if domain in ("mock", "banking_knowledge") else ("train", "test")
    return Benchmark(
        family="tau2",
        own_name=domain,
        place=Tau2,
        load=_tau2_module,
        task_domain=domain,  # the benchmark's domains are told apart by their own names
        splits=("base", *halves, *(("small", "full") if domain.startswith("telecom") else ())),
    )


class Tau1Rules(Rules):
    """Only the first call of a message counts, as if the others had never been written; a transfer ends the episode
    though it failed; and so does all that TAU1's own runner breaks off at. A text of nothing is passed on."""

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        """No text at all ends the episode, and so does a call that cannot be read."""
        message = replace(message, tool_calls=message.tool_calls[:1])
        if stop not in (None, StopReason.EMPTY_REPLY):
            return message, stop
        if message.tool_calls:
            return message, None if message.tool_calls[0].invalid is None else StopReason.BROKEN_CALL
        return message, StopReason.EMPTY_REPLY if message.content is None else None

    def after_results(self, results: Sequence[Message]) -> StopReason | None:
        """A transfer whatever it answered, and a result that TAU1's runner cannot pass on."""
        from muarl_worlds.tau.tau1.world import NO_OBSERVATION

        if any(m.name in self.transfer_tools for m in results):
            return StopReason.TRANSFER
        fatal = any((m.content or "").startswith(NO_OBSERVATION) for m in results)
        return StopReason.BROKEN_CALL if fatal else None

    def check_user(self, message: Message) -> None:
        """Only no text at all cannot be used."""
        if message.content is None and not message.tool_calls:
            raise InfrastructureError("the simulated user said nothing", boundary="user")

    def user_stops(self, message: Message, steps: int, spoken: int) -> bool:
        """By the stop word, but not in its first message."""
        return spoken > 1 and super().user_stops(message, steps, spoken)


class Tau1(BenchmarkPlace):
    """A domain of TAU1."""

    user_temperature: ClassVar[float | None] = None
    style: ClassVar[Style] = "tau1"

    @classmethod
    def rules_of(cls, benchmark: Benchmark, mode: Mode, *, solo: bool = False) -> Rules:
        """One call a message; a transfer ends, and so does what breaks off upstream."""
        return Tau1Rules(greeting_in_context=False, transfer_ends=True, stop_words=("###STOP###",))

    @classmethod
    def training_rules_of(cls, benchmark: Benchmark) -> Rules:
        """The same, and so MUA-RL's: it trains on these tasks as TAU1 plays them."""
        return cls.rules_of(benchmark, cls.training_mode)

    @classmethod
    def limits_of(cls, benchmark: Benchmark, *, steps: int | None = None, errors: int | None = None) -> Limits:
        """TAU1 counts turns, and has no limit for errors."""
        return Limits(turns=steps or TAU1_TURNS, tool_errors=errors, user_calls=None)

    @classmethod
    def prompt_of(cls, benchmark: Benchmark, policy: str, *, solo: bool = False) -> str:
        """The policy itself."""
        prompt: str = benchmark.module.agent_prompt(policy)
        return prompt

    def endpoint_agent(self, endpoint: Endpoint) -> Agent:
        """Only the first call of a message is kept."""
        return EndpointAgent(endpoint, send_seed=False, keep_cut=True, one_call=True)

    async def official_score(self, task: Task, world: World, episode: Episode, judge: Judge | None) -> Verdict:
        """By the hash of the state and what was said."""
        found: Verdict = self.benchmark.module.score(task, world, episode.messages)
        return found


def _tau1_module() -> Any:
    """The benchmark's module, whose import takes a while."""
    from muarl_worlds.tau import tau1_benchmark

    return tau1_benchmark


def tau1(domain: str) -> Benchmark:
    """A domain of TAU1. The airline has ``test`` alone, which is what MUA-RL trains on; retail has all three splits."""
    splits = TAU1_SPLITS[domain]
    return Benchmark(
        family="tau1",
        own_name=domain,
        place=Tau1,
        load=_tau1_module,
        task_domain=domain,
        splits=splits,
        training_split="train" if "train" in splits else splits[0],
        validation_split="dev" if "dev" in splits else None,
    )


def trial_seeds(seed: int, trials: int) -> list[int]:
    """The seed of each trial, as TAU2 draws them."""
    draw = random.Random(seed)
    return [draw.randint(0, 1_000_000) for _ in range(trials)]
