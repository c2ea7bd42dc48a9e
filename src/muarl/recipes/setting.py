"""Where a run's episodes take place: its domain, its tasks, and how they are played and scored."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice

from muarl.audit import audit_episode
from muarl.audit.figures import audit
from muarl.audit.rules import rules_of
from muarl.chat import ToolSpec
from muarl.config import RunConfig
from muarl.config.sections import DomainConfig
from muarl.conversation import DONE, Limits, Rules
from muarl.domains.base import Domain, Task, World
from muarl.domains.generated import Generated, generated
from muarl.episode import Episode, Verdict
from muarl.errors import ConfigError, InfrastructureError, MuarlError
from muarl.recipes.official import Official, draw_tasks, official
from muarl.recipes.taskfiles import TaskFile
from muarl.rewards import layered, outcome, shaped
from muarl.rewards.gold import check_tasks
from muarl.rewards.judge import make_judge
from muarl.rewards.traps import SAFE

Draw = Callable[[str, int, int, int], Sequence[Task]]
"""``draw(split, count, seed, start)``: that many tasks of a split, all different."""

GENERATED_RULES = Rules(greeting_in_context=False, transfer_ends=True)
"""How episodes of generated tasks are played, in training and out of it (MUA-RL's way). TAU2's own are Rules()."""

TRIES_PER_TASK = 1000
"""Generated tasks that may be looked at for each one with a wished intent. The rarest intent has a share of 2%."""

PLAYED = "played"
"""The tag with what a model answered as the tools, from which a conversation can be had again."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a run's episodes take place. ``draw``: see Draw; ``system`` None: the domain's policy text.

    ``generated``: the generated domain that the tasks come from, None for a benchmark's. ``official``: the benchmark's
    domain whose protocol is followed to the letter, None where episodes are played in a way of our own. ``benchmark``:
    the benchmark's domain that the tasks are of, played by its protocol or not. ``scored``: whether its worlds have a
    state that a reward can come from. Where not (a model plays the tools), ``goal`` says whether what was done is what
    the task asks for; without one, or a task that does not say, the reward is 0 with the part "unscored". ``shaped``:
    whether audits note the terms of shaped rewards, ``layered``: those of layered ones.
    """

    domain: Domain
    draw: Draw
    rules: Rules
    limits: Limits
    judge: str
    system: str | None = None
    generated: Generated | None = None
    official: Official | None = None
    benchmark: Official | None = None
    scored: bool = True
    goal: Callable[[Task, World], bool | None] | None = None
    shaped: bool = False
    layered: bool = False

    def check(self, tasks: Sequence[Task]) -> None:
        """Replay the gold actions of tasks that nobody has replayed yet: generators replay their own, task files are
        checked when they are read, and official ones may fail. DataError names one that fails."""
        if self.unchecked:
            check_tasks(self.domain, tasks)

    @property
    def unchecked(self) -> bool:
        """Whether nobody has replayed the gold actions of the tasks that are drawn."""
        return self.scored and self.generated is None and self.benchmark is None

    async def score(self, task: Task, world: World, episode: Episode) -> Verdict:
        """The verdict on an episode from its world and, where the task has assertions, the judge's answer.

        InfrastructureError if scoring itself breaks off, as benchmarks do where an assertion fails to run.
        """
        if not self.scored:
            if played := getattr(world, "calls", None):
                episode.tags[PLAYED] = [call.to_json() for call in played]
            met = None if self.goal is None else self.goal(task, world)
            return Verdict(0.0, {"unscored": 0.0}) if met is None else Verdict(float(met), {"GOAL": float(met)})
        judge = make_judge(self.judge) if task.nl_assertions else None
        try:
            if self.official is not None:
                return await self.official.score(task, world, episode, judge)
            if self.benchmark is not None:
                return await self.benchmark.training_score(task, world, episode, judge)
            return await outcome.score(task, world, episode.messages, episode.stop, judge=judge)
        except MuarlError:
            raise
        except Exception as bug:
            text = f"task {task.id} cannot be scored: {type(bug).__name__}: {bug}"
            raise InfrastructureError(text, boundary="world") from bug

    def told(self, task: Task) -> str:
        """What the agent is told of a task before it begins."""
        if self.system is None:
            return self.domain.policy_for(task) if self.benchmark is None else self.benchmark.told(self.domain, task)
        return self.system.replace("{ticket}", str(task.ticket)) if self.rules.solo else self.system

    def tools(self, task: Task) -> Sequence[ToolSpec]:
        """The agent's tools in a task; one that works alone has the user's too, and one to say that it is done."""
        if self.benchmark is not None:
            own = tuple(self.benchmark.offered(self.domain, task))
        else:
            own = self.domain.specs_for(task)
        return (*own, *self.domain.tool_specs("user"), DONE) if self.rules.solo else own

    def some_task(self, split: str) -> Task:
        """A task of the split, for what can only be looked at in one."""
        return self.draw(split, 1, 0, 0)[0]

    def user_tools(self, task: Task) -> tuple[ToolSpec, ...]:
        """The tools that the user of a task has."""
        allowed = task.user_tools
        return tuple(t for t in self.domain.tool_specs("user") if allowed is None or t.name in allowed)

    def audit(self, task: Task, world: World, episode: Episode) -> Mapping[str, float]:
        """The audit of an episode, by its domain's rules."""
        found = audit(episode, task, self.domain.kind_of, rules_of(task, self.domain))
        if self.shaped:
            found |= {f"{shaped.PREFIX}{name}": value for name, value in shaped.terms(task, episode.messages).items()}
        if self.layered:
            found |= layered.terms(audit_episode(episode, task, domain=self.domain))
        return found


def make_setting(config: RunConfig, *, measuring: bool = False) -> Setting:
    """The run's domain and tasks.

    ``measuring``: a benchmark's tasks are played by its own protocol and in its own semantics, rather than trained on.
    DataError if a benchmark's files are not installed; ConfigError for an unknown intent or judge, or a policy file
    that cannot be read.
    """
    limits = Limits(turns=config.rl.max_turns, tool_errors=config.rl.max_tool_errors)
    make_judge(config.eval.judge)  # a misspelt one is told now
    policy = _policy_text(config.domain)
    weighted = any(config.rl.shaping.model_dump().values()) and not measuring
    in_layers = config.rl.layers.active and not measuring
    if not config.domain.generated:
        sampled = config.eval.agent == "sampled"
        source = official(config.domain.name, config.eval.mode, sampled=sampled, training=not measuring)
        domain = source.domain(source.semantics if measuring else "fixed")
        draw = draw_tasks(source.name, validating=not measuring and config.rl.eval_every > 0)
        if not measuring:
            if config.rl.reward_basis == "database":
                if source.own_score:
                    raise ConfigError(
                        f"rl.reward_basis: {source.name} is scored by its own rules, not by parts: set "
                        "rl.reward_basis=task"
                    )
                draw = by_database(draw)
            limits = source.training_limits(limits)
            prompt = source.prompt(policy or domain.policy_text)
            rules = source.training_rules()
            judge = config.eval.judge
            return Setting(
                domain, draw, rules, limits, judge, prompt, benchmark=source, shaped=weighted, layered=in_layers
            )
        solo = config.eval.solo
        text = policy or (source.solo_policy() if solo else domain.policy_text)
        return Setting(
            domain,
            draw,
            source.rules(solo=solo),
            source.limits(steps=config.eval.max_steps, errors=config.eval.max_errors),
            config.eval.judge,
            source.prompt(text, solo=solo),
            official=source,
            benchmark=source,
        )
    if measuring and config.eval.solo:
        raise ConfigError(f"eval.solo: {config.domain.name} has no solo mode")
    world = generated(config.domain.name)
    if config.domain.size not in world.sizes:
        raise ConfigError(f"domain.size is {config.domain.size}, and {world.name} comes in {', '.join(world.sizes)}")
    _check_intents(config.domain)
    domain = world.domain(config.domain.size)
    if config.domain.allow_failing_gold:
        domain = copy(domain)
        domain.allow_failing_gold = True
    made: Draw = partial(draw_generated, config.domain)
    if config.domain.tasks is not None:
        name = next(world.iter_tasks("train", size=config.domain.size)).domain
        made = TaskFile(config.domain.tasks.expanduser(), domain, name).draw
    if config.domain.red_team_share and not measuring:
        made = _with_red_team(config.domain, made)
    if config.rl.reward_basis == "database" and not measuring:
        made = by_database(made)
    judge = config.eval.judge
    return Setting(domain, made, GENERATED_RULES, limits, judge, policy, world, shaped=weighted, layered=in_layers)


STATE = ("DB", "ENV_ASSERTION", SAFE)
"""Parts of a reward basis that look at the world, or at what must not have been done to it."""


def by_database(draw: Draw) -> Draw:
    """The same draws, but that training tasks are rewarded by the state of the world alone: what they also demand of
    words or calls is left out, as MUA-RL does. ConfigError for a task that demands nothing else."""

    def drawn(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        tasks = draw(split, count, seed, start)
        return [_by_state(task) for task in tasks] if split == "train" else tasks

    return drawn


def _by_state(task: Task) -> Task:
    basis = tuple(name for name in task.reward_basis if name in STATE)
    if not basis:
        raise ConfigError(
            f"rl.reward_basis is database, and task {task.id} is rewarded by {', '.join(task.reward_basis)} alone: set "
            "rl.reward_basis=task"
        )
    return task if basis == task.reward_basis else replace(task, reward_basis=basis)


def _with_red_team(domain: DomainConfig, made: Draw) -> Draw:
    """The same draws, but that a share of the training tasks gives way to red-team tasks. Which ones, and what kind
    each is of, follows from seed and index. ConfigError for a domain without such tasks."""
    from muarl.users.redteam.kinds import DOMAINS, KINDS
    from muarl.users.redteam.tasks import make_red_team_task

    name = domain.name.removesuffix("-generated")
    if name not in DOMAINS:
        raise ConfigError(f"domain.red_team_share: {domain.name} has no red-team tasks; {', '.join(DOMAINS)} have")

    def draw(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        tasks = list(made(split, count, seed, start))
        for n in range(len(tasks) if split == "train" else 0):
            rng = random.Random(f"red-team share {seed} {start + n}")
            if rng.random() < domain.red_team_share:
                kind = rng.choice(list(KINDS))
                tasks[n] = make_red_team_task(name, kind, start + n, split=split, size=domain.size, seed=seed)
        return tasks

    return draw


def draw_generated(domain: DomainConfig, split: str, count: int, seed: int, start: int) -> Sequence[Task]:
    """Tasks of a generated domain.

    Where only some intents are wanted, a draw looks for them in a stretch of its own, so that draws with another
    ``start`` have other tasks.
    """
    world = generated(domain.name)
    if not domain.intents:
        return world.tasks(split, count, size=domain.size, seed=seed, start=start)
    stretch = world.iter_tasks(split, size=domain.size, seed=seed, start=start * TRIES_PER_TASK)
    candidates = islice(stretch, count * TRIES_PER_TASK)
    found = list(islice((t for t in candidates if t.tags["intent"] in domain.intents), count))
    if len(found) < count:
        raise ConfigError(f"domain.intents: {', '.join(domain.intents)} occurs too seldom at size {domain.size}")
    return found


@lru_cache(maxsize=4)
def known_intents(name: str, size: str) -> frozenset[str]:
    """The intents that a generated domain's tasks of a size have."""
    return frozenset(str(t.tags["intent"]) for t in generated(name).tasks("train", TRIES_PER_TASK, size=size))


def _check_intents(domain: DomainConfig) -> None:
    if not domain.intents:
        return
    known = known_intents(domain.name, domain.size)
    for intent in domain.intents:
        if intent not in known:
            raise ConfigError(f"domain.intents: there is no intent {intent!r}; known: {', '.join(sorted(known))}")


def _policy_text(domain: DomainConfig) -> str | None:
    if domain.policy is None:
        return None
    try:
        return domain.policy.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"domain.policy: {domain.policy} cannot be read: {problem}") from None
