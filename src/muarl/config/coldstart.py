"""The section of a run configuration about synthesised conversations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

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
        description="Environments to make conversations in, or your own folders (docs/coldstart.md).",
    )
    count: Positive = Field(2000, description="Conversations to keep, in equal shares of the scenarios.")
    size: Annotated[str, Field(pattern=WORD)] = Field(
        "medium",
        description="How large the worlds are: a size that some scenario comes in; one without it takes its largest.",
    )
    seed: int = Field(0, description="Seed of tasks, worlds and users.")
    teacher: Literal["expert", "endpoint"] = Field(
        "expert", description="Who serves: the scripted experts, or the model behind `endpoint`."
    )
    endpoint: EndpointConfig | None = Field(None, description="The teacher under `teacher: endpoint`.")
    error_profile: ErrorProfileConfig = Field(
        default_factory=ErrorProfileConfig,
        description="Errors that the scripted experts make; the filters drop such conversations.",
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
    near_duplicate: Probability = Field(
        0.9, description="Of two conversations whose word 5-grams overlap more than this (Jaccard), one is dropped."
    )
    judge: JudgeSpec | None = Field(
        None, description="A model that must judge each conversation as following the policy: `endpoint:MODEL`."
    )
    max_cost: Annotated[float, Field(gt=0)] | None = Field(
        None, description="Start no new conversations after spending this many US dollars."
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
