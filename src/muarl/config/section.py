"""What sections of a run configuration are made of, and those that several others use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from muarl.basics.untrusted import parse_json

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]
WORD = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$"
"""What a size or a split may be called."""

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
    base_url: str | None = Field(None, description="Address of the server; null: OPENAI_BASE_URL.")
    api_key_env: str = Field(
        "OPENAI_API_KEY",
        pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$",
        description="Environment variable that holds the API key; empty: no key is sent. In a file, only one that "
        "the environment allows for this server (SECURITY.md).",
    )
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = Field(
        0.0, description="Sampling temperature; null: the server's."
    )
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = Field(
        None, description="Nucleus sampling; null: the server's."
    )
    max_tokens: Positive | None = Field(1024, description="Longest completion in tokens; null: the server's.")
    concurrency: Positive = Field(16, description="Maximum concurrent requests.")
    timeout: Annotated[float, Field(gt=0)] = Field(90.0, description="Seconds for one attempt.")
    deadline: Annotated[float, Field(gt=0)] = Field(300.0, description="Seconds for a request with all retries.")
    attempts: Positive = Field(6, description="Maximum attempts at a request.")
    prompt_price: Annotated[float, Field(ge=0)] = Field(
        0.0, description="US dollars per million prompt tokens; 0: unknown."
    )
    completion_price: Annotated[float, Field(ge=0)] = Field(
        0.0, description="US dollars per million completion tokens; 0: unknown."
    )
    extra: dict[str, Any] = Field(
        default_factory=dict,
        description="Further fields of each request: `{chat_template_kwargs: {enable_thinking: false}}` turns off "
        "Qwen3's thinking in vLLM.",
    )

    @field_validator("api_key_env", mode="before")
    @classmethod
    def _may_be_left_empty(cls, value: Any) -> Any:
        """``api_key_env=``, which YAML reads as nothing, is a name of no characters: no key."""
        return "" if value is None else value

    @field_validator("extra")
    @classmethod
    def _can_be_sent(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name in ("model", "messages", "tools", "tool_choice", "stream", "n"):
                raise ValueError(f"{name} is set by muarl itself")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError("contains a value that JSON cannot represent, such as .nan: put it in quotes") from None
        return value

    @classmethod
    def of_spec(cls, spec: str) -> EndpointConfig:
        """The section that ``endpoint:MODEL``, ``endpoint:MODEL@URL`` or ``endpoint:{...}`` stands for. ConfigError if
        it is none of them."""
        if spec.startswith("endpoint:{"):
            return cls.model_validate_json(spec.removeprefix("endpoint:"))
        from muarl.endpoints.config import parse_endpoint

        endpoint = parse_endpoint(spec)
        return (
            cls(model=endpoint.model)
            if endpoint.base_url is None
            else cls(model=endpoint.model, base_url=endpoint.base_url)
        )

    @property
    def spec(self) -> str:
        """The same as one text. Only what was set is in it."""
        fields = self.model_dump(mode="json", exclude_unset=True)
        if set(fields) <= {"model", "base_url"}:
            return f"endpoint:{self.model}" + (f"@{self.base_url}" if self.base_url else "")
        return f"endpoint:{json.dumps(fields)}"


def _judge_spec(value: Any) -> Any:
    """A judge that is described by a section, as one text."""
    if isinstance(value, str) and value.startswith("endpoint:{"):
        try:
            value = parse_json(value.removeprefix("endpoint:"))
        except ValueError as problem:
            raise ValueError(f"what follows endpoint: is no JSON object: {problem}") from None
    if not isinstance(value, Mapping):
        return value
    try:
        section = EndpointConfig.model_validate(dict(value))
    except ValidationError as problem:
        wrong = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in problem.errors()]
        raise ValueError("; ".join(wrong)) from None
    if not section.model:
        raise ValueError("model must name the model that judges")
    return section.spec


JudgeSpec = Annotated[str, BeforeValidator(_judge_spec)]
"""A judge: a text such as ``endpoint:MODEL@URL``, or the keys of an endpoint section, which become such a text."""


def _level(value: Any) -> Any:
    ends = value if isinstance(value, (list, tuple)) else (value, value)
    plain = all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in ends)
    if not plain or len(ends) != 2 or not 0 <= ends[0] <= ends[1] <= 1:
        raise ValueError("give a level from 0 to 1, or [low, high]")
    return (float(ends[0]), float(ends[1])) if isinstance(value, (list, tuple)) else float(value)


TraitLevel = Annotated[float | tuple[float, float], BeforeValidator(_level)]
"""A trait's level from 0 (not at all) to 1, or the ends of a range that every user's level is drawn from."""

TRAIT_LEVELS: Mapping[str, Mapping[str, Any]] = {
    "easy": {},
    "typical": {"withholding": 0.4, "impatience": 0.3, "wandering": 0.2, "mistakes": 0.15},
    "hard": {"withholding": 0.9, "impatience": 0.7, "wandering": 0.6, "mistakes": 0.5},
    "mixed": {"withholding": [0.0, 0.9], "impatience": [0.0, 0.7], "wandering": [0.0, 0.6], "mistakes": [0.0, 0.5]},
}
"""What the names stand for. ``mixed``: every user's own, each trait from none to hard."""


def _levels(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in TRAIT_LEVELS:
        raise ValueError(f"use {', '.join(TRAIT_LEVELS)}, or levels such as {{withholding: 0.5}}")
    return dict(TRAIT_LEVELS[value])


class TraitsConfig(Section):
    """What makes a user difficult, from 0 to 1, or `[low, high]`: each user's level is drawn from that range."""

    withholding: TraitLevel = Field(
        0.0, description="Tells less than is needed, answers in part, asks what a question is for."
    )
    impatience: TraitLevel = Field(0.0, description="Short answers, presses for time, leaves when it takes too long.")
    wandering: TraitLevel = Field(
        0.0,
        description="Asks about something else, changes its mind at a proposal, and comes back to its request.",
    )
    mistakes: TraitLevel = Field(0.0, description="Gets a detail wrong first, and corrects it with the next message.")
    foreign_language: TraitLevel = Field(
        0.0,
        description="Share of messages in another language, until the agent keeps to English or asks for it.",
    )
    languages: tuple[Literal["de", "es", "fr", "zh"], ...] = Field(
        ("de", "es", "fr", "zh"), min_length=1, description="Languages of which every user has one."
    )
    where_possible: bool = Field(
        False, description="Users who cannot have traits are easy; otherwise asking for it is an error."
    )

    @property
    def any(self) -> bool:
        """Whether any level is above 0."""
        levels = (self.withholding, self.impatience, self.wandering, self.mistakes, self.foreign_language)
        return any(max(level) > 0 if isinstance(level, tuple) else level > 0 for level in levels)


Traits = Annotated[TraitsConfig, BeforeValidator(_levels)]


def _strata(value: Any) -> Any:
    """The name of a stratum, or a list of names, as weights by stratum: none, which stands for the panel's."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, (list, tuple)):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("name strata, such as [patience, expertise], or give weights by stratum and value")
        return {name: {} for name in value}
    if isinstance(value, Mapping):
        return {name: {} if weights is None else weights for name, weights in value.items()}
    return value


StrataSetting = Annotated[dict[str, dict[str, Annotated[float, Field(gt=0)]]], BeforeValidator(_strata)]
"""Weights by value by stratum; none: those of the panel (muarl/users/strata/panel.yaml). ``all``: every stratum."""


UserRule = Literal[
    "contradicts", "invents", "leaks", "breaks_character", "pretends", "omits_actions", "stops_early",
    "agrees_and_stops", "agrees_wrongly", "unknown_tool", "never_stops", "front_loads", "overtells", "repeats", "loops",
    "empty", "incoherent",
]  # fmt: skip
"""What can be wrong with what a simulated user says (muarl.user_errors.conduct)."""


class GuardConfig(Section):
    """The guard of a simulated user: looks at each message by rules before it is sent."""

    active: bool = Field(
        False,
        description="Check the user's messages, and ask again where a rule finds an error. Users other than "
        "models (`llm`, `sampled`) are only marked.",
    )
    retries: Count = Field(2, description="Maximum further tries of a message, each paid for.")
    rules: tuple[UserRule, ...] = Field(
        (
            "contradicts", "invents", "leaks", "breaks_character", "pretends", "omits_actions",
            "stops_early", "agrees_and_stops", "agrees_wrongly", "unknown_tool", "loops", "empty", "incoherent",
        ),
        description="The rules that are checked (docs/user-check.md).",
    )  # fmt: skip
    exclude: bool = Field(
        True,
        description="Leave episodes with an unfixed error out of training and demonstrations.",
    )


class UserConfig(Section):
    """The simulated user."""

    kind: Literal["agenda", "llm", "sampled", "scripted"] = Field(
        "agenda",
        description="Rules (`agenda`), a model behind `endpoint` (`llm`), a user model of `checkpoint` "
        "(`sampled`), or the task's lines (`scripted`).",
    )
    seed: int = Field(0, description="Seed of the user's own choices.")
    persona: Literal["terse", "chatty", "confused", "impatient"] | None = Field(
        None, description="Agenda users: play every task as this persona."
    )
    guidelines: Literal["auto", "tau2", "muarl", "tau1"] = Field(
        "auto",
        description="LLM users: their instructions. `auto`: the benchmark's own on its tasks, else muarl's.",
    )
    endpoint: EndpointConfig | None = Field(None, description="LLM users: the model that plays the user.")
    checkpoint: str | None = Field(
        None, description="Sampled users: a run of `muarl sft-user`, or a checkpoint folder."
    )
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = Field(1.0, description="Sampled users: temperature.")
    max_context: Positive = Field(1024, description="Sampled users: longest conversation in tokens.")
    tries: Positive = Field(
        64,
        description="Sampled users: maximum samples of a message until it is true to the scenario. 1: no check.",
    )
    traits: Traits = Field(
        default_factory=TraitsConfig,
        description="Agenda and LLM users: `easy`, `typical`, `hard`, `mixed` (each user its own), or levels of "
        "single traits.",
    )
    strata: StrataSetting = Field(
        default_factory=dict,
        description="Agenda and LLM users: personas, one value of each stratum, drawn by seed (docs/users.md): "
        "`all`, a list such as `[patience, expertise]`, or weights `{patience: {hurried: 1, patient: "
        "3}}`.",
    )
    delay: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] | None = Field(
        None,
        description="`[low, high]`: seconds that a user waits before each reply, for measurements.",
    )

    guard: GuardConfig = Field(
        default_factory=GuardConfig, description="Looks at what the user says before it is sent."
    )

    def at(self, level: str) -> UserConfig:
        """These users, but as difficult as a name of TRAIT_LEVELS says."""
        return self.model_copy(update={"traits": TraitsConfig.model_validate(TRAIT_LEVELS[level])})

    @model_validator(mode="after")
    def _llm_needs_endpoint(self) -> UserConfig:
        if self.kind == "llm" and (self.endpoint is None or not self.endpoint.model):
            raise ValueError("kind is llm, so endpoint.model must name the model that plays the user")
        if self.kind == "sampled" and not self.checkpoint:
            raise ValueError("kind is sampled, so checkpoint must name the user model")
        if self.kind in ("sampled", "scripted") and self.traits.any and not self.traits.where_possible:
            raise ValueError(f"traits: {self.kind} users have none; use kind agenda or llm")
        if self.kind in ("sampled", "scripted") and self.strata:
            raise ValueError(f"strata: {self.kind} users have none; use kind agenda or llm")
        return self

    @model_validator(mode="after")
    def _delay_is_a_range(self) -> UserConfig:
        if self.delay is not None and self.delay[0] > self.delay[1]:
            raise ValueError(f"delay must be [low, high], not {list(self.delay)}")
        return self


class ErrorProfileConfig(Section):
    """Errors of the expert that makes demonstrations: the probability of each error where it is possible. An
    imperfect cold start leaves reinforcement learning something to improve."""

    skip_confirmation: Probability = Field(0.0, description="Writes without asking the user first.")
    forget_second: Probability = Field(0.0, description="Forgets a second request made at the start.")
    needless_transfer: Probability = Field(0.0, description="Transfers to a person at once, without need.")
    transfer_if_unavailable: Probability = Field(0.0, description="Transfers instead of offering another option.")
    transfer_if_forbidden: Probability = Field(0.0, description="Transfers instead of refusing.")
    try_forbidden: Probability = Field(0.0, description="Calls the tool though the order's status forbids it.")
    guess: Probability = Field(0.0, description="Fills in a missing choice instead of asking.")
    wrong_id: Probability = Field(0.0, description="Gets an id wrong in a look-up first, and recovers from the error.")
    skip_approval: Probability = Field(0.0, description="Does alone what a colleague must approve.")
