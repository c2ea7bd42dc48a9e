"""Checks of tasks: tasks that are right pass, and every rule finds the mistake that was made for it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.domains.tasks import Action, Task
from muarl_tools.checks.tasks.report import check_source
from muarl_tools.checks.tasks.rules import RULES
from muarl_tools.checks.tasks.sources import open_source
from support.checked_tasks import (
    ADDRESS,
    FIND,
    LOOK,
    RIGHT,
    SWAP,
    air_rules,
    air_source,
    call,
    flown,
    found,
    passenger,
    rules_of,
    shop_source,
    variant_of,
)

CANCEL = call("cancel_pending_order", order_id="#W1000002", reason="no longer needed")


def swap(**changes: object) -> Task:
    """The right task with another exchange."""
    return variant_of(RIGHT, actions=(FIND, LOOK, replace(SWAP, arguments={**SWAP.arguments, **changes})))


def worded(text: str, *actions: Action) -> Task:
    """A task of Ann's in the shop."""
    return variant_of(RIGHT, scenario=f"Your name is Ann Lee and your zip code is 80201. {text}", actions=actions)


def test_nothing_is_wrong_with_a_right_task() -> None:
    assert rules_of(RIGHT) == set()
    assert check_source(shop_source(RIGHT)).baselines() == [
        ("do-nothing", 0, 0, 1), ("always-transfer", 0, 0, 1), ("say-yes", 0, 0, 1), ("repeat-user", 0, 0, 1),
    ]  # fmt: skip


WRONG = {
    "gold-unknown-tool": variant_of(RIGHT, actions=(FIND, LOOK, SWAP, call("send_flowers"))),
    "gold-fails": swap(payment_method_id="paypal_13"),
    "gold-no-effect": worded("You want order #W1000002 sent to your home.", call(
        "modify_user_address", user_id="ann_lee_1001", **ADDRESS)),
    "gold-breaks-policy": swap(new_item_ids=["1000000001"]),
    "gold-other-person": worded("You want to cancel order #W1000003, which you no longer need.", FIND, call(
        "cancel_pending_order", order_id="#W1000003", reason="no longer needed")),
    "gold-invented": worded("You moved. Your new street is 9 Elm Road in Boston, MA 02101, USA.", FIND, call(
        "modify_user_address", user_id="ann_lee_1001", address1="77 Birch Court", address2="", city="Boston",
        state="MA", country="USA", zip="02101")),
    "unknown-id": variant_of(RIGHT, scenario=RIGHT.scenario + " You also ask about order #W1999999."),
    "others-id": variant_of(RIGHT, scenario=RIGHT.scenario + " You also ask about order #W1000003."),
    "persona-differs": variant_of(RIGHT, scenario=RIGHT.scenario + " Your email is ann.lea@example.com."),
    "payment-missing": variant_of(RIGHT, scenario=RIGHT.scenario + " You would rather pay with PayPal."),
    "not-identified": variant_of(RIGHT, scenario=RIGHT.scenario.replace("and your zip code is 80201", "")),
    "nothing-scored": variant_of(RIGHT, actions=None),
    "assertions-missing": variant_of(RIGHT, reward_basis=("DB", "NL_ASSERTION")),
    "communicate-unscored": variant_of(RIGHT, communicate_info=("22.0",)),
    "assertions-unscored": variant_of(RIGHT, nl_assertions=("The agent is polite.",)),
    "communicate-given": variant_of(RIGHT, communicate_info=("#W1000001",), reward_basis=("DB", "COMMUNICATE")),
    "communicate-short": variant_of(RIGHT, communicate_info=("22",), reward_basis=("DB", "COMMUNICATE")),
    "communicate-underivable": variant_of(RIGHT, communicate_info=("918.43",), reward_basis=("DB", "COMMUNICATE")),
    "earned-by-nothing": variant_of(RIGHT, actions=(FIND, LOOK)),
    "wrong-write-earns": variant_of(RIGHT, reward_basis=("ACTION",), actions=(
        FIND, LOOK, replace(SWAP, compare_args=("order_id", "item_ids", "new_item_ids")))),
    "extra-write-earns": variant_of(RIGHT, reward_basis=("ACTION",), actions=(FIND, call(
        "modify_user_address", user_id="ann_lee_1001", **{**ADDRESS, "zip": "80202"}))),
    "part-earns": variant_of(RIGHT, reward_basis=("COMMUNICATE",), communicate_info=("22.0",), actions=(
        FIND, LOOK, SWAP, CANCEL)),
    "undecided": worded("You want to exchange the lamp of order #W1000001 for a white one.", FIND, LOOK, replace(
        SWAP, arguments={**SWAP.arguments, "payment_method_id": "gift_card_12"})),
    "no-fallback": worded("You want a refund for the lamp that you have lost.", FIND),
}  # fmt: skip
"""By rule, a task of the shop with the mistake that the rule is for."""


@pytest.mark.parametrize("rule", WRONG)
def test_finds_the_seeded_mistake(rule: str) -> None:
    findings = [f for f in found(shop_source(WRONG[rule])) if f.rule == rule]
    assert findings and findings[0].where == "right" and findings[0].split == "test"
    assert findings[0].what and findings[0].remedy and rule in RULES


@pytest.mark.parametrize(
    ("rule", "level"),
    [
        ("gold-fails", "error"), ("gold-breaks-policy", "error"), ("gold-other-person", "error"),
        ("gold-unknown-tool", "error"), ("nothing-scored", "error"), ("gold-no-effect", "error"),
        ("undecided", "warning"), ("others-id", "note"),
    ],
)  # fmt: skip
def test_levels(rule: str, level: str) -> None:
    assert rule in rules_of(WRONG[rule], level)


AIR_WRONG = {
    "gold-breaks-policy": [
        flown("You want to cancel AAAAA1, as your plans changed.", call("cancel_reservation", reservation_id="AAAAA1")),
        flown("You want two bags on AAAAA1.", call(
            "update_reservation_baggages", reservation_id="AAAAA1", total_baggages=2, nonfree_baggages=2,
            payment_id="credit_card_11")),
        flown("You want compensation.", call("send_certificate", user_id="ann_lee_1001", amount=50)),
    ],
    "gold-contradicts": [flown("Ann Lee flies in AAAAA1, which you want to check.", call(
        "update_reservation_passengers", reservation_id="AAAAA1", passengers=[passenger("Ann", "Lee", "1991-12-12")]))],
    "gold-invented": [flown("You want somebody else to fly on AAAAA1.", call(
        "update_reservation_passengers", reservation_id="AAAAA1", passengers=[passenger("Kim", "Poe", "1991-12-12")]))],
    "fact-undecided": [flown("You want to cancel CCCCC3.", call("get_reservation_details", reservation_id="CCCCC3"))],
    "undecided": [
        flown("You want to move your flight in BBBBB2 to May 21.", call(
            "get_reservation_details", reservation_id="BBBBB2")),
        flown("You want the cheapest flight for AAAAA1 on May 21, paying with the original card.", call(
            "update_reservation_flights", reservation_id="AAAAA1", cabin="economy", payment_id="credit_card_11",
            flights=[{"flight_number": "HAT002", "date": "2024-05-21"}])),
        flown("You want to fly to SEA on May 21, by yourself, paying by credit card. No bags.", call(
            "book_reservation", user_id="ann_lee_1001", origin="JFK", destination="SEA", flight_type="one_way",
            cabin="business", flights=[{"flight_number": "HAT003", "date": "2024-05-21"}],
            passengers=[passenger("Ann", "Lee", "1990-01-01")],
            payment_methods=[{"payment_id": "credit_card_11", "amount": 450}], total_baggages=0, nonfree_baggages=0,
            insurance="no")),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("rule", "task"), [(rule, task) for rule, tasks in AIR_WRONG.items() for task in tasks])
def test_finds_the_seeded_mistake_in_the_airline(rule: str, task: Task) -> None:
    assert rule in air_rules(task, "error", "warning")


def test_every_rule_has_a_task_that_is_wrong_for_it() -> None:
    elsewhere = {"assertion-holds", "assertion-fails", "duplicate", "duplicate-across-splits", "expert-fails"}
    assert WRONG.keys() | AIR_WRONG.keys() | elsewhere == RULES.keys()


def test_what_the_scenario_settles_is_not_undecided() -> None:
    sick = flown("You want to cancel CCCCC3, since you are sick.", call("cancel_reservation", reservation_id="CCCCC3"))
    assert not air_rules(sick, "error", "warning")
    gift = worded("You want to exchange the lamp of order #W1000001 for a white one, with your gift card.", FIND, LOOK,
                  replace(SWAP, arguments={**SWAP.arguments, "payment_method_id": "gift_card_12"}))  # fmt: skip
    assert "undecided" not in rules_of(gift)


def test_reasons_of_cancellations() -> None:
    mistaken = replace(CANCEL, arguments={**CANCEL.arguments, "reason": "ordered by mistake"})
    for text, action, level in (
        ("You want to cancel order #W1000002, as you no longer need it.", CANCEL, None),
        ("You want to cancel order #W1000002.", CANCEL, "note"),
        ("You want to cancel order #W1000002.", mistaken, "warning"),
        ("You want to cancel order #W1000002, which you ordered by mistake.", CANCEL, "warning"),
    ):
        levels = {f.level for f in found(shop_source(worded(text, FIND, action))) if f.rule == "undecided"}
        assert levels == ({level} if level else set()), text


def test_a_value_that_the_user_is_meant_to_mistake_is_a_note() -> None:
    meant = variant_of(RIGHT, scenario=RIGHT.scenario + " At first you say order #W1999999 by mistake.")
    assert "unknown-id" in rules_of(meant, "note") and "unknown-id" not in rules_of(meant, "warning")


def test_duplicates_within_and_across_splits() -> None:
    again = replace(RIGHT, id="again", scenario=RIGHT.scenario.replace("and use", "using"))
    source = shop_source(splits={"train": [RIGHT, again], "test": [replace(again, id="third")]})
    assert [(f.rule, f.where) for f in found(source) if f.rule.startswith("duplicate")] == [
        ("duplicate-across-splits", "third"), ("duplicate", "again"),
    ]  # fmt: skip
    other = replace(RIGHT, id="other", actions=(FIND, CANCEL))
    assert not [f for f in found(shop_source(RIGHT, other)) if f.rule.startswith("duplicate")]


def test_assertions_on_the_world() -> None:
    source = open_source("telecom-generated", split="test", count=1)
    (task,) = source.splits["test"]

    def rules(assertion: dict[str, object], basis: tuple[str, ...]) -> set[tuple[str, str]]:
        changed = replace(task, env_assertions=(assertion,), reward_basis=basis)
        findings = found(replace(source, splits={"test": [changed]}))
        return {(f.rule, f.level) for f in findings if f.rule.startswith("assertion")}

    no_such = {"env_type": "user", "func_name": "no_such_function", "arguments": {}}
    assert ("assertion-fails", "error") in rules(no_such, ("DB", "ENV_ASSERTION"))
    assert ("assertion-fails", "warning") in rules(no_such, ("ENV_ASSERTION",))


def test_a_judge_is_never_asked() -> None:
    judged = variant_of(RIGHT, actions=(FIND,), reward_basis=("NL_ASSERTION",), nl_assertions=("The agent refuses.",))
    (row, *_) = check_source(shop_source(judged)).baselines()
    assert row == ("do-nothing", 0, 1, 1)


def test_the_world_is_left_as_it_was() -> None:
    source = air_source(*(task for tasks in AIR_WRONG.values() for task in tasks[:1]))
    source = replace(source, splits={"test": [replace(t, id=str(n)) for n, t in enumerate(source.splits["test"])]})
    before = source.domain.world(None).digest()
    check_source(source)
    assert source.domain.world(None).digest() == before


def test_report_as_json() -> None:
    report = check_source(shop_source(WRONG["gold-breaks-policy"]))
    shown = json.loads(json.dumps(report.to_json()))
    assert shown["tasks"] == {"test": 1} and shown["domain_rules"] is True
    assert {f["rule"] for f in shown["findings"]} == {f.rule for f in report.findings}
    assert all(row["about"] == RULES[row["rule"]] for row in shown["rules"])


@pytest.mark.parametrize("name", ["retail-generated", "airline-generated", "bank-generated", "hotel-generated"])
@settings(max_examples=2)
@given(seed=st.integers(0, 10_000))
def test_generated_tasks_have_no_errors(name: str, seed: int) -> None:
    report = check_source(open_source(name, split="test", count=4, seed=seed))
    never = {"wrong-write-earns", "extra-write-earns", "part-earns", "expert-fails"}
    assert [f for f in report.findings if f.level == "error" or f.rule in never] == []
    assert report.experts()[0] == ("expert", 4, 4)
