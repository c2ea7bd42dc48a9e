"""What sections of a run configuration are made of, and those that several others use."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Price = Annotated[float, Field(ge=0.0)]


class Section(BaseModel):
    """A part of a configuration: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, protected_namespaces=(), allow_inf_nan=False
    )


class EndpointConfig(Section):
    """A model behind an OpenAI-compatible server."""

    model: str = Field("", description="Model name as the server knows it.")
    base_url: str | None = Field(None, description="Address of the server; empty: the environment's OPENAI_BASE_URL.")
    api_key_env: str = Field(
        "OPENAI_API_KEY", description="Name of the environment variable that holds the key. Never the key itself."
    )
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = Field(
        0.0, description="Sampling temperature; null leaves it to the server."
    )
    max_tokens: Positive | None = Field(
        1024, description="Longest completion of one request, in tokens; null leaves it to the server."
    )
    concurrency: Positive = Field(16, description="Most requests under way at once.")
    timeout: Annotated[float, Field(gt=0)] = Field(90.0, description="Seconds that one attempt may take.")
    deadline: Annotated[float, Field(gt=0)] = Field(
        300.0, description="Seconds that a request may take with all its retries."
    )
    attempts: Positive = Field(6, description="How often a request is sent at most.")
    prompt_price: Annotated[float, Field(ge=0)] = Field(
        0.0, description="US dollars for a million prompt tokens, for the cost account; 0: unknown."
    )
    completion_price: Annotated[float, Field(ge=0)] = Field(
        0.0, description="US dollars for a million completion tokens; 0: unknown."
    )


class UserConfig(Section):
    """The simulated user."""

    kind: Literal["agenda", "llm", "sampled", "scripted"] = Field(
        "agenda",
        description="`agenda`: plays a generated task's goal and facts from rules and phrases. `llm`: a model behind "
        "`endpoint`. `sampled`: a user model of `checkpoint`, in process (`muarl sft-user` trains one). `scripted`: "
        "says the lines that the task lists.",
    )
    seed: int = Field(0, description="Seed of the user's own choices, such as phrasing and when to change its mind.")
    persona: Literal["terse", "chatty", "confused", "impatient"] | None = Field(
        None, description="Agenda users: play every task as this persona; null: each task as its own."
    )
    guidelines: Literal["auto", "tau2", "muarl", "tau1"] = Field(
        "auto",
        description="LLM users: the instructions they play by. `tau2`: the benchmark's own text, once installed. "
        "`muarl`: the text shipped with muarl. `tau1`: the first tau-bench's own text. `auto`: the benchmark's whose "
        "tasks are played; on other tasks TAU2's where it is installed, else muarl's.",
    )
    endpoint: EndpointConfig | None = Field(None, description="LLM users: the model that plays the user.")
    checkpoint: str | None = Field(
        None, description="Sampled users: a run of `muarl sft-user`, or a checkpoint folder."
    )
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = Field(1.0, description="Sampled users: temperature.")
    max_context: Positive = Field(1024, description="Sampled users: longest conversation in tokens.")
    delay: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] | None = Field(
        None,
        description="`[low, high]`: seconds that a user of any kind waits before each reply, drawn evenly by its seed; "
        "null: none. Simulates slow users in measurements.",
    )

    @model_validator(mode="after")
    def _llm_needs_endpoint(self) -> UserConfig:
        if self.kind == "llm" and (self.endpoint is None or not self.endpoint.model):
            raise ValueError("kind is llm, so endpoint.model must name the model that plays the user")
        if self.kind == "sampled" and not self.checkpoint:
            raise ValueError("kind is sampled, so checkpoint must name the user model")
        return self

    @model_validator(mode="after")
    def _delay_is_a_range(self) -> UserConfig:
        if self.delay is not None and self.delay[0] > self.delay[1]:
            raise ValueError(f"delay must be [low, high], not {list(self.delay)}")
        return self


class HabitsConfig(Section):
    """Bad habits of the expert that makes demonstrations: how often it gives in to each, where it can.

    An imperfect cold start leaves reinforcement learning something to do.
    """

    skip_confirmation: Probability = Field(0.0, description="Writes without asking the user first.")
    forget_second: Probability = Field(0.0, description="Drops what else was asked for at the start.")
    needless_transfer: Probability = Field(0.0, description="Hands over to a person at once, without need.")
    transfer_if_unavailable: Probability = Field(0.0, description="Hands over instead of offering another option.")
    transfer_if_forbidden: Probability = Field(0.0, description="Hands over instead of refusing.")
    try_forbidden: Probability = Field(0.0, description="Calls the tool though the order's status forbids it.")
    guess: Probability = Field(0.0, description="Fills in a missing choice by itself instead of asking.")
    slip: Probability = Field(0.0, description="Gets an id wrong in a look-up first, and recovers from the error.")
