"""inspect_ai's own evaluation of muarl's tasks: scores, logs, baselines, errors, the same as natively."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: pip install 'muarl[inspect]'")

import inspect_ai
from inspect_ai import model as models
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import Score
from inspect_ai.solver._task_state import sample_state

from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.types.chat import Message, to_openai
from muarl.types.episode import Episode
from muarl_integrations.inspect_ai import conversations
from support.fake_openai import Answer, FakeOpenAI, call, completion, status, text
from support.page_examples import example_of
from support.scripted_replies import BROKEN, Outcome, Replies, natively
from support.trainers import AS_NATIVELY, Told


@models.modelapi("said")
class Said(models.ModelAPI):
    """A model that says the replies of the sample's task, read as inspect reads a server's."""

    def __init__(self, model_name: str, by_task: Mapping[str, Sequence[Message]], **given: Any) -> None:
        super().__init__(model_name)
        self.by_task = by_task

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> models.ModelOutput:  # noqa: A002
        state = sample_state()
        replies, roles = self.by_task[state.sample_id], [m.role for m in state.messages]
        spoken = roles[roles.index("user") :].count("assistant")  # a greeting before it was never said
        said = replies[spoken] if spoken < len(replies) else Message("assistant", "Anything else?")
        (message,) = await models.messages_from_openai([to_openai(said)])
        return models.ModelOutput.from_message(message)


def evaluated(task: Any, model: Any, folder: Path, **options: Any) -> EvalLog:
    """The log of an evaluation, as inspect's reader reads it from its file."""
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(folder), display="none", **options)
    assert log.location
    return read_eval_log(log.location)


def served(server: FakeOpenAI) -> Any:
    return models.get_model("openai-api/stub/m", base_url=server.url, api_key="none", memoize=False)


async def tools(task: Task) -> list[dict[str, Any]]:
    async with task.origin.environment.start(task) as session:
        return [tool["function"] for tool in session.observation.openai_tools]


def check_equal(task: Any, by_task: Mapping[str, Sequence[Message]], native: Mapping[str, Episode], log: Path) -> None:
    found = evaluated(task, models.get_model("said/m", by_task=by_task, memoize=False), log)
    assert found.status == "success" and found.samples and len(found.samples) == len(native)
    for sample in found.samples:
        episode = native[str(sample.id)]
        outcome = Outcome.of(episode)
        if outcome.stop == "infrastructure":
            assert sample.error is not None and not sample.scores
            continue
        kept = sample.store["muarl"]
        assert (kept["reward"], kept["parts"], kept["stop"]) == (outcome.reward, outcome.parts, outcome.stop)
        assert sample.scores["outcome"].value["reward"] == outcome.reward  # type: ignore[index]
        heard = [m.text for m in sample.messages if m.role in ("user", "tool")]
        seen = [m for m in episode.messages if m.role == "user" and not m.tool_calls]
        seen = [m for m in episode.messages if m in seen or (m.role == "tool" and m.requestor == "assistant")]
        assert len(heard) == len(seen)
        for ours, theirs in zip(seen, heard, strict=True):
            assert theirs == (ours.content or "") or BROKEN.id == ours.tool_call_id


@AS_NATIVELY
def test_the_same_replies_give_the_same_as_natively(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = None
    if told.means:
        monkeypatch.setattr("muarl_integrations.conversations.named_users", lambda *_, **__: told.means["users"])
        judge = "pass"
    native = natively(told.environment, told.tasks, Replies(told.replies), 0, **told.means)
    told.check(Counter(Outcome.of(episode).reward for episode in native.values()))
    named = {"split": told.split, "count": len(told.tasks), "judge": judge}
    check_equal(conversations(told.environment.name, **named, baselines=False), told.replies, native, tmp_path / "logs")


def test_a_log_holds_the_conversation_the_calls_and_the_baselines(tmp_path: Path) -> None:
    task = find("retail-generated").task("test", 3)
    (gold, *_) = task.actions or ()
    said = [completion(tool_calls=[call(gold.name, gold.arguments)]), text("Done. Anything else?")]
    with FakeOpenAI(said) as server:
        log = evaluated(conversations(start=3, count=1), served(server), tmp_path)
    assert log.status == "success" and log.samples and log.results
    (sample,) = log.samples
    assert sample.input == task.scenario and sample.id == task.id
    assert [m.role for m in sample.messages[:5]] == ["system", "user", "assistant", "tool", "assistant"]
    asked, answered = sample.messages[2:4]
    assert asked.tool_calls[0].function == gold.name and asked.tool_calls[0].arguments == gold.arguments  # type: ignore[union-attr]
    assert answered.tool_call_id == asked.tool_calls[0].id and answered.text  # type: ignore[union-attr]
    assert sample.messages[-1].role == "user", "the user's last words are in the log, too"
    assert task.scenario not in str(server.bodies), "the model is not told what the customer wants"
    sent = [tool["function"] for tool in server.bodies[0]["tools"]]
    assert [{k: v for k, v in one.items() if k != "strict"} for one in sent] == asyncio.run(tools(task))
    scores = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert scores == {"reward": sample.scores["outcome"].value["reward"], "do_nothing": 0.0, "always_transfer": 0.0}  # type: ignore[index]
    assert "stop" in sample.scores["outcome"].metadata  # type: ignore[index, operator]


def test_failures_are_errors_of_samples_and_no_zeros(tmp_path: Path) -> None:
    with FakeOpenAI(text("Hello.")) as agent, FakeOpenAI([text("Hi."), status(401), text("Bye. ###STOP###")]) as user:
        task = conversations(count=3, user=f"endpoint:u@{user.url}")
        log = evaluated(task, served(agent), tmp_path, max_samples=1)
    assert log.status == "success" and log.samples and log.results
    failed = [sample for sample in log.samples if sample.error]
    assert len(failed) == 1 and not failed[0].scores
    assert "refuses the API key" in failed[0].error.message  # type: ignore[union-attr]
    (score,) = log.results.scores
    assert (score.name, score.scored_samples) == ("reward", 2), "no baselines with users that a model plays"


def too_long() -> Answer:
    error = {"message": "5172 tokens do not fit", "type": "invalid_request_error", "code": "context_length_exceeded"}
    return Answer(json.dumps({"error": error}).encode(), 400)


def test_a_first_request_without_room_is_an_error_of_the_sample_and_a_later_one_is_the_models(tmp_path: Path) -> None:
    with FakeOpenAI(too_long()) as agent:
        log = evaluated(conversations(count=1), served(agent), tmp_path)
    (sample,) = log.samples  # type: ignore[misc]
    assert sample.error is not None and not sample.scores
    assert "first request" in sample.error.message and "5172 tokens do not fit" in sample.error.message
    with FakeOpenAI([text("What is your order?"), too_long()]) as agent:
        log = evaluated(conversations(count=1), served(agent), tmp_path / "later")
    (sample,) = log.samples  # type: ignore[misc]
    assert sample.error is None and sample.store["muarl"]["stop"] == "context_full"
    assert sample.scores["outcome"].value["reward"] == 0.0  # type: ignore[index]


def test_limits_of_inspect_end_a_conversation_with_0_unless_they_are_of_time(tmp_path: Path) -> None:
    with FakeOpenAI(completion(tool_calls=[call("find_order", {})])) as agent:
        log = evaluated(conversations(count=1), served(agent), tmp_path, message_limit=4)
    (sample,) = log.samples  # type: ignore[misc]
    assert sample.limit.type == "message" and sample.scores["outcome"].value["reward"] == 0.0  # type: ignore[union-attr, index]


def test_another_solver_is_not_scored(tmp_path: Path) -> None:
    from inspect_ai.solver import generate

    with FakeOpenAI(text("I would cancel it.")) as agent:
        log = evaluated(conversations(count=1), served(agent), tmp_path, solver=generate())
    (sample,) = log.samples  # type: ignore[misc]
    found: Score = sample.scores["outcome"]  # type: ignore[index]
    assert found.value != found.value and "not played to its end" in str(found.explanation)


def test_the_example_of_the_page_runs(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = example_of(repository / "docs" / "integrations" / "inspect_ai.md", tmp_path)
    monkeypatch.chdir(tmp_path)  # where inspect writes its logs
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    with FakeOpenAI(text("I cannot help you.")) as server:
        monkeypatch.setenv("STUB_BASE_URL", server.url)
        monkeypatch.setenv("STUB_API_KEY", "none")
        found = page.success("openai-api/stub/m")
    assert set(found) == {"reward", "do_nothing", "always_transfer"}
