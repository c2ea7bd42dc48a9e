"""An environment as it is played where no configuration says more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from muarl.basics.errors import ConfigError
from muarl.config.retrieval import RetrievalConfig
from muarl.domains.base import Domain, Task
from muarl.endpoints import Endpoint, parse_endpoint
from muarl.endpoints.connections import Connections
from muarl.environments.benchmark import by_protocol
from muarl.environments.configured import ConfiguredEnvironment, EnvironmentTasks
from muarl.environments.environment import Environment
from muarl.environments.retrieval import searched
from muarl.rewards.judge import Judge
from muarl.rollouts.conversation import Limits
from muarl.types.chat import Message
from muarl.users.agenda import AgendaUserFactory
from muarl.users.base import UserFactory
from muarl.users.guidelines import Guidelines, Style
from muarl.users.llm import LLMUserFactory
from muarl.users.traits.levels import TraitRanges


def configured(
    environment: Environment,
    size: str | None = None,
    limits: Limits | None = None,
    judge: Judge | None = None,
    *,
    mode: str = "auto",
    retrieval: RetrievalConfig | None = None,
) -> ConfiguredEnvironment:
    """An environment of a size (None: the smallest); a benchmark by its own protocol, in a ``mode`` of it.

    ``limits``: None for the usual ones, or the benchmark's. ``judge``: None for one that refuses to be asked.
    ``retrieval``: how documents are found; ConfigError where there are none, or not that way.
    """
    judge = judge or NoJudge()
    if environment.is_benchmark:
        found = by_protocol(environment, judge, mode=mode, retrieval=retrieval)
        return found if limits is None else replace(found, limits=limits)
    domain = environment.make_domain(size)
    return EnvironmentTasks(
        domain if retrieval is None else _searched(domain, retrieval.model_dump_json()),
        lambda split, count, seed, start: environment.make_tasks(split, count, size=size, seed=seed, start=start),
        environment.rules,
        limits or Limits(),
        judge,
        environment=environment,
    )


@lru_cache(maxsize=32)
def _searched(domain: Domain, retrieval: str) -> Domain:
    """A domain that is searched in another way: one for all conversations, which share what is right in their end."""
    return searched(domain, RetrievalConfig.model_validate_json(retrieval))


def usual_limits(environment: Environment) -> Limits:
    """Where its conversations are cut where nobody says otherwise."""
    return by_protocol(environment, NoJudge(), mode="native").limits if environment.is_benchmark else Limits()


def usual_users(place: ConfiguredEnvironment, users: UserFactory | Endpoint | None = None) -> UserFactory:
    """Who plays the customers: the factory that is given, the model behind an endpoint, prompted as this environment
    has it, or (None) users that need no model. ConfigError where there are none."""
    if users is not None and not isinstance(users, Endpoint):
        return users
    own = place.own_users(None if users is None else lambda: users)
    if own is not None:
        return own
    return AgendaUserFactory(place.rule_based_user()) if users is None else model_users(users, place)


def named_users(
    spec: str, *, concurrency: int = 1024, connections: Connections | None = None, where: str = "user"
) -> Endpoint | None:
    """The endpoint whose model plays the customers, by "endpoint:MODEL" or "endpoint:MODEL@URL"; None, for users by
    rules, by "agenda". ``connections``: None for its own. ConfigError for another name, said at ``where``."""
    if spec == "agenda":
        return None
    if spec.startswith("endpoint:"):
        return Endpoint(parse_endpoint(spec, concurrency=concurrency), connections=connections)
    raise ConfigError(f"{where}: {spec!r} is unknown; use agenda, endpoint:MODEL or endpoint:MODEL@URL")


def model_users(
    endpoint: Endpoint,
    place: ConfiguredEnvironment | None,
    guidelines: Style | Guidelines | None = None,
    traits: TraitRanges | None = None,
) -> LLMUserFactory:
    """Users that a model plays, by the environment's guidelines (None: ``guidelines``) and with its users' tools."""
    style = "muarl" if place is None else place.user_style
    tau1 = style == "tau1"
    return LLMUserFactory(
        endpoint,
        guidelines=guidelines or style,
        tools=() if place is None else place.user_tools,
        send_seed=not tau1,
        empty_ok=tau1,
        traits=traits,
    )


def check_playable(place: ConfiguredEnvironment, task: Task) -> None:
    """Refuse before any work what could not be scored after it: ConfigError for a task that needs a judge and has none,
    DataError for one whose gold actions fail."""
    if isinstance(place.judge, NoJudge) and task.nl_assertions and "NL_ASSERTION" in task.reward_basis:
        raise place.judge.refusal(task.nl_assertions)
    place.check([task])


class NoJudge:
    """Nobody who could be asked about assertions in words."""

    def refusal(self, assertions: Sequence[str]) -> ConfigError:
        """What to say to who asks."""
        return ConfigError(f"a task has assertions in words ({assertions[0]!r}): give a judge")

    async def __call__(self, messages: Sequence[Message], assertions: Sequence[str]) -> bool:
        """ConfigError: somebody has to judge these words."""
        raise self.refusal(assertions)

    async def aclose(self) -> None:
        """Nothing is held."""
