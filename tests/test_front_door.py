"""``import muarl``: its names are all there, described, typed, and cost nothing before they are used."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import muarl
from muarl.basics.errors import ConfigError
from muarl.basics.extras import MissingExtra
from muarl.types.episode import StopReason
from support.page_examples import module_of


def generator(repository: Path) -> Any:
    return module_of(repository / "docs" / "generate_api.py")


@pytest.mark.parametrize("name", muarl.__all__)
def test_each_name_is_there_with_a_description_of_its_own(name: str) -> None:
    found = getattr(muarl, name)
    text = inspect.getdoc(found) or ""
    assert len(text.split()) >= 5
    assert not text.startswith(f"{name}("), "a dataclass without a docstring has its signature for one"
    assert name in dir(muarl)


def test_the_page_is_what_the_docstrings_say(repository: Path) -> None:
    module = generator(repository)
    listed = [name for names in module.SECTIONS.values() for name in names]
    assert listed == muarl.__all__
    written = (repository / "docs" / "api.md").read_text(encoding="utf-8")
    assert written == module.page(), "run: python docs/generate_api.py"
    assert "| `await play_tasks` |" in written and "| `load_task` |" in written


def test_type_checkers_see_the_same_names_from_the_same_modules(repository: Path) -> None:
    tree = ast.parse((repository / "src" / "muarl" / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == muarl._HOMES
    assert sorted(seen) == sorted(muarl.__all__)


def test_importing_it_imports_nothing() -> None:
    code = "import sys; before = set(sys.modules); import muarl; print(*sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in found.stdout.split()}
    assert "muarl" in imported
    assert not imported & {"torch", "numpy", "pydantic", "aiohttp", "openai", "transformers", "yaml"}
    assert {name for name in found.stdout.split() if name.startswith("muarl.")} == {
        "muarl.basics",
        "muarl.basics.version",
        "muarl.moved",
    }


def test_the_names_marked_on_the_page_need_training_and_no_others(repository: Path) -> None:
    module = generator(repository)
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "tokenizers", "safetensors", "renderers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import muarl
for name in muarl.__all__:
    try:
        getattr(muarl, name)
    except muarl.MuarlError as problem:
        print(name, problem)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = dict(line.split(" ", 1) for line in found.stdout.splitlines())
    assert set(told) == set(module.NEED_TRAIN) - {"load_checkpoint"}, "that one says so when it is called"
    assert all(re.search(r"pip install 'muarl\[train\]'", text) for text in told.values())


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nosuch'"):
        _ = muarl.Nosuch


def test_a_checkpoint_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"the checkpoint base needs torch.*muarl\[train\]"):
        muarl.load_checkpoint("base")


async def test_playing_gives_scored_groups_that_can_be_had_again() -> None:
    shop = muarl.load_environment("retail-generated")
    tasks = shop.make_tasks("train", 3, seed=1)
    agent = muarl.ExpertAgent(make=shop.needed_expert())
    first = await muarl.play_tasks(shop, agent, tasks, rollouts=2, seed=4, label="a")
    again = await muarl.play_tasks(shop, agent, tasks, rollouts=2, seed=4, label="a")
    other = await muarl.play_tasks(shop, agent, tasks, rollouts=2, seed=4, label="b")
    assert [e.group for e in first] == [f"a/{task.id}" for task in tasks for _ in range(2)]
    assert all(e.reward == 1 and e.stop is StopReason.USER_STOP for e in first)
    assert [e.messages for e in first] == [e.messages for e in again] != [e.messages for e in other]
    domain = shop.make_domain()
    found = muarl.audit_episode(first[0], tasks[0], domain=domain, rules=shop.audit_rules(domain))
    assert not [f for f in found if f.severity == "catastrophic"]
    assert first[0].verdict is not None and first[0].verdict.audit["writes_without_consent"] == 0


async def test_evaluating_gives_a_report() -> None:
    shop = muarl.load_environment("retail-generated")
    report = await muarl.evaluate(shop, muarl.ExpertAgent(make=shop.needed_expert()), 5, rollouts=2)
    assert (report.tasks, report.episodes, report.success.value) == (5, 10, 1.0)
    assert report.success_without_violation is not None and report.success_without_violation.value == 1.0
    assert report.name == "expert on retail-generated"


async def test_a_bug_in_an_agent_ends_the_play_with_its_place() -> None:
    shop = muarl.load_environment("retail-generated")
    wrong = muarl.ExpertAgent(make=shop.needed_expert)  # type: ignore[arg-type]  # it must be called
    with pytest.raises(
        muarl.MuarlError, match=r"agent: unexpected TypeError: .*needed_expert.*\(expert.py, line \d+\)"
    ):
        await muarl.play_tasks(shop, wrong, shop.make_tasks("train", 2))


async def test_an_environment_of_ones_own_is_played_without_any_registration() -> None:
    class Counter(muarl.Domain):
        name = "counter"
        policy = "Count what you are told to count."
        database = {"counts": {"it": {"n": 0}}}

        @muarl.tool(writes=True)
        def count(self, to: int) -> int:
            """Count on.

            to: up to where.
            """
            self.db["counts"]["it"]["n"] = to
            return to

    class Wants:
        def __init__(self, task: muarl.Task, *, seed: int, persona: str | None = None) -> None:
            self.said = 0

        async def reply(self, conversation: Any) -> Any:
            from muarl.users.base import UserTurn

            self.said += 1
            return UserTurn(muarl.Message("user", "count to 3" if self.said == 1 else "###STOP###"))

    def task(split: str, index: int) -> muarl.Task:
        actions = (muarl.Action("count", {"to": 3}),)
        return muarl.Task(id=f"{split}-{index}", domain="counter", scenario="count to 3", actions=actions)

    counting = muarl.Environment(name="counter", domain=Counter, tasks=task, rule_based_user=Wants)

    class Counting:
        name = "counting"

        def open(self, system: str, tools: Any, *, seed: int, session: str) -> Any:
            from muarl.agents.base import AgentTurn

            class Session:
                tokens = None
                turns = 0

                async def act(self, new: Any) -> AgentTurn:
                    self.turns += 1
                    call = (muarl.ToolCall("1", "count", {"to": 3}),) if self.turns == 1 else ()
                    return AgentTurn(muarl.Message("assistant", None if call else "Done.", tool_calls=call))

                def close(self) -> None: ...

            return Session()

    (episode,) = await muarl.play_tasks(counting, Counting(), counting.make_tasks("train", 1))
    assert episode.reward == 1, episode.messages


async def test_what_cannot_be_played_is_refused() -> None:
    benchmark, shop = muarl.load_environment("tau2-retail"), muarl.load_environment("retail-generated")
    expert = muarl.ExpertAgent(make=shop.needed_expert())
    with pytest.raises(ConfigError, match="muarl eval tau2-retail"):
        await muarl.play_tasks(benchmark, expert, [])
    worded = replace(shop.make_tasks("train", 1)[0], nl_assertions=("was polite",), reward_basis=("NL_ASSERTION",))
    with pytest.raises(muarl.MuarlError, match="was polite.*give a judge"):
        await muarl.play_tasks(shop, expert, [worded])
    lonely = muarl.Environment(name="lonely", domain=muarl.Domain, tasks={})
    with pytest.raises(ConfigError, match="lonely has no rule-based user"):
        await muarl.play_tasks(lonely, expert, [])
    with pytest.raises(ConfigError, match="did you mean retail-generated"):
        muarl.load_environment("retail-generatd")
