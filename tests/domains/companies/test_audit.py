"""Audits of companies: what was done against the documents is found, with the document by which it was done."""

from __future__ import annotations

import re

import pytest

from muarl.audit.episodes import audit_episode
from muarl_worlds.companies import finding
from muarl_worlds.companies.rules import Procedure
from support.companies import NAMES, first_shown
from support.kit import env, expert, made
from support.marks import first_of


def ineligible(name: str, size: str, count: int = 40):
    """(episode, the texts of its writes that the documents forbid)."""
    tasks = made(name, size, "test", count)
    environment, by_id = env(name), {task.id: task for task in tasks}
    domain, rules = environment.make_domain(size), environment.audit_rules()
    for episode in expert(name, tasks, size):
        found = audit_episode(episode, by_id[episode.task_id], domain=domain, rules=rules)
        yield episode, [one.text for one in found if one.rule == "ineligible-write"]


@pytest.mark.parametrize("size", ["tiny", pytest.param("small", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", first_of(NAMES))
def test_nothing_is_held_against_the_expert(name, size):
    """No write that the documents forbid, and none before a yes, however it asks for it."""
    tasks = made(name, size, "test", 12)
    environment, by_id = env(name), {task.id: task for task in tasks}
    domain, rules = environment.make_domain(size), environment.audit_rules()
    for episode in expert(name, tasks, size):
        found = audit_episode(episode, by_id[episode.task_id], domain=domain, rules=rules)
        assert not [one.text for one in found if one.severity != "note"]


@pytest.mark.parametrize("name", first_of(NAMES))
def test_a_figure_that_does_not_hold_is_told_with_both_documents(monkeypatch, name):
    made(name, "tiny", "test", 40)  # what is right is found by careful plans
    monkeypatch.setattr(finding, "rule_that_holds", first_shown)
    told = []
    for episode, texts in ineligible(name, "tiny"):
        assert not texts or episode.reward == 0
        told += texts
    assert told and all(re.search(r"\(D\d+\), and not \$[\d.]+, which D\d+ ha", text) for text in told)


def first_procedure(procedures, operation, family, today) -> Procedure | None:
    """The first one that a search shows, whether it holds or not."""
    return next((p for p in procedures if p.operation == operation and p.family == family), None)


def test_acting_on_an_outdated_procedure_is_told_with_both_documents(monkeypatch):
    made("insurer-knowledge", "small", "test", 40)
    monkeypatch.setattr(finding, "procedure_that_holds", first_procedure)
    told = []
    for episode, texts in ineligible("insurer-knowledge", "small"):
        assert not texts or episode.reward == 0
        told += texts
    outdated = [t for t in told if re.search(r"of the document D\d+ of \S+, and the document D\d+ of \S+ holds", t)]
    assert outdated and len(outdated) >= len(told) / 2
