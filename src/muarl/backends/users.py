"""The simulated users that a section of the configuration describes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.models import make_endpoint
from muarl.basics.errors import ConfigError
from muarl.config.parts import USER_SLOTS, Compute
from muarl.config.section import UserConfig
from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.environments.place import Place
from muarl.environments.places import ByPlace, Places
from muarl.users.base import UserFactory
from muarl.users.strata.panel import Strata, UserKind
from muarl.users.traits.levels import TRAITS, TraitRanges

if TYPE_CHECKING:  # torch and transformers take seconds to import, and not every recipe has a model in this process
    from muarl.endpoints.client import Endpoint
    from muarl.learning.checkpoints import Policy
    from muarl.users.sampled import MakeCheck, SampledUserFactory


def make_users(config: UserConfig, places: Places, compute: Compute | None = None) -> ByPlace[UserFactory]:
    """The simulated users of one section of the configuration, with the tools that users have in each place. The model
    that plays them, if there is one, is one for all places.

    A benchmark's own users, where it has some, are made whatever the section says, but for the model that plays them,
    their guard and their ``delay``. ``compute``: of the run; see ``sampled_users``.
    """
    client = None if config.endpoint is None else cache(partial(make_endpoint, config.endpoint))
    sampled = cache(partial(sampled_users, config, compute=compute))

    def made(place: Place) -> UserFactory:
        return _slowed(config, _guarded(config, _users(config, place, client, sampled), place))

    return places.by_place(made)


def _slowed(config: UserConfig, users: UserFactory) -> UserFactory:
    """The users with the section's ``delay``, if it has one."""
    if config.delay is None:
        return users
    from muarl.users.slow import SlowUserFactory

    return SlowUserFactory(users, *config.delay)


def _guarded(config: UserConfig, users: UserFactory, place: Place) -> UserFactory:
    """The users behind the section's guard, if it is active."""
    guard = config.guard
    if not guard.active:
        return users
    from muarl.users.guard import GuardedUserFactory

    return GuardedUserFactory(
        users,
        tools=place.user_tools,
        rules=guard.rules,
        retries=guard.retries,
        exclude=guard.exclude,
    )


def _users(
    config: UserConfig,
    place: Place,
    client: Callable[[], Endpoint] | None,
    sampled: Callable[[], SampledUserFactory],
) -> UserFactory:
    """``client``, ``sampled``: make the endpoint's client, and users of a model in this process."""
    own = place.own_users(client)
    if own is not None:
        if (traits := trait_ranges(config)) and not traits.where_possible:
            raise ConfigError(
                f"user.traits: {place.name} has users of its own, who have no traits: leave the setting out"
            )
        if config.strata:
            raise ConfigError(
                f"user.strata: {place.name} has users of its own, who have no strata: leave the setting out"
            )
        return own
    if config.kind == "agenda":
        return rule_based_users(config, place)
    if config.kind == "scripted":
        from muarl.users.scripted import ScriptedUserFactory

        return ScriptedUserFactory()
    if config.kind == "sampled":
        refuse_user_tools(place.name, place.domain)
        return sampled().checked(goal_checks(place))
    if client is None:
        raise ConfigError("user.endpoint: an llm user needs the model that plays it")
    guidelines = None if config.guidelines == "auto" else config.guidelines
    return place.model_users(client(), guidelines, trait_ranges(config), strata_of(config))


def rule_based_users(config: UserConfig, place: Place) -> UserFactory:
    """The users that play a task's goal and facts from rules, whatever kind the section names. ConfigError if the
    place has none."""
    from muarl.users.agenda import AgendaUserFactory

    make, traits, strata = place.needed_user(), trait_ranges(config), strata_of(config, "agenda")
    return AgendaUserFactory(make, seed=config.seed, persona=config.persona, traits=traits, strata=strata)


def trait_ranges(config: UserConfig) -> TraitRanges:
    """The levels that a section gives its users' traits."""
    return TraitRanges.of(config.traits.model_dump())


def strata_of(config: UserConfig, kind: UserKind = "llm") -> Strata:
    """What a section has its users' personas drawn from, if they are of this kind."""
    traits = trait_ranges(config)
    taken = [name for name in TRAITS if getattr(traits, name)[1] > 0 and not traits.where_possible]
    if config.persona is not None and kind == "agenda":
        taken.append("persona")
    return Strata.of(config.strata, kind, taken=taken)


def refuse_user_tools(name: str, domain: Domain) -> None:
    """ConfigError where users have tools of their own, which a user model in this process cannot call: it would never
    do what an agent asks of it, and no such task could be done. ``name``: of the environment."""
    if tools := domain.tool_specs("user"):
        some = ", ".join(tool.name for tool in tools[:3])
        raise ConfigError(
            f"domain.name: users of {name} have tools of their own ({some}, ...), and a user model in this process "
            "(sft-user, train-user, user.kind=sampled) calls none: choose another environment, or users of the kind "
            "agenda or llm"
        )


def goal_checks(place: Place) -> MakeCheck:
    """The checks of a place's user models (users/goal_check.py); of a task, None where its requests are not declared
    with the kit."""
    from muarl.users.agenda_service import ServiceAgendaUser
    from muarl.users.goal_check import GoalCheck

    def check(task: Task) -> GoalCheck | None:
        if task.agenda is None or "redteam" in task.agenda:
            return None
        if place.rule_based_user is None:
            return None
        user = place.rule_based_user(task, seed=0)
        return GoalCheck(task, user.service) if isinstance(user, ServiceAgendaUser) else None

    return check


def sampled_users(
    config: UserConfig,
    policy: Policy | None = None,
    *,
    compute: Compute | None = None,
    max_context: int | None = None,
) -> SampledUserFactory:
    """Users of a model in this process: ``checkpoint``'s, or the one given. ``compute``: of the run, whose engine's
    number format (``engine.dtype``) is the users' too, and who hold as many conversations as it plays at once; None: in
    the model's own format, and up to ``USER_SLOTS``. ``max_context``: tokens of a conversation, if not as many as the
    section says. CheckpointError if the model cannot be loaded."""
    import torch

    from muarl.chat_formats.choice import chat_format
    from muarl.inference.torch_engine import TorchEngine
    from muarl.learning.checkpoints import load_policy
    from muarl.users.sampled import SampledUserFactory

    name = policy.path.name if policy is not None else str(config.checkpoint)
    if policy is None:
        folder = checkpoint_folder(str(config.checkpoint))
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        policy = load_policy(folder, dtype=torch.float32, device=device)
    longest = config.max_context if max_context is None else max_context
    make = partial(TorchEngine, policy.model, max_context=longest, seed=config.seed)
    if compute is None:
        engine = make(max_slots=USER_SLOTS)
    else:
        kind = compute.engine.computes_in(compute.model.held, on_gpu=policy.model.device.type == "cuda")
        engine = make(max_slots=compute.user_slots, dtype=getattr(torch, kind), steps=compute.engine.compile)
    return SampledUserFactory(
        engine,
        chat_format(policy.tokenizer),
        temperature=config.temperature,
        context=longest,
        seed=config.seed,
        name=f"user model {name}",
        tries=config.tries,
    )
