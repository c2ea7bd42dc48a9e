"""Where a run's episodes take place: what agents and users are told of generated tasks, and what must be refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loop_kit import Lines, Puppet
from muarl.agents.idle import IdleAgent
from muarl.audit.rules_file import FILE, read_rules
from muarl.config import load_config
from muarl.conversation import DONE, Limits, Rules, run_episode
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Action, Domain, Task, tool
from muarl.domains.experts import Habits
from muarl.domains.generated import generated
from muarl.episode import Verdict
from muarl.errors import ConfigError, DataError, InfrastructureError
from muarl.observe.rundir import RunDirectory
from muarl.recipes import rl
from muarl.recipes import setting as settings
from muarl.recipes.demonstrations import demonstrate
from muarl.recipes.evaluate import evaluate
from muarl.recipes.preflight import check_gold
from muarl.recipes.setting import GENERATED_RULES, Setting, draw_generated, make_setting
from muarl.rewards import outcome

NAMES = ("retail-generated", "airline-generated", "telecom-generated", "bfcl-generated", "acebench-generated")


def setting_of(*overrides: str, measuring: bool = False) -> Setting:
    return make_setting(load_config("cpu", overrides), measuring=measuring)


@pytest.fixture(scope="module", params=NAMES)
def setting(request: pytest.FixtureRequest) -> Setting:
    return setting_of(f"domain.name={request.param}", "domain.size=tiny")


def test_agents_are_told_what_the_domain_says_of_the_task(setting: Setting) -> None:
    task = setting.some_task("train")
    assert setting.generated is not None and setting.benchmark is setting.official is None
    assert setting.told(task) == setting.domain.policy_for(task) != ""
    assert tuple(setting.tools(task)) == tuple(setting.domain.specs_for(task)) != ()
    assert DONE not in setting.tools(task)
    assert setting.rules == GENERATED_RULES and setting.scored


def test_some_task_is_one_of_the_split_and_always_the_same(setting: Setting) -> None:
    for split in ("train", "validation", "test"):
        task = setting.some_task(split)
        others = setting.some_task(split), setting.draw(split, 3, 0, 0)[0]
        assert all((t.id, t.scenario, t.actions) == (task.id, task.scenario, task.actions) for t in others)
    assert setting.some_task("train").id != setting.some_task("test").id
    with pytest.raises((ValueError, ConfigError)):
        setting.some_task("base")


def test_what_is_told_reaches_the_agent(setting: Setting) -> None:
    task = setting.some_task("test")
    agent = Puppet("Hello.")
    told, tools = setting.told(task), setting.tools(task)
    asyncio.run(run_episode(task, setting.domain.world(task), agent, Lines("a"), system=told, tools=tools))
    asyncio.run(run_episode(task, setting.domain.world(task), agent, Lines("a")))
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

    setting = Setting(Shelf(), draw, Rules(), Limits(), judge="pass")
    config = load_config("cpu", ["rl.steps=3", "rl.tasks_per_step=2", "rl.seed=4", "seed=1", f"runs_dir={tmp_path}"])
    cause = r"task train-5: actions\[0\], lend\(.*\): raises KeyError"
    with pytest.raises(DataError, match=cause):
        check_gold(config, setting)
    seed = 4 + 1000 + 500_000
    assert drawn == [("validation", 100, config.eval.seed, 0), *(("train", 2, seed, start) for start in (0, 2, 4))]
    with pytest.raises(DataError, match=cause):  # nothing else of what it is given is looked at before
        rl.train(config, setting, None, None, None, None)  # type: ignore[arg-type]
    wrong = draw("train", 1, 0, 5)
    with pytest.raises(DataError, match=cause):
        evaluate(config, setting, IdleAgent(), wrong, None)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=cause):
        demonstrate(setting, None, wrong, Habits(), seed=0)  # type: ignore[arg-type]
    setting.check(draw("train", 5, 0, 0))


def test_what_generators_and_benchmarks_have_made_is_not_replayed_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "check_tasks", None)
    setting.check(setting.draw("train", 2, 0, 0))
    check_gold(load_config("cpu"), setting)
    assert not setting.unchecked


def test_users_have_the_tools_that_their_task_allows() -> None:
    setting = setting_of("domain.name=telecom-generated")
    task = setting.some_task("train")
    named = [t.name for t in setting.user_tools(task)]
    everything = [t.name for t in setting.domain.tool_specs("user")]
    assert named == [n for n in everything if task.user_tools is None or n in task.user_tools] != []
    assert not setting_of("domain.name=retail-generated").user_tools(task)


def test_a_policy_of_ones_own_is_told_in_every_task(tmp_path: Path) -> None:
    path = tmp_path / "policy.md"
    path.write_text("Sei freundlich. {ticket}\n", encoding="utf-8")
    setting = setting_of("domain.name=retail-generated", f"domain.policy={path}")
    for task in setting.draw("train", 2, 0, 0):
        assert setting.told(task) == "Sei freundlich. {ticket}\n", "a ticket is for those who work alone"
    path.write_bytes(b"\xff\xfe")
    for bad in (path, tmp_path / "none.md"):
        with pytest.raises(ConfigError, match=r"domain\.policy"):
            setting_of("domain.name=retail-generated", f"domain.policy={bad}")


def test_a_misspelt_judge_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="maybe"):
        setting_of("eval.judge=maybe")


def test_generated_tasks_have_no_solo_mode_and_a_size_must_exist() -> None:
    with pytest.raises(ConfigError, match="no solo mode"):
        setting_of("eval.solo=true", measuring=True)
    assert not setting_of("eval.solo=true").rules.solo, "in training nobody is measured"
    sizes = {name: generated(name).sizes for name in NAMES}
    missing = next(((n, s) for n in NAMES for s in ("tiny", "small", "medium", "official") if s not in sizes[n]), None)
    if missing is not None:
        with pytest.raises(ConfigError, match=rf"domain\.size is {missing[1]}"):
            setting_of(f"domain.name={missing[0]}", f"domain.size={missing[1]}")


def test_draws_of_the_plain_kind_follow_each_other() -> None:
    domain = load_config("cpu").domain
    whole = [t.id for t in draw_generated(domain, "train", 6, 3, 0)]
    parts = [t.id for start in (0, 3) for t in draw_generated(domain, "train", 3, 3, start)]
    assert parts == whole


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def score(setting: Setting, task: Any) -> Verdict:
    world = setting.domain.world(task)
    episode = asyncio.run(run_episode(task, world, Puppet("Hello."), Lines("a")))
    return asyncio.run(setting.score(task, world, episode))


def test_where_the_world_has_no_state_everything_that_ends_is_unscored() -> None:
    setting = setting_of()
    task = setting.some_task("train")
    assert score(setting, task).breakdown != {"unscored": 0.0}
    assert score(replace(setting, scored=False), task) == Verdict(0.0, {"unscored": 0.0})


def test_scoring_that_breaks_off_is_infrastructure_and_what_a_person_can_mend_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = setting_of()
    task = setting.some_task("train")

    def failing(problem: Exception) -> Any:
        async def broken(*args: Any, **kwargs: Any) -> Verdict:
            raise problem

        return broken

    monkeypatch.setattr(outcome, "score", failing(ZeroDivisionError("x")))
    with pytest.raises(InfrastructureError, match=f"task {task.id} cannot be scored: ZeroDivisionError: x") as caught:
        score(setting, task)
    assert caught.value.boundary == "world"
    monkeypatch.setattr(outcome, "score", failing(DataError("db.json: gone")))
    with pytest.raises(DataError, match="gone"):
        score(setting, task)


def test_a_setting_need_not_be_a_configurations() -> None:
    setting = setting_of()

    class Shop(Domain):
        name = "shop"
        policy = "Be kind."

        def policy_for(self, task: Task) -> str:
            return f"Be kind to {task.id}."

    made = Setting(Shop(), setting.draw, setting.rules, setting.limits, "pass")
    task = Task("t", "shop", "", ())
    assert made.told(task) == "Be kind to t." and tuple(made.tools(task)) == ()


class Cellar(Shelf):
    """A shelf whose author says what an audit must know."""

    audit = AuditRules(consent=False, auth_tools=frozenset({"lend"}))


def test_training_keeps_the_rules_that_an_own_domain_declares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Enough(Exception):
        """The run's folder is ready."""

    def stop(*_: object) -> None:
        raise Enough

    def draw(split: str, count: int, seed: int, start: int) -> list[Task]:
        return [Task(f"{split}-{n}", "cellar", "", ()) for n in range(start, start + count)]

    monkeypatch.setattr(rl, "make_learner", stop)
    config = load_config("cpu", ["rl.steps=1", f"runs_dir={tmp_path}"])
    run = RunDirectory(tmp_path, "cellar")
    with pytest.raises(Enough):
        rl.train(config, Setting(Cellar(), draw, Rules(), Limits(), "pass"), None, run, None, None)  # type: ignore[arg-type]
    assert read_rules(run.path / FILE).rules.auth_tools == {"lend"}
