"""What the recipes share: from a run configuration to domain, tasks, users, model and scored episodes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from muarl.agents.base import Agent
from muarl.config import RunConfig
from muarl.config.approvals import remember
from muarl.config.sections import EndpointConfig as EndpointSection
from muarl.config.sections import ModelConfig, UserConfig
from muarl.config.trust import to_approve
from muarl.domains.base import Task
from muarl.errors import ConfigError
from muarl.observe.loggers import MetricLogger, make_logger
from muarl.observe.rundir import RunDirectory
from muarl.observe.system import usable_cores
from muarl.observe.weights_and_biases import WandbSettings, check_wandb
from muarl.player import Player, RolloutRequest, requests_for
from muarl.recipes.changes import check_place, check_resume
from muarl.recipes.checkpoint_names import checkpoint_folder
from muarl.recipes.resuming import ResumedRun
from muarl.recipes.setting import Setting
from muarl.rewards.judge import make_judge
from muarl.rollout import Budget, Executor, LocalExecutor, Progress, Rollout, rollout
from muarl.users.base import UserFactory

if TYPE_CHECKING:  # torch and transformers take seconds to import, and not every recipe has a model in this process
    from muarl.endpoints import Endpoint
    from muarl.inference.base import PolicySampler
    from muarl.learning.checkpoints import Policy

USER_SLOTS = 256
"""Conversations that a user model holds at once."""


def prepare(config: RunConfig, *, models: bool = True) -> None:
    """Threads and seeds of this process. ConfigError if a package is missing that the run would only ask for later.
    ``models`` False: no model runs in this process, which then need not import torch."""
    if config.wandb.enabled:
        check_wandb()
    random.seed(config.seed)
    if models:
        import torch

        torch.set_num_threads(config.threads or max(1, int(usable_cores())))
        torch.manual_seed(config.seed)


def make_users(config: UserConfig, setting: Setting | None = None) -> UserFactory:
    """The simulated users of one section of the configuration, with the tools that users have in this setting.

    A benchmark's own users, where it has some, are made whatever the section says, but for the model that plays them
    and their ``delay``.
    """
    users = _users(config, setting)
    if config.delay is None:
        return users
    from muarl.users.slow import SlowUserFactory

    return SlowUserFactory(users, *config.delay)


def _users(config: UserConfig, setting: Setting | None) -> UserFactory:
    if setting is not None and setting.benchmark is not None:
        model = None if config.endpoint is None else partial(make_endpoint, config.endpoint)
        own = setting.benchmark.users(setting.domain, model)
        if own is not None:
            return own
    if config.kind == "agenda":
        from muarl.users.agenda import AgendaUserFactory

        return AgendaUserFactory(seed=config.seed, persona=config.persona)
    if config.kind == "scripted":
        from muarl.users.scripted import ScriptedUserFactory

        return ScriptedUserFactory()
    if config.kind == "sampled":
        return sampled_users(config)
    from muarl.users.llm import LLMUserFactory

    if config.endpoint is None:
        raise ConfigError("user.endpoint: an llm user needs the model that plays it")
    style = "muarl" if setting is None or setting.benchmark is None else setting.benchmark.user_style
    tau1 = style == "tau1"
    return LLMUserFactory(
        make_endpoint(config.endpoint),
        guidelines=style if config.guidelines == "auto" else config.guidelines,
        tools=() if setting is None else setting.user_tools,
        send_seed=not tau1,
        empty_ok=tau1,
    )


def sampled_users(config: UserConfig, policy: Policy | None = None) -> UserFactory:
    """Users of a model in this process: ``checkpoint``'s, or the one given. CheckpointError if it cannot be loaded."""
    import torch

    from muarl.inference.torch_engine import TorchEngine
    from muarl.learning.checkpoints import load_policy
    from muarl.tokens import ChatTokens
    from muarl.users.sampled import SampledUserFactory

    name = policy.path.name if policy is not None else str(config.checkpoint)
    if policy is None:
        folder = checkpoint_folder(str(config.checkpoint))
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        policy = load_policy(folder, dtype=torch.float32, device=device)
    engine = TorchEngine(policy.model, max_slots=USER_SLOTS, max_context=config.max_context, seed=config.seed)
    return SampledUserFactory(
        engine,
        ChatTokens(policy.tokenizer),
        temperature=config.temperature,
        context=config.max_context,
        seed=config.seed,
        name=f"user model {name}",
    )


def make_endpoint(section: EndpointSection) -> Endpoint:
    """The client of an endpoint section. ConfigError if it names no model."""
    from muarl.endpoints import Endpoint
    from muarl.endpoints.config import endpoint_config

    return Endpoint(endpoint_config(section.model_dump()))


def judge_endpoint(spec: str) -> Endpoint | None:
    """The endpoint behind a judge, None for a fixed one. Its usage counts all that this process has asked the judge."""
    return getattr(getattr(make_judge(spec), "model", None), "endpoint", None)


def load_model(config: ModelConfig, *, weights: bool = True) -> Policy:
    """The model and tokenizer that a run starts from. CheckpointError names what is wrong with the folder, ConfigError
    with the device. ``weights`` False: without memory for them, where only other processes need them."""
    import torch

    from muarl.learning.checkpoints import load_policy

    name = ("cuda" if torch.cuda.is_available() else "cpu") if config.device == "auto" else config.device
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ConfigError(f"model.device: {name!r} cannot be used on this machine; see `muarl doctor`") from None
    folder = checkpoint_folder(config.checkpoint)
    return load_policy(folder, dtype=getattr(torch, config.dtype), device=device, weights=weights)


@contextmanager
def closed(engine: PolicySampler) -> Iterator[None]:
    """Close an engine behind the block, so that the next one finds its memory free."""
    try:
        yield
    finally:
        asyncio.run(engine.aclose())


async def play(
    setting: Setting,
    agent: Agent,
    users: UserFactory,
    tasks: Sequence[Task],
    trials: int,
    *,
    seed: int,
    label: str = "",
    concurrency: int = 256,
    same_user: bool = False,
    budget: Budget | None = None,
    rounds: int = 1,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Rollout:
    """Play and score ``trials`` episodes of every task."""
    requests = requests_for(tasks, trials, seed=seed, label=label, same_user=same_user)
    return await play_requests(
        setting,
        agent,
        users,
        requests,
        concurrency=concurrency,
        budget=budget,
        rounds=rounds,
        progress=progress,
        executor=executor,
    )


def make_player(setting: Setting, agent: Agent, users: UserFactory) -> Player:
    """Who plays the episodes of a setting."""
    playing: dict[str, Any] = {}
    if setting.official is not None:
        playing = {"retries": setting.official.attempts - 1, "score_cut": setting.official.scores_cut}
    return Player(
        make_world=setting.domain.world,
        agent=agent,
        make_user=users,
        score=setting.score,
        audit=setting.audit,
        limits=setting.limits,
        rules=setting.rules,
        system=setting.told,
        tools=setting.tools,
        **playing,
    )


async def play_requests(
    setting: Setting,
    agent: Agent,
    users: UserFactory,
    requests: Sequence[RolloutRequest],
    *,
    concurrency: int = 256,
    budget: Budget | None = None,
    give_up: int | None = None,
    rounds: int = 1,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Rollout:
    """Play and score these episodes: in this process, or where ``executor`` plays them."""
    executor = executor or LocalExecutor(make_player(setting, agent, users).play, concurrency)
    try:
        return await rollout(requests, executor, budget=budget, give_up=give_up, rounds=rounds, progress=progress)
    finally:  # connections belong to this event loop, which ends with the rollout
        await close_endpoints(setting, agent, users)


async def close_endpoints(setting: Setting, *parts: object) -> None:
    """Close this event loop's connections to the models behind agents, users, domain and judge."""
    for part in (*parts, setting.domain, make_judge(setting.judge)):
        close = getattr(getattr(part, "endpoint", part), "aclose", None)
        if close is not None:
            await close()


def open_run(config: RunConfig, command: str | None = None) -> RunDirectory:
    """The run's folder: a new one (NAME-2 where NAME is taken), or the one that ``resume`` names, which stays as it was
    until the work goes on. ``command``: see RunDirectory.

    ConfigError if a resumed run would change what it may not (recipes/changes.py).
    """
    settings = config.model_copy(update={"resume": None}).model_dump(mode="json")
    if config.resume is not None:
        changed = check_resume(config, command)
        remember(config.resume.expanduser() / "config.yaml", to_approve(config))
        return ResumedRun(config.resume.expanduser().absolute(), settings, command=command, changed=changed)
    check_place(config)
    run = RunDirectory(config.runs_dir.expanduser(), config.name, existing="suffix", command=command)
    run.write_config(settings)
    remember(run.path / "config.yaml", to_approve(config))
    return run


def tell_domain(run: RunDirectory, config: RunConfig, setting: Setting) -> None:
    """Let a run's folder say its true domain, where a program brings another than the configuration names."""
    source = setting.generated or setting.benchmark
    name = setting.domain.name if source is None else source.name
    if name != config.domain.name:
        run.takes_place_in(name)


@contextmanager
def open_logger(config: RunConfig, run: RunDirectory) -> Iterator[MetricLogger]:
    """The run's metric logger, closed (and so flushed) however the run ends."""
    wandb = WandbSettings(**config.wandb.model_dump(exclude={"enabled"})) if config.wandb.enabled else None
    logger = make_logger(run, wandb=wandb, config=config.model_dump(mode="json"))
    try:
        yield logger
    finally:
        logger.close()
