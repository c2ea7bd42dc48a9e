"""Plans step by step: what is asked, looked up, refused, offered, proposed; and what is wrong with a plan."""

from __future__ import annotations

import inspect

import pytest

from muarl.basics.errors import ConfigError, OwnCodeError
from muarl.domains.kit.declaration import RESERVED
from muarl.domains.kit.moves import Notes, Request, call_key
from muarl.domains.kit.plan import Plan, next_move
from support.kit import LIBRARY, LOAN, TODAY, own_loan, planned

READER = {"reader_id": "R-1"}
LOANS = call_key("list_loans", {"reader_id": "R-1"})
GOAL = {"loan": "LN-100", "days": 7}


def loans(**more):
    one = {"loan_id": "LN-100", "title": "Old Maps", "waiting": False, "choices": [3, 7], "fee": 1.5, **more}
    return {LOANS: {"loans": [{**one, "items": []}, {**one, "loan_id": "LN-200", "title": "Night Trains"}]}}


def move(slots, seen, intent="extend", described=(), notes=None, **more):
    served = LIBRARY.intent(intent) if isinstance(intent, str) else intent
    request = Request(served.name, dict(slots), dict(described), **more)
    return next_move(served, request, seen, READER, TODAY, notes=notes)


def test_it_looks_up_before_it_asks_what_it_does_not_need_yet():
    first = move({}, {})
    assert (first.kind, first.tool, first.arguments) == ("call", "list_loans", {"reader_id": "R-1"})
    assert (move({}, loans()).kind, move({}, loans()).slot) == ("ask", "loan")
    assert move({"loan": "LN-100"}, loans()).slot == "days"


def test_it_proposes_and_then_is_finished():
    proposal = move(GOAL, loans())
    assert (proposal.kind, proposal.tool) == ("write", "extend_loan")
    assert proposal.arguments == {"loan_id": "LN-100", "days": 7}
    done = move(GOAL, loans(), written=[{"until": "2026-03-21"}])
    assert done.kind == "finished" and done.known["result"] == {"until": "2026-03-21"}


def test_what_was_looked_up_stays_as_it_was_when_it_has_written():
    request = Request("extend", dict(GOAL))
    extend = LIBRARY.intent("extend")
    assert next_move(extend, request, loans(), READER, TODAY).kind == "write"
    request.written.append({"until": "2026-03-21"})
    assert next_move(extend, request, loans(waiting=True), READER, TODAY).kind == "finished"


def test_refusals_shortages_and_what_is_passed_over():
    refused = move(GOAL, loans(waiting=True))
    assert (refused.kind, refused.texts) == ("refuse", ("somebody else waits for {l.title}",))
    assert refused.conditional and move(GOAL, loans(waiting=True), over=True).kind == "write"
    not_mine = move({"loan": "LN-999"}, loans(), over=True)
    assert (not_mine.kind, not_mine.conditional) == ("refuse", False), "there is nothing to go on with"
    short = move({"loan": "LN-100", "days": 30}, loans())
    assert (short.kind, short.slot, short.options) == ("unavailable", "days", (3, 7))


def test_a_description_is_looked_up():
    assert move({"days": 7}, loans(), described={"loan": "night trains"}).arguments["loan_id"] == "LN-200"
    assert move({}, {}, described={"loan": "Night Trains"}).kind == "call"
    missing = move({}, loans(), described={"loan": "Green Tides"})
    assert (missing.kind, missing.slot) == ("missing", "loan")


def test_a_description_that_fits_two_records_is_none():
    both = {LOANS: {"loans": [{"loan_id": "LN-1", "title": "Old Maps"}, {"loan_id": "LN-2", "title": "Old Maps"}]}}
    assert move({}, both, described={"loan": "Old Maps"}).kind == "missing"


def test_a_failed_look_up_is_said_of_the_slot_that_it_was_about():
    def show(it: Plan) -> None:
        it.l = it.look("get_loan", loan_id=it.loan)
        it.answer("{l.title}", tell="{l.title}")

    found = move({"loan": "LN-9"}, {call_key("get_loan", {"loan_id": "LN-9"}): None}, planned(show))
    assert (found.kind, found.slot) == ("missing", "loan")


def test_hand_overs_and_answers():
    assert move({"loan": "LN-100", "why": "lost"}, {}, "report").kind == "transfer"
    assert move({"loan": "LN-100"}, loans(), "ask_fee").kind == "answer"


def test_a_slot_that_only_a_text_names_is_asked_for_before_it_is_said():
    assert [move(slots, {}, "report").slot for slots in ({}, {"loan": "LN-100"})] == ["loan", "why"]


def test_a_pick_without_a_match_offers_the_others():
    def offer(it: Plan) -> None:
        own = it.look("list_loans", reader_id=it.user.reader_id)
        it.l = it.pick(own.loans, loan_id=it.loan) or it.unavailable(LOAN, [o.loan_id for o in own.loans])
        it.answer("{l.title}", tell="{l.title}")

    short = move({"loan": "LN-9"}, loans(), planned(offer))
    assert (short.kind, short.slot, short.options) == ("unavailable", "loan", ("LN-100", "LN-200"))


def test_a_pick_goes_by_fields_and_by_a_condition():
    found = {}

    def picking(it: Plan) -> None:
        own = it.look("list_loans", reader_id=it.user.reader_id)
        found["by case"] = it.pick(own.loans, title="old maps").loan_id
        found["by both"] = it.pick(own.loans, lambda loan: loan.fee > 9, title="Old Maps")
        it.refuse("no")

    assert move({}, loans(), planned(picking)).kind == "refuse"
    assert found == {"by case": "LN-100", "by both": None}


def test_two_writes_come_one_after_the_other():
    def twice(it: Plan) -> None:
        first = it.write("extend_loan", loan_id=it.loan, days=3, propose="extend it", done="Extended.")
        it.write("extend_loan", loan_id=it.loan, days=first.left, propose="again", done="Again until {result.until}.")

    served = planned(twice)
    assert move(GOAL, {}, served).arguments["days"] == 3
    assert move(GOAL, {}, served, written=[{"left": 4}]).arguments["days"] == 4
    done = move(GOAL, {}, served, written=[{"left": 4}, {"until": "May"}])
    assert (done.kind, done.texts) == ("finished", ("Again until {result.until}.",))


def sign_in(it: Plan) -> None:
    it.badge = it.do("sign_in", loan_id=it.loan).badge
    it.write("extend_loan", loan_id=it.loan, badge=it.badge, propose="extend loan {loan}", done="Done.")


def test_what_needs_no_yes_is_done_without_a_proposal():
    intent = planned(sign_in)
    asked = next_move(intent, Request(intent.name, {"loan": "LN-100"}), {}, READER, TODAY)
    assert (asked.kind, asked.tool, asked.texts) == ("write", "sign_in", ())
    after = Request(intent.name, {"loan": "LN-100"}, written=[{"badge": 7}])
    proposed = next_move(intent, after, {}, READER, TODAY)
    assert (proposed.tool, proposed.arguments["badge"]) == ("extend_loan", 7) and proposed.texts


def ahead(it: Plan) -> None:
    it.then("extend_loan", loan_id=it.loan)


def test_a_further_call_needs_a_yes_that_covers_it():
    intent = planned(ahead)
    with pytest.raises(ConfigError, match=r"it\.then before it\.write"):
        next_move(intent, Request(intent.name, {"loan": "LN-100"}), {}, READER, TODAY)


def test_a_trial_run_passes_over_conditions_and_notes_them():
    notes = Notes()
    assert move(GOAL, loans(waiting=True), notes=notes).kind == "write"
    assert [(rule.kind, rule.text) for rule in notes.rules] == [
        ("refuse", "somebody else waits for {l.title}"), ("unavailable", "days")]  # fmt: skip
    assert notes.proposals == {"extend_loan": {"extend {l.title}, loan {loan}, by {days} days"}}


# what is wrong with a plan


def misread(it: Plan) -> None:
    it.refuse_if(it.weeks > 2, "it is too long")


def fails(it: Plan) -> None:
    own_loan(it)
    it.refuse_if(it.l.until > 3, "it is too long")


def raises(it: Plan) -> None:
    raise ValueError("no good")


@pytest.mark.parametrize(
    ("plan", "line", "words"),
    [
        (misread, 1, "it.weeks: neither a slot of misread nor set before; there are loan, days, user, today"),
        (fails, 2, "the record has no field 'until'; it has loan_id, title"),
        (raises, 1, "ValueError: no good"),
    ],
)
def test_a_bug_of_a_plan_is_told_with_its_place(plan, line, words):
    with pytest.raises(OwnCodeError) as caught:
        move(GOAL, loans(), planned(plan))
    place = inspect.getsourcelines(plan)[1] + line
    assert str(caught.value).startswith(f"intent {plan.__name__}: its plan has a bug: ") and words in str(caught.value)
    assert str(caught.value).endswith(f"({__file__}, line {place})")


def test_a_plan_that_stumbles_past_a_refusal_refuses_all_the_same():
    def returned(it: Plan) -> None:
        it.l = it.pick(it.look("list_loans", reader_id=it.user.reader_id).loans)
        it.refuse_if(it.l.returned is None, "it is still out")
        it.refuse_if(it.l.returned < "2026-01-01", "that is too long ago")
        it.answer("{l.returned}", tell="{l.returned}")

    refused = move({}, loans(returned=None), planned(returned), over=True)
    assert (refused.kind, refused.texts, refused.conditional) == ("refuse", ("it is still out",), False)


def test_what_stops_a_plan_is_no_error_that_it_can_catch():
    def careful(it: Plan) -> None:
        try:
            it.look("list_loans", reader_id=it.loan)
        except Exception:
            it.refuse("it broke")

    assert move({}, {}, planned(careful)).kind == "ask"


@pytest.mark.parametrize("name", ["user", "today", "result", "look", "write", "loan"])
def test_names_that_mean_something_cannot_be_set(name):
    with pytest.raises(ConfigError, match=f"intent renames: its plan sets it.{name}, which is .*: rename it"):
        move(GOAL, {}, planned(lambda it: setattr(it, name, 1), name="renames"))


def test_all_methods_of_plans_are_reserved():
    methods = {name for name in vars(Plan) if not name.startswith("_")}
    assert methods | {"user", "today", "result"} == set(RESERVED)


def test_a_plan_must_do_something():
    with pytest.raises(ConfigError, match="intent idle: its plan comes to its end and has done nothing"):
        move(GOAL, {}, planned(lambda it: None, name="idle"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{book} is late", "speaks of 'book'; there are loan, days, user, today, l"),
        ("{l.author} wrote it", "'l' has no 'author'"),
        ("{l.title|money} is due", "'Old Maps' has no form 'money'"),
        ("{l.title|loud} is due", "there is no form 'loud'; there are money, euro"),
    ],
)
def test_texts_that_cannot_be_filled_are_named(text, words):
    def tells(it: Plan) -> None:
        it.l = it.pick(it.look("list_loans", reader_id=it.user.reader_id).loans)
        it.refuse(text)

    with pytest.raises(ConfigError) as caught:
        move(GOAL, loans(), planned(tells))
    assert str(caught.value).startswith(f"intent tells: the text {text!r}") and words in str(caught.value)
