"""In every writing intent some users say no to a right proposal, so that an agent that does not ask loses rewards."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from muarl.agents.idle import IdleAgent
from muarl.domains.generated import UserRequest
from muarl.domains.kit.requests import drops
from muarl.kit import Plan, environment, intent
from muarl_tools.checks.expert_plays import OF_ONE_INTENT, ExpertPlay, asking_cost, expert_plays
from support.kit import (
    LIBRARY,
    LOAN,
    SERVICES,
    ask_fee,
    expert,
    library_tables,
    made,
    mean,
    own_loan,
    play,
    said,
    service,
)


@intent(says=["extend {loan} by a week", "extend a loan"], slots=[LOAN])
def extend_by_a_week(it: Plan) -> None:
    own_loan(it)
    it.write("extend_loan", loan_id=it.loan, days=7, propose="extend loan {loan} by 7 days", done="It is extended.")


@intent(says=["keep {loan} for another fortnight", "keep a book"], slots=[LOAN])
def keep(it: Plan) -> None:
    own_loan(it)
    it.write("extend_loan", loan_id=it.loan, days=14, propose="extend loan {loan} by 14 days", done="You may keep it.")


NOTHING_CHANGES = environment(replace(LIBRARY, intents=(extend_by_a_week, keep)), name="nothing-changes")
"""Two writing intents without a slot about which users change their mind."""


def _one_loan_each(make):
    tables = library_tables(make)
    first = {loan["reader_id"]: key for key, loan in reversed(tables["loans"].items())}
    return tables | {"loans": {key: tables["loans"][key] for key in first.values()}}


ONE_RECORD = environment(
    replace(LIBRARY, intents=(extend_by_a_week, ask_fee), tables=_one_loan_each), name="one-record"
)
"""The same where nobody has another record to speak of."""


def second_thoughts(tasks, kind):
    return [r for t in tasks for r in t.agenda["requests"] if r["kind"] == kind and r["then"] is not None]


def drops_first(task):
    return (task.agenda["requests"][0]["then"] or {}).get("drop", False)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name != "hotel" else ())
        for name in (*SERVICES, "retail", "airline")
    ],
)
def test_some_users_of_every_writing_intent_have_second_thoughts(name):
    if name in SERVICES:
        proposing = {i.name for i in service(name).intents if "propose=" in _source(i.plan)}
    else:
        proposing = {"cancel", "modify_payment"} if name == "retail" else {"cancel", "bags"}
    for count in (30, 60, 90, 120, 180, 250):  # no more than it takes to meet all of them
        tasks = made(name, "tiny", "train", count)
        asked = {r["kind"] for t in tasks for r in t.agenda["requests"] if t.actions} & proposing
        steady = {kind for kind in asked if not second_thoughts(tasks, kind)}
        if asked == proposing and not steady:
            break
    assert len(asked) >= 2 and (name in SERVICES or asked == proposing)
    assert steady == set()


def _source(plan):
    return inspect.getsource(plan)


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_an_expert_that_never_asks_loses_where_no_slot_changes_and_one_that_asks_does_not(size):
    tasks = made(NOTHING_CHANGES, size, "train", 120)
    asked, unasked = expert(NOTHING_CHANGES, tasks, size), expert(NOTHING_CHANGES, tasks, size, skip_confirmation=1.0)
    assert mean(asked) == 1
    domain = NOTHING_CHANGES.make_domain(size)
    cost = asking_cost(tasks, expert_plays(domain, asked), expert_plays(domain, unasked))
    assert cost.due > 80 and cost.share > 0.15 and not cost.problem


def test_who_named_the_wrong_record_says_the_whole_request_again_and_gets_what_they_mean():
    tasks = made(NOTHING_CHANGES, "small", "train", 120)
    one = next(
        t for t in tasks if len(t.agenda["requests"]) == 1 and (t.agenda["requests"][0]["then"] or {}).get("loan")
    )
    meant = one.agenda["requests"][0]["then"]["loan"]
    assert [a.arguments["loan_id"] for a in one.actions if a.name == "extend_loan"] == [meant]
    (episode,) = expert(NOTHING_CHANGES, [one], "small")
    assert episode.reward == 1
    corrected = [text for text in said(episode, "user") if meant in text]
    assert len(corrected) == 1 and ("extend" in corrected[0] or "keep" in corrected[0])
    assert f"now you want to {'extend' if 'extend' in corrected[0] else 'keep'}" in one.scenario


def test_who_never_knows_the_id_describes_the_other_record_too():
    tasks = made("bank", "tiny", "train", 100)
    changed = [r for r in second_thoughts(tasks, "lock_card") if r["then"].get("card") not in (None, r["goal"]["card"])]
    assert changed and all("described card" in r["then"] for r in changed)
    assert all(r["then"]["described card"] != r["goal"]["described card"] for r in changed)


def test_who_has_nothing_to_change_drops_the_request_and_nothing_is_written():
    tasks = made(ONE_RECORD, "tiny", "train", 15)
    dropped = [t for t in tasks if t.agenda["requests"][0]["then"]]
    assert dropped and all(t.agenda["requests"][0]["then"] == {"drop": True} for t in dropped)
    assert not [a for t in dropped for a in t.actions if a.name == "extend_loan"]
    assert all("you drop this wish and want nothing changed for it" in t.scenario for t in dropped)
    assert mean(expert(ONE_RECORD, dropped, "tiny")) == 1
    assert mean(expert(ONE_RECORD, dropped, "tiny", skip_confirmation=1.0)) == 0


def test_some_who_drop_their_only_request_have_another_so_that_doing_nothing_is_not_worth_much():
    one = environment(replace(service("bank"), more_requests=()), name="one-request")
    dropped = [t for t in made(one, "tiny", "train", 100) if drops_first(t)]
    assert {len(t.agenda["requests"]) for t in dropped} == {1, 2}
    idle = mean(play(NOTHING_CHANGES, IdleAgent(), made(NOTHING_CHANGES, "tiny", "train", 120), "tiny"))
    assert idle < 0.25


def test_impostors_have_one_request():
    only = environment(
        replace(LIBRARY, variants={"done": 0.2, "impostor": 0.8}, intents=(extend_by_a_week, keep), more_requests=()),
        name="impostors",
    )
    impostors = [t for t in made(only, "small", count=60) if t.agenda["impostor"]]
    assert len(impostors) > 20 and {len(t.agenda["requests"]) for t in impostors} == {1}


def test_nobody_drops_their_only_request_where_the_policy_does_not_ask_for_consent():
    free = environment(replace(LIBRARY, consent=False, intents=(extend_by_a_week, keep)), name="free")
    requests = [t.agenda["requests"] for t in made(free, "small", count=80)]
    assert not [r for r in requests if len(r) == 1 and r[0]["then"]]


def test_which_requests_are_dropped():
    assert drops(UserRequest("extend", {}, then={"drop": True}, intent="extend"))
    assert not drops(UserRequest("extend", {}, then={"loan": "LN-104"}, intent="extend"))
    assert not drops(UserRequest("extend", {}, intent="extend"))


def _plays(tasks, lost):
    """As many tasks that are due, of which the first ``lost`` are lost without asking."""
    asked = [ExpertPlay(1.0, ("w",))] * len(tasks)
    return asked, [ExpertPlay(0.0 if n < lost else 1.0, ("w",)) for n in range(len(tasks))]


def _tasks(count, kind="extend"):
    task = made(NOTHING_CHANGES, "tiny", "train", 1)[0]
    return [replace(task, agenda={"requests": [{"kind": kind}]})] * count


@pytest.mark.parametrize(
    ("count", "lost", "fine"), [(378, 27, False), (200, 19, False), (200, 20, True), (19, 0, True)]
)
def test_what_asking_must_be_worth(count, lost, fine):
    """27 of 378, or 7%, is what a domain of two intents without slots that change came to before."""
    tasks = _tasks(count)
    cost = asking_cost(tasks, *_plays(tasks, lost))
    assert (cost.due, cost.lost, cost.share) == (count, lost, lost / count)
    assert (not cost.problem) == fine
    assert fine or f"never asking loses {lost} ({lost / count:.0%})" in cost.problem


def test_an_intent_in_which_asking_is_worth_nothing_is_named():
    many, few = _tasks(100), _tasks(OF_ONE_INTENT, "keep")
    asked, unasked = (a + b for a, b in zip(_plays(many, 50), _plays(few, 0), strict=True))
    cost = asking_cost([*many, *few], asked, unasked)
    assert cost.unpaid == {"keep": OF_ONE_INTENT}
    assert cost.problem == f"never asking loses nothing in some intents: keep (0 of {OF_ONE_INTENT})"
    asked, unasked = (a + b for a, b in zip(_plays(many, 50), _plays(few[1:], 0), strict=True))
    assert not asking_cost([*many, *few[1:]], asked, unasked).problem


def test_what_does_not_count_as_due():
    tasks = _tasks(3)
    asked = [ExpertPlay(0.0, ("w",)), ExpertPlay(1.0, ()), None]
    unasked = [ExpertPlay(0.0, ("w",)), ExpertPlay(1.0, ()), ExpertPlay(0.0, ("w",))]
    assert asking_cost(tasks, asked, unasked).due == 0
