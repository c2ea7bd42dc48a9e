"""The sections of a run configuration: what each key means, its default and its range.

The descriptions are also the text of docs/configuration.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from muarl.basics.errors import ConfigError
from muarl.chat_formats.families import NAMES, EarlierThoughts, ToolText
from muarl.config.keeping import BudgetConfig, CheckpointsConfig, TrackioConfig, WandbConfig
from muarl.config.mixing import as_sections, as_written
from muarl.config.rl import RlConfig
from muarl.config.rollout import RetrievalConfig, RolloutConfig
from muarl.config.scale import (
    ClusterConfig,
    EngineConfig,
    LearnerBackendConfig,
    check_processes_play,
    check_weights_arrive,
    process_count,
    with_pack_tokens,
)
from muarl.config.section import (
    WORD,
    Count,
    EndpointConfig,
    JudgeSpec,
    Positive,
    Price,
    Probability,
    Section,
    UserConfig,
)
from muarl.config.stages import BaseConfig, ColdstartConfig, ReproduceConfig, SftConfig, UserRlConfig
from muarl.config.world import WorldConfig

NAME = r"^\S(.*\S)?$"
"""What an environment's name looks like: anything that does not begin or end with a space."""


def _known_format(name: str) -> str:
    if name not in NAMES:
        raise ValueError(f"no such chat format; known: {', '.join(NAMES)}")
    return name


class ModelConfig(Section):
    """The model that is trained or evaluated."""

    checkpoint: str = Field(
        "base",
        description="A run (`runs/NAME`: its newest checkpoint), a folder with a Hugging Face checkpoint, or "
        "`base`, shipped with muarl.",
    )
    thinking: bool = Field(False, description="Let the model think before it answers.")
    earlier_thoughts: EarlierThoughts = Field(
        "family",
        description="Earlier thoughts when the user speaks again: as in the chat template (`family`; an episode "
        "may have several segments), or kept.",
    )
    chat_format: Annotated[str, AfterValidator(_known_format)] = Field(
        "auto",
        description="How messages become tokens: `auto` (the checkpoint's chat template) or a format of "
        "docs/models.md. `text` works with any model.",
    )
    tool_text: ToolText | None = Field(
        None,
        description="How the chat format `text` shows tools: a line each, or OpenAI's JSON. null: as the "
        "checkpoint was trained, else signatures.",
    )
    max_context: Positive = Field(
        2048, description="Longest episode in tokens; one that reaches it ends with `context_full`."
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "float32",
        description="Number format of the weights. `auto`: the fastest here, for `learner.precision` and "
        "`engine.dtype`; trained weights stay float32.",
    )
    device: str = Field("auto", description="`auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:1`.")

    @property
    def held(self) -> Literal["float32", "bfloat16"]:
        """The number format of the weights; float32 where it is left to a machine that nobody has asked yet."""
        return "float32" if self.dtype == "auto" else self.dtype


class DomainConfig(Section):
    """The environment and its tasks. `domain` may also be a list of such sections (or names): tasks are drawn from all,
    by weight (docs/training.md#several-domains-in-one-run). Over a list, `domain.size=small` changes every
    entry, `domain.0.weight=2` the first, and `domain.name=NAME` chooses a single domain instead."""

    name: Annotated[str, Field(pattern=NAME, max_length=500)] = Field(
        "retail-generated",
        description="The environment (`muarl domains` lists them): `NAME-generated`, a benchmark such as "
        "`tau2-NAME`, an installed plug-in, `FILE.py:NAME` or `package.module:NAME` "
        "(docs/domains.md).",
    )
    size: Annotated[str, Field(pattern=WORD)] = Field(
        "tiny",
        description="Size of a generated world, its policy text and tools. `tiny` suits the shipped model, "
        "`official` equals the benchmark's.",
    )
    policy: Path | None = Field(None, description="A file with another policy text; empty: the domain's own.")
    intents: tuple[str, ...] = Field(
        (), description="Only generated tasks with these intents, such as `cancel`; empty: all of them."
    )
    red_team_share: Probability = Field(
        0.0,
        description="Share of training tasks with adversarial or difficult users (docs/redteam.md). Generated "
        "retail, airline and telecom only.",
    )

    tasks: Path | None = Field(
        None,
        description="A task file of `muarl tasks`, instead of generated tasks.",
    )
    allow_failing_gold: bool = Field(
        False,
        description="Play your own tasks although their gold actions fail when replayed. Doing nothing may then "
        "earn the full reward.",
    )
    weight: Annotated[float, Field(gt=0)] = Field(1.0, description="In a list of domains: relative share of the tasks.")


RedTeamKind = Literal[
    "all", "impostor", "pressure", "changing", "injection", "silent", "angry", "off_topic", "language", "insider"
]


VALIDATION_TASKS = 100
"""Most tasks of a validation in training."""


class EvalConfig(Section):
    """Evaluation on held-out tasks."""

    split: Annotated[str, Field(pattern=WORD)] = Field(
        "test",
        description="`train`, `validation` or `test` of generated tasks, a split of your environment, or an "
        "official one: TAU2 `base` (published scores), `train`, `test`, telecom also `small`, `full`; "
        "TAU1 `test`, retail also `train`, `dev`; BFCL and ACEBench `test` (everything) or a "
        "category: `base`, `miss_func`, `miss_param`, `long_context`; `multi_turn`, `multi_step`.",
    )
    tasks: Positive | None = Field(200, description="Number of tasks; null: all of an official split.")
    task_ids: tuple[str, ...] = Field((), description="Only official tasks with these ids; empty: all.")
    trials: Positive = Field(1, description="Episodes of each task. pass^k needs at least k.")
    harder_users: tuple[Literal["typical", "hard"], ...] = Field(
        (),
        description="Also evaluate on the same tasks with users this difficult (docs/users.md). Skipped where "
        "`eval_user` has traits or strata or cannot have any, and under `noise` and `solo`.",
    )
    noise: Annotated[str, Field(pattern=r"^\d{1,3}x\d{1,3}(x\d{1,3})?$")] | None = Field(
        None,
        description="Instead of `trials`: `3x3` plays every agent seed with every user seed, for `muarl compare`; "
        "`3x3x2`: each pair twice.",
    )
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = Field(1.0, description="Sampling temperature; 0: greedy.")
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = Field(1.0, description="Nucleus sampling; 1: off.")
    seed: int = Field(0, description="Seed of the tasks drawn and of sampling.")
    seeds: tuple[int, ...] = Field(
        (), description="`muarl sft-user`: measure the user on `tasks` tasks of each of these seeds, instead of `seed`."
    )
    agent: Literal["sampled", "endpoint", "expert", "idle"] = Field(
        "sampled",
        description="Who serves: the model of `model`, one behind `endpoint`, the scripted expert, or an agent "
        "that does nothing.",
    )
    endpoint: EndpointConfig | None = Field(None, description="The model to evaluate under `agent: endpoint`.")
    guard: bool = Field(
        False,
        description="Hold back calls that violate the audit's rules and ask the agent again "
        "(docs/serving.md#a-guardrail). Needs `agent: endpoint`.",
    )
    judge: JudgeSpec = Field(
        "pass",
        description="Judge of natural-language assertions: `pass` or `fail` (always), `endpoint:MODEL`, or the "
        "keys of `eval.endpoint`. Only scores with a model compare with published ones.",
    )
    next_turns: Count = Field(
        0,
        description="Tasks on which the agent's next call is compared with the scripted expert's, turn by turn; "
        "0: off.",
    )
    baseline: bool = Field(
        True,
        description="Also score doing nothing.",
    )
    solo: bool = Field(
        False,
        description="The agent works without a user, from the ticket, with the user's tools too (TAU2's telecom, "
        "telecom-workflow, mock).",
    )
    max_steps: Positive | None = Field(
        None,
        description="Step limit of an official episode; null: the benchmark's (TAU2: 200 messages and batches of "
        "tool results; TAU1: 30 agent turns).",
    )
    max_errors: Positive | None = Field(
        None, description="Tool errors that end an official episode; null: the benchmark's (TAU2: 10)."
    )
    concurrency: Positive | None = Field(None, description="Maximum concurrent episodes; null: `rollout.concurrency`.")
    max_cost: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="US dollars for agent, users and judges together; then no new episode starts. Needs prices.",
    )
    max_tokens: Positive | None = Field(None, description="The same in prompt and completion tokens.")
    prices: dict[str, tuple[Price, Price]] = Field(
        default_factory=dict,
        description="US dollars per million prompt and completion tokens: `{NAME: [2, 8]}`.",
    )
    mode: Literal["auto", "native", "qwen", "text", "text-api"] = Field(
        "auto",
        description="How tool calls reach BFCL and ACEBench: `native` (function calling), `qwen`, `text` (the "
        "benchmark's prompt), `text-api` (ACEBench's runner for APIs). `auto`: BFCL `native` for "
        "endpoints, `qwen` for checkpoints; ACEBench `text`.",
    )
    user_judge: JudgeSpec | None = Field(
        None,
        description="`endpoint:MODEL` that looks for errors of simulated users, besides the rules.",
    )
    audit_judge: JudgeSpec | None = Field(
        None,
        description="`endpoint:MODEL` that audits what rules cannot decide.",
    )
    red_team: tuple[RedTeamKind, ...] = Field(
        (),
        description="Evaluate against hostile and difficult users of these kinds instead, or `[all]` "
        "(docs/redteam.md). Generated retail, airline and telecom.",
    )
    red_team_tasks: Positive = Field(20, description="Under `red_team`: how many tasks of each kind.")

    @property
    def validation_tasks(self) -> int:
        """How many tasks a validation in training has: as many as are evaluated, but no more than VALIDATION_TASKS."""
        return min(self.tasks or VALIDATION_TASKS, VALIDATION_TASKS)

    @model_validator(mode="after")
    def _endpoint_needs_model(self) -> EvalConfig:
        if self.agent == "endpoint" and (self.endpoint is None or not self.endpoint.model):
            raise ValueError("agent is endpoint, so endpoint.model must name the model to evaluate")
        return self

    @model_validator(mode="after")
    def _judges_are_models(self) -> EvalConfig:
        for name, spec in (("user_judge", self.user_judge), ("audit_judge", self.audit_judge)):
            if spec is not None and not spec.startswith("endpoint:"):
                raise ValueError(f"{name} must be endpoint:MODEL or endpoint:MODEL@URL, not {spec!r}")
        return self


class RunConfig(Section):
    """One run."""

    name: str = Field(
        "run",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        max_length=200,
        description="The run's folder is `runs_dir/name`. Letters, digits, dots, dashes and underscores.",
    )
    seed: int = Field(0, description="Seed of everything that has no seed of its own.")
    runs_dir: Path = Field(Path("runs"), description="Where run folders are made.")
    threads: Count = Field(0, description="CPU threads for torch; 0: as many as cores may be used.")
    resume: Path | None = Field(None, description="A run folder to continue from its last checkpoint.")
    train_on_benchmark: bool = Field(
        False, description="Allow training on official tasks. Scores on them then mean nothing."
    )
    model: ModelConfig = Field(default_factory=ModelConfig)
    domains: Annotated[tuple[DomainConfig, ...], BeforeValidator(as_sections)] = Field(
        default_factory=lambda: (DomainConfig(),), alias="domain"
    )
    user: UserConfig = Field(default_factory=UserConfig)
    eval_user: UserConfig = Field(default_factory=lambda: UserConfig(seed=1))
    retrieval: RetrievalConfig = Field(default_factory=RetrievalConfig)
    world: WorldConfig = Field(default_factory=WorldConfig)
    base: BaseConfig = Field(default_factory=BaseConfig)
    reproduce: ReproduceConfig = Field(default_factory=ReproduceConfig)
    coldstart: ColdstartConfig = Field(default_factory=ColdstartConfig)
    sft: SftConfig = Field(default_factory=SftConfig)
    rollout: RolloutConfig = Field(default_factory=RolloutConfig)
    rl: RlConfig = Field(default_factory=RlConfig)
    user_rl: UserRlConfig = Field(default_factory=UserRlConfig)
    checkpoints: CheckpointsConfig = Field(default_factory=CheckpointsConfig)
    budget: BudgetConfig = Field(default_factory=BudgetConfig)
    engine: EngineConfig = Field(default_factory=EngineConfig)
    learner: LearnerBackendConfig = Field(default_factory=LearnerBackendConfig)
    cluster: ClusterConfig = Field(default_factory=ClusterConfig)
    eval: EvalConfig = Field(default_factory=EvalConfig)
    wandb: WandbConfig = Field(default_factory=WandbConfig)
    trackio: TrackioConfig = Field(default_factory=TrackioConfig)

    @model_validator(mode="before")
    @classmethod
    def _packs_follow_the_context(cls, values: Any) -> Any:
        default = ModelConfig.model_fields["max_context"].default
        return with_pack_tokens(values, default) if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _tasks_of_a_file(self) -> RunConfig:
        if any(domain.intents for domain in self.domains if domain.tasks is not None):
            raise ValueError("domain.intents: tasks of a file (domain.tasks) are all taken; leave some out of the file")
        return self

    @model_validator(mode="after")
    def _weights_arrive(self) -> RunConfig:
        check_weights_arrive(self.cluster, self.engine, self.learner)
        check_processes_play(self.engine, self.cluster, self.model.device, self._asked)
        if self.engine.sleep and self.rl.asynchrony != "synchronous":
            raise ValueError(
                f"engine.sleep: with rl.asynchrony={self.rl.asynchrony} the sampler works while the learner does: set "
                "rl.asynchrony=synchronous, or leave engine.sleep out"
            )
        return self

    @field_validator("domains")
    @classmethod
    def _differ(cls, domains: tuple[DomainConfig, ...]) -> tuple[DomainConfig, ...]:
        if not domains:
            raise ValueError("the list is empty: name at least one domain")
        names = [domain.name for domain in domains]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice} is listed twice: its tasks would be drawn twice")
        return domains

    @model_serializer(mode="wrap")
    def _as_written(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = plain(self)
        return {
            ("domain" if k == "domains" else k): (as_written(v) if k == "domains" else v) for k, v in values.items()
        }

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> RunConfig:
        """A copy with other values, which are not checked; ``domain``: a section or several."""
        changed = dict(update or {})
        if "domain" in changed:
            changed["domains"] = as_sections(changed.pop("domain"))
        return super().model_copy(update=changed, deep=deep)

    @property
    def domain(self) -> DomainConfig:
        """The run's only domain. ConfigError, with what to do, where there are several."""
        if len(self.domains) > 1:
            raise ConfigError(
                f"domain: this takes one domain, and the configuration has {self.domain_text}: choose one, such as by "
                f"domain.name={self.domains[0].name}"
            )
        return self.domains[0]

    @property
    def process_count(self) -> int:
        """How many processes play episodes (``engine.processes``) where the model is on a CPU."""
        return process_count(self.engine, self.cluster, self.model.device, self._asked, self.threads)

    @property
    def _asked(self) -> list[str]:
        """Settings that name models behind endpoints."""
        settings = [f"{name}.kind=llm" for name in ("user", "eval_user") if getattr(self, name).kind == "llm"]
        return settings + (["eval.judge"] if self.eval.judge.startswith("endpoint:") else [])

    @property
    def domain_text(self) -> str:
        """The names of the run's domains, for messages."""
        return ", ".join(domain.name for domain in self.domains)

    @property
    def environments(self) -> tuple[tuple[str, str], ...]:
        """(setting, name) of each environment that is named: of the domains, and of scenarios of a cold start."""
        domains = (("domain.name", domain.name) for domain in self.domains)
        return (*domains, *(("coldstart.scenarios", name) for name in self.coldstart.scenarios))

    @property
    def written(self) -> Path:
        """The folder that the run is written in: that of the resumed one, else where run folders are made."""
        return self.resume or self.runs_dir

    @property
    def run_dir(self) -> Path:
        """Folder of this run."""
        return self.runs_dir / self.name


def fields_of(section: type[Section], prefix: str = "") -> Iterator[tuple[str, type[Section] | None, Any]]:
    """Every field below a section: dotted name, the section class if the field is one, and pydantic's field info."""
    for field, info in section.model_fields.items():
        inner, name = _section_in(info.annotation), info.alias or field
        yield prefix + name, inner, info
        if inner is not None:
            yield from fields_of(inner, f"{prefix}{name}.")


def _section_in(annotation: Any) -> type[Section] | None:
    """The section class in an annotation such as ``EndpointConfig | None``, or None."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Section):
            return candidate
    return None
