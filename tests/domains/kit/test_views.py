"""What a service shows and asks beyond the plain case: views of results, kinds of its own."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.kit import reading
from muarl.domains.kit.scenario import full_clause
from muarl.domains.kit.tasks import TaskMaker
from muarl.kit import Mention, Slot, ValueKind, environment, of, pattern
from support.kit import LIBRARY, LOAN, expert, library, made, mean, own_loan, planned


def glance(tool, result):
    """Loans without what no plan needs, and in words what plans would have to work out."""
    if tool != "list_loans":
        return result
    kept = ("loan_id", "title", "waiting", "choices", "fee", "items")
    return {"loans": [{k: one[k] for k in kept} | {"dear": one["fee"] >= 5} for one in result["loans"]]}


def test_plans_of_all_sizes_read_the_view_and_tiny_worlds_show_it():
    def ask(it):
        own_loan(it)
        it.answer(["Yes, {l.fee|money}." if it.l.dear else "No, {l.fee|money}."], tell="{l.fee|plain}")

    env = environment(library(planned(ask, [LOAN], "know whether {loan} is dear"), view=glance), name="viewed")
    for size in ("tiny", "small"):
        tasks = made(env, size, count=12)
        played = expert(env, tasks, size)
        assert mean(played) == 1
        seen = [m.content for e in played for m in e.messages if m.role == "tool" and "loan_id" in (m.content or "")]
        assert seen and all(("dear" in text) == (size == "tiny") for text in seen)


def test_a_tiny_vocabulary_has_only_what_a_view_shows_and_users_say():
    def undated(tool, result):
        if tool == "list_loans":
            return {"loans": [undated("", one) for one in result["loans"]]}
        return {k: v for k, v in result.items() if k != "until"} if isinstance(result, dict) else result

    service = library(LIBRARY.intent("ask_fee"))
    everything, viewed = (set(environment(s).entities()) for s in (service, replace(service, view=undated)))
    hidden = everything - viewed
    assert hidden and all(re.fullmatch(r"2026-\d\d-\d\d|[A-Z][a-z]+ \d+(, 2026)?", text) for text in hidden)
    assert viewed < everything and "Old Maps" in viewed


def test_a_tiny_size_has_its_own_intents():
    maker = TaskMaker(library(tiny_intents=("ask_fee",)))
    assert maker.intents("tiny") == ("ask_fee",) and len(maker.intents("small")) == 3
    with pytest.raises(ConfigError, match="tiny_intents: there is no intent 'ask'; there are extend, report, ask_fee"):
        library(tiny_intents=("ask",))


def test_exact_patterns_read_upper_and_lower_case_as_it_stands():
    text = "Mia flies to MIA, mia"
    assert [m.value for m in pattern("MIA").find(text)] == ["MIA"] * 3
    assert [m.value for m in pattern("MIA", exact=True).find(text)] == ["MIA"]


_PAIR = re.compile(r"shelf ([A-Z])(\d)")
PLACE_KIND = ValueKind(
    "shelf",
    lambda value, rng: f"shelf {value['row']}{value['number']}",
    lambda text: [Mention({"row": m[1], "number": m[2]}, m.start(), m.end()) for m in _PAIR.finditer(text)],
    1,
)
PLACES = [{"row": "A", "number": "1"}, {"row": "B", "number": "2"}]
PLACE = Slot("place", PLACE_KIND, ask="Which shelf is it?", draw=of(lambda drawn: PLACES), weighed=False)


def test_values_may_have_several_parts_and_proposals_may_leave_them_out():
    def find(it):
        own_loan(it)
        it.write(
            "extend_loan", loan_id=it.loan, days=7 if it.place["row"] == "A" else 3,
            propose="extend {loan}, which stands on shelf Z9", done="Done.",
        )  # fmt: skip

    service = library(planned(find, [LOAN, PLACE], "extend {loan} on {place}", told="extend {loan}, on the {place}"))
    env = environment(service, name="placed")
    tasks = made(env, "small", count=16)
    goals = [r["goal"] for t in tasks for r in t.agenda["requests"] if "place" in r["goal"]]
    assert goals and all(goal["place"] in PLACES for goal in goals)
    assert mean(expert(env, tasks, "small")) == 1
    assert ", on the shelf " in full_clause(service, "find", goals[0])
    weighed = library(planned(find, [LOAN, replace(PLACE, weighed=True)], "extend {loan} on {place}"))
    text = f"I will extend {goals[0]['loan']}, which stands on shelf Z9."
    assert not reading.conflicts(service, text, goals[0]) and reading.conflicts(weighed, text, goals[0])


def test_two_requests_are_never_about_one_record_of_the_users():
    for task in made(environment(library(), name="library-2"), "small", count=60):
        loans = [r["goal"]["loan"] for r in task.agenda["requests"] if "loan" in r["goal"]]
        assert len(loans) == len(set(loans))


def test_an_observation_is_read_as_json_through_the_view_or_in_compact_form():
    service = library(view=lambda tool, result: {"tool": tool, **result})
    assert service.read("find_reader", '{"tier": "gold"}') == {"tool": "find_reader", "tier": "gold"}
    assert service.read("find_reader", "tool find_reader; tier gold") == {"tool": "find_reader", "tier": "gold"}


def test_users_may_know_a_proposal_by_the_pattern_of_its_intent():
    def plan(it):
        raise AssertionError

    sell = planned(plan, [LOAN], "sell {loan}", heard=r"\bsell\b", name="sell")
    burn = planned(plan, [LOAN], "burn {loan}", heard=r"\bburn\b", name="burn")
    for known in (False, True):
        service = library(sell, burn, heard_in_proposals=known)
        assert service.means_another("I will burn loan LN-100.", "sell") is known
        assert not service.means_another("I will sell or burn loan LN-100.", "sell")
