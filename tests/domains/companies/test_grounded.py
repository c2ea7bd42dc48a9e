"""Of what hangs on documents, the share that goes by those that hold: what was done, and what was answered."""

from __future__ import annotations

import pytest

from muarl.accounts.metrics import audit_metrics
from muarl.types.chat import Message
from muarl_worlds.companies import finding
from support.companies import NAMES, first_shown
from support.kit import env, expert, made

SIZE = "tiny"


def played(name):
    return expert(name, made(name, SIZE, "test", 60), SIZE)


@pytest.mark.parametrize("name", NAMES)
def test_all_that_a_careful_expert_does_and_says_is_grounded(name):
    found = [episode.verdict.audit for episode in played(name)]
    assert all(audit["grounded"] == audit["documented"] for audit in found)
    assert sum(audit["documented"] for audit in found) > 40
    assert all(audit["searches"] >= audit["documented"] for audit in found)


@pytest.mark.parametrize("name", NAMES)
def test_what_goes_by_the_first_document_shown_is_not(monkeypatch, name):
    made(name, SIZE, "test", 60)  # what is right is found by careful plans
    monkeypatch.setattr(finding, "rule_that_holds", first_shown)
    episodes = played(name)
    assert 0.3 < audit_metrics(episodes)["grounded"] < 0.95
    wrong = [e for e in episodes if e.verdict.audit["grounded"] < e.verdict.audit["documented"]]
    lucky = [e for e in wrong if e.reward == 1]  # the right figure was said as well, of something else
    assert len(wrong) > 5 and len(lucky) <= len(wrong) / 5


def asking(name):
    """A task of somebody who asks for a figure, with its world and the name of what they ask for."""
    task = next(t for t in made(name, SIZE, "test", 60) if t.tags["intent"] == "ask" and t.communicate_info)
    return task, env(name).make_domain(SIZE).world(task), task.agenda["requests"][0]["goal"]["topic"]


@pytest.mark.parametrize(
    ("say", "grounded"),
    [
        ("That is a {topic} of ${right}.", [True]),
        ("The {topic} is ${right}.00, and not $1{right}.", [True]),
        ("The {topic} is $1{right}.", [False]),
        ("I see: ${right}.", []),
        ("The {topic} is not known.", []),
    ],
)
def test_an_answer_is_what_was_said_of_the_topic(say, grounded):
    task, world, topic = asking("bank-knowledge")
    rules = env("bank-knowledge").audit_rules()
    text = say.format(topic=topic, right=task.communicate_info[0])
    assert list(rules.grounded(task, world, [Message("assistant", text)])) == grounded
