"""What can be found wrong before any work starts: endpoints that do not answer, users that do not fit the tasks.

Recipes call these first, before a model is loaded and before there is a run folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

from muarl.config import RunConfig
from muarl.config.sections import DomainConfig, UserConfig
from muarl.domains.base import Domain, Task
from muarl.domains.generated import NAMES as GENERATED
from muarl.domains.generated import MakeExpert, generated
from muarl.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.files import free_space, size_text
from muarl.observe.progress import Progress
from muarl.planning.assumptions import GIB
from muarl.planning.memory import learner_memory, torch_engine_memory
from muarl.planning.models import ModelShape
from muarl.planning.nearest import nearest
from muarl.planning.plan import VALIDATION_TASKS
from muarl.planning.setup import BYTES, deployment
from muarl.recipes.common import judge_endpoint, make_endpoint
from muarl.recipes.official import held_out, official
from muarl.recipes.planned import check_present, free_memory, in_one_process, model_shape
from muarl.recipes.setting import Setting

if TYPE_CHECKING:
    from muarl.endpoints import Endpoint
    from muarl.learning.checkpoints import Policy

Role = Literal["user", "eval_user", "agent", "judge"]
"""Who takes part in a run: the user of training, that of evaluation, the agent of ``muarl eval``, the judge."""

AHEAD = 1000
"""Training tasks whose gold actions are replayed before the first step."""

PARTS = {"eval.endpoint": "agent", "coldstart.endpoint": "teacher", "coldstart.tools_endpoint": "tools"}
"""What the model of a section is called where it is announced; others go by their section's name."""

SURE = ("weights", "gradients", "optimiser", "reference", "start model")
"""Parts of a learner's memory that every update takes, whatever the episodes' lengths."""


def check_roles(config: RunConfig, *roles: Role) -> None:
    """Check that those who take part fit the tasks, start the server that the domain's tools are on, if they are on
    one, and ask every endpoint one tiny question.

    ConfigError if a part cannot be played in this domain, or its server is missing; InfrastructureError (not retryable)
    for an endpoint that does not answer or refuses the key. They name the section of the configuration.
    """
    check_fits(config, *roles)
    if config.domain.generated:
        check_server(generated(config.domain.name).domain(config.domain.size))
    ask_endpoints(list(_endpoints(config, roles)))


def check_tasks(config: RunConfig, setting: Setting) -> list[str]:
    """Check that there are tasks to train on and, where training is to validate, to validate on; what is worth knowing
    about them, line by line. DataError or ConfigError if there are none."""
    setting.some_task("train")
    source = setting.benchmark
    if not config.rl.eval_every:
        return []
    setting.some_task("validation")
    if source is None or source.validation_split is not None:
        return []
    kept, held = (len(part) for part in held_out(source))
    return [
        f"{source.name} has no tasks to validate on: {held} of its {kept + held} training tasks are held out for that "
        "(rl.eval_every=0 trains on all of them)"
    ]


def check_server(domain: Domain) -> None:
    """Where a domain's tools are an MCP server's, start it once. ConfigError says what is missing, and the remedy."""
    from muarl.domains.mcp.domain import McpDomain

    if isinstance(domain, McpDomain):
        try:
            domain.check()
        except ConfigError as problem:
            raise ConfigError(f"domain.name: {problem}") from problem


def check_fits(config: RunConfig, *roles: Role) -> None:
    """Check that those who take part fit the tasks, and ask nobody. ConfigError if one cannot be played here."""
    for role in roles:
        _check_fits(config, role)


_ASKED: ContextVar[set[tuple[str, ...]] | None] = ContextVar("endpoints that have answered", default=None)


@contextmanager
def asked_once() -> Iterator[None]:
    """Within the block an endpoint that has answered is not asked again."""
    token = _ASKED.set(set())
    try:
        yield
    finally:
        _ASKED.reset(token)


def ask_endpoints(found: list[tuple[str, str, Endpoint]]) -> None:
    """Say who will be asked, and ask endpoints one tiny question each; (section of the configuration, boundary,
    endpoint). InfrastructureError (not retryable) names the section of one that does not answer."""
    answered = _ASKED.get()
    found = [(s, b, e) for s, b, e in found if answered is None or (s, *_key(e)) not in answered]
    if found:
        progress = Progress()
        for section, _, endpoint in found:
            progress.say(f"{PARTS.get(section, section.removesuffix('.endpoint'))}: {endpoint.about}")
        asyncio.run(_ask(found))
    if answered is not None:
        answered.update((section, *_key(endpoint)) for section, _, endpoint in found)


def _key(endpoint: Endpoint) -> tuple[str, str, str]:
    return endpoint.config.model, str(endpoint.config.url), endpoint.config.api_key_env


def _check_fits(config: RunConfig, role: Role) -> None:
    """Official tasks have neither an agenda nor lines, and the scripted expert does not know them."""
    if config.domain.generated:
        scripted = role in ("user", "eval_user") and _user(config, role).kind == "scripted"
        if scripted and config.domain.tasks is None:
            raise ConfigError(f"{role}.kind is scripted, and generated tasks list no lines: set {role}.kind=agenda")
        return
    source = official(config.domain.name)
    if role in ("user", "eval_user") and source.needs_user_model(config.eval.split):
        kind = _user(config, role).kind
        if kind == "scripted" or (kind == "agenda" and _twin(config.domain) is None):
            raise ConfigError(
                f"{role}.kind is {kind}, and the tasks of {config.domain.name} can only be played by a model: set "
                f"{role}.kind=llm and {role}.endpoint.model"
            )
    if role == "agent" and config.eval.agent == "expert":
        expert_of(config.domain)


def expert_of(domain: DomainConfig) -> MakeExpert:
    """The scripted expert of a domain. ConfigError if it has none for these tasks."""
    name = domain.name if domain.generated else _twin(domain)
    if name is None:
        raise ConfigError(f"eval.agent is expert, which knows generated tasks only, not those of {domain.name}")
    return generated(name).expert


def _twin(domain: DomainConfig) -> str | None:
    """The generated domain whose experts and callers play a benchmark's tasks too: telecom's, which are made alike."""
    if domain.generated or "telecom" not in domain.name or "telecom-generated" not in GENERATED:
        return None
    return "telecom-generated"


def _user(config: RunConfig, role: Role) -> UserConfig:
    return config.user if role == "user" else config.eval_user


def _endpoints(config: RunConfig, roles: tuple[Role, ...]) -> Iterator[tuple[str, str, Endpoint]]:
    """(section of the configuration, boundary, endpoint) of each different endpoint that the roles need."""
    seen = set()
    for role in roles:
        section, boundary = f"{role}.endpoint", "user"
        endpoint: Endpoint | None = None
        if role in ("user", "eval_user"):
            user = _user(config, role)
            if user.kind == "llm" and user.endpoint is not None:
                endpoint = make_endpoint(user.endpoint)
        elif role == "agent":
            section, boundary = "eval.endpoint", "agent"
            if config.eval.agent == "endpoint" and config.eval.endpoint is not None:
                endpoint = make_endpoint(config.eval.endpoint)
        found = [(section, boundary, endpoint)] if endpoint is not None else []
        if role == "judge":
            found = [(where, "judge", asked) for where, asked in _judges(config)]
        for where, side, asked in found:
            key = _key(asked)
            if key not in seen:
                seen.add(key)
                yield where, side, asked


def _judges(config: RunConfig) -> Iterator[tuple[str, Endpoint]]:
    """(section, endpoint) of each judge that is a model; generated tasks have no natural-language assertions."""
    named = [("eval.judge", None if config.domain.generated else config.eval.judge)]
    others = [("eval.user_judge", config.eval.user_judge), ("eval.audit_judge", config.eval.audit_judge)]
    for section, spec in [*named, *others]:
        endpoint = None if spec is None else judge_endpoint(spec)
        if endpoint is not None:
            yield section, endpoint


async def _ask(endpoints: list[tuple[str, str, Endpoint]]) -> None:
    for section, boundary, endpoint in endpoints:
        try:
            await endpoint.check(boundary=boundary)
        except InfrastructureError as problem:
            raise InfrastructureError(f"{section}: {problem}", boundary=boundary, retryable=False) from None
        finally:
            await endpoint.aclose()


def check_gold(config: RunConfig, setting: Setting) -> None:
    """Replay the gold actions of the tasks that a training run will draw: all for validation, the first ``AHEAD`` to
    train on. Those drawn later are replayed as they are drawn. DataError names one that fails.

    Nothing is replayed that a generator has (``Setting.check``).
    """
    if not setting.unchecked:
        return
    rl = config.rl
    if rl.eval_every:
        setting.check(validation_tasks(config, setting))
    for start in range(0, min(rl.steps * rl.tasks_per_step, AHEAD), rl.tasks_per_step):
        setting.check(setting.draw("train", rl.tasks_per_step, train_seed(config), start))


def validation_tasks(config: RunConfig, setting: Setting) -> Sequence[Task]:
    """The tasks of a validation in training: as many as are evaluated, but no more than VALIDATION_TASKS."""
    wanted = min(config.eval.tasks or VALIDATION_TASKS, VALIDATION_TASKS)
    return setting.draw("validation", wanted, config.eval.seed, 0)


def train_seed(config: RunConfig) -> int:
    """The seed of the tasks that reinforcement learning draws."""
    return config.rl.seed + 1000 * config.seed + 500_000


def check_room(config: RunConfig, setting: Setting, policy: Policy, *, training: bool = True) -> None:
    """Check that policy text and tools leave the agent room to speak, and that an update has room for the longest
    episode (where there is ``training``). ConfigError says how much they take."""
    from muarl.tokens import ChatTokens

    longest, most = config.model.max_context, policy.model.config.max_position_embeddings
    if longest > most:
        raise ConfigError(f"model.max_context is {longest}, but this model reads at most {most} tokens")
    if training and config.rl.pack_tokens < longest:
        raise ConfigError(
            f"rl.pack_tokens is {config.rl.pack_tokens}, and an episode may grow to {longest} tokens "
            "(model.max_context): raise the one, or lower the other"
        )
    task = setting.some_task(config.eval.split if not training else "train")
    chat = ChatTokens(policy.tokenizer, thinking=config.model.thinking)
    taken = len(chat.prompt(setting.told(task), setting.tools(task), []))
    if taken >= longest:
        sizes = generated(config.domain.name).sizes if config.domain.generated else ()
        smaller = config.domain.size in sizes[1:]
        remedy = "raise it, or choose a smaller domain.size" if smaller else "raise it"
        if taken >= most:
            remedy = f"this model reads at most {most}; take another one"
            if config.domain.generated:
                remedy += (
                    f", such as one whose vocabulary is this domain's (muarl base domain.name={config.domain.name})"
                )
        raise ConfigError(
            f"model.max_context is {longest}, and policy text and tools alone take {taken} tokens: {remedy}"
        )


def check_memory(config: RunConfig, *, training: bool = True, sampling: bool = True) -> None:
    """Check, before anything is loaded, that the model and what its training needs have room on this machine.

    Counts only what is certainly taken: weights, gradients, optimiser, reference model, the sampler's copy of the
    weights, and on a GPU its whole cache. ``training`` False: a run that only samples; ``sampling`` False: one that
    only learns, from demonstrations. ConfigError says how much is missing and which settings would do. Without a
    complaint where the run is not all in this process, or where the system does not say what is free.
    """
    check_present(config)
    if not (in_one_process(config) if training and sampling else _in_this_process(config, training)):
        return
    try:
        shape = model_shape(config)
    except CheckpointError:
        return  # whoever loads it says in full what is wrong
    on_gpu, free = _free_on_device(config.model.device)

    def needs(c: RunConfig) -> int:
        return sure_bytes(c, shape, on_gpu=on_gpu, training=training, sampling=sampling)

    needed = needs(config)
    if not free or needed <= free:
        return
    found = nearest(config, lambda c: needs(c) <= free)
    where = "the GPU" if on_gpu else "this machine"
    hint = f": try {' '.join(found)}" if found else ", and no setting makes it fit: take a smaller model"
    raise ConfigError(
        f"model.checkpoint: {shape.name} with {shape.parameters:,} parameters needs at least {needed / GIB:.1f} GiB "
        f"under these settings, and {where} has {free / GIB:.1f} GiB free{hint} (muarl plan shows what takes how much)"
    )


def check_disk(config: RunConfig) -> None:
    """Check that the disk of the run's folder has room for one checkpoint. ConfigError says how much it takes."""
    try:
        shape = model_shape(config)
    except CheckpointError:
        return  # whoever loads it says in full what is wrong
    where = (config.resume or config.runs_dir).expanduser()
    needed, free = checkpoint_bytes(config, shape), free_space(where)
    if free is not None and free < needed:
        raise ConfigError(
            f"{where.absolute()}: a checkpoint of {shape.name} takes at least {size_text(needed)} under these "
            f"settings, and the disk has {size_text(free)} free: free some space (old runs and checkpoints are the "
            "usual suspects), or set runs_dir to another disk"
        )


def checkpoint_bytes(config: RunConfig, shape: ModelShape) -> int:
    """The least that a training run's checkpoint takes: weights in the type they are trained in, and the optimiser's
    state, which is as large again at least; with adapters the weights alone."""
    if config.learner.lora is not None:
        return 2 * shape.parameters
    half = config.model.dtype != "float32" and config.learner.kind == "torch"
    return 2 * shape.parameters * (2 if half else 4)


def _in_this_process(config: RunConfig, training: bool) -> bool:
    """Whether this process learns (where there is ``training``), or samples."""
    kind = config.learner.kind if training else config.engine.kind
    return kind == "torch" and config.cluster.address is None


def sure_bytes(
    config: RunConfig, shape: ModelShape, *, on_gpu: bool, training: bool = True, sampling: bool = True
) -> int:
    """The least that a run in one process takes; see ``check_memory``."""
    chosen = deployment(config, shape, on_gpu=on_gpu)
    engine = torch_engine_memory(shape, chosen.slots, chosen.positions, chosen.engine_bytes)
    # A CPU's pages of the cache are taken only as conversations grow.
    sampler = sum(engine.values()) if on_gpu else engine["weights"]
    learner = learner_memory(shape, chosen.learner)
    if not training:
        return shape.parameters * BYTES[config.model.dtype] + sampler
    if not sampling:
        return sum(learner.get(name, 0) for name in SURE if name != "reference")
    return sum(learner.get(name, 0) for name in SURE) + sampler


def _free_on_device(device: str) -> tuple[bool, int]:
    """Whether the run's device is a GPU, and how many bytes are free on it; 0 where nobody knows."""
    if device == "cpu":
        return False, free_memory()
    import torch

    if not torch.cuda.is_available():
        return False, free_memory()
    try:
        free, _ = torch.cuda.mem_get_info(torch.device("cuda" if device == "auto" else device))
    except (RuntimeError, AssertionError, ValueError):
        return True, 0  # whoever uses the device says what is wrong with it
    return True, int(free)
