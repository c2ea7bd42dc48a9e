"""Tasks written by a teacher: what is asked, what is taken, and that nothing is asked twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import InfrastructureError
from muarl.coldstart.writing import AT_ONCE, Brief, WrittenTasks, plan_of, prompt, read
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.types.chat import ToolSpec
from support.fake_openai import FakeOpenAI, text

TOOL = ToolSpec("find_book", "Look a book up.", {"type": "object", "properties": {"title": {"type": "string"}}})
BRIEF = Brief("library", "Be kind. Never lend {rare} books.", (TOOL,), "A small library.", ("borrow", "return", "fine"))
WORDS = [f"word{n}x" for n in range(18)]


def scenario(n: int) -> str:
    mine = [WORDS[(n * 5 + k * k) % len(WORDS)] + str(n) for k in range(14)]
    return f"You want to {' '.join(mine)}."


def endpoint(server: FakeOpenAI) -> Endpoint:
    return Endpoint(EndpointSettings(model="teacher", base_url=server.url, attempts=1))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key")


class Teacher:
    """Writes what it was asked for, always new."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, body: dict[str, Any]) -> Any:
        self.asked.append(body["messages"][0]["content"])
        wanted = int(self.asked[-1].split("Write ")[1].split()[0])
        start = len(self.asked) * 100
        rows = [{"intent": "x", "persona": "y", "scenario": scenario(start + n)} for n in range(wanted)]
        return text("```json\n" + json.dumps({"scenarios": rows}) + "\n```")


def test_the_teacher_is_told_policy_tools_world_intents_and_personas() -> None:
    plan = [plan_of(BRIEF, 0, n) for n in range(4)]
    assert [intent for intent, _ in plan] == ["borrow", "return", "fine", "borrow"]
    asked = prompt(BRIEF, plan)
    for words in ("Never lend {rare} books.", "find_book(title): Look a book up.", "A small library.", "Write 4 "):
        assert words in asked
    assert "; ".join(persona for _, persona in plan) in asked
    assert plan == [plan_of(BRIEF, 0, n) for n in range(4)] != [plan_of(BRIEF, 1, n) for n in range(4)]


def test_tasks_are_written_once_and_kept(tmp_path: Path) -> None:
    teacher = Teacher()
    with FakeOpenAI(teacher, key="sk-key") as server:
        first = WrittenTasks(tmp_path / "t.jsonl", endpoint(server), BRIEF)
        tasks = first.draw("train", 7, 0, 0)
        assert len(teacher.asked) == 2 and len({t.id for t in tasks}) == 7
        again = WrittenTasks(tmp_path / "t.jsonl", endpoint(server), BRIEF)
        assert [t.scenario for t in again.draw("train", 7, 0, 0)] == [t.scenario for t in tasks]
        assert len(teacher.asked) == 2, "nothing is asked twice"
        assert again.draw("train", AT_ONCE, 0, 7)[0].id.endswith("-7")
    assert all(t.actions is None and t.tags["written"] and t.domain == "library" for t in tasks)
    assert [t.tags["intent"] for t in tasks[:3]] == ["borrow", "return", "fine"]


@pytest.mark.parametrize(
    "answer",
    ["no JSON", "{}", '{"scenarios": 3}', '{"scenarios": [1]}', '{"scenarios": [{"scenario": "You go."}]}', "[" * 5000],
)  # fmt: skip
def test_nonsense_is_no_scenario(answer: str) -> None:
    assert read(answer, [("borrow", "terse")]) == []


def test_a_scenario_must_speak_to_the_customer() -> None:
    rows = [{"scenario": scenario(1)}, {"scenario": "The customer wants " + "something " * 20}]
    assert [r["scenario"] for r in read(json.dumps({"scenarios": rows}), [("a", "b"), ("c", "d")])] == [scenario(1)]


def test_a_teacher_that_repeats_itself_leaves_what_it_wrote(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    same = text(json.dumps({"scenarios": [{"scenario": scenario(1)}, {"scenario": "Too short for you"}]}))
    with FakeOpenAI([same], key="sk-key") as server:
        tasks = WrittenTasks(tmp_path / "t.jsonl", endpoint(server), BRIEF)
        assert [t.scenario for t in tasks.draw("train", 3, 0, 0)] == [scenario(1)]
        assert tasks.draw("train", 2, 0, 1) == []
    assert "too much like earlier ones" in caplog.text and "Continuing with 1 of 3 scenarios" in caplog.text


def test_a_teacher_of_whom_nothing_is_usable_ends_the_run(tmp_path: Path) -> None:
    with FakeOpenAI([text("no JSON")], key="sk-key") as server:
        with pytest.raises(InfrastructureError, match="no usable scenario in 3 rounds.* 6 missing, unreadable"):
            WrittenTasks(tmp_path / "t.jsonl", endpoint(server), BRIEF).draw("train", 2, 0, 0)


def test_the_same_again_does_not_count(tmp_path: Path) -> None:
    same = text(json.dumps({"scenarios": [{"scenario": scenario(1)}]}))
    with FakeOpenAI([same], key="sk-key") as server:
        tasks = WrittenTasks(tmp_path / "t.jsonl", endpoint(server), BRIEF)
        assert len(tasks.draw("train", 1, 0, 0)) == 1
        assert len(tasks.draw("train", 2, 0, 0)) == 1
