"""Where a run's episodes take place: what agents and users are told of generated tasks, and what must be refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loop_kit import Puppet
from muarl.audit import keep_rules
from muarl.audit.rules_file import FILE, read_rules
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, DataError, InfrastructureError
from muarl.config import load_config
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Action, Domain, Task, tool
from muarl.domains.error_profile import ErrorProfile
from muarl.environments import configured
from muarl.environments.configure import (
    GENERATED_RULES,
    ConfiguredEnvironment,
    EnvironmentTasks,
    ImaginedTools,
    configure_environment,
)
from muarl.environments.draws import draw_made
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.observe.rundir import RunDirectory
from muarl.recipes import rl
from muarl.recipes.demonstrations import demonstrate
from muarl.recipes.evaluation.measuring import evaluate
from muarl.rewards import outcome
from muarl.rewards.judge import FixedJudge
from muarl.rollouts.conversation import Limits, Rules, run_episode
from muarl.runs.roles import Cast, check_fits
from muarl.runs.tasks import check_gold
from muarl.types.episode import Verdict
from muarl_worlds.tau.protocol import DONE
from support.toy_shop import Lines

NAMES = ("retail-generated", "airline-generated", "telecom-generated", "bfcl-generated", "acebench-generated")


def environment_of(*overrides: str, measuring: bool = False) -> ConfiguredEnvironment:
    return configure_environment(load_config("cpu", overrides), measuring=measuring)


@pytest.fixture(scope="module", params=NAMES)
def environment(request: pytest.FixtureRequest) -> ConfiguredEnvironment:
    return environment_of(f"domain.name={request.param}", "domain.size=tiny")


def test_agents_are_told_what_the_domain_says_of_the_task(environment: ConfiguredEnvironment) -> None:
    task = environment.example_task("train")
    assert type(environment) is EnvironmentTasks and environment.environment is find(environment.name)
    assert environment.system_prompt(task) == environment.domain.policy_for(task) != ""
    assert tuple(environment.tools(task)) == tuple(environment.domain.specs_for(task)) != ()
    assert DONE not in environment.tools(task)
    assert environment.rules == GENERATED_RULES and environment.checkable


def test_some_task_is_one_of_the_split_and_always_the_same(environment: ConfiguredEnvironment) -> None:
    for split in ("train", "validation", "test"):
        task = environment.example_task(split)
        others = environment.example_task(split), environment.draw(split, 3, 0, 0)[0]
        assert all((t.id, t.scenario, t.actions) == (task.id, task.scenario, task.actions) for t in others)
    assert environment.example_task("train").id != environment.example_task("test").id
    with pytest.raises((ValueError, ConfigError)):
        environment.example_task("base")


def test_what_is_told_reaches_the_agent(environment: ConfiguredEnvironment) -> None:
    task = environment.example_task("test")
    agent = Puppet("Hello.")
    told, tools = environment.system_prompt(task), environment.tools(task)
    asyncio.run(run_episode(task, environment.domain.world(task), agent, Lines("a"), system=told, tools=tools))
    asyncio.run(run_episode(task, environment.domain.world(task), agent, Lines("a")))
    given = [(s.system, tuple(s.tools)) for s in agent.sessions]
    assert given == [(told, tuple(tools))] * 2, "and is what an agent is told that nobody tells anything else"


class Shelf(Domain):
    """Books of one's own."""

    database = {"books": {"b": {"lent": False}}}

    @tool(writes=True)
    def lend(self, book: str) -> str:
        """Lend a book."""
        self.db.books[book]["lent"] = True
        return "lent"


def test_tasks_of_ones_own_are_replayed_before_anything_is_made_or_played(tmp_path: Path) -> None:
    drawn: list[tuple[str, int, int, int]] = []

    def draw(split: str, count: int, seed: int, start: int) -> list[Task]:
        drawn.append((split, count, seed, start))
        numbers = range(start, start + count)
        books = {n: "c" if (split, n) == ("train", 5) else "b" for n in numbers}
        return [Task(f"{split}-{n}", "shelf", "", (Action("lend", {"book": books[n]}),)) for n in numbers]

    environment = ConfiguredEnvironment(Shelf(), draw, Rules(), Limits(), judge=FixedJudge(True))
    overrides = ["rl.steps=3", "rl.tasks_per_step=2", "rl.seed=4", "seed=1", f"runs_dir={tmp_path}"]
    config = load_config("cpu", overrides)
    cause = r"task train-5: actions\[0\], lend\(.*\): raises KeyError"
    with pytest.raises(DataError, match=cause):
        check_gold(config.rl, config.eval, config.seed, environment)
    seed = 4 + 1000 + 500_000
    assert drawn == [("validation", 100, config.eval.seed, 0), *(("train", 2, seed, start) for start in (0, 2, 4))]
    with pytest.raises(DataError, match=cause):  # nothing else of what it is given is looked at before
        rl.train(None, config, environment, None)  # type: ignore[arg-type]
    wrong = draw("train", 1, 0, 5)
    with pytest.raises(DataError, match=cause):
        evaluate(config.eval, environment, wrong, None, None, label="x")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=cause):
        demonstrate(environment, None, wrong, ErrorProfile(), seed=0)  # type: ignore[arg-type]
    environment.check(draw("train", 5, 0, 0))


def test_what_generators_and_benchmarks_have_made_is_not_replayed_again(
    environment: ConfiguredEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configured, "check_tasks", None)
    environment.check(environment.draw("train", 2, 0, 0))
    config = load_config("cpu")
    check_gold(config.rl, config.eval, config.seed, environment)
    assert not environment.unchecked


def test_users_have_the_tools_that_their_task_allows() -> None:
    environment = environment_of("domain.name=telecom-generated")
    task = environment.example_task("train")
    named = [t.name for t in environment.user_tools(task)]
    everything = [t.name for t in environment.domain.tool_specs("user")]
    assert named == [n for n in everything if task.user_tools is None or n in task.user_tools] != []
    assert not environment_of("domain.name=retail-generated").user_tools(task)


def test_a_policy_of_ones_own_is_told_in_every_task(tmp_path: Path) -> None:
    path = tmp_path / "policy.md"
    path.write_text("Sei freundlich. {ticket}\n", encoding="utf-8")
    environment = environment_of("domain.name=retail-generated", f"domain.policy={path}")
    for task in environment.draw("train", 2, 0, 0):
        assert environment.system_prompt(task) == "Sei freundlich. {ticket}\n", "a ticket is for those who work alone"
    path.write_bytes(b"\xff\xfe")
    for bad in (path, tmp_path / "none.md"):
        with pytest.raises(ConfigError, match=r"domain\.policy"):
            environment_of("domain.name=retail-generated", f"domain.policy={bad}")


def test_a_misspelt_judge_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="maybe"):
        environment_of("eval.judge=maybe")


def test_generated_tasks_have_no_solo_mode_and_a_size_must_exist() -> None:
    with pytest.raises(ConfigError, match="no solo mode"):
        environment_of("eval.solo=true", measuring=True)
    assert not environment_of("eval.solo=true").rules.solo, "in training nobody is measured"
    sizes = {name: find(name).sizes for name in NAMES}
    missing = next(((n, s) for n in NAMES for s in ("tiny", "small", "medium", "official") if s not in sizes[n]), None)
    if missing is not None:
        with pytest.raises(ConfigError, match=rf"domain\.size is {missing[1]}"):
            environment_of(f"domain.name={missing[0]}", f"domain.size={missing[1]}")


def test_draws_of_the_plain_kind_follow_each_other() -> None:
    domain = load_config("cpu").domain
    whole = [t.id for t in draw_made(find(domain.name), domain, "train", 6, 3, 0)]
    parts = [t.id for start in (0, 3) for t in draw_made(find(domain.name), domain, "train", 3, 3, start)]
    assert parts == whole


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def score(environment: ConfiguredEnvironment, task: Any) -> Verdict:
    world = environment.domain.world(task)
    episode = asyncio.run(run_episode(task, world, Puppet("Hello."), Lines("a")))
    return asyncio.run(environment.score(task, world, episode))


def test_where_the_world_has_no_state_everything_that_ends_is_unscored() -> None:
    environment = environment_of()
    task = environment.example_task("train")
    assert score(environment, task).breakdown != {"unscored": 0.0}
    imagined = ImaginedTools(
        environment.domain, environment.draw, environment.rules, environment.limits, environment.judge
    )
    assert score(imagined, task) == Verdict(0.0, {"unscored": 0.0}) and not imagined.checkable


def test_scoring_that_breaks_off_is_infrastructure_and_what_a_person_can_mend_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = environment_of()
    task = environment.example_task("train")

    def failing(problem: Exception) -> Any:
        async def broken(*args: Any, **kwargs: Any) -> Verdict:
            raise problem

        return broken

    monkeypatch.setattr(outcome, "score", failing(ZeroDivisionError("x")))
    with pytest.raises(InfrastructureError, match=f"task {task.id} cannot be scored: ZeroDivisionError: x") as caught:
        score(environment, task)
    assert caught.value.boundary == "world"
    monkeypatch.setattr(outcome, "score", failing(DataError("db.json: gone")))
    with pytest.raises(DataError, match="gone"):
        score(environment, task)


def test_a_setting_need_not_be_a_configurations() -> None:
    environment = environment_of()

    class Shop(Domain):
        name = "shop"
        policy = "Be kind."

        def policy_for(self, task: Task) -> str:
            return f"Be kind to {task.id}."

    made = ConfiguredEnvironment(Shop(), environment.draw, environment.rules, environment.limits, FixedJudge(True))
    task = Task("t", "shop", "", ())
    assert made.system_prompt(task) == "Be kind to t." and tuple(made.tools(task)) == ()


class Cellar(Shelf):
    """A shelf whose author says what an audit must know."""

    audit = AuditRules(consent=False, auth_tools=frozenset({"lend"}))


def test_training_keeps_the_rules_that_an_own_domain_declares(tmp_path: Path) -> None:
    class Enough(Exception):
        """The run's folder is ready."""

    class Backend:
        def learner(self, *_: object) -> None:
            raise Enough

    def draw(split: str, count: int, seed: int, start: int) -> list[Task]:
        return [Task(f"{split}-{n}", "cellar", "", ()) for n in range(start, start + count)]

    config = load_config("cpu", ["rl.steps=1", f"runs_dir={tmp_path}"])
    run = RunDirectory(tmp_path, "cellar")
    context = SimpleNamespace(folder=run, progress=None, backend=Backend())
    with pytest.raises(Enough):
        rl.train(context, config, ConfiguredEnvironment(Cellar(), draw, Rules(), Limits(), FixedJudge(True)), None)  # type: ignore[arg-type]
    assert read_rules(run.path / FILE).rules.auth_tools == {"lend"}


# ── an environment of one's own ──────────────────────────────────────────────────────────────────────────────────────


def lent(split: str, index: int) -> Task:
    return Task(f"{split}-{index}", "shelf", "Borrow b.", (Action("lend", {"book": "b"}),), tags={"intent": "borrow"})


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes an environment as a run configures it, as if its name stood in the configuration."""

    def made(environment: Environment, *overrides: str, measuring: bool = False) -> ConfiguredEnvironment:
        monkeypatch.setattr("muarl.environments.configure.find", lambda name: environment)
        monkeypatch.setattr("muarl.runs.roles.find", lambda name: environment)
        return environment_of(*overrides, measuring=measuring)

    return made


def test_what_an_environment_of_ones_own_lacks_is_told_before_any_work(configure: Any) -> None:
    environment = configure(Environment(name="library", domain=Shelf, tasks=lent))
    assert environment.unchecked and environment.name == "library"
    config = load_config("cpu", ["eval.agent=expert"])
    with pytest.raises(ConfigError, match="library has no rule-based user: give --user endpoint:MODEL"):
        check_fits(Cast.of(config), "user")
    with pytest.raises(ConfigError, match="library has no scripted expert"):
        check_fits(Cast.of(config), "agent")
    with pytest.raises(ConfigError, match="library has no rule-based user"):
        make_users(config.user, environment)


def test_a_fixed_set_of_tasks_is_drawn_in_rounds_and_evaluated_whole(configure: Any) -> None:
    tasks = {split: [lent(split, n) for n in range(4)] for split in ("train", "test")}
    environment = configure(Environment(name="library", domain=Shelf, tasks=tasks))
    rounds = [[t.id for t in environment.draw("train", 2, 0, start)] for start in (0, 2, 4, 6)]
    assert sorted(rounds[0] + rounds[1]) == sorted(rounds[2] + rounds[3]) == sorted(t.id for t in tasks["train"])
    assert len(environment.eval_tasks(load_config("cpu", ["eval.tasks=null"]).eval)) == 4
    assert len(environment.eval_tasks(load_config("cpu", ["eval.tasks=200"]).eval)) == 4
    assert len(environment.eval_tasks(load_config("cpu", ["eval.tasks=3"]).eval)) == 3
    with pytest.raises(ConfigError, match="library has 4 tasks for train, and 5 are asked for at once: lower rl.tasks"):
        environment.draw("train", 5, 0, 0)
    assert configure(Environment(name="library", domain=Shelf, tasks=lent), "domain.intents=[borrow]").draw
    with pytest.raises(ConfigError, match="there is no intent 'return'; known: borrow"):
        configure(Environment(name="library", domain=Shelf, tasks=tasks), "domain.intents=[return]")


def test_endless_tasks_need_a_number(configure: Any) -> None:
    environment = configure(Environment(name="library", domain=Shelf, tasks=lent))
    with pytest.raises(ConfigError, match="library has tasks without end: say how many"):
        environment.eval_tasks(load_config("cpu", ["eval.tasks=null"]).eval)


def test_an_environments_own_rules_audit_it_and_are_kept(configure: Any, tmp_path: Path) -> None:
    rules = AuditRules(consent=False, auth_tools=frozenset({"lend"}))
    environment = configure(Environment(name="library", domain=Shelf, tasks=lent, audit=rules))
    assert environment.audit_rules(environment.example_task("train")).auth_tools == {"lend"}
    keep_rules(tmp_path, environment.domain, environment.own_rules)
    assert read_rules(tmp_path / FILE).rules.auth_tools == {"lend"}
    assert replace(environment, environment=find("retail-generated")).own_rules is None
