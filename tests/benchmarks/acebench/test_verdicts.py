"""Episodes of ACEBench and recorded rows: what they are worth."""

from __future__ import annotations

import json

import pytest

from muarl.basics.errors import DataError
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn
from muarl_worlds.acebench import official as ab
from muarl_worlds.acebench.official.tasks import task_from_json


def episode(messages, task, stop=StopReason.USER_STOP, verdict=None):
    return Episode("e", task.id, task.domain, [Turn(m) for m in messages], stop, tags=dict(task.tags), verdict=verdict)


def played(task, *messages, semantics="official"):
    """A world and the conversation in which the agent wrote these, each answered."""
    world = ab.domain(task.tags["language"], semantics=semantics).world(task)
    codec = ab.codec(task)
    said = [Message("assistant", "Hello"), Message("user", task.scenario)]
    for message in messages:
        if isinstance(message, str):
            message = Message("assistant", message, tool_calls=codec.calls(message))
        said.append(message)
        said += [Message("tool", r.content) for r in world.call_all("assistant", message.tool_calls)]
        if not message.tool_calls:
            said.append(Message("user", "ok"))
    return world, said


@pytest.mark.parametrize("category", ["multi_turn", "multi_step"])
def test_a_text_episode(make, category):
    task = make(category)
    world, said = played(task, "Hm?", "[login_device()]", "[delete_message(message_id=3)]", "All done?")
    verdict = ab.score(task, world, episode(said, task))
    assert verdict.reward == 1.0 and verdict.breakdown == {"END_TO_END": 1.0} and verdict.note is None
    assert verdict.audit == {"end_to_end": 1.0, "process": 1.0, "fixed_end_to_end": 1.0, "fixed_process": 1.0}
    sent = ab.executed(said, category)
    assert sent == ["[login_device()]", "[delete_message(message_id=3)]"] or category == "multi_step"
    assert len(sent) == (4 if category == "multi_step" else 2)


@pytest.mark.parametrize("semantics", ["official", "fixed"])
def test_native_calls_count_as_their_text(make, semantics):
    task = make()
    calls = Message("assistant", "Wait.", tool_calls=(ToolCall("1", "delete_message", {"message_id": 3}),))
    world, said = played(task, calls, semantics=semantics)
    assert ab.executed(said, "multi_turn") == ["[delete_message(message_id=3)]"]
    verdict = ab.score(task, world, episode(said, task))
    assert verdict.reward == 0.0 and verdict.audit["process"] == 0.0 and verdict.audit["fixed_process"] == 0.5
    assert verdict.note == (
        "class attributes wrong" if semantics == "official" else "BaseApi.logged_in: differs from the answer"
    )


def test_a_message_that_ends_the_conversation_is_not_executed(make):
    task = make("multi_step")
    said = [
        Message("user", "x"),
        Message("assistant", "finish conversation"),
        Message("user", "y"),
        Message("assistant", "[f()]"),
    ]
    assert ab.executed(said, "multi_step") == ["finish conversation", "[f()]"]
    assert ab.executed([*said, Message("user", "z"), Message("assistant", "finish conversation")], "multi_step") == [
        "finish conversation",
        "[f()]",
    ]
    assert task.benchmark


def test_doing_nothing_is_worth_nothing_officially(make):
    task = make(ground_truth=[{"BaseApi": {"wifi": True, "logged_in": False}}, {"MessageApi": {"inbox": {}}}])
    assert ab.do_nothing(ab.domain("en"), task).reward == 0.0
    assert ab.do_nothing(ab.domain("en", semantics="fixed"), task).reward == 1.0


def test_figures_of_episodes(make):
    rows = []
    for category in ab.CATEGORIES:
        task = make(category)
        for messages in (["[login_device()]"], []):
            world, said = played(task, *messages)
            done = episode(said, task)
            done.verdict = ab.score(task, world, done)
            rows.append(done)
    rows.append(episode([], make(), StopReason.INFRASTRUCTURE))
    found = ab.summary(rows)
    assert found["end_to_end_multi_turn"] == found["end_to_end_multi_step"] == found["agent"] == 0.5
    assert found["fixed_agent"] == 0.5 and found["process_multi_turn"] == 0.5


def test_malformed_entries_are_named():
    with pytest.raises(DataError, match=r"task 'x': it lacks the field 'question'"):
        task_from_json({"id": "x", "function": []}, {"ground_truth": [], "mile_stone": []}, "en", "multi_turn")
    with pytest.raises(DataError, match="malformed"):
        task_from_json({"id": "x"}, None, "en", "multi_turn")
    with pytest.raises(DataError, match="domain 'fr'"):
        ab.domain("fr")


data = pytest.mark.data
LOGIN = {"id": "agent_multi_turn_1", "language": "en"}


@data
def test_replayed_rows(official_acebench):
    row = {**LOGIN, "steps": [{"message": "[login_device(), turn_on_wifi()]", "n": 1}, {"message": "Hm?"}], "more": 1}
    found = ab.replay_row(row, "here")
    assert found["more"] == 1 and found["steps"][0]["n"] == 1 and found["steps"][1]["output"] is None
    assert [o["status"] for o in found["steps"][0]["output"]] == [True, True]
    assert found["final_state"][0] == {"BaseApi": {"wifi": True, "logged_in": True}}
    named = ab.replay_row({"id": "agent_multi_step_0", "steps": [{"message": "Hm?"}]}, "here", language="zh")
    assert named["steps"][0]["output"] == ab.NO_QUESTIONS and named["final_state"] == []


@data
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": 1}, "here: id must be a string, not int"),
        ({"id": "x"}, "here: task 'x': acebench en has no such task"),
        ({"language": "fr"}, "here: domain 'fr': acebench has en, zh"),
        ({"steps": {}}, "here: steps must be a list"),
        ({"steps": [{}]}, r"here, steps\[0\]: it lacks the field message"),
        ({"steps": [{"message": None}]}, r"here, steps\[0\]: message must be a string"),
    ],
)
def test_malformed_rows_are_named(official_acebench, change, problem):
    with pytest.raises(DataError, match=problem):
        ab.replay_row({**LOGIN, "steps": [], **change}, "here")


@data
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({}, "here: it lacks the field final_state"),
        ({"final_state": []}, "here: it lacks the field process"),
        ({"result": [3], "process": []}, r"here, result\[0\]: must be an object"),
        ({"result": [], "process": [3]}, r"here, process\[0\]: must be an object"),
        ({"result": [], "messages": [{"role": "assistant"}]}, r"here, messages\[0\]: it lacks the field message"),
    ],
)
def test_malformed_rows_to_score_are_named(official_acebench, row, problem):
    with pytest.raises(DataError, match=problem):
        ab.score_row({**LOGIN, **row}, "here")


@data
def test_messages_are_told_apart(official_acebench):
    (first, *_) = ab.task("en", LOGIN["id"]).initial_data["milestones"]
    conversation = [
        {"sender": "user", "recipient": "agent", "message": "[x]"},
        {"sender": "agent", "recipient": "user", "message": "Yes?"},
        {"sender": "agent", "recipient": "execution", "message": first},
    ]
    chat = [
        {"role": "user", "content": "[x]"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "assistant", "content": first},
    ]
    for name, given in (
        ("process", [first]),
        ("steps", [{"message": first}]),
        ("messages", conversation),
        ("messages", chat),
    ):
        found = ab.score_row({**LOGIN, "final_state": [], name: given}, "here")
        assert (found["valid"], found["end_to_end"], found["error_type"]) == (False, 0.0, "wrong number of class")
        assert 0 < found["process"] < 1


@data
def test_upstreams_files(official_acebench, tmp_path):
    folder = tmp_path / "result_en" / "some-model"
    folder.mkdir(parents=True)
    for category in ab.CATEGORIES:
        with open(folder / f"data_agent_{category}_result.json", "w", encoding="utf-8") as file:
            for task in reversed(ab.tasks("en", category)[: 20 if category == "multi_step" else 29]):
                result = task.initial_data["ground_truth"] if task.id.endswith("4") else []
                file.write(json.dumps({"id": task.id, "result": result, "process": []}) + "\n")
    found = ab.read_results([tmp_path])
    assert [row["id"] for row in found.rows[:2]] == ["agent_multi_turn_0", "agent_multi_turn_1"]
    assert found.missing == ("agent_multi_turn_29",)
    assert found.figures == {
        "end_to_end_multi_turn": 0.103,
        "process_multi_turn": 0.103,
        "end_to_end_multi_step": 0.1,
        "process_multi_step": 0.1,
        "agent": 0.102,
    }
    file = folder / "data_agent_multi_step_result.json"
    assert ab.is_result_file(file) and not ab.is_result_file(folder)
    assert ab.read_results([file]).figures["agent"] == 0.05
    notes = tmp_path / "data_agent_multi_turn_process.json"
    notes.write_text(json.dumps({"agent_multi_turn_4": {"process_accuracy": 0.333, "model_output": []}}) + "\n")
    assert ab.read_process_file(notes, "multi_turn") == {"agent_multi_turn_4": 0.333}


@data
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "result_zh",
            '{"id": "agent_multi_step_0", "result": [], "process": []}\n' * 2,
            "line 2: task 'agent_multi_step_0'",
        ),
        ("result_zh", "{", "line 1: not JSON"),
        ("result_zh", "3", "line 1: must be an object"),
        ("result_zh", "", "there are no results in it"),
        ("results", "{}", "nothing in its path tells the language"),
    ],
)
def test_files_that_are_not_upstreams_are_named(official_acebench, tmp_path, name, text, problem):
    (tmp_path / name).mkdir()
    file = tmp_path / name / "data_agent_multi_step_result.json"
    file.write_text(text)
    with pytest.raises(DataError, match=problem):
        ab.read_results([file])
    with pytest.raises(DataError, match="no such file"):
        ab.read_results([tmp_path / "nothing"], language="zh")
