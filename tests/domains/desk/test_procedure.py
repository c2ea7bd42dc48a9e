"""Procedures step by step: what is asked, looked up, refused, offered, proposed."""

from __future__ import annotations

import pytest

from muarl.domains.desk.people import FIRST_NAMES
from muarl.domains.desk.procedure import Frame, call_key, next_move
from muarl.domains.desk.spec import Script, Spec
from support.desk import TITLES, library

CALLER = {"reader_id": "R-1"}
LOANS = call_key("list_loans", {"reader_id": "R-1"})


def script(**changes):
    return Script("library", Spec.model_validate(library(**changes)), TITLES, FIRST_NAMES)


def loans(**more):
    one = {"loan_id": "LN-100", "title": "Old Maps", "waiting": False, "choices": [3, 7], "fee": 1.5, **more}
    return {LOANS: {"loans": [one, {**one, "loan_id": "LN-200", "title": "Night Trains"}]}}


def move(slots, seen, intent="extend", described=(), **more):
    return next_move(script(), Frame(intent, dict(slots), dict(described), **more), seen, CALLER)


def test_it_looks_up_before_it_asks_what_it_does_not_need_yet():
    first = move({}, {})
    assert (first.kind, first.tool, first.args) == ("call", "list_loans", {"reader_id": "R-1"})
    assert (move({}, loans()).kind, move({}, loans()).slot) == ("ask", "loan")
    assert (move({"loan": "LN-100"}, loans()).slot) == "days"


def test_it_proposes_and_then_is_finished():
    proposal = move({"loan": "LN-100", "days": 7}, loans())
    assert (proposal.kind, proposal.tool, proposal.args) == ("write", "extend_loan", {"loan_id": "LN-100", "days": 7})
    done = move({"loan": "LN-100", "days": 7}, loans(), written={proposal.step: {"until": "2026-03-21"}})
    assert done.kind == "finished" and done.known["result"] == {"until": "2026-03-21"}


def test_what_was_looked_up_stays_as_it_was_when_it_has_written():
    frame = Frame("extend", {"loan": "LN-100", "days": 7})
    assert next_move(script(), frame, loans(), CALLER).kind == "write"
    frame.written[4] = {"until": "2026-03-21"}
    assert next_move(script(), frame, loans(waiting=True), CALLER).kind == "finished"


def test_refusals_shortages_and_what_is_passed_over():
    wish = {"loan": "LN-100", "days": 7}
    refused = move(wish, loans(waiting=True))
    assert (refused.kind, refused.step) == ("refuse", 2)
    assert move(wish, loans(waiting=True), over=True).kind == "write"
    assert (move({"loan": "LN-999"}, loans()).kind) == "refuse"
    short = move({"loan": "LN-100", "days": 30}, loans())
    assert (short.kind, short.slot, short.options) == ("unavailable", "days", (3, 7))


def test_a_description_is_looked_up():
    assert move({"days": 7}, loans(), described={"loan": "night trains"}).args["loan_id"] == "LN-200"
    assert move({}, {}, described={"loan": "Night Trains"}).kind == "call"
    missing = move({}, loans(), described={"loan": "Green Tides"})
    assert (missing.kind, missing.slot) == ("missing", "loan")


def test_a_description_that_fits_two_records_is_none():
    both = {LOANS: {"loans": [{"loan_id": "LN-1", "title": "Old Maps"}, {"loan_id": "LN-2", "title": "Old Maps"}]}}
    assert move({}, both, described={"loan": "Old Maps"}).kind == "missing"


def test_a_failed_look_up_is_said_of_the_slot_that_it_was_about():
    made = script(intents__extend__steps__0={"look": "get_loan", "with": {"loan_id": "$loan"}, "as": "all"})
    frame = Frame("extend", {"loan": "LN-9"})
    found = next_move(made, frame, {call_key("get_loan", {"loan_id": "LN-9"}): None}, CALLER)
    assert (found.kind, found.slot) == ("missing", "loan")


def test_hand_overs_and_answers():
    assert move({}, {}, "report").kind == "transfer"
    assert move({"loan": "LN-100"}, loans(), "ask_title").kind == "answer"


def test_a_pick_without_a_match_offers_the_others():
    made = script(
        intents__extend__steps__1={
            "pick": "l", "from": "$all.loans", "where": {"loan_id": "$loan"}, "unavailable": "loan",
            "offer": "loan_id", "among": {"waiting": False},
        }
    )  # fmt: skip
    short = next_move(made, Frame("extend", {"loan": "LN-9"}), loans(), CALLER)
    assert (short.kind, short.slot, short.options) == ("unavailable", "loan", ("LN-100", "LN-200"))


def test_a_record_that_nobody_has_looked_up_is_a_mistake_of_the_file():
    made = script()
    step = made.spec.intents["extend"].steps[2].model_copy(update={"when": {"gone.x": 1}})
    steps = (step, *made.spec.intents["extend"].steps)
    intents = {"extend": made.spec.intents["extend"].model_copy(update={"steps": steps})}
    made.spec = made.spec.model_copy(update={"intents": intents})
    with pytest.raises(KeyError, match="refers to 'gone'"):
        next_move(made, Frame("extend"), {}, CALLER)
