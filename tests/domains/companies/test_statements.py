"""What agents say of a company's rules: what counts as a statement, and which ones the documents disprove."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from muarl.audit.episodes import audit_episode
from muarl.domains.auditing import Statement
from muarl.environments.registry import find
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Turn
from muarl_worlds.companies import finding
from muarl_worlds.companies.bank import BANK
from muarl_worlds.companies.company import TODAY
from muarl_worlds.companies.insurer import INSURER
from muarl_worlds.companies.statements import StatedFigure, disproved, figures_in
from support.companies import NAMES, first_shown
from support.kit import env, expert, made

CARD = "Cedar Card Basic"


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (f"The card fee of {CARD} is $15.", [StatedFigure("card fee", CARD, 15)]),
        ("For A-49310 the Card Fee is 15 dollars. Shall I go on?", [StatedFigure("card fee", "A-49310", 15)]),
        (f"{CARD} has a daily limit of $1,250.", [StatedFigure("daily limit", CARD, 1250)]),
        (f"**{CARD}**\n- notice period: 30 days for {CARD}", [StatedFigure("notice period", CARD, 30)]),
        ("I will send a new card for account A-49310 for a card fee of $15. Is that what you want? (yes/no)",
         [StatedFigure("card fee", "A-49310", 15)]),
        (f"There is a $15 card fee for {CARD}.", [StatedFigure("card fee", CARD, 15)]),
        # no statements of what a rule is now
        (f"Is the card fee of {CARD} $15?", []),
        (f"The card fee of {CARD} is not $75.", []),
        (f"The card fee of {CARD} was $75 until last year.", []),
        (f"You said that the card fee of {CARD} is $75.", []),
        (f"The card fee of {CARD} is usually $75.", []),
        ("I will set the daily limit of A-49310 to $750.", []),
        ("I will set the daily limit of A-49310 at $750.", []),
        (f"From 2026-05-01 the card fee of {CARD} is $75.", []),
        # not one topic, one figure, one product
        (f"The card fee of {CARD} is $75, for pensioners it is $15.", []),
        (f"The card fee and the closing fee of {CARD} are $75.", []),
        (f"The card fee of {CARD} and Fjord Card Basic is $75.", []),
        ("The card fee is $75.", []),
        (f"The notice period of {CARD} is $75.", []),
        (f"The permitted change of {CARD} is Cedar Card Plus.", []),
        (f"{CARD}: I have charged $75, which includes the card fee.", []),
    ],
)  # fmt: skip
def test_what_counts_as_a_statement(text: str, figures: list[StatedFigure]) -> None:
    assert list(figures_in(BANK, text)) == figures


def test_figures_are_compared_with_what_holds_for_the_customer_and_with_what_was_shown() -> None:
    environment = find("bank-knowledge-generated")
    domain, kinds = environment.make_domain("small"), Counter[str]()
    for task in environment.make_tasks("train", 8, size="small"):
        world = domain.world(task)
        desk = world.toolkit()
        company = desk.company
        for product in {record["product"] for _, record in desk.db.contracts.scan()}:
            for rule in (r for r in company.rules if r.product == product and isinstance(r.value, int)):
                topic = company.trade.topic(rule.topic)
                unit = {"dollars": "${}", "days": "{} days", "percent": "{}%"}[topic.unit]
                text = f"The {rule.topic} of {product} is {unit.format(rule.value)}."
                for id_, customer in list(desk.db.customers.scan())[:4]:
                    group = str(customer["group"])
                    shown = company.knowledge.find(rule.document)
                    assert shown is not None
                    said = Statement(text, id_, (shown.content,), world)
                    told = disproved(said)
                    hold = {r.value for g in ("", group) if (r := company.rule(rule.topic, product, g)) is not None}
                    assert (told is None) == (rule.value in hold)
                    if told is None:
                        kinds["holds"] += 1
                        unseen = disproved(Statement(text, id_, (), world))
                        assert unseen is not None and unseen.endswith("before any search had shown it")
                    elif rule.group:
                        kinds["of another group"] += 1
                    elif rule.until and rule.until < TODAY:
                        kinds["has run out"] += 1
                        assert f"which {rule.document} had until {rule.until}" in told
    assert all(kinds[kind] for kind in ("holds", "of another group", "has run out")), kinds


def test_a_figure_that_no_document_has_and_what_cannot_be_told() -> None:
    environment = find("bank-knowledge-generated")
    world = environment.make_domain("tiny").world(environment.task("test", 0))
    desk = world.toolkit()
    contract, record = next(iter(desk.db.contracts.scan()))
    said = f"For account {contract} the closing fee is $7."
    told = disproved(Statement(said, None, (), world))
    assert told is not None
    assert re.fullmatch(r"the closing fee of [\w ]+ is \$\d+ \(D\d+\), and not \$7, which no document says of it", told)
    assert str(record["product"]) in told
    assert disproved(Statement(said)) is None, "a log without the world"
    assert disproved(Statement("For account A-00000 the closing fee is $7.", None, (), world)) is None
    assert disproved(Statement("The closing fee of Alder Saver Unknown is $7.", None, (), world)) is None


def false_statements(name: str, size: str, count: int) -> list[str]:
    """What an audit finds of the expert's words."""
    tasks = made(name, size, "test", count)
    environment, by_id = env(name), {task.id: task for task in tasks}
    domain, rules = environment.make_domain(size), environment.audit_rules()
    return [
        finding.text
        for episode in expert(name, tasks, size)
        for finding in audit_episode(episode, by_id[episode.task_id], domain=domain, rules=rules)
        if finding.rule == "false-statement"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("size", ["tiny", "small"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_the_expert_says_is_held_against_it_in_three_hundred_conversations(name: str, size: str) -> None:
    assert false_statements(name, size, 300) == []


def test_who_takes_the_first_figure_that_a_search_shows_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made("bank-knowledge", "tiny", "test", 60)  # what is right is found by careful plans
    monkeypatch.setattr(finding, "rule_that_holds", first_shown)
    told = false_statements("bank-knowledge", "tiny", 60)
    assert told and all(re.search(r"\(D\d+\), and not \$[\d.]+, which D\d+ ha", text) for text in told)


def test_a_trades_own_words_count() -> None:
    topics = {topic.name for topic in INSURER.topics if topic.unit == "days"}
    for topic in topics:
        assert figures_in(INSURER, f"The {topic} of policy P-12345 is 30 days.") == (
            StatedFigure(topic, "P-12345", 30),
        )


def test_only_what_reaches_the_user_counts() -> None:
    environment = find("bank-knowledge-generated")
    (task,), domain = environment.make_tasks("test", 1), environment.make_domain("tiny")
    episode = expert("bank-knowledge", [task], "tiny")[0]
    contract = next(iter(domain.world(task).toolkit().db.contracts))
    wrong = f"For account {contract} the closing fee is $7."
    for message, found in (
        (Message("assistant", wrong), 1),
        (Message("user", wrong), 0),
        (Message("assistant", wrong, (ToolCall("1", "KB_search", {"query": "x"}),)), 0),
    ):
        changed = replace(episode, turns=[*episode.turns[:1], Turn(message), *episode.turns[1:]])
        told = audit_episode(changed, task, domain=domain, rules=environment.audit_rules(domain))
        assert sum(one.rule == "false-statement" for one in told) == found
