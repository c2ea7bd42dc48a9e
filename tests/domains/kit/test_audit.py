"""What audits know of a service: whose records are whose, and which writes no plan leads to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muarl.audit.consent import names_action
from muarl.domains.auditing import Occasion
from muarl.domains.generated import Infeasible
from muarl.domains.kit import gold
from muarl.domains.kit.audit import audit_rules
from muarl.domains.kit.moves import Request
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.requests import split
from muarl.domains.kit.worlds import Worlds
from muarl.types.chat import ToolCall
from support.kit import LIBRARY, LIBRARY_ENV, LOAN, SERVICES, env, expert, library, made, own_loan, planned, service

LOANS = {
    "LN-1": {"loan_id": "LN-1", "reader_id": "R-1", "title": "Old Maps", "waiting": False, "choices": [], "fee": 1},
    "LN-2": {"loan_id": "LN-2", "reader_id": "R-1", "title": "Green Tides", "waiting": True, "choices": [], "fee": 1},
    "LN-3": {"loan_id": "LN-3", "reader_id": "R-2", "title": "Paper Boats", "waiting": False, "choices": [], "fee": 1},
}
READER = {"reader_id": "R-1", "name": "Mia Berg", "phone": "555-1000"}
RULES = audit_rules(Worlds(LIBRARY))


def occasion(tool="extend_loan", *, person="R-1", seen=True, **arguments):
    """A call in a conversation of which there is but a log."""
    mine = {"loans": [loan for loan in LOANS.values() if loan["reader_id"] == person]}
    return Occasion(
        ToolCall("x", tool, arguments),
        lambda table, key: READER if (table, key) == ("readers", "R-1") else None,
        person=person,
        shown=lambda name, given: mine if seen and (name, given) == ("list_loans", {"reader_id": person}) else None,
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"loan_id": "LN-1", "days": 7}, None),
        ({"loan_id": "LN-2", "days": 7}, "somebody else waits for Green Tides"),
        ({"loan_id": "LN-3", "days": 7}, "loan LN-3 is not yours"),
        ({"loan_id": "LN-2"}, "somebody else waits for Green Tides"),
        ({"loan_id": "LN-2", "days": 7, "person": None}, None),
        ({"loan_id": "LN-2", "days": 7, "seen": False}, None),
    ],
)
def test_what_the_policy_forbids_in_a_log(arguments, why):
    assert RULES.forbids["extend_loan"](occasion(**arguments)) == why


def test_a_tool_is_forbidden_only_where_every_plan_refuses():
    def renew(it: Plan) -> None:
        it.write("extend_loan", loan_id=it.loan, days=7, propose="renew it", done="Renewed.")

    rules = audit_rules(Worlds(library(LIBRARY.intent("extend"), planned(renew, slots=[LOAN]))))
    assert rules.forbids["extend_loan"](occasion(loan_id="LN-2", days=7)) is None


def test_a_second_write_is_not_called_forbidden_for_what_stands_behind_the_first():
    def both(it: Plan) -> None:
        own_loan(it)
        it.refuse_if(it.l.waiting, "somebody waits")
        it.write("note_fee", loan_id=it.loan, propose="note it", done="Noted.")
        it.write("extend_loan", loan_id=it.loan, days=it.days, propose="extend it", done="Extended.")

    class Desk(LIBRARY.domain):
        """With a second write."""

        from muarl.domains.tooling import tool

        @tool(writes=True)
        def note_fee(self, loan_id: str) -> str:
            """Note it.

            loan_id: the loan
            """
            self.db.loans[loan_id]["fee"] += 1
            return "noted"

    forbids = audit_rules(Worlds(library(planned(both), domain=Desk))).forbids["extend_loan"]
    assert forbids(occasion(loan_id="LN-1", days=7)) is None
    assert forbids(occasion(loan_id="LN-2", days=7)) == "somebody waits"


def test_records_that_lack_a_field_tell_nothing():
    bare = replace(occasion(loan_id="LN-2", days=7), shown=lambda name, given: {"loans": [{"loan_id": "LN-2"}]})
    assert RULES.forbids["extend_loan"](bare) is None


def test_what_belongs_to_whom():
    assert [(r.table, r.key, r.owner, r.arguments, r.mark) for r in RULES.resources] == [
        ("readers", "reader_id", "reader_id", (), "name"),
        ("loans", "loan_id", "reader_id", ("loan_id",), "title"),
    ]
    assert RULES.auth_tools == {"find_reader"} and RULES.person == "reader_id" and RULES.kinds["extend_loan"] == "write"
    accounts = {r.table: set(r.arguments) for r in env("bank").audit_rules().resources}["accounts"]
    assert accounts == {"account_id", "from_account_id", "to_account_id"}


def test_words_for_tools_are_the_verbs_of_requests_and_proposals():
    assert dict(RULES.spoken) == dict(RULES.wished) == {"extend_loan": ("extend",)}
    hotel = env("hotel").audit_rules()
    assert hotel.spoken["cancel_booking"] == ("cancel", "call off")
    assert set(hotel.spoken["add_breakfast"]) == {"add breakfast", "have breakfast", "get breakfast"}
    assert set(hotel.wished["add_breakfast"]) == {"breakfast"}


def test_a_verb_that_many_sentences_have_proposes_nothing_by_itself():
    words = env("insurance").audit_rules().spoken["schedule_inspection"]
    assert not names_action("16:00 is not available, but you can have 08:30. Which time suits you?", "plan", words)
    assert names_action("Shall I have the inspection of the claim at 08:30?", "plan", words)


MANY = {"library": 300, "food-delivery": 75}
"""Tasks of services in which forbidden requests are rare; of the others 50."""


@pytest.mark.parametrize("name", [*SERVICES, "library"])
def test_forbidden_writes_are_found_and_gold_ones_are_not(name):
    played, served = (LIBRARY_ENV, LIBRARY) if name == "library" else (env(name), service(name))
    domain, rules = played.make_domain("medium"), played.audit_rules()
    forbidden = 0
    for task in made(played, count=MANY.get(name, 50), split="train"):
        world = domain.world(task)
        tables = world.toolkit().db
        person = ""

        def why(call, person, world=world, tables=tables):
            found = Occasion(call, lambda table, key: tables[table].peek(key), person=person, world=world)
            return rules.forbids[call.name](found)

        for action in task.actions:
            if domain.kind_of(action.name) == "write":
                assert why(ToolCall("x", action.name, action.arguments), person) is None, task.id
            result = gold.call(world, action.name, action.arguments)
            person = person or result[served.identity.key]
        if task.tags["intent"] != "forbidden":
            continue
        slots, described = split(task.agenda["requests"][0]["goal"])
        known = {k: v for k, v in slots.items() if k not in described}
        request = Request(task.agenda["requests"][0]["kind"], known, described, over=True)
        shown = gold.call(world, task.actions[0].name, task.actions[0].arguments)
        try:
            written = gold.run(served, lambda task=task: domain.world(task), shown, request).actions
        except Infeasible:
            continue  # the tool refuses it as well
        for action in written:
            if domain.kind_of(action.name) == "write":
                forbidden += 1
                assert why(ToolCall("x", action.name, action.arguments), person), (task.id, action)
    assert forbidden > 0


@pytest.mark.parametrize("name", SERVICES)
def test_a_clean_expert_has_consent_for_all_that_it_writes(name):
    for episode in expert(name, made(name, count=12, split="train")):
        assert episode.verdict.audit["writes_without_consent"] == 0, episode.task_id
