"""The four services on public servers, as far as no server is needed: their tools are rehearsed in this process."""

from __future__ import annotations

import json
import re

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.generated import SPLITS
from muarl.domains.scripted_expert import SLOPPY, ErrorProfile
from muarl.domains.tooling import tool_kinds
from muarl.environments.registry import find
from muarl.types.chat import Message
from muarl_tools.checks.environment.rules import run_checks
from muarl_tools.checks.environment.samples import CheckContext
from support.environments import ON_SERVERS
from support.kit import expert, made, rehearsed, said, service
from support.marks import first_of

REHEARSED = [
    ("mcp-filesystem", "tiny", 12),
    *(
        pytest.param(name, size, 120 if (name, size) == ("mcp-sqlite", "medium") else 40, marks=pytest.mark.slow)
        for name in ON_SERVERS
        for size in ("tiny", "medium")
    ),
]
"""Names, sizes and how many tasks are checked; the first in every run of the tests. Of mcp-sqlite's medium size it
takes more: 10 of the first 40 are forbidden requests, in which doing nothing is right, and 14 of the first 120."""
everywhere = pytest.mark.parametrize("name", first_of(ON_SERVERS))


@pytest.mark.parametrize(("name", "size", "count"), REHEARSED)
def test_it_keeps_the_contract_when_it_is_rehearsed(name, size, count):
    results = list(run_checks(CheckContext(rehearsed(name, size), None, size, count)))
    assert [(r.check.name, str(p)) for r in results for p in r.problems] == []
    assert {r.check.name for r in results if r.skipped} <= {"another-process", "coverage"}


@everywhere
def test_it_comes_in_two_sizes(name):
    world = find(name)
    assert world.name == name and world.sizes == ("tiny", "medium")
    tiny, medium = (world.make_domain(size) for size in world.sizes)
    assert set(tiny.tool_names()) <= set(medium.tool_names()) and len(tiny.policy_text) < len(medium.policy_text)
    with pytest.raises(ConfigError, match=f"domain.size is huge; the sizes of {name} are tiny, medium"):
        world.make_domain("huge")
    with pytest.raises(ValueError, match="size must be one of tiny, medium, not 'huge'"):
        type(tiny)("huge")


@everywhere
@pytest.mark.parametrize("size", ["tiny", "medium"])
def test_tools_are_offered_with_what_the_agent_may_fill_in(name, size):
    domain = find(name).make_domain(size)
    kinds = {domain.kind_of(n) for n in domain.tool_names()}
    assert kinds == {"read", "write"} and 2 <= len(domain.tool_names()) <= 15
    for spec in domain.tool_specs():
        assert spec.description and set(spec.parameters["required"]) <= set(spec.parameters["properties"])
        assert "repo_path" not in spec.parameters["properties"]
    assert domain.tool_specs("user") == ()


@everywhere
def test_the_rehearsal_has_tools_of_the_server_that_take_the_same_calls(name):
    domain, rehearsal = find(name).make_domain("medium"), service(name).rehearsal
    assert set(domain.tiny_tools) <= set(tool_kinds(rehearsal))
    for tool, kind in tool_kinds(rehearsal).items():
        assert domain.kind_of(tool) == kind
    for task in made(name, "medium", count=12):
        for action in task.actions:
            assert domain.offered()[action.name].schema.check(action.arguments) is None


@everywhere
def test_its_files_are_whole(name):
    domain = find(name).make_domain("medium")
    listed = {row["name"] for row in json.loads((domain.folder / "tools.json").read_text())}
    assert {offer.tool for offer in domain.offers} <= listed
    policy = (domain.folder / "policy.md").read_text()
    assert "wait for a yes" in policy and not re.search(r"[ \t]$", policy, re.MULTILINE)


SUBJECTS = {
    "mcp-filesystem": ("file", "new_file"),
    "mcp-git": ("message",),
    "mcp-sqlite": ("title", "member", "borrower", "leaver", "newcomer"),
    "mcp-memory": ("person", "newcomer", "new_person"),
}


@everywhere
def test_splits_have_no_subject_in_common(name):
    def subjects(split):
        goals = [
            goal
            for task in made(name, "tiny", split, 20)
            for request in task.agenda["requests"]
            for goal in (request["goal"], request["then"] or {}, request["fallback"] or {})
        ]
        return {goal[slot].rsplit("/", 1)[-1] for goal in goals for slot in SUBJECTS[name] if slot in goal}

    train, validation, test = (subjects(split) for split in SPLITS)
    assert not train & validation and not train & test and not validation & test
    assert len(validation) > 5 and len(test) > 5


KINDS = {
    "mcp-filesystem": {"rename_unavailable", "create_unavailable", "folder_unavailable", "question", "status", "move"},
    "mcp-git": {"commit", "commit_unavailable", "branch", "switch", "switch_unavailable", "unstage", "question"},
    "mcp-memory": {"hire", "hire_unavailable", "phone", "note", "forget", "new", "leave", "remove", "question"},
    "mcp-sqlite": {"lend", "lend_unavailable", "bring_back", "extend", "join", "leave", "question", "question_due"},
}


@everywhere
def test_there_are_all_sorts_of_requests(name):
    tasks = made(name, "medium", "train", 150)
    intents = [t.tags["intent"] for t in tasks]
    assert set(intents) >= {*KINDS[name], "forbidden", "two_requests", "three_requests"}
    assert 0.03 < intents.count("forbidden") / len(tasks) < 0.15
    requests = [r for t in tasks for r in t.agenda["requests"]]
    assert any(r["then"] for r in requests) and any(r["unknown"] for r in requests)
    assert {t.reward_basis for t in tasks} == {("DB",), ("DB", "COMMUNICATE")}


def gold(name, intent):
    task = next(t for t in find(name).iter_tasks("train", size="medium") if t.tags["intent"] == intent)
    return task, [a.name for a in task.actions]


@pytest.mark.parametrize(
    ("name", "intent", "calls"),
    [
        ("mcp-filesystem", "rename", ["read_file", "list_directory", "move_file"]),
        ("mcp-filesystem", "create", ["list_directory", "write_file"]),
        ("mcp-git", "commit", ["status", "add", "commit"]),
        ("mcp-git", "switch", ["status", "list_branches", "switch_branch"]),
        ("mcp-memory", "phone", ["open_nodes", "delete_observations", "add_observations"]),
        ("mcp-memory", "new", ["open_nodes", "create_entities"]),
        ("mcp-sqlite", "join", ["read_query", "update_database"]),
        ("mcp-sqlite", "lend", ["read_query"] * 4 + ["update_database"]),
    ],
)
def test_gold_actions_are_those_of_the_policy(name, intent, calls):
    task, made_of = gold(name, intent)
    found = [c for c in made_of if c not in ("search_files", "search_nodes")]
    assert found == calls or (task.agenda["requests"][0]["unknown"] and found[-len(calls) :] == calls)


def test_a_commit_is_proposed_once_and_done_by_two_calls():
    world = rehearsed("mcp-git", "medium")
    tasks = [
        t for t in made(world, "medium", "train", 60) if t.tags["intent"] == "commit" and not t.tags["changes_mind"]
    ]
    for episode in expert(world, tasks, "medium"):
        assert sum("commit it to" in text or "the message will be" in text for text in said(episode)) == 1


@everywhere
def test_the_expert_does_not_trip_over_strange_answers_of_tools(name):
    for errors in (ErrorProfile(), SLOPPY):
        for text in ("", "{", "[1, 2", "null", "Error: no", "x" * 9999, '{"entities": []}', "[]", "[{}]"):
            task = made(name, "tiny", count=1)[0]
            agent = find(name).expert(seed=0, error_profile=errors)
            user = find(name).rule_based_user(task, seed=0, persona="impatient")._opening()
            answer = agent.act([Message("user", user)])
            for _ in range(4):
                if answer.tool_calls:
                    answer = agent.act([Message("tool", text, tool_call_id=answer.tool_calls[0].id)])
            assert answer.content or answer.tool_calls
