"""The official tasks against records of the original code, and whether they can be won."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from muarl.basics.errors import DataError
from muarl.types.chat import Message, ToolCall
from muarl_worlds.acebench import official as ab
from muarl_worlds.acebench.decode import UndecodableMessage, decode
from muarl_worlds.acebench.execute import json_form

pytestmark = pytest.mark.data


def mended(milestone):
    """A milestone as Python: blanks around it and apostrophes inside words are in its way."""
    return re.sub(r"(?<=\w)'(?=\w)", r"\\'", milestone.strip())


def alternatives(task):
    stones = task.initial_data["milestones"]
    return stones if isinstance(stones[0], list) else [stones]


def test_sizes(official_acebench):
    for language in ab.DOMAINS:
        assert [len(ab.tasks(language, s)) for s in ab.SPLITS] == [50, 30, 20]
        assert len({t.id for t in ab.tasks(language)}) == 50
        for task in ab.tasks(language):
            assert task.benchmark and task.tags["language"] == language
            assert ab.task(language, task.id) is task
    with pytest.raises(DataError, match="no split 'train'"):
        ab.tasks("en", "train")


def test_the_data_are_asked_for_where_they_are_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    assert ab.domain("en").tool_names()
    with pytest.raises(DataError, match="muarl data add acebench"):
        ab.tasks("en")


def test_records_of_the_original(official_acebench, oracle):
    rows = oracle("acebench_gold.jsonl")
    assert len(rows) == 100
    for row in rows:
        named = {"id": row["id"], "language": row["lang"]}
        for alternative in row["alts"]:
            result = alternative["result"]
            steps = [{"message": message} for message in result["process"]]
            assert ab.replay_row({**named, "steps": steps}, "x")["final_state"] == result["result"]
            found = ab.score_row({**named, "final_state": result["result"], "process": result["process"]}, "x")
            assert (found["end_to_end"], found["process"]) == (alternative["e2e"], alternative["process"])


def scores_of(language, category, write):
    """(official, mended) end-to-end and process figures of what ``write`` makes of each task's best alternative."""
    pairs = []
    for task in ab.tasks(language, category):
        named = {"id": task.id, "language": language}
        found = []
        for stones in alternatives(task):
            state, sent = write(task, stones)
            row = ab.score_row({**named, "final_state": state, "process": sent}, "x")
            found.append((row["end_to_end"], row["process"], row["fixed_end_to_end"]))
        pairs.append(max(found))
    return [round(sum(p[i] for p in pairs) / len(pairs), 3) for i in range(3)]


def executed(task, sent):
    row = {"id": task.id, "language": task.tags["language"], "steps": [{"message": m} for m in sent]}
    return ab.replay_row(row, "x")["final_state"]


@pytest.mark.parametrize(
    ("language", "category", "wins"),
    [("en", "multi_turn", 29), ("en", "multi_step", 12), ("zh", "multi_turn", 29), ("zh", "multi_step", 14)],
)
def test_the_gold_table(official_acebench, language, category, wins):
    assert scores_of(language, category, lambda task, stones: (task.initial_data["ground_truth"], stones)) == [1, 1, 1]

    def repaired(task, stones):
        sent = [mended(stone) for stone in stones]
        return executed(task, sent), sent

    size = len(ab.tasks(language, category))
    assert scores_of(language, category, repaired)[::2] == [round(wins / size, 3)] * 2


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("semantics", ["official", "fixed"])
def test_doing_nothing_wins_nothing(official_acebench, language, semantics):
    domain = ab.domain(language, semantics=semantics)
    verdicts = [ab.do_nothing(domain, task) for task in ab.tasks(language)]
    assert {v.reward for v in verdicts} == {0.0}
    assert {v.audit["process"] for v in verdicts} == {0.0}


CORRECTIONS = {
    # what the answers want, and the milestones do not do
    "agent_multi_turn_6": [("login_device", {})],
    "agent_multi_step_12": [("login_food_platform", {"username": "Helen", "password": "password321"})],
    "agent_multi_step_13": [("login_food_platform", {"username": "Helen", "password": "password321"})],
    "agent_multi_step_16": [("login_device", {})],
}


def winning_calls(task):
    """The calls of the first alternative, corrected where they do not lead to the answer."""
    calls = list(CORRECTIONS.get(task.id, ()))
    number = int(task.id.rsplit("_", 1)[1])
    stale = task.tags["category"] == "multi_step" and number in range(14, 18)
    for stone in alternatives(task)[0]:
        for call in decode(mended(stone)):
            arguments = json_form(call.arguments)
            if stale and call.name == "delete_message":
                arguments = {"message_id": 4}
            if stale and call.name == "send_message":
                arguments["message"] = arguments["message"].rstrip(".")
            for item in arguments.get("items", ()):
                item["product"] = item["product"].replace("Super Supreme", "Super Supreme Pizza")
                item["product"] = item["product"].replace("Pizza Pizza", "Pizza")
            calls.append((call.name, arguments))
    if task.id in ("agent_multi_step_12", "agent_multi_step_13"):  # Wi-Fi must be on before the login
        calls.insert(0, ("turn_on_wifi", {}))
    return calls


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("semantics", ["official", "fixed"])
def test_every_task_can_be_won_with_native_calls(official_acebench, language, semantics):
    domain = ab.domain(language, semantics=semantics)
    lost = defaultdict(list)
    for task in ab.tasks(language):
        world, messages = domain.world(task), [Message("user", task.scenario)]
        offered = {spec.name for spec in domain.specs_for(task)}
        for name, arguments in winning_calls(task):
            if name in offered:  # two Chinese tasks lack a look-up that their milestones make
                call = ToolCall("1", name, arguments)
                messages.append(Message("assistant", None, tool_calls=(call,)))
                world.call("assistant", call)
        verdict = ab.score_messages(task, world, messages)
        if verdict.reward != 1.0:
            lost[task.id].append(verdict.note)
    assert not lost


def test_milestones_that_are_not_python(official_acebench):
    unreadable = 0
    for task in ab.tasks("en"):
        for stone in (s for stones in alternatives(task) for s in stones):
            assert decode(mended(stone))
            try:
                decode(stone)
            except UndecodableMessage:
                unreadable += 1
    assert unreadable > 20
