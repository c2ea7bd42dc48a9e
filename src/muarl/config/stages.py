"""The sections of a run configuration about what comes before reinforcement learning: the base, the cold start and its
synthesised conversations), about that of user models, and about ``muarl reproduce``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from muarl.config.section import (
    WORD,
    Count,
    EndpointConfig,
    ErrorProfileConfig,
    JudgeSpec,
    Positive,
    Probability,
    Section,
)

SCENARIOS = (
    "food-delivery-generated", "hotel-generated", "bank-generated", "clinic-generated", "insurance-generated",
    "mcp-filesystem", "mcp-git", "mcp-sqlite", "mcp-memory",
)  # fmt: skip
"""The nine scenarios: five whose tools a model may play, four on real MCP servers (the paper has as many of each)."""


class ColdstartConfig(Section):
    """Synthesised conversations to start from (``muarl coldstart``)."""

    scenarios: tuple[str, ...] = Field(
        SCENARIOS,
        description="Environments, or your own folders (docs/coldstart.md).",
    )
    count: Positive = Field(2000, description="Conversations to keep, in equal shares of the scenarios.")
    size: Annotated[str, Field(pattern=WORD)] = Field(
        "medium",
        description="Size of the worlds; scenarios without it take their largest.",
    )
    seed: int = Field(0, description="Seed of tasks, worlds and users.")
    teacher: Literal["expert", "endpoint"] = Field(
        "expert", description="Who serves: the scripted experts, or the model behind `endpoint`."
    )
    endpoint: EndpointConfig | None = Field(None, description="The teacher under `teacher: endpoint`.")
    error_profile: ErrorProfileConfig = Field(
        default_factory=ErrorProfileConfig,
        description="Errors of the scripted experts; the filters drop such conversations.",
    )
    tools: Literal["world", "imagined"] = Field(
        "world",
        description="Who plays the tools of the five imagined scenarios: small deterministic worlds, or the model "
        "behind `tools_endpoint`.",
    )
    tools_endpoint: EndpointConfig | None = Field(None, description="The model that plays tools, `tools: imagined`.")
    attempts: Positive = Field(3, description="Maximum tasks tried per conversation to keep.")
    concurrency: Positive = Field(32, description="Maximum concurrent conversations.")
    min_turns: Count = Field(2, description="Minimum number of agent messages.")
    max_turns: Positive = Field(40, description="Maximum number of agent messages.")
    max_words: Positive = Field(6000, description="Maximum number of words in a conversation, including tool results.")
    max_tool_errors: Count = Field(2, description="Maximum number of failed tool calls.")
    near_duplicate: Probability = Field(0.9, description="Maximum word 5-gram overlap (Jaccard) of two conversations.")
    judge: JudgeSpec | None = Field(
        None, description="`endpoint:MODEL` that must find that each conversation follows the policy."
    )
    max_cost: Annotated[float, Field(gt=0)] | None = Field(
        None, description="US dollars after which no conversation starts."
    )
    max_tokens: Positive | None = Field(None, description="Token budget over all models.")

    @model_validator(mode="after")
    def _whole(self) -> ColdstartConfig:
        if self.teacher == "endpoint" and (self.endpoint is None or not self.endpoint.model):
            raise ValueError("teacher is endpoint, so endpoint.model must name the model that serves")
        if self.tools == "imagined" and (self.tools_endpoint is None or not self.tools_endpoint.model):
            raise ValueError("tools is imagined, so tools_endpoint.model must name the model that plays them")
        if self.min_turns > self.max_turns:
            raise ValueError(f"min_turns ({self.min_turns}) is larger than max_turns ({self.max_turns})")
        if len(set(self.scenarios)) != len(self.scenarios) or not self.scenarios:
            raise ValueError("scenarios must name at least one, and none twice")
        return self


READ = (
    "retail-generated", "airline-generated", "telecom-generated", "bfcl-generated", "acebench-generated",
    "food-delivery-generated", "hotel-generated", "bank-generated", "insurance-generated",
)  # fmt: skip


class ReproduceConfig(Section):
    """Which environments each stage of `muarl reproduce` sees. Sizes are in `base`, `sft`, `rl` and `eval`."""

    pretrained: bool = Field(
        False,
        description="Take `model.checkpoint`, trained elsewhere, as the base. Cold start and RL may then be in "
        "the same environments.",
    )
    arms: tuple[Literal["cold", "rl", "both"], ...] = Field(
        ("cold", "rl", "both"), description="Which arms are trained besides the base; `both` needs `cold`."
    )
    further_cold_start: Count = Field(
        0,
        description="Steps of an arm `more`: a further cold start on new demonstrations after `cold`; 0: none.",
    )
    read: tuple[str, ...] = Field(READ, description="What the base reads: conversations of wandering agents in these.")
    cold_start: tuple[str, ...] = Field(
        ("food-delivery-generated", "hotel-generated", "bank-generated", "insurance-generated"),
        description="Environments of the demonstrations.",
    )
    rl: tuple[str, ...] = Field(("retail-generated", "airline-generated"), description="Environments of RL.")
    intents: tuple[str, ...] = Field(
        (),
        description="In the environments of `rl` only tasks with these intents, in RL and evaluations; empty: all.",
    )
    unseen: tuple[str, ...] = Field(
        ("telecom-generated", "bfcl-generated", "acebench-generated"),
        description="Also evaluated; no stage but the base has seen them.",
    )
    kept_out: str | None = Field(
        "clinic-generated",
        description="Also evaluated; not even the base has read it.",
    )
    unseen_tasks: Positive | None = Field(
        None, description="Tasks of each evaluated environment without RL; null: `eval.tasks`."
    )
    user_model: str | None = Field(None, description="Also evaluate all arms with this user model (`muarl sft-user`).")
    user_model_in: tuple[str, ...] = Field(("retail-generated",), description="The environments of the user model.")
    user_traits: tuple[Literal["typical", "hard"], ...] = Field(
        (),
        description="Also evaluate all arms with users this difficult, in the environments of `rl`.",
    )
    user_tasks: Positive | None = Field(
        None, description="Tasks of each environment with `user_model` and `user_traits`; null: `eval.tasks`."
    )
    materials: Positive = Field(
        80, description="Tasks of each environment from which wandering agents take calls and sentences."
    )

    @model_validator(mode="after")
    def _apart(self) -> ReproduceConfig:
        if not (self.read or self.pretrained) or not self.cold_start or not self.rl:
            raise ValueError("read, cold_start and rl must each name an environment")
        trained, evaluated = {*self.cold_start, *self.rl}, {*self.unseen, self.kept_out}
        if (both := sorted(set(self.cold_start) & set(self.rl))) and not self.pretrained:
            raise ValueError(f"{both[0]} is in cold_start and in rl: the paper's cold start knows none of RL's worlds")
        if overlap := sorted(trained & evaluated):
            raise ValueError(f"{overlap[0]} is trained on, so it cannot be in unseen, nor kept_out")
        if self.kept_out in (*self.unseen, *(() if self.pretrained else self.read)):
            raise ValueError(f"{self.kept_out} is kept_out, so it cannot be in read or unseen")
        if (missing := sorted(trained - {*self.read})) and not self.pretrained:
            raise ValueError(f"{missing[0]} is not in read, so that the model could not write its words")
        if "cold" not in self.arms and ("both" in self.arms or self.further_cold_start):
            later = "the arm both" if "both" in self.arms else "further_cold_start"
            raise ValueError(f"{later} begins where the arm cold ends: add cold to arms")
        return self

    @property
    def evaluated(self) -> tuple[str, ...]:
        """All environments that every arm is evaluated in."""
        return (*self.rl, *self.unseen, *(() if self.kept_out is None else (self.kept_out,)))


class SftConfig(Section):
    """Supervised fine-tuning on demonstrations (the cold start)."""

    steps: Count = Field(200, description="Optimiser steps; 0 skips the cold start.")
    epochs: Positive | None = Field(None, description="Passes over all demonstrations, instead of `steps`.")
    demonstrations: Positive = Field(2000, description="How many demonstrations are generated.")
    demonstrations_file: Path | None = Field(
        None, description="Take demonstrations from this episodes file (JSON lines)."
    )
    seed: int = Field(1, description="Seed of the demonstrations' training tasks.")
    error_profile: ErrorProfileConfig = Field(default_factory=ErrorProfileConfig)
    batch: Positive = Field(16, description="Demonstrations in one optimiser step.")
    lr: Annotated[float, Field(gt=0)] = Field(3e-3, description="Peak learning rate of AdamW.")
    matrix_lr: Annotated[float, Field(gt=0)] = Field(
        0.02, description="Peak learning rate of the matrices under `optimizer: muon`."
    )
    optimizer: Literal["adamw", "muon"] = Field(
        "adamw", description="`muon`: Muon for the matrices, AdamW for the rest."
    )
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "linear", description="How the learning rate falls once `decay` begins."
    )
    warmup: Count = Field(10, description="Steps over which the learning rate rises from 0.")
    decay: Probability = Field(0.4, description="Last share of the steps, in which the learning rate falls to 0.")
    weight_decay: Annotated[float, Field(ge=0)] = Field(0.0, description="AdamW weight decay.")
    grad_clip: Annotated[float, Field(gt=0)] = Field(1.0, description="Largest norm of the gradient.")
    checkpoint_every: Count = Field(200, description="Write a checkpoint every N steps; 0: only at the end.")
    other_token_weight: Probability = Field(
        0.0, description="Loss weight of tokens that the agent did not write. Usually 0."
    )

    def step_count(self, demonstrations: int) -> int:
        """How many steps a cold start on so many demonstrations takes."""
        return self.steps if self.epochs is None else -(-self.epochs * demonstrations // self.batch)


class UserRlConfig(Section):
    """Reinforcement learning of a user model (`muarl train-user`). The model is `model.checkpoint`; steps, loss and
    optimiser are in `rl`, the held-out tasks in `eval`."""

    agent: str | None = Field(
        None,
        description="Whom the user talks with: a run or checkpoint of an agent, whose weights stay as they are, or "
        "`expert`, the scripted one.",
    )
    agent_context: Positive = Field(2048, description="Longest episode of that checkpoint, in tokens.")
    objective: Literal["hard", "likely"] = Field(
        "hard",
        description="`hard`: reward 1 where the agent ends wrong (the task failed, or the audit finds a violation), "
        "else 0. `likely`: how near what the user says is to a reference user model.",
    )
    reference: str | None = Field(
        None,
        description="Under `likely`: a user model with the same tokenizer, such as one fine-tuned on logs of people; "
        "null: the model that the run begins with.",
    )
    likeness: Literal["log_likelihood", "kl"] = Field(
        "log_likelihood",
        description="Under `likely`: `log_likelihood`, the reference's mean log-probability of the user's tokens, or "
        "`kl`, the same less the user's own, which keeps its variety.",
    )
    void_margin: Annotated[float, Field(gt=0)] = Field(
        1.0,
        description="An episode in which the user leaves its scenario has a reward this far below the lowest of the "
        "others in its group.",
    )

    @field_validator("agent", "reference")
    @classmethod
    def _is_here(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and value.startswith("endpoint:"):
            other = ", or expert" if info.field_name == "agent" else ""
            raise ValueError(
                "must be a model whose weights stay the same from step to step (a run, a checkpoint "
                f"folder{other}), not one behind a server"
            )
        return value

    @model_validator(mode="after")
    def _reference_is_used(self) -> UserRlConfig:
        if self.objective == "hard" and self.reference is not None:
            raise ValueError("reference: only objective likely has one; set objective=likely, or leave it out")
        return self


class BaseConfig(Section):
    """Pretraining of the small base checkpoint (`muarl base`)."""

    checkpoint: str | None = Field(
        None,
        description="A base checkpoint to continue from; new words are added to its tokenizer. null: random weights.",
    )
    steps: Positive = Field(2500, description="Optimiser steps.")
    conversations: Positive = Field(10000, description="Generated conversations that it learns from.")
    batch: Positive = Field(16, description="Conversations in one optimiser step.")
    difficulty_weight: Annotated[float, Field(ge=1)] = Field(
        2.0,
        description="How many times as often a conversation is read for each point of difficulty above 1, and for "
        "a refusal.",
    )
    others_learnt: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0,
        description="Share of users' and tools' tokens that a step predicts. Below 1 is cheaper with a large "
        "vocabulary.",
    )
    lr: Annotated[float, Field(gt=0)] = Field(6e-3, description="Peak learning rate of AdamW.")
    matrix_lr: Annotated[float, Field(gt=0)] = Field(0.02, description="Peak learning rate of Muon for the matrices.")
    seed: int = Field(3, description="Seed of the generated conversations.")
    hidden: Positive = Field(128, description="Width of the model; with `base.checkpoint` that one's.")
    layers: Positive = Field(3, description="Transformer blocks; the same.")
    heads: Positive = Field(4, description="Query heads; the same.")
    words: bool = Field(
        False,
        description="Read sentences and tool names word by word. Agent turns become two to three times as long "
        "(`rollout.tokens_per_turn`).",
    )
    spare_tokens: Count = Field(
        0,
        description="Tokens only in copying drills, as rows for new words of later checkpoints.",
    )
    validation: Count = Field(
        50,
        description="Held-out conversations of each domain on which the model is measured; 0: none.",
    )
    checkpoint_every: Count = Field(
        500, description="Steps between checkpoints to resume from; 0: only when interrupted."
    )
