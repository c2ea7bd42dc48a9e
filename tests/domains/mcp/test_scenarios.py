"""The four scenarios on public servers, as far as no server is needed: files, tasks, splits, words, experts' talk."""

from __future__ import annotations

import json
import re

import pytest

from muarl.chat import Message
from muarl.domains.experts import SLOPPY, Habits
from muarl.domains.generated import ON_SERVERS, SPLITS, generated
from muarl.domains.mcp.scenario import read_files
from muarl.domains.mcp.talk import talk_from
from muarl.errors import ConfigError, DataError
from muarl.users.agenda import AgendaUserFactory
from muarl.users.agenda_mcp import talk_of

everywhere = pytest.mark.parametrize("name", ON_SERVERS)


@everywhere
def test_it_is_a_generated_domain_like_the_others(name):
    world = generated(name)
    assert world.name == name and world.sizes == ("tiny", "medium")
    tiny, medium = (world.domain(size) for size in world.sizes)
    assert set(tiny.tool_names()) <= set(medium.tool_names()) and len(tiny.policy_text) < len(medium.policy_text)
    assert world.domain("tiny") is tiny
    with pytest.raises(ValueError, match="size must be one of tiny, medium, not 'huge'"):
        world.domain("huge")
    with pytest.raises(ValueError, match="size must be one of"):
        next(world.iter_tasks("train", size="huge"))
    with pytest.raises(ValueError, match="split must be one of"):
        next(world.iter_tasks("dev", size="tiny"))


def test_an_unknown_scenario_is_told():
    with pytest.raises(ConfigError, match="'mcp-moon' is not a generated domain; there are .*mcp-filesystem, mcp-git"):
        generated("mcp-moon")


@everywhere
@pytest.mark.parametrize("size", ["tiny", "medium"])
def test_tools_are_offered_with_what_the_agent_may_fill_in(name, size):
    domain = generated(name).domain(size)
    kinds = {domain.kind_of(n) for n in domain.tool_names()}
    assert (kinds == {"read", "write"} and 4 <= len(domain.tool_names()) <= 15) or name == "mcp-sqlite"
    for spec in domain.tool_specs():
        assert spec.description and set(spec.parameters["required"]) <= set(spec.parameters["properties"])
        assert "repo_path" not in spec.parameters["properties"]
    assert domain.tool_specs("user") == ()


@everywhere
@pytest.mark.parametrize("split", SPLITS)
def test_the_same_number_is_the_same_task_wherever_one_starts(name, split):
    world = generated(name)
    whole = world.tasks(split, 6, size="medium", seed=5)
    parts = world.tasks(split, 2, size="medium", seed=5) + world.tasks(split, 4, size="medium", seed=5, start=2)
    rows = [(t.id, t.scenario, t.actions, t.database.digest()) for t in whole]
    assert rows == [(t.id, t.scenario, t.actions, t.database.digest()) for t in parts]
    assert {t.domain for t in whole} == {name} and not any(t.benchmark for t in whole)
    assert all(t.tags["split"] == split for t in whole)
    other = world.tasks(split, 6, size="medium", seed=6)
    assert [t.scenario for t in other] != [t.scenario for t in whole]


SUBJECTS = {"mcp-filesystem": "file", "mcp-git": "message", "mcp-sqlite": "title", "mcp-memory": "person"}


def subjects(name, split):
    """What the requests of a split are about."""
    found = set()
    for task in generated(name).tasks(split, 300, size="tiny"):
        for request in task.agenda["requests"]:
            for wish in (request["wish"], request["then"] or {}):
                value = wish.get(SUBJECTS[name])
                if value and request["intent"] not in ("create_taken", "lend_none_left"):
                    found.add(value.rsplit("/", 1)[-1])
    return found


@everywhere
def test_splits_have_no_subject_in_common(name):
    train, validation, test = (subjects(name, split) for split in SPLITS)
    assert not train & validation and not train & test and not validation & test
    assert len(validation) > 10 and len(test) > 10


@everywhere
def test_there_are_all_sorts_of_requests(name):
    tasks = generated(name).tasks("train", 400, size="medium")
    intents = {t.tags["intent"] for t in tasks}
    assert intents >= {"forbidden", "two_requests"} and any(i.startswith("question") for i in intents)
    assert len(intents) >= 7
    share = sum(t.tags["intent"] == "forbidden" for t in tasks) / len(tasks)
    assert 0.03 < share < 0.13
    requests = [r for t in tasks for r in t.agenda["requests"]]
    assert any(r["then"] for r in requests) and any(r["fallback"] for r in requests)
    assert any(r["unknown"] for r in requests)
    assert {t.tags["persona"] for t in tasks} == {"terse", "chatty", "confused", "impatient"}
    assert {t.reward_basis for t in tasks} == {("DB",), ("DB", "COMMUNICATE")}


@everywhere
def test_forbidden_requests_have_no_writes_and_the_others_do(name):
    domain = generated(name).domain("medium")
    for task in generated(name).tasks("test", 100, size="medium"):
        writes = [a for a in task.actions if domain.kind_of(a.name) == "write"]
        if task.tags["intent"] == "forbidden":
            assert not writes
        for action in task.actions:
            assert domain.offered()[action.name].schema.check(action.arguments) is None


@everywhere
def test_the_scenario_tells_an_llm_user_all_that_the_agenda_knows(name):
    for task in generated(name).tasks("train", 60, size="tiny"):
        assert task.scenario.startswith("Persona:\n\t")
        for request in task.agenda["requests"]:
            for wish in (request["wish"], request["then"] or {}, request["fallback"] or {}):
                told = {v for k, v in wish.items() if k not in (*request["unknown"], "drop")}
                assert all(str(v) in task.scenario for v in told)
            for slot in request["unknown"]:
                assert str(request["wish"][slot]) not in task.scenario or len(task.agenda["requests"]) > 1


@everywhere
def test_what_a_caller_says_is_understood_in_every_wording(name):
    talk = talk_of(name)
    for task in generated(name).tasks("train", 150, size="medium"):
        for request in task.agenda["requests"]:
            kind, wish = request["kind"], request["wish"]
            reveal = talk.told_at_once("chatty", kind, wish, request["unknown"])
            for clause in talk.intents[kind].clauses:
                text = f"Hello there! I would like to {talk.fill(clause, wish, reveal)}."
                (frame,) = talk.requests_in(text)
                assert frame.intent == kind, text
                assert all(frame.slots.get(slot) == wish[slot] for slot in reveal), (text, frame)


@everywhere
def test_words_are_distinct_and_hold_no_control_token(name):
    world = generated(name)
    for words in (world.entities(), world.phrases()):
        assert len(words) > 20 and all(words) and len(set(words)) == len(words)
        assert not any("<|" in w for w in words)


@everywhere
def test_the_expert_greets_and_does_not_trip_over_strange_words(name):
    for habits in (Habits(), SLOPPY):
        expert = generated(name).expert(seed=0, habits=habits)
        assert expert.act([]).content == "How can I help you?"
        for text in ("", "?", "Yes.", "No.", "never mind", 'drop "everything', "1" * 5000, "###STOP###"):
            answer = expert.act([Message("user", text)])
            assert answer.content or answer.tool_calls
        for text in ("", "{", "[1, 2", "null", "Error: no", "x" * 9999):
            expert.act([Message("tool", text, tool_call_id="x", error=True)])


@everywhere
def test_callers_bear_an_agent_that_says_nothing_useful(name):
    import asyncio

    async def play(task):
        user = AgendaUserFactory(seed=1)(task, seed=2)
        said = [(await user.reply([])).message.content]
        while "###STOP###" not in said[-1]:
            said.append((await user.reply([Message("assistant", "Hmm.")])).message.content)
        return said

    for task in generated(name).tasks("test", 12, size="tiny"):
        said = asyncio.run(play(task))
        assert 3 <= len(said) <= 10
        assert asyncio.run(play(task)) == said  # the same seed, the same words


def test_an_agenda_user_needs_an_agenda():
    from dataclasses import replace

    (task,) = generated("mcp-git").tasks("train", 1, size="tiny")
    with pytest.raises(ConfigError, match="has no agenda"):
        AgendaUserFactory()(replace(task, agenda=None), seed=0)


@everywhere
def test_its_files_are_whole(name):
    folder = type(generated(name).domain("tiny")).folder
    files = read_files(folder)
    assert sum(files.shares.values()) == pytest.approx(1.0)
    listed = {row["name"] for row in json.loads((folder / "tools.json").read_text())}
    assert {offer.tool for offer in files.offers} <= listed
    kinds = set(files.talk.intents)
    assert set(files.second) <= kinds | set(files.shares)
    policy = (folder / "policy.md").read_text()
    assert "wait for a yes" in policy and not re.search(r"[ \t]$", policy, re.MULTILINE)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"intents": {}}, "KeyError: 'slots'"),
        ({"slots": {"a": {"find": "(", "tell": []}}, "intents": {}}, "error: "),
        (
            {"slots": {}, "intents": {"go": {"verbs": "go", "clauses": ["go {there}"], "slots": []}}},
            "intents.go speaks of the slot 'there', which is not there",
        ),
    ],
)
def test_a_scenario_that_is_broken_is_told(data, told):
    with pytest.raises(DataError, match=rf"x\.yaml: .*{told}"):
        talk_from(data, "x.yaml")


def test_a_scenario_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(DataError, match="is no scenario"):
        read_files(tmp_path)
    (tmp_path / "scenario.yaml").write_text("tools: [", encoding="utf-8")
    read_files.cache_clear()
    with pytest.raises(DataError, match="is no scenario"):
        read_files(tmp_path)
