"""Who takes part in a run: that they fit its tasks, that their endpoints answer, and who judges.

Recipes check this first, before a model is loaded and before there is a run folder (checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from muarl.backends.models import make_endpoint
from muarl.backends.users import refuse_user_tools
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.basics.event_loop import event_loop
from muarl.config.rollout import RetrievalConfig
from muarl.config.section import UserConfig
from muarl.config.sections import DomainConfig, EvalConfig, RunConfig
from muarl.domains.base import Domain
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.environments.retrieval import models_of
from muarl.environments.task_files import read_tasks
from muarl.observe.progress import Progress
from muarl.rewards.judge import FixedJudge, Judge, JudgeModel, ModelJudge, open_judge_model
from muarl.types.episode import Usage

if TYPE_CHECKING:
    from muarl.endpoints.client import Endpoint

UserRole = Literal["user", "eval_user"]
"""The user of training, and that of evaluation."""

Role = Literal[UserRole, "agent", "judge"]
"""Who takes part in a run: the user of training, that of evaluation, the agent of ``muarl eval``, the judge."""

PARTS = {"eval.endpoint": "agent", "coldstart.endpoint": "teacher", "coldstart.tools_endpoint": "tools"}
"""What the model of a section is called where it is announced; others go by their section's name."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who takes part in a run, and where: its users, the agent and judges of its evaluation, the models that search its
    domains' documents."""

    domains: tuple[DomainConfig, ...]
    user: UserConfig
    eval_user: UserConfig
    eval: EvalConfig
    retrieval: RetrievalConfig

    @classmethod
    def of(cls, config: RunConfig) -> Cast:
        """That of a configuration."""
        return cls(config.domains, config.user, config.eval_user, config.eval, config.retrieval)

    def user_of(self, role: Role) -> UserConfig:
        """The section of a user, in training or evaluation."""
        return self.user if role == "user" else self.eval_user


def check_roles(cast: Cast, *roles: Role, bound: str | None) -> None:
    """Check that those who take part fit the tasks, start the server that the domain's tools are on, if they are on
    one, and ask every endpoint one tiny question. ``bound``: the setting that bounds what the command may spend.

    ConfigError if a part cannot be played in this domain, or its server is missing, or if there is a bound and an
    endpoint's answers do not say how many tokens they take; InfrastructureError (not retryable)
    for an endpoint that does not answer or refuses the key. They name the section of the configuration.
    """
    check_fits(cast, *roles)
    for domain in cast.domains:
        environment = find(domain.name)
        if environment.on_server:
            check_server(environment.make_domain(domain.size))
    ask_endpoints(list(_endpoints(cast, roles)), bound)
    ask_searching(cast.retrieval, bound)


def check_server(domain: Domain) -> None:
    """Where a domain's tools are an MCP server's, start it once. ConfigError says what is missing, and the remedy."""
    from muarl.domains.mcp.domain import McpDomain

    if isinstance(domain, McpDomain):
        try:
            domain.check()
        except ConfigError as problem:
            raise ConfigError(f"domain.name: {problem}") from problem


def check_fits(cast: Cast, *roles: Role) -> None:
    """Check that those who take part fit the tasks, and ask nobody. ConfigError if one cannot be played here."""
    for role in roles:
        for domain in cast.domains:
            _check_fits(cast, domain, role)


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


def _check_fits(cast: Cast, domain: DomainConfig, role: Role) -> None:
    """Whether an environment offers what a role needs."""
    environment = find(domain.name)
    if role == "agent" and cast.eval.agent == "expert":
        environment.needed_expert()
    if role not in ("user", "eval_user"):
        return
    kind = cast.user_of(role).kind
    if environment.is_benchmark and not environment.official().place.needs_user_model(cast.eval.split):
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
    if kind == "sampled" and not environment.is_benchmark:
        refuse_user_tools(environment.name, environment.make_domain(domain.size))


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


def _endpoints(cast: Cast, roles: tuple[Role, ...]) -> Iterator[tuple[str, str, Endpoint]]:
    """(section of the configuration, boundary, endpoint) of each different endpoint that the roles need."""
    seen = set()
    for role in roles:
        section, boundary = f"{role}.endpoint", "user"
        endpoint: Endpoint | None = None
        if role in ("user", "eval_user"):
            user = cast.user_of(role)
            if user.kind == "llm" and user.endpoint is not None:
                endpoint = make_endpoint(user.endpoint)
        elif role == "agent":
            section, boundary = "eval.endpoint", "agent"
            if cast.eval.agent == "endpoint" and cast.eval.endpoint is not None:
                endpoint = make_endpoint(cast.eval.endpoint)
        endpoints = [(section, boundary, endpoint)] if endpoint is not None else []
        if role == "judge":
            endpoints = [(where, "judge", asked) for where, asked in _judges(cast)]
        for where, side, asked in endpoints:
            key = _key(asked)
            if key not in seen:
                seen.add(key)
                yield where, side, asked


def _judges(cast: Cast) -> Iterator[tuple[str, Endpoint]]:
    """(section, endpoint) of each judge that is a model; generated tasks have no natural-language assertions."""
    for section, spec in judge_specs(cast.eval, cast.domains).items():
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


def ask_searching(retrieval: RetrievalConfig, bound: str | None = None) -> None:
    """Ask the models that searching documents needs one tiny question each. InfrastructureError (not retryable) names
    the section of one that does not answer. ``bound``: see ``check_counted``."""
    models = models_of(retrieval)
    if not models:
        return
    progress = Progress()
    with event_loop() as loop:
        for section, described in models.items():
            endpoint = make_endpoint(described)
            progress.say(f"{section}: {endpoint.about}")
            ranks = section.endswith("reranker_endpoint")
            rates = ranks and retrieval.reranker_kind == "rating"
            loop.run(_ask_searching(section, endpoint, "chat" if rates else "rerank" if ranks else "embed"))
            check_counted(section, endpoint, bound)


def check_counted(section: str, endpoint: Endpoint, bound: str | None) -> None:
    """ConfigError if an endpoint that has been asked did not say how many tokens its answer took, and ``bound``, a
    setting, needs to know it."""
    if bound is not None and endpoint.usage.uncounted:
        raise ConfigError(
            f"{bound}: {section}: the answers of {endpoint.model} do not say how many tokens they take (usage with "
            "prompt_tokens and completion_tokens), so that the bound cannot be kept. Let the server say it, or leave "
            f"{bound} out"
        )


async def _ask_searching(section: str, endpoint: Endpoint, how: str) -> None:
    try:
        if how == "chat":
            await endpoint.check(boundary="world")
        elif how == "rerank":
            await endpoint.rerank("ready", ["ready"])
        else:
            await endpoint.embed(["ready"])
    except InfrastructureError as problem:
        raise InfrastructureError(f"{section}: {problem}", boundary="world", retryable=False) from None
    finally:
        await endpoint.aclose()


@dataclass(frozen=True)
class Judges:
    """Who judges what a run plays; None where no model is asked."""

    score: Judge
    """The tasks' assertions about words."""
    users: JudgeModel | None = None
    """Simulated users."""
    audit: JudgeModel | None = None
    """What an audit's rules cannot decide."""
    models: tuple[JudgeModel, ...] = ()
    """The different models among them that these tasks may need."""

    @classmethod
    def of(cls, ev: EvalConfig, domains: Sequence[DomainConfig]) -> Judges:
        """The judges that an evaluation in these domains names, at its prices. ConfigError for a name that is none."""
        opened: dict[str, JudgeModel | None] = {}

        def model(spec: str | None) -> JudgeModel | None:
            if spec is None:
                return None
            if spec not in opened:
                opened[spec] = open_judge_model(spec, ev.prices)
            return opened[spec]

        asked = [model(spec) for spec in judge_specs(ev, domains).values()]
        judge, fixed = model(ev.judge), FixedJudge(ev.judge == "pass")
        return cls(
            fixed if judge is None else ModelJudge(judge),
            model(ev.user_judge),
            model(ev.audit_judge),
            tuple(dict.fromkeys(m for m in asked if m is not None)),
        )

    @property
    def used(self) -> Usage:
        """What they have used so far."""
        return sum((m.usage for m in self.models), Usage())

    @property
    def unpriced(self) -> list[str]:
        """The models of which nobody said what they cost."""
        return [m.endpoint.model for m in self.models if m.endpoint.config.price is None]

    async def aclose(self) -> None:
        """Close all connections; the judges can be asked again afterwards."""
        await self.score.aclose()
        for model in self.models:
            await model.aclose()


def judge_specs(ev: EvalConfig, domains: Sequence[DomainConfig]) -> Mapping[str, str]:
    """The judges that a run may ask, by the setting that names them; generated tasks have no assertions about words."""
    measured = any(find(domain.name).is_benchmark for domain in domains)
    named = {"eval.judge": ev.judge} if measured else {}
    others = {"eval.user_judge": ev.user_judge, "eval.audit_judge": ev.audit_judge}
    return named | {setting: spec for setting, spec in others.items() if spec is not None}
