"""``muarl replay`` and ``muarl score`` on a small shop: what comes back, and what bad input meets."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from muarl.basics.errors import ConfigError, DataError, InfrastructureError
from muarl.domains.tasks import Action, Task
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn
from muarl_tools.commands import bench
from muarl_worlds.tau import tau2_benchmark as tau2
from support.fake_openai import FakeOpenAI, status, text
from support.retail_shop import shop

CANCEL = {"order_id": "#1", "reason": "no longer needed"}
TASK = Task(
    "7", "retail", "", (Action("cancel_pending_order", CANCEL),), ("DB", "NL_ASSERTION"), nl_assertions=("is polite",)
)


@pytest.fixture(autouse=True)
def small_shop(monkeypatch):
    domain = shop(semantics="official")

    def task(name, task_id):
        if task_id != "7":
            raise DataError(f"task_id {task_id!r}: no such task")
        return TASK

    monkeypatch.setattr(tau2, "domain", lambda name: domain)
    monkeypatch.setattr(tau2, "task", task)
    return domain


def write(path, *rows):
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_replay_answers_every_call_in_a_fresh_world(tmp_path, small_shop):
    calls = [
        {"requestor": "assistant", "name": "cancel_pending_order", "arguments": CANCEL, "note": "kept"},
        {"requestor": "user", "name": "get_order_details", "arguments": {"order_id": "#1"}},
        {"requestor": "assistant", "name": "calculate", "arguments": {"expression": "1+1"}},
        {"requestor": "assistant", "name": "calculate", "arguments": {"expression": "\ud800"}},
    ]
    rows = [{"domain": "retail", "task_id": None, "calls": calls}, {"domain": "retail", "task_id": "7", "calls": []}]
    source = write(tmp_path / "in.jsonl", *rows)
    bench.replay("tau2", source, tmp_path / "out.jsonl")
    first, second = read(tmp_path / "out.jsonl")
    assert [c["error"] for c in first["calls"]] == [False, True, False, True]
    assert first["calls"][0]["note"] == "kept" and '"status": "cancelled"' in first["calls"][0]["content"]
    assert [c["content"] for c in first["calls"][1:]] == [
        "Error: User tools not available",
        "2.0",
        "Error: Invalid characters in expression",
    ]
    assert second["agent_hash"] == small_shop.world().full_hash() != first["agent_hash"]
    assert first["user_hash"] is None


def trajectory(*messages, reason="user_stop", **more):
    return {"domain": "retail", "task_id": "7", "messages": list(messages), "termination_reason": reason, **more}


def cancelled(domain):
    call = {"id": "c1", "name": "cancel_pending_order", "arguments": CANCEL, "requestor": "assistant"}
    content = domain.world().call("assistant", ToolCall.from_json(call)).content
    return [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "id": "c1", "content": content}]


def test_score_gives_reward_and_breakdown(tmp_path, small_shop):
    did = cancelled(small_shop)
    stale = [did[0], {**did[1], "content": "{}"}]
    episode = Episode(
        "e",
        "7",
        "retail",
        [Turn(Message.from_json({**m, "tool_call_id": m.get("id")})) for m in did],
        StopReason.TRANSFER,
    )
    lost = replace(episode, stop=StopReason.INFRASTRUCTURE, error="user: unreachable")
    rows = [trajectory(*did), trajectory(), trajectory(*did, reason="max_steps"), trajectory(*stale), episode.to_json()]
    rows.append(lost.to_json())
    source = write(tmp_path / "in.jsonl", *rows)
    bench.score("tau2", source, tmp_path / "out.jsonl", "pass")
    good, idle, cut, broken, ours, excluded = read(tmp_path / "out.jsonl")
    assert good == {
        "domain": "retail", "task_id": "7", "reward": 1.0, "breakdown": {"DB": 1.0, "NL_ASSERTION": 1.0}
    }  # fmt: skip
    assert (idle["reward"], idle["breakdown"]) == (0.0, {"DB": 0.0, "NL_ASSERTION": 1.0})
    assert (cut["reward"], cut["breakdown"]) == (0.0, {}) and "max_steps" in cut["note"]
    assert broken["reward"] is None and "recorded answer" in broken["error"]
    assert ours["reward"] == 1.0
    assert excluded["reward"] is None and "infrastructure" in excluded["error"], "never scored"
    bench.score("tau2", source, tmp_path / "out.jsonl", "fail")
    assert read(tmp_path / "out.jsonl")[0]["breakdown"] == {"DB": 1.0, "NL_ASSERTION": 0.0}


def test_score_asks_a_model_where_it_is_named(tmp_path, small_shop, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    answer = '{"results": [{"expectedOutcome": "is polite", "reasoning": "no", "metExpectation": false}]}'
    source = write(tmp_path / "in.jsonl", trajectory(*cancelled(small_shop)), trajectory(reason="timeout"))
    with FakeOpenAI(text(answer)) as server:
        bench.score("tau2", source, tmp_path / "out.jsonl", f"endpoint:judge@{server.url}")
        (asked,) = server.bodies  # an episode that nobody ended is not judged
    assert asked["temperature"] == 0 and "is polite" in asked["messages"][1]["content"]
    assert read(tmp_path / "out.jsonl")[0]["breakdown"] == {"DB": 1.0, "NL_ASSERTION": 0.0}
    with FakeOpenAI(status(401)) as server:
        with pytest.raises(InfrastructureError):
            bench.score("tau2", source, tmp_path / "none.jsonl", f"endpoint:judge@{server.url}")
    assert not (tmp_path / "none.jsonl").exists()


CALL = {"name": "calculate", "arguments": {}}


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: must be an object"),
        ({"task_id": None, "calls": []}, "line 2: it lacks the field domain"),
        ({"domain": "banking", "task_id": None, "calls": []}, "line 2: domain 'banking' is not one of retail"),
        ({"domain": "retail", "calls": []}, "line 2: it lacks the field task_id"),
        ({"domain": "retail", "task_id": 7, "calls": []}, "line 2: task_id must be a string or null, not int"),
        ({"domain": "retail", "task_id": "8", "calls": []}, "line 2: task_id '8': no such task"),
        ({"domain": "retail", "task_id": None}, "line 2: it lacks the field calls"),
        ({"domain": "retail", "task_id": None, "calls": {}}, "line 2: calls must be a list, not dict"),
        ({"domain": "retail", "task_id": None, "calls": [CALL, 3]}, r"line 2, calls\[1\]: must be an object"),
        ({"domain": "retail", "task_id": None, "calls": [{**CALL, "name": 1}]}, r"calls\[0\]: name must be a string"),
        ({"domain": "retail", "task_id": None, "calls": [{**CALL, "arguments": "{}"}]}, "arguments must be an object"),
        (
            {"domain": "retail", "task_id": None, "calls": [{**CALL, "requestor": "x"}]},
            "requestor: must be assistant or",
        ),
    ],
)
def test_replay_names_the_first_bad_line_and_writes_nothing(tmp_path, row, part):
    source = write(tmp_path / "in.jsonl", {"domain": "retail", "task_id": None, "calls": [CALL]}, row)
    with pytest.raises(DataError, match=part) as problem:
        bench.replay("tau2", source, tmp_path / "out.jsonl")
    assert str(source) in str(problem.value)
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (trajectory(reason="bored"), "termination_reason 'bored' is not one of user_stop"),
        ({k: v for k, v in trajectory().items() if k != "termination_reason"}, "lacks the field termination_reason"),
        ({**trajectory(), "task_id": None}, "task_id must be a string, not NoneType"),
        (trajectory({"role": "robot"}), r"messages\[0\]\.role: 'robot'"),
        (trajectory({"role": "user", "content": 3}), r"messages\[0\]\.content: must be a string or null"),
        (trajectory({"role": "tool", "content": "x"}), r"messages\[0\]: it lacks the field tool_call_id"),
        (trajectory({"role": "user", "tool_calls": [{"name": "x"}]}), r"tool_calls\[0\]: it lacks the field arguments"),
        ({"schema": 99, "turns": [], "domain": "retail", "task_id": "7"}, "schema: this muarl reads"),
    ],
)
def test_score_names_the_first_bad_line_and_writes_nothing(tmp_path, row, part):
    source = write(tmp_path / "in.jsonl", trajectory(), row)
    with pytest.raises(DataError, match=part) as problem:
        bench.score("tau2", source, tmp_path / "out.jsonl", "pass")
    assert "line 2" in str(problem.value)
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


def test_other_bad_input(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        bench.replay("tau2", tmp_path / "none.jsonl", tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match="no benchmark 'tau7'"):
        bench.replay("tau7", tmp_path / "none.jsonl", tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match="judge: must be pass, fail or endpoint:MODEL"):
        bench.score("tau2", write(tmp_path / "in.jsonl"), tmp_path / "out.jsonl", "maybe")
    (tmp_path / "latin.jsonl").write_bytes(b'{"domain": "\xe9"}')
    with pytest.raises(DataError, match="not UTF-8"):
        bench.replay("tau2", tmp_path / "latin.jsonl", tmp_path / "out.jsonl")


def test_tasks_without_a_gold_state_have_no_db_part(tmp_path, monkeypatch):
    monkeypatch.setattr(tau2, "task", lambda name, task_id: replace(TASK, actions=None))
    bench.score("tau2", write(tmp_path / "in.jsonl", trajectory()), tmp_path / "out.jsonl", "pass")
    assert read(tmp_path / "out.jsonl")[0]["breakdown"] == {"NL_ASSERTION": 1.0}
