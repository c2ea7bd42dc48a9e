"""Where a run's episodes take place: what agents and users are told of generated tasks, and what must be refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loop_kit import Puppet
from muarl.audit.rules import FILE, read_rules
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, DataError, InfrastructureError
from muarl.config.load import load_config
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.environments import place as place_module
from muarl.environments.configure import place_of
from muarl.environments.environment import GENERATED_RULES, Environment
from muarl.environments.place import Draw, ImaginedPlace, Place
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.environments.task_draws import draw_made
from muarl.observe.rundir import RunDirectory
from muarl.recipes import rl
from muarl.recipes.demonstrations import demonstrate
from muarl.recipes.evaluation.measuring import evaluate
from muarl.rewards import outcome
from muarl.rewards.judge import FixedJudge
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rules import Rules
from muarl.runs.context import keep_own_rules
from muarl.runs.roles import Cast, check_fits
from muarl.runs.tasks import check_gold
from muarl.types.episode import Verdict
from muarl_worlds.tau.protocol import DONE
from support.toy_shop import Lines

NAMES = ("retail-generated", "airline-generated", "telecom-generated", "bfcl-generated", "acebench-generated")


def environment_of(*overrides: str, measuring: bool = False) -> Place:
    return place_of(load_config("cpu", overrides), measuring=measuring)


@pytest.fixture(scope="module", params=NAMES)
def place(request: pytest.FixtureRequest) -> Place:
    return environment_of(f"domain.name={request.param}", "domain.size=tiny")


def test_agents_are_told_what_the_domain_says_of_the_task(place: Place) -> None:
    task = place.example_task("train")
    assert type(place) is Place and place.expert is find(place.name).expert
    assert place.system_prompt(task) == place.domain.policy_for(task) != ""
    assert tuple(place.tools(task)) == tuple(place.domain.specs_for(task)) != ()
    assert DONE not in place.tools(task)
    assert place.rules == GENERATED_RULES and place.checkable


def test_some_task_is_one_of_the_split_and_always_the_same(place: Place) -> None:
    for split in ("train", "validation", "test"):
        task = place.example_task(split)
        others = place.example_task(split), place.draw(split, 3, 0, 0)[0]
        assert all((t.id, t.scenario, t.actions) == (task.id, task.scenario, task.actions) for t in others)
    assert place.example_task("train").id != place.example_task("test").id
    with pytest.raises((ValueError, ConfigError)):
        place.example_task("base")


def test_what_is_told_reaches_the_agent(place: Place) -> None:
    task = place.example_task("test")
    agent = Puppet("Hello.")
    told, tools = place.system_prompt(task), place.tools(task)
    asyncio.run(run_episode(task, place.domain.world(task), agent, Lines("a"), system=told, tools=tools))
    asyncio.run(run_episode(task, place.domain.world(task), agent, Lines("a")))
    given = [(s.system, tuple(s.tools)) for s in agent.sessions]
    assert given == [(told, tuple(tools))] * 2, "and is what an agent is told that nobody tells anything else"


def own_place(domain: Domain, draw: Draw) -> Place:
    """A place that a program makes itself."""
    return Place(name=domain.name, domain=domain, draw=draw, rules=Rules(), judge=FixedJudge(True))


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

    place = own_place(Shelf(), draw)
    places = Places([place])
    overrides = ["rl.steps=3", "rl.tasks_per_step=2", "rl.seed=4", "seed=1", f"runs_dir={tmp_path}"]
    config = load_config("cpu", overrides)
    cause = r"task train-5: actions\[0\], lend\(.*\): raises KeyError"
    with pytest.raises(DataError, match=cause):
        check_gold(config.rl, config.eval, config.seed, places)
    seed = 4 + 1000 + 500_000
    assert drawn == [("validation", 100, config.eval.seed, 0), *(("train", 2, seed, start) for start in (0, 2, 4))]
    with pytest.raises(DataError, match=cause):  # nothing else of what it is given is looked at before
        rl.train(None, config, places, None)  # type: ignore[arg-type]
    wrong = draw("train", 1, 0, 5)
    with pytest.raises(DataError, match=cause):
        evaluate(config.eval, places, wrong, None, None, label="x")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=cause):
        demonstrate(places, None, wrong, ErrorProfile(), seed=0)  # type: ignore[arg-type]
    place.check(draw("train", 5, 0, 0))


def test_what_generators_and_benchmarks_have_made_is_not_replayed_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_module, "check_tasks", None)
    place.check(place.draw("train", 2, 0, 0))
    config = load_config("cpu")
    check_gold(config.rl, config.eval, config.seed, Places([place]))
    assert place.replayed


def test_users_have_the_tools_that_their_task_allows() -> None:
    place = environment_of("domain.name=telecom-generated")
    task = place.example_task("train")
    named = [t.name for t in place.user_tools(task)]
    everything = [t.name for t in place.domain.tool_specs("user")]
    assert named == [n for n in everything if task.user_tools is None or n in task.user_tools] != []
    assert not environment_of("domain.name=retail-generated").user_tools(task)


def test_a_policy_of_ones_own_is_told_in_every_task(tmp_path: Path) -> None:
    path = tmp_path / "policy.md"
    path.write_text("Sei freundlich. {ticket}\n", encoding="utf-8")
    place = environment_of("domain.name=retail-generated", f"domain.policy={path}")
    for task in place.draw("train", 2, 0, 0):
        assert place.system_prompt(task) == "Sei freundlich. {ticket}\n", "a ticket is for those who work alone"
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


def score(place: Place, task: Any) -> Verdict:
    world = place.domain.world(task)
    episode = asyncio.run(run_episode(task, world, Puppet("Hello."), Lines("a")))
    return asyncio.run(place.score(task, world, episode))


def test_where_the_world_has_no_state_everything_that_ends_is_unscored() -> None:
    place = environment_of()
    task = place.example_task("train")
    assert score(place, task).breakdown != {"unscored": 0.0}
    imagined = ImaginedPlace(name="imagined", domain=place.domain, draw=place.draw, rules=place.rules)
    assert score(imagined, task) == Verdict(0.0, {"unscored": 0.0}) and not imagined.checkable


def test_scoring_that_breaks_off_is_infrastructure_and_what_a_person_can_mend_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = environment_of()
    task = place.example_task("train")

    def failing(problem: Exception) -> Any:
        async def broken(*args: Any, **kwargs: Any) -> Verdict:
            raise problem

        return broken

    monkeypatch.setattr(outcome, "score", failing(ZeroDivisionError("x")))
    with pytest.raises(InfrastructureError, match=f"task {task.id} cannot be scored: ZeroDivisionError: x") as caught:
        score(place, task)
    assert caught.value.boundary == "world"
    monkeypatch.setattr(outcome, "score", failing(DataError("db.json: gone")))
    with pytest.raises(DataError, match="gone"):
        score(place, task)


def test_a_setting_need_not_be_a_configurations() -> None:
    place = environment_of()

    class Shop(Domain):
        name = "shop"
        policy = "Be kind."

        def policy_for(self, task: Task) -> str:
            return f"Be kind to {task.id}."

    made = own_place(Shop(), place.draw)
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
        rl.train(context, config, Places([own_place(Cellar(), draw)]), None)  # type: ignore[arg-type]
    assert read_rules(run.path / FILE).rules.auth_tools == {"lend"}


# ── an environment of one's own ──────────────────────────────────────────────────────────────────────────────────────


def lent(split: str, index: int) -> Task:
    return Task(f"{split}-{index}", "shelf", "Borrow b.", (Action("lend", {"book": "b"}),), tags={"intent": "borrow"})


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes an environment as a run configures it, as if its name stood in the configuration."""

    def made(environment: Environment, *overrides: str, measuring: bool = False) -> Place:
        monkeypatch.setattr("muarl.environments.configure.find", lambda name: environment)
        monkeypatch.setattr("muarl.runs.roles.find", lambda name: environment)
        return environment_of(*overrides, measuring=measuring)

    return made


def test_what_an_environment_of_ones_own_lacks_is_told_before_any_work(configure: Any) -> None:
    place = configure(Environment(name="library", domain=Shelf, tasks=lent))
    assert not place.replayed and place.name == "library"
    config = load_config("cpu", ["eval.agent=expert"])
    with pytest.raises(ConfigError, match="library has no rule-based user: give --user endpoint:MODEL"):
        check_fits(Cast.of(config), "user")
    with pytest.raises(ConfigError, match="library has no scripted expert"):
        check_fits(Cast.of(config), "agent")
    with pytest.raises(ConfigError, match="library has no rule-based user"):
        make_users(config.user, Places([place]))


@pytest.mark.parametrize("role", ["user", "eval_user"])
def test_a_user_model_that_has_no_tools_is_refused_where_users_need_theirs(role: Any) -> None:
    settings = [f"{role}.kind=sampled", f"{role}.checkpoint=runs/who", "domain.size=tiny"]
    check_fits(Cast.of(load_config("cpu", [*settings, "domain.name=hotel-generated"])), role)
    telecom = load_config("cpu", [*settings, "domain.name=telecom-generated"])
    with pytest.raises(ConfigError, match="users of telecom-generated have tools of their own"):
        check_fits(Cast.of(telecom), role)
    with pytest.raises(ConfigError, match="users of the kind agenda or llm"):
        make_users(getattr(telecom, role), Places([place_of(telecom)]))


def test_a_fixed_set_of_tasks_is_drawn_in_rounds_and_evaluated_whole(configure: Any) -> None:
    tasks = {split: [lent(split, n) for n in range(4)] for split in ("train", "test")}
    place = configure(Environment(name="library", domain=Shelf, tasks=tasks), "rl.eval_every=0")
    rounds = [[t.id for t in place.draw("train", 2, 0, start)] for start in (0, 2, 4, 6)]
    assert sorted(rounds[0] + rounds[1]) == sorted(rounds[2] + rounds[3]) == sorted(t.id for t in tasks["train"])
    assert len(place.eval_tasks("test", None, seed=0)) == 4
    assert len(place.eval_tasks("test", 200, seed=0)) == 4
    assert len(place.eval_tasks("test", 3, seed=0)) == 3
    with pytest.raises(ConfigError, match="library has 4 tasks for train, and 5 are asked for at once: lower rl.tasks"):
        place.draw("train", 5, 0, 0)
    assert configure(Environment(name="library", domain=Shelf, tasks=lent), "domain.intents=[borrow]").draw
    with pytest.raises(ConfigError, match="there is no intent 'return'; known: borrow"):
        configure(Environment(name="library", domain=Shelf, tasks=tasks), "domain.intents=[return]")


def test_endless_tasks_need_a_number(configure: Any) -> None:
    place = configure(Environment(name="library", domain=Shelf, tasks=lent))
    with pytest.raises(ConfigError, match="library has tasks without end: say how many"):
        place.eval_tasks("test", None, seed=0)


def test_an_environments_own_rules_audit_it_and_are_kept(configure: Any, tmp_path: Path) -> None:
    rules = AuditRules(consent=False, auth_tools=frozenset({"lend"}))
    place = configure(Environment(name="library", domain=Shelf, tasks=lent, audit=rules))
    assert place.audit_rules(place.example_task("train")).auth_tools == {"lend"}
    keep_own_rules(RunDirectory(tmp_path, "own"), Places([place]))
    assert read_rules(tmp_path / "own" / FILE).rules.auth_tools == {"lend"}
    keep_own_rules(RunDirectory(tmp_path, "known"), Places([replace(place, name="retail-generated")]))
    assert not (tmp_path / "known" / FILE).exists()
