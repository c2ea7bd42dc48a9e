"""What a plan assumes about machines, episodes and prices. Every figure can be replaced (``muarl plan --assume``)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from muarl.basics.errors import ConfigError

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Gpu:
    """A kind of GPU, by the vendor's data sheets; memory as drivers report it."""

    name: str
    memory: int
    """Bytes that a process may use."""
    flops: float
    """Dense bfloat16 operations a second."""
    bandwidth: float
    """Bytes of its memory a second."""


GPUS: Mapping[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        Gpu("h200", 139 * GIB, 989e12, 4.8e12),
        Gpu("h100", 79 * GIB, 989e12, 3.35e12),
        Gpu("a100", 79 * GIB, 312e12, 2.04e12),
        Gpu("l40s", 44 * GIB, 362e12, 0.864e12),
    )
}


THOUGHTS = 400.0
"""Tokens that a model thinks before a message where it does: a guess."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The figures that a plan stands on."""

    gpu: str = "h200"
    """The kind, one of GPUS (the published script suggests H200)."""
    gpus_per_node: int = 8
    memory_share: float = 0.92
    """The share of a GPU's memory that may be planned with; the rest is the CUDA context, communication buffers and
    fragments."""
    train_mfu: float = 0.35
    """Share of peak operations that updates reach."""
    prefill_mfu: float = 0.4
    """Share of peak operations that prefill reaches."""
    decode_share: float = 0.6
    """Share of memory bandwidth that decoding reaches."""
    decode_overhead: float = 0.004
    """Seconds a decoded token takes besides."""
    transfer: float = 2e9
    """Bytes a second at which a set of weights reaches all samplers: gathered from the learner's shards, put into the
    object store, sent from node to node, loaded."""
    turns: float = 22.0
    """Of an episode: user replies and tool results together (MUA-RL reports 21 to 23, and counts so)."""
    user_replies: float = 10.0
    """Those of ``turns`` that are the user's."""
    prompt_tokens: float = 4400.0
    """Tokens of policy and tools (TAU1 retail renders to 17,500 characters, taken as 4 a token)."""
    agent_tokens: float = 80.0
    """Tokens sampled, a message."""
    tool_tokens: float = 180.0
    """Tokens a message (a result of the retail shop at size official has 710 characters)."""
    user_tokens: float = 35.0
    """Tokens a message."""
    frame_tokens: float = 8.0
    """Tokens of the chat format, a message."""
    thought_tokens: float = 0.0
    """Tokens that the agent thinks before each message (a plan takes ``THOUGHTS`` with `model.thinking`)."""
    straggler: float = 1.8
    """The slowest episode of a step against the mean."""
    user_seconds: float = 2.0
    """Seconds that a user's reply takes."""
    tool_seconds: float = 0.01
    """Seconds that a tool call takes."""
    user_prompt_tokens: float = 500.0
    """The user's own instructions; each reply reads them and the dialogue so far."""
    user_prompt_price: float = 2.5
    """Dollars a million tokens (list price of gpt-4o-2024-11-20)."""
    user_completion_price: float = 10.0
    """Dollars a million tokens (list price of gpt-4o-2024-11-20)."""
    gpu_hour: float = 3.0
    """Dollars for an hour of a GPU."""
    gpu_gib: float = 0.0
    """GiB of a GPU's memory; 0: as the kind has."""
    reserved_gib: float = 0.0
    """GiB of each GPU that other programs hold, such as a server with the user's model."""
    node_gib: float = 900.0
    """GiB of a node's own memory."""
    host_transfer: float = 25e9
    """Bytes a second between a GPU and its node's memory."""
    host_bandwidth: float = 200e9
    """Bytes a second of a node's memory itself, which the node's learner processes share."""
    teacher_prompt_price: float = 2.5
    """Dollars a million tokens, of the models that serve and play tools in a cold start that a teacher writes."""
    teacher_completion_price: float = 10.0
    """Dollars a million tokens, of the same models."""
    world_tokens: float = 1500.0
    """Tokens that the model that plays tools reads of its world."""
    kept: float = 0.7
    """Share of a cold start's conversations that pass the filters."""
    replaced: frozenset[str] = frozenset()
    """The names of those that somebody has replaced; others may give way to what a configuration says."""

    @property
    def device(self) -> Gpu:
        kind = GPUS[self.gpu]
        return replace(kind, memory=int(self.gpu_gib * GIB)) if self.gpu_gib else kind

    @property
    def budget(self) -> int:
        """Bytes of a GPU's memory that may be planned with."""
        return max(int(self.device.memory * self.memory_share - self.reserved_gib * GIB), 0)

    def to_json(self) -> dict[str, str | float]:
        """The figures by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "replaced"}

    def unless_replaced(self, **configured: str | float | None) -> Assumptions:
        """With what is known in place of what is assumed, but for what somebody has replaced; None: it is not known."""
        changes = {name: value for name, value in configured.items() if value is not None and name not in self.replaced}
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def sampled(self) -> float:
        """Tokens that the policy samples in an episode: one message before each turn's answer."""
        return self.turns * (self.agent_tokens + self.thought_tokens)

    @property
    def growth(self) -> float:
        """Tokens that an episode adds to its prompt."""
        tools = self.turns - self.user_replies
        read = tools * self.tool_tokens + self.user_replies * self.user_tokens
        return self.sampled + read + 2 * self.turns * self.frame_tokens

    @property
    def episode_tokens(self) -> float:
        return self.prompt_tokens + self.growth

    @property
    def user_usage(self) -> tuple[float, float]:
        """Prompt and completion tokens that an episode's user costs: each reply reads all dialogue before it.

        Between two replies the user reads one message of the agent's, since tool calls are not shown to it.
        """
        said = self.agent_tokens + self.user_tokens
        return self.user_replies * (
            self.user_prompt_tokens + said * self.user_replies / 2
        ), self.user_replies * self.user_tokens

    @property
    def teacher_usage(self) -> tuple[float, float]:
        """The same of a model that serves: each message reads all that was before it."""
        plain = replace(self, thought_tokens=0.0)  # thoughts are the trained model's
        return self.turns * (self.prompt_tokens + plain.growth / 2), plain.sampled

    @property
    def tools_usage(self) -> tuple[float, float]:
        """The same of a model that plays tools: each result reads the world and the results before it."""
        calls = self.turns - self.user_replies
        return calls * (self.world_tokens + self.tool_tokens * calls / 2), calls * self.tool_tokens


def assume(pairs: Iterable[str], base: Assumptions | None = None) -> Assumptions:
    """``KEY=VALUE`` pairs laid over assumptions. ConfigError for an unknown key or GPU, or a value that is no number
    above 0 (prices and what is reserved may be 0)."""
    types = {f.name: f.type for f in fields(Assumptions) if f.name != "replaced"}
    changes: dict[str, str | float | int] = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or key not in types:
            near = difflib.get_close_matches(key, types, 1)
            hint = f"; did you mean {near[0]!r}?" if near and equals else ""
            raise ConfigError(f"--assume {pair!r}: write it as KEY=VALUE, with KEY one of {', '.join(types)}{hint}")
        if key == "gpu":
            if value not in GPUS:
                raise ConfigError(f"--assume gpu={value}: known GPUs are {', '.join(GPUS)}")
            changes[key] = value
            continue
        try:
            number = float(value)
        except ValueError:
            raise ConfigError(f"--assume {pair!r}: {value!r} is not a number") from None
        free = key.endswith(("_price", "_hour", "_seconds", "_overhead")) or key == "reserved_gib"
        if not (number >= 0 if free else number > 0) or number == float("inf"):
            raise ConfigError(f"--assume {pair!r}: must be a number {'of at least' if free else 'above'} 0")
        if (key.endswith(("_share", "_mfu")) or key == "kept") and number > 1:
            raise ConfigError(f"--assume {pair!r}: is a share, so at most 1")
        changes[key] = int(number) if key == "gpus_per_node" else number
    start = base or Assumptions()
    return replace(start, replaced=start.replaced | frozenset(changes), **changes)  # type: ignore[arg-type]
