"""BFCL's entries through the one conversation loop: gold agents earn what gold earns, in every mode."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.agents.base import AgentTurn
from muarl.agents.prompted import PromptedAgent
from muarl.backends.users import make_users
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.domains.tasks import Task
from muarl.environments.configure import place_of
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.environments.play import local_executor
from muarl.environments.registry import find
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rollout import rollout
from muarl.runs.tasks import check_may_train
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import Episode, StopReason
from muarl_worlds.bfcl import official as bfcl

pytestmark = pytest.mark.data


@pytest.fixture(scope="module", autouse=True)
def installed(module_data: Any) -> Path:
    return module_data("bfcl")


class Gold:
    """Makes each turn's gold calls in one message, and then says so. ``text``: in words."""

    def __init__(self, tasks: Sequence[Task], *, text: bool = False, extra: Sequence[ToolCall] = ()) -> None:
        self.tasks = {t.id: t for t in tasks}
        self.name, self.text, self.extra = "gold", text, tuple(extra)
        self.told: list[tuple[str, Sequence[ToolSpec]]] = []
        self.sessions: list[_GoldSession] = []

    def open(self, system: str, tools: Sequence[ToolSpec], *, seed: int, session: str) -> _GoldSession:
        self.told.append((system, tools))
        self.sessions.append(_GoldSession(self, self.tasks[session.partition("/")[2].partition("#")[0]]))
        return self.sessions[-1]


class _GoldSession:
    tokens = None

    def __init__(self, owner: Gold, task: Task) -> None:
        self.owner, self.task, self.turn = owner, task, -1
        self.heard: list[Message] = []
        self.tools: list[str] = []

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        self.tools += [t.name for t in tools]

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        self.heard += new
        if new[-1].role == "tool" or (self.owner.text and "'role': 'tool'" in (new[-1].content or "")):
            return AgentTurn(Message("assistant", "Done."))
        self.turn += 1
        if self.owner.text:
            calls = ", ".join(bfcl.ground_truth(self.task)[self.turn])
            return AgentTurn(Message("assistant", f"[{calls}]" if calls else "That cannot be done."))
        wanted = [a for a in self.task.actions or () if a.action_id.partition(".")[0] == str(self.turn)]
        made = [ToolCall(f"{self.turn}.{n}", a.name, a.arguments) for n, a in enumerate(wanted)]
        return AgentTurn(Message("assistant", None if made else "That cannot be done.", (*made, *self.owner.extra)))

    def close(self) -> None:
        pass


def environment_of(name: str, *overrides: str, measuring: bool = True) -> Place:
    config = load_config(
        "cpu", [f"domain.name={name}", "eval.tasks=8", "eval.agent=endpoint", "eval.endpoint.model=m", *overrides]
    )
    return place_of(config, measuring=measuring)


def play(place: Place, agent: Any, tasks: Sequence[Task]) -> list[Episode]:
    requests = [RolloutRequest(t, 1, f"gold/{t.id}", 0) for t in tasks]
    users = make_users(load_config("cpu").eval_user, Places([place]))
    return asyncio.run(rollout(requests, local_executor(Places([place]), agent, users))).episodes


@pytest.fixture(params=["bfcl-v3", "bfcl-v4"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_gold_agents_by_function_calling_earn_everything(name: str) -> None:
    place = environment_of(name)
    tasks = find(name).official().tasks("test")
    episodes = play(place, Gold(tasks), tasks)
    wrong = [e.id for e in episodes if e.reward < 1]
    assert wrong == (["gold/multi_turn_base_154#0"] if name == "bfcl-v3" else [])
    assert all(e.verdict is not None and e.verdict.audit["strict"] == e.reward for e in episodes)
    figures = place.figures(episodes)
    assert figures["overall"] == pytest.approx(1.0 if name == "bfcl-v4" else (3 + 199 / 200) / 4)


def test_missing_functions_come_as_tools_with_the_benchmarks_own_sentence(name: str) -> None:
    place = environment_of(name)
    task = next(t for t in find(name).official().tasks("miss_func"))
    ((turn, names),) = (task.agenda or {})["brings"].items()
    agent = Gold([task])
    (episode,) = play(place, agent, [task])
    _, offered = agent.told[0]
    assert set(names).isdisjoint(t.name for t in offered)
    said = [m.content for m in episode.messages if m.role == "user"]
    assert said[int(turn)] == "I have updated some more functions you can choose from. What about now?"
    assert len(said) == len((task.agenda or {})["turns"]) + 1, "and then a stop word"


def test_in_words_the_documents_stand_in_the_message(name: str) -> None:
    place = environment_of(name, "eval.mode=text")
    named = re.compile(r"\w+\((\w+\s*=.*)?\)")  # BFCL's decoding drops positional arguments
    entries = find(name).official().tasks("miss_func")
    task = next(t for t in entries if all(named.fullmatch(c) for turn in bfcl.ground_truth(t) for c in turn))
    ((turn, names),) = (task.agenda or {})["brings"].items()
    inner = Gold([task], text=True)
    agent = PromptedAgent(inner, bfcl.PromptCodec(name.removeprefix("bfcl-")))  # type: ignore[arg-type]
    (episode,) = play(place, agent, [task])
    assert episode.reward == 1.0
    system, tools = inner.told[0]
    assert not tools and "multi_turn" not in system and names[0] not in system
    said = [m.content or "" for m in episode.messages if m.role == "user"]
    assert all(f"'name': '{n}'" in said[int(turn)] for n in names)
    heard = [m.content or "" for m in inner.sessions[0].heard]
    first = next(text for text in heard if "'role': 'tool'" in text)
    assert re.match(r"\[\{'role': 'tool', 'name': ['\"]\w+\(.*\)['\"], 'content'", first), (
        "named by the call as written"
    )


def test_an_agent_that_never_stops_calling_is_cut_after_twenty_one_messages(name: str) -> None:
    class Restless(Gold):
        def open(self, *args: Any, **kwargs: Any) -> Any:
            session = super().open(*args, **kwargs)

            async def act(new: Sequence[Message]) -> AgentTurn:
                return AgentTurn(Message("assistant", None, (ToolCall("c", "ls", {}),)))

            session.act = act  # type: ignore[method-assign]
            return session

    task = next(
        t
        for t in find(name).official().tasks("base")
        if "GorillaFileSystem" in (t.initial_data or {})["involved_classes"]
    )
    (episode,) = play(environment_of(name), Restless([task]), [task])
    assert episode.stop is StopReason.MAX_TURNS
    assert sum(m.role == "assistant" and bool(m.tool_calls) for m in episode.messages) == 21
    assert episode.verdict is not None and episode.verdict.note == "multi_turn:force_terminated"


def test_a_call_that_cannot_be_read_ends_the_turn_and_nothing_is_run(name: str) -> None:
    broken = ToolCall("bad", "ls", {}, invalid="not valid JSON", raw="{")
    task = next(t for t in find(name).official().tasks("base"))
    (episode,) = play(environment_of(name), Gold([task], extra=[broken]), [task])
    assert not [m for m in episode.messages if m.role == "tool"]
    assert episode.reward == 0.0 and episode.stop is StopReason.USER_STOP
    (episode,) = play(environment_of(name, "eval.agent=sampled"), Gold([task], extra=[broken]), [task])
    assert episode.reward == float(name == "bfcl-v4"), "v4's handler of Qwen passes over the one call only"


def test_training_is_scored_strictly_and_needs_a_flag(name: str) -> None:
    config = load_config("cpu", [f"domain.name={name}"])
    with pytest.raises(Exception, match="train_on_benchmark"):
        check_may_train(config.domains, on_benchmark=config.train_on_benchmark)
    place = environment_of(name, "train_on_benchmark=true", measuring=False)
    assert place.domain.semantics == "fixed"
    tasks = place.draw("train", 6, 0, 0)
    assert all(e.reward == 1.0 for e in play(place, Gold(tasks), tasks))


def test_a_checkpoint_is_told_the_documents_as_they_are(name: str) -> None:
    place = environment_of(name, "eval.agent=sampled")
    task = find(name).official().tasks("base")[0]
    told = [t.to_openai() for t in place.tools(task)]
    assert told[0]["parameters"]["type"] == "dict" and "function" not in told[0]


def test_the_commands_replay_and_score_recorded_calls(name: str, tmp_path: Path) -> None:
    def run(*args: str) -> tuple[list[dict[str, Any]], str]:
        result = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "out.jsonl")])
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()], result.output

    task = find(name).official().tasks("base")[0]
    calls = [[list(bfcl.ground_truth(task)[n])] for n in range(len((task.agenda or {})["turns"]))]
    rows = [
        {"id": task.id, "calls": calls},
        {"id": task.id, "calls": [[] for _ in calls]},
        {"id": task.id, "calls": None},
    ]
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    judged, told = run("score", name, "--trajectories", str(tmp_path / "calls.jsonl"))
    assert [r["valid"] for r in judged] == [True, False, False]
    assert [r["error_type"] for r in judged] == [
        None, "multi_turn:empty_turn_model_response", "multi_turn:inference_error",
    ]  # fmt: skip
    assert "3 entries; official: base 0.3333; strict: base 0.3333" in told
    owners = {"class": "GorillaFileSystem", "name": "ls", "kwargs": {}}
    (tmp_path / "calls.jsonl").write_text(json.dumps({"id": task.id, "long_context": False, "calls": [owners]}) + "\n")
    (row,), told = run("replay", name, "--calls", str(tmp_path / "calls.jsonl"))
    assert json.loads(row["calls"][0]["content"])["current_directory_content"]
    assert row["final_state"]["GorillaFileSystem"]["root"]["contents"]
    assert "1 lines, 1 calls" in told


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"id": "multi_turn_base_9999", "calls": []}, "multi_turn_base_9999"),
        ({"calls": []}, "id"),
        ({"id": "multi_turn_base_0", "calls": [[["ls()", 3]]]}, "calls[0][0][1]"),
    ],
)
def test_malformed_lines_are_told_with_their_place(name: str, row: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("\n" + json.dumps(row) + "\n")
    args = ["score", name, "--trajectories", str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "out.jsonl")]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 2 and not (tmp_path / "out.jsonl").exists()
    assert "line 2" in result.stderr and words in result.stderr.replace("\n", " ")


def test_options_of_other_benchmarks_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("")
    args = [
        "score",
        name,
        "--trajectories",
        str(tmp_path / "in.jsonl"),
        "--out",
        str(tmp_path / "o"),
        "--judge",
        "fail",
    ]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 2 and "--judge" in result.stderr
