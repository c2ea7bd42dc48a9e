"""ACEBench's tasks through the one conversation loop, with models on a local server, in words and by calls."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.types.episode import Episode, read_episodes
from muarl_worlds.acebench import official as acebench
from support.fake_openai import FakeOpenAI, call, completion, text

pytestmark = pytest.mark.data
KEY = "sk-a-key"


@pytest.fixture(scope="module", autouse=True)
def installed(module_data: Any) -> Path:
    return module_data("acebench")


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def gold_steps(task: Any) -> list[str]:
    stones = (task.initial_data or {})["milestones"]
    return list(stones if isinstance(stones[0], str) else stones[0])


class Cast:
    """Agent and user of one task, told apart by the model's name."""

    def __init__(self, task: Any, *, native: bool = False, finish: str = "user") -> None:
        self.task, self.native, self.finish = task, native, finish
        self.agent: list[dict[str, Any]] = []
        self.user: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Any:
        if body["messages"][-1]["content"] == "Answer with the word ready.":
            return text("ready")
        if body["model"] == "user":
            self.user.append(body)
            return text("Please do it." if len(self.user) == 1 else "finish conversation")
        self.agent.append(body)
        steps = gold_steps(self.task)
        n = len(self.agent) - 1
        if n >= len(steps):
            return text("finish conversation" if self.finish == "agent" else "It is done.")
        return self.calls(steps[n]) if self.native else text(steps[n])

    def calls(self, step: str) -> Any:
        made = []
        for n, node in enumerate(ast.parse(step, mode="eval").body.elts):  # type: ignore[attr-defined]
            arguments = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
            made.append(call(node.func.id, arguments, f"c{len(self.agent)}.{n}"))
        return completion(tool_calls=made)


def play(cast: Cast, tmp_path: Path, *more: str) -> Episode:
    with FakeOpenAI(cast, key=KEY) as server:
        language = cast.task.tags["language"]
        agent, user = (f"endpoint:{who}@{server.url}" for who in ("agent", "user"))
        args = ["eval", f"acebench-{language}", "--task", cast.task.id, "--agent", agent, "--user", user, *more]
        result = CliRunner().invoke(app, [*args, "--name", "ace", f"runs_dir={tmp_path}"])
    assert result.exit_code == 0, result.output
    (episode,) = read_episodes(tmp_path / "ace" / "episodes" / "eval.jsonl")
    return episode


@pytest.mark.parametrize("language", ["en", "zh"])
def test_in_words_agent_and_user_are_prompted_as_upstream_prompts_them(language: str, tmp_path: Path) -> None:
    cast = Cast(acebench.task(language, "agent_multi_turn_0"))
    episode = play(cast, tmp_path)
    assert episode.reward == 1.0 and episode.verdict is not None and episode.verdict.audit["process"] == 1.0
    first, second = cast.agent[0]["messages"], cast.agent[1]["messages"]
    assert [m["role"] for m in first] == ["system", "user"] == [m["role"] for m in second], "told anew at each turn"
    assert first[0] == second[0] and "tools" not in cast.agent[0]
    assert first[1]["content"].endswith("user:Please do it.\n")
    steps = gold_steps(cast.task)
    assert f"user:Please do it.\nagent:{steps[0]}\nexecution:[" in second[1]["content"]
    asked = cast.user[-1]["messages"]
    assert [m["role"] for m in asked] == ["system", "user", "system", "user"]
    assert asked[1]["content"] == acebench.OPENING[language]  # type: ignore[index]
    assert cast.agent[0]["temperature"] == 0.001 and cast.agent[0]["max_tokens"] == 1000


def test_by_function_calling_results_are_real_and_scores_mended(tmp_path: Path) -> None:
    cast = Cast(acebench.task("en", "agent_multi_turn_0"), native=True)
    episode = play(cast, tmp_path, "eval.mode=native")
    assert episode.reward == 1.0
    assert cast.agent[0]["tools"][0]["type"] == "function"
    results = [m.content or "" for m in episode.messages if m.role == "tool"]
    assert all(json.loads(r) is not None for r in results)


def test_multi_step_tasks_need_no_user_and_no_questions_are_answered(tmp_path: Path) -> None:
    cast = Cast(acebench.task("en", "agent_multi_step_5"), finish="agent")
    steps = gold_steps(cast.task)
    cast.task.initial_data["milestones"]
    with FakeOpenAI(cast, key=KEY) as server:
        spec = f"endpoint:agent@{server.url}"
        args = ["eval", "acebench-en", "--split", "multi_step", "--task", cast.task.id, "--agent", spec]
        result = CliRunner().invoke(app, [*args, "--name", "ace", f"runs_dir={tmp_path}"])
    assert result.exit_code == 0, result.output
    (episode,) = read_episodes(tmp_path / "ace" / "episodes" / "eval.jsonl")
    assert cast.user == []
    assert len([m for m in episode.messages if m.role == "assistant"]) == len(steps) + 2, "greeting, steps, the end"
    said = [m.content for m in episode.messages if m.role == "user"]
    assert said[0] == cast.task.scenario and set(said[1:]) <= {acebench.NO_QUESTIONS}
    assert "end to end multi step" in result.output


@pytest.mark.parametrize(("mode", "language"), [("text", "en"), ("text-api", "zh")])
def test_upstreams_path_for_apis_prompts_english_multi_step_tasks_in_chinese(
    mode: str, language: str, tmp_path: Path
) -> None:
    task = acebench.task("en", "agent_multi_step_5")
    cast = Cast(task, finish="agent")
    episode = play(cast, tmp_path, f"eval.mode={mode}", "--split", "multi_step")
    system, request = cast.agent[0]["messages"]
    assert system["content"] == acebench.agent_system(language, "multi_step")  # type: ignore[arg-type]
    assert request["content"].startswith("以下是" if language == "zh" else "Below is the list")
    assert task.scenario in request["content"] and episode.tags["language"] == "en"
    turns = Cast(acebench.task("en", "agent_multi_turn_0"))
    play(turns, tmp_path / "turns", f"eval.mode={mode}")
    assert turns.agent[0]["messages"][1]["content"].startswith("Below is the list"), "only multi-step ones"


def test_a_conversation_is_cut_after_forty_messages_and_scored_all_the_same(tmp_path: Path) -> None:
    class Chatty(Cast):
        def __call__(self, body: dict[str, Any]) -> Any:
            if body["model"] == "user" and self.user:
                return text("And then?")
            answer = super().__call__(body)
            return answer if len(self.agent) <= len(gold_steps(self.task)) else text("Well.")

    cast = Chatty(acebench.task("en", "agent_multi_turn_0"))
    episode = play(cast, tmp_path)
    counted = episode.messages[2:]
    assert len(counted) == 40
    assert episode.stop.truncated and episode.reward == 1.0


def test_the_phrase_does_not_end_the_first_messages(tmp_path: Path) -> None:
    class Hasty(Cast):
        def __call__(self, body: dict[str, Any]) -> Any:
            ready = body["messages"][-1]["content"] == "Answer with the word ready."
            return text("ready" if ready else "finish conversation")

    episode = play(Hasty(acebench.task("en", "agent_multi_turn_0")), tmp_path)
    assert len(episode.messages) == 2 + 3, "the agent's first, the user's second, and then it counts"


@pytest.mark.parametrize("name", ["acebench-en", "acebench-zh"])
def test_multi_turn_tasks_need_a_model_for_the_user(name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["eval", name, "--agent", "idle", f"runs_dir={tmp_path}"])
    assert result.exit_code == 2
    assert re.search(r"eval_user\.kind", result.stderr)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Any]:
    def command(*args: str) -> Any:
        result = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "out.jsonl")])
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()], result.output

    return command


def test_recorded_messages_are_executed_and_final_states_scored(run: Callable[..., Any], tmp_path: Path) -> None:
    task = acebench.task("en", "agent_multi_turn_0")
    steps = [{"message": step} for step in gold_steps(task)]
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": task.id, "language": "en", "steps": steps}) + "\n")
    (answer,), told = run("replay", "acebench", "--calls", str(tmp_path / "in.jsonl"))
    assert "1 lines, 4 steps" in told
    assert all(isinstance(s["output"], list) for s in answer["steps"])
    (tmp_path / "in.jsonl").write_text(json.dumps(answer) + "\n")
    (score,), told = run("score", "acebench", "--trajectories", str(tmp_path / "in.jsonl"))
    assert score["valid"] and score["end_to_end"] == 1.0 and score["process"] == 1.0
    assert "en: end to end multi turn 1" in told
