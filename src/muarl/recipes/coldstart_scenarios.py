"""The scenarios of ``muarl coldstart``: where conversations take place, who takes part, and which models are asked.

A scenario is an environment with tasks of its own, or a folder of a team's texts:

    policy.md     what the agent is told
    tools.json    the tools, with schemas of what they take and answer (domains/imagined/scenario.py says how)
    world.md      what the model that plays the tools must know of the world
    intents.txt   what customers come for, a few words on each line

In a folder's scenario a teacher writes the tasks from the intents, and models play everybody and everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muarl.agents.base import Agent
from muarl.agents.endpoint import EndpointAgent
from muarl.agents.expert import ExpertAgent
from muarl.backends.models import make_endpoint
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, DataError
from muarl.coldstart.writing import Brief, WrittenTasks
from muarl.config.parts import Compute
from muarl.config.section import UserConfig
from muarl.config.sections import RunConfig
from muarl.config.stages import ColdstartConfig
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.environments.benchmark_training import benchmarks_among
from muarl.environments.configure import place_of
from muarl.environments.environment import GENERATED_RULES
from muarl.environments.place import Draw, ImaginedPlace, Place
from muarl.environments.places import ByPlace, Places
from muarl.environments.registry import find, is_folder
from muarl.observe.rundir import RunDirectory
from muarl.rewards.judge import make_judge, open_judge_model
from muarl.rollouts.rules import Limits
from muarl.users.base import UserFactory

INTENTS = "intents.txt"


@dataclass(frozen=True)
class ColdStartSource:
    """One scenario of a run: where its conversations take place, and who takes part."""

    name: str
    place: Place
    agent: Agent
    users: ByPlace[UserFactory]
    size: str
    brief: Brief | None = None
    """Of tasks that a teacher writes, None where a generator makes them."""
    writer: Endpoint | None = None
    """Of tasks that a teacher writes, None where a generator makes them."""

    def draw(self, run: RunDirectory) -> Draw:
        """Where its tasks come from: the generator, or a teacher, whose tasks are kept in the run's folder."""
        if self.brief is None or self.writer is None:
            return self.place.draw
        return WrittenTasks(run.episodes / f"{self.name}.tasks.jsonl", self.writer, self.brief).draw


def tools_endpoint(coldstart: ColdstartConfig) -> Endpoint | None:
    """The client of the model that plays tools, one for all scenarios of a run; None where made worlds do."""
    section = coldstart.tools_endpoint
    return make_endpoint(section) if coldstart.tools == "imagined" and section is not None else None


def check_size(coldstart: ColdstartConfig) -> None:
    """ConfigError for a size that none of the scenarios comes in, unless it is the default."""
    made = [find(name, "coldstart.scenarios") for name in coldstart.scenarios if not is_folder(name)]
    sizes = list(dict.fromkeys(size for environment in made for size in environment.sizes))
    if sizes and coldstart.size not in (*sizes, ColdstartConfig().size):
        raise ConfigError(f"coldstart.size is {coldstart.size}; the sizes of the scenarios are {', '.join(sizes)}")


def check_may_learn(coldstart: ColdstartConfig, *, on_benchmark: bool) -> None:
    """ConfigError if conversations would be about a benchmark's own tasks, to be learned from, without anybody saying
    so (``train_on_benchmark``)."""
    made = benchmarks_among(name for name in coldstart.scenarios if not is_folder(name))
    if made and not on_benchmark:
        raise ConfigError(
            f"coldstart.scenarios: {made[0]} is a benchmark, and learning from conversations about its own tasks makes "
            "its scores meaningless: choose other environments, or set train_on_benchmark=true if this is what you want"
        )


def source_of(name: str, config: RunConfig, tools: Endpoint | None) -> ColdStartSource:
    """A scenario by its domain's name, or a folder's. ``tools``: see ``tools_endpoint``.

    ConfigError if it is none, or needs something that is not installed.
    """
    coldstart = config.coldstart
    if is_folder(name):
        return own_source(Path(name).expanduser(), coldstart, config.user, config.eval.judge, tools)
    made = find(name, "coldstart.scenarios")
    size = coldstart.size if coldstart.size in made.sizes or not made.sizes else made.sizes[-1]
    section = config.domains[0].model_copy(update={"name": name, "size": size, "intents": (), "policy": None})
    place = place_of(config.model_copy(update={"domain": section}), with_rl=False)
    limits = Limits(
        turns=coldstart.max_turns, tool_errors=max(config.rollout.max_tool_errors, coldstart.max_tool_errors + 1)
    )
    place = replace(place, limits=limits)
    if tools is not None and made.imagined is not None:
        from muarl.domains.imagined.domain import goal_met

        place = ImaginedPlace(
            domain=made.imagined(size, tools),
            draw=place.draw,
            rules=place.rules,
            limits=limits,
            judge=place.judge,
            goal=goal_met,
            **made.as_declared(),
        )
    agent: Agent
    if coldstart.teacher == "endpoint" and coldstart.endpoint is not None:
        agent = EndpointAgent(make_endpoint(coldstart.endpoint))
    else:
        if made.expert is None:
            raise ConfigError(
                f"{made.name} has no scripted expert to make conversations with: let a model serve (--teacher "
                "endpoint:MODEL), or give it an expert (docs/domains.md)"
            )
        agent = ExpertAgent(ErrorProfile(**coldstart.error_profile.model_dump()), make=made.expert)
    return ColdStartSource(name, place, agent, make_users(config.user, Places([place]), Compute.of(config)), size)


def own_source(
    folder: Path, coldstart: ColdstartConfig, user: UserConfig, judge: str, tools: Endpoint | None
) -> ColdStartSource:
    """The scenario in a folder. DataError names what is wrong with which file; ConfigError says who is missing."""
    from muarl.domains.imagined.domain import ImaginedDomain
    from muarl.domains.imagined.scenario import read_scenario

    if coldstart.endpoint is None or coldstart.teacher != "endpoint" or user.kind != "llm" or tools is None:
        raise ConfigError(
            f"{folder}: a scenario folder has no expert or users: give models with --teacher, --user and --tools"
        )
    scenario = read_scenario(folder)
    try:
        lines = (folder / INTENTS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(f"{folder / INTENTS} cannot be read: {problem}") from None
    intents = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not intents:
        raise DataError(f"{folder / INTENTS} is empty: write what customers come for, a few words on each line")
    domain = ImaginedDomain(scenario, tools)
    limits = Limits(turns=coldstart.max_turns, tool_errors=coldstart.max_tool_errors + 1)
    place = ImaginedPlace(
        name=domain.name,
        domain=domain,
        draw=_no_tasks,
        rules=GENERATED_RULES,
        limits=limits,
        judge=make_judge(judge),
    )
    brief = Brief(scenario.name, scenario.policy, domain.tool_specs(), scenario.world, intents)
    teacher = make_endpoint(coldstart.endpoint)
    users = make_users(user, Places([place]))
    return ColdStartSource(
        scenario.name, place, EndpointAgent(teacher), users, "", brief, make_endpoint(coldstart.endpoint)
    )


def _no_tasks(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
    raise ConfigError("the tasks of a scenario folder are written by a teacher during a run; there are no others")


def check_bound(coldstart: ColdstartConfig, asked: Sequence[tuple[str, str, Endpoint]]) -> None:
    """ConfigError where a bound on the cost is set and nobody knows what a model costs."""
    for section, _, endpoint in asked:
        if coldstart.max_cost is not None and endpoint.config.price is None:
            named = "" if section.endswith("judge") else f"say it in {section}.prompt_price and .completion_price, or "
            raise ConfigError(
                f"coldstart.max_cost: what {endpoint.model} ({section}) costs is not known; {named}bound the tokens by "
                "coldstart.max_tokens instead"
            )


def endpoints(coldstart: ColdstartConfig, user: UserConfig) -> list[tuple[str, str, Endpoint]]:
    """(section, boundary, endpoint) of every model that the run will ask."""
    asked = []
    if coldstart.teacher == "endpoint" and coldstart.endpoint is not None:
        asked.append(("coldstart.endpoint", "agent", make_endpoint(coldstart.endpoint)))
    if user.kind == "llm" and user.endpoint is not None:
        asked.append(("user.endpoint", "user", make_endpoint(user.endpoint)))
    if coldstart.tools == "imagined" and coldstart.tools_endpoint is not None:
        asked.append(("coldstart.tools_endpoint", "world", make_endpoint(coldstart.tools_endpoint)))
    judge = None if coldstart.judge is None else open_judge_model(coldstart.judge)
    if judge is not None:
        asked.append(("coldstart.judge", "judge", judge.endpoint))
    return asked
