"""What can be found wrong before any work starts: endpoints that do not answer, users that do not fit the tasks.

Recipes call these first, before a model is loaded and before there is a run folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

from muarl.backends.memory_estimate import check_present, free_memory, in_one_process, model_shape
from muarl.backends.model_support import check_supported
from muarl.backends.models import make_endpoint
from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.basics.event_loop import event_loop
from muarl.basics.files import free_space, size_text
from muarl.config import DomainConfig, EvalConfig, RunConfig
from muarl.config.sections import UserConfig
from muarl.domains.base import Domain, Task
from muarl.domains.task_kinds import kind_of
from muarl.environments.environment import Environment
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.environments.task_files import read_tasks
from muarl.observe.progress import Progress
from muarl.planning.assumptions import GIB
from muarl.planning.memory import learner_memory, playing_memory, torch_engine_memory
from muarl.planning.models import ModelShape
from muarl.planning.nearest import nearest
from muarl.planning.plan import VALIDATION_TASKS
from muarl.planning.setup import BYTES, deployment
from muarl.rewards.judge import open_judge_model
from muarl.runs.bounds import Bounded, bound_of
from muarl.runs.judges import judge_specs
from muarl.runs.search_models import ask_searching, check_counted
from muarl.runs.task_seeds import rl_seed

if TYPE_CHECKING:
    from muarl.endpoints import Endpoint

Role = Literal["user", "eval_user", "agent", "judge"]
"""Who takes part in a run: the user of training, that of evaluation, the agent of ``muarl eval``, the judge."""

AHEAD = 1000
"""Training tasks whose gold actions are replayed before the first step."""

PARTS = {"eval.endpoint": "agent", "coldstart.endpoint": "teacher", "coldstart.tools_endpoint": "tools"}
"""What the model of a section is called where it is announced; others go by their section's name."""

SURE = ("weights", "gradients", "optimiser", "reference", "start model")
"""Parts of a learner's memory that every update takes, whatever the episodes' lengths."""


def check_roles(config: RunConfig, *roles: Role, bounded: Bounded = "budget") -> None:
    """Check that those who take part fit the tasks, start the server that the domain's tools are on, if they are on
    one, and ask every endpoint one tiny question. ``bounded``: the section whose bounds the command keeps to.

    ConfigError if a part cannot be played in this domain, or its server is missing, or if there is a bound and an
    endpoint's answers do not say how many tokens they take; InfrastructureError (not retryable)
    for an endpoint that does not answer or refuses the key. They name the section of the configuration.
    """
    check_fits(config, *roles)
    for wanted in config.domains:
        environment = find(wanted.name)
        if environment.on_server:
            check_server(environment.make_domain(wanted.size))
    bound = bound_of(config, bounded)
    ask_endpoints(list(_endpoints(config, roles)), bound)
    ask_searching(config, bound)


def check_tasks(config: RunConfig, places: Places) -> list[str]:
    """Check that there are tasks to train on and, where training is to validate, to validate on; what is worth knowing
    about them, line by line. DataError or ConfigError if there are none."""
    check_practice(config, places)
    places.example_tasks("train")
    if not config.rl.eval_every:
        return []
    places.example_tasks("validation")
    return places.validation_notes()


def check_practice(config: RunConfig, places: Places) -> None:
    """ConfigError if tasks are to be chosen by kind (``rl.practice.adaptive``), and do not say of which kind they
    are."""
    if not config.rl.practice.adaptive:
        return
    for task in places.example_tasks("train"):
        if kind_of(task.tags) is None:
            raise ConfigError(
                f"rl.practice.adaptive: task {task.id} has no tag `intent`, and tasks are chosen by it: give the "
                "environment's tasks this tag, or set rl.practice.adaptive=false"
            )


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
        for wanted in config.domains:
            _check_fits(config, wanted, role)


_ASKED: ContextVar[set[tuple[str, ...]] | None] = ContextVar("endpoints that have answered", default=None)


@contextmanager
def asked_once() -> Iterator[None]:
    """Within the block an endpoint that has answered is not asked again."""
    token = _ASKED.set(set())
    try:
        yield
    finally:
        _ASKED.reset(token)


def ask_endpoints(endpoints: list[tuple[str, str, Endpoint]], bound: str | None = None) -> None:
    """Say who will be asked, and ask endpoints one tiny question each; (section of the configuration, boundary,
    endpoint). InfrastructureError (not retryable) names the section of one that does not answer; ConfigError one whose
    answer does not say how many tokens it took, where ``bound`` (the name of a setting) is to be kept."""
    answered = _ASKED.get()
    endpoints = [(s, b, e) for s, b, e in endpoints if answered is None or (s, *_key(e)) not in answered]
    if endpoints:
        progress = Progress()
        for section, _, endpoint in endpoints:
            progress.say(f"{PARTS.get(section, section.removesuffix('.endpoint'))}: {endpoint.about}")
        with event_loop() as loop:
            loop.run(_ask(endpoints))
        for section, _, endpoint in endpoints:
            check_counted(section, endpoint, bound)
    if answered is not None:
        answered.update((section, *_key(endpoint)) for section, _, endpoint in endpoints)


def _key(endpoint: Endpoint) -> tuple[str, str, str]:
    return endpoint.config.model, str(endpoint.config.url), endpoint.config.api_key_env


def check_may_train(config: RunConfig) -> None:
    """Raise ConfigError if this run would train on a benchmark's own tasks without saying so."""
    for environment in (find(wanted.name) for wanted in config.domains):
        if environment.is_benchmark and not config.train_on_benchmark:
            instead = f"Train on domain.name={environment.practice}, or set" if environment.practice else "Set"
            raise ConfigError(
                f"domain.name is {environment.name}: training on a benchmark's own tasks makes its scores meaningless. "
                f"{instead} train_on_benchmark=true if this is what you want."
            )


def _check_fits(config: RunConfig, domain: DomainConfig, role: Role) -> None:
    """Whether an environment offers what a role needs."""
    environment = find(domain.name)
    if role == "agent" and config.eval.agent == "expert":
        environment.needed_expert()
    if role not in ("user", "eval_user"):
        return
    kind = _user(config, role).kind
    if environment.is_benchmark and not environment.official().place.needs_user_model(config.eval.split):
        return  # its users are its own
    made, logged = _sources(domain)
    if kind == "scripted" and made and not _lists_lines(environment, domain.size):
        instead = "llm" if environment.rule_based_user is None else "agenda"
        raise ConfigError(
            f"{role}.kind is scripted, and tasks of {environment.name} list no lines: set {role}.kind={instead}"
        )
    if kind == "agenda" and logged:
        raise ConfigError(
            f"{role}.kind is agenda, and tasks of a file (domain.tasks) have no agenda, unless they are made ones: set "
            f"{role}.kind=llm with an endpoint, sampled with a user model, or scripted (the lines that the tasks list, "
            "whatever the agent says)"
        )
    if kind == "agenda":
        environment.needed_user(role)


def _sources(domain: DomainConfig) -> tuple[bool, bool]:
    """Whether any task is made by the environment, and whether any is a file's own, such as from a log."""
    if domain.tasks is None:
        return True, False
    made = [bool(filed.made) for filed in read_tasks(domain.tasks.expanduser()) if filed.confirmed]
    return any(made), not all(made) or not made


def _lists_lines(environment: Environment, size: str) -> bool:
    """Whether an environment's tasks list what a scripted user says; read off the first one."""
    if environment.is_benchmark:
        return False
    first = next(environment.iter_tasks(environment.splits[0], size=size), None)
    return first is not None and "lines" in (first.agenda or {})


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
    for section, spec in judge_specs(config).items():
        model = open_judge_model(spec)
        if model is not None:
            yield section, model.endpoint


async def _ask(endpoints: list[tuple[str, str, Endpoint]]) -> None:
    for section, boundary, endpoint in endpoints:
        try:
            await endpoint.check(boundary=boundary)
        except InfrastructureError as problem:
            raise InfrastructureError(f"{section}: {problem}", boundary=boundary, retryable=False) from None
        finally:
            await endpoint.aclose()


def check_gold(config: RunConfig, places: Places) -> None:
    """Replay the gold actions of the tasks that a training run will draw: all for validation, the first ``AHEAD`` to
    train on. Those drawn later are replayed as they are drawn. DataError names one that fails.

    Nothing is replayed that a generator has (``Place.check``).
    """
    if places.replayed:
        return
    rl, seed = config.rl, rl_seed(config.rl, config.seed)
    if rl.eval_every:
        places.check(validation_tasks(config.eval, places))
    for start in range(0, min(rl.steps * rl.tasks_per_step, AHEAD), rl.tasks_per_step):
        places.check(places.draw("train", rl.tasks_per_step, seed, start))


def validation_tasks(ev: EvalConfig, places: Places) -> Sequence[Task]:
    """The tasks of a validation in training: as many as are evaluated, but no more than VALIDATION_TASKS."""
    wanted = min(ev.tasks or VALIDATION_TASKS, VALIDATION_TASKS)
    return places.draw("validation", wanted, ev.seed, 0)


def check_memory(config: RunConfig, *, training: bool = True, sampling: bool = True) -> None:
    """Check, before anything is loaded, that the model allows what is asked of it (see ``check_supported``), and that
    it and what its training needs have room on this machine.

    Counts only what is certainly taken: weights, gradients, optimiser, reference model, the sampler's copy of the
    weights, and on a GPU its whole cache. ``training`` False: a run that only samples; ``sampling`` False: one that
    only learns, from demonstrations. ConfigError says how much is missing and which settings would do. Without a
    complaint where the run is not all in this process, or where the system does not say what is free.
    """
    check_present(config)
    check_supported(config, sampling=sampling)
    if sampling:
        check_processes(config)
    if not (in_one_process(config) if training and sampling else _in_this_process(config, training)):
        return
    try:
        shape = model_shape(config)
    except CheckpointError:
        return  # whoever loads it says in full what is wrong
    on_gpu, free = free_on_device(config.model.device)

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


def check_processes(config: RunConfig) -> None:
    """ConfigError if several processes were to sample from a model on a GPU (``engine.processes``)."""
    if config.engine.processes not in (1, "auto") and free_on_device(config.model.device)[0]:
        raise ConfigError(
            "engine.processes: processes share the cores of a CPU, and this machine has a GPU, where the model would "
            "be: set engine.processes=1, or model.device=cpu"
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
    half = config.model.held != "float32" and config.learner.kind == "torch"
    return 2 * shape.parameters * (2 if half else 4)


def _in_this_process(config: RunConfig, training: bool) -> bool:
    """Whether this process learns (where there is ``training``), or samples."""
    kind = config.learner.kind if training else config.engine.kind
    return kind == "torch" and config.cluster.address is None


def sure_bytes(
    config: RunConfig, shape: ModelShape, *, on_gpu: bool, training: bool = True, sampling: bool = True
) -> int:
    """The least that a run in one process takes; see ``check_memory``."""
    chosen = deployment(config, shape, on_gpu=on_gpu, with_rl=training and sampling)
    engine = torch_engine_memory(shape, chosen.slots, chosen.positions, chosen.engine_bytes)
    # A CPU's pages of the cache are taken only as conversations grow.
    sampler = sum(engine.values()) if on_gpu else engine["weights"]
    if sampling and chosen.processes > 1:
        parts = {"weights": sampler}
        sampler = sum(playing_memory(shape, parts, chosen.processes, chosen.learner.frozen_bytes).values())
    learner = learner_memory(shape, chosen.learner)
    if not training:
        return shape.parameters * BYTES[config.model.held] + sampler
    if not sampling:
        return sum(learner.get(name, 0) for name in SURE)
    return sum(learner.get(name, 0) for name in SURE) + sampler


def free_on_device(device: str) -> tuple[bool, int]:
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
