"""Tools that refuse for the time being, and users who are taken at their word: an office with a locked cabinet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain
from muarl.domains.kit.audit import audit_rules
from muarl.domains.kit.declaration import Fact, Identity, Remedy, Slot, intent, of, pattern, rows
from muarl.domains.kit.moves import Request, WriteRefusal
from muarl.domains.kit.plan import Plan, next_move
from muarl.domains.kit.reading import identity_in
from muarl.domains.kit.several import AnyServiceExpert, merged_rules
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.kit.worlds import Worlds
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tooling import tool
from muarl.environments.service import environment
from muarl.environments.services import shared_environment
from muarl.kit import Maker, Service
from muarl.types.chat import Message, ToolCall, ToolSpec
from support.kit import LIBRARY, calls, expert, made, mean, planned, said


class Office(Domain):
    """An office whose cabinet may be locked, and whose shelf may be full."""

    name = "office"
    policy = "Unlock the cabinet where it is locked. Ask for the code before papers are burnt."

    @tool(writes=True)
    def unlock(self) -> dict[str, Any]:
        """Unlock the cabinet."""
        self.db.cabinet["cabinet"]["locked"] = False
        return {"unlocked": True}

    @tool
    def look_up(self, paper: str) -> dict[str, Any]:
        """Look a paper up.

        paper: its number
        """
        self._open()
        return dict(self.db.papers[paper])

    @tool
    def who_is_in(self) -> dict[str, Any]:
        """Who has signed in."""
        if not self.db.cabinet["cabinet"]["inside"]:
            raise ValueError("nobody is in")
        return {"inside": list(self.db.cabinet["cabinet"]["inside"])}

    @tool(writes=True)
    def sign_in(self, name: str, code: str) -> dict[str, Any]:
        """Sign somebody in.

        name: who
        code: their code
        """
        if self.db.people[name]["code"] != code:
            raise ValueError("wrong code")
        self.db.cabinet["cabinet"]["inside"] = [*self.db.cabinet["cabinet"]["inside"], name]
        return {"name": name}

    @tool(writes=True)
    def file_paper(self, paper: str, shelf: str) -> dict[str, Any]:
        """Put a paper on a shelf.

        paper: its number
        shelf: the shelf
        """
        self._open()
        if self.db.shelves[shelf]["full"]:
            raise ValueError(f"shelf {shelf} is full")
        self.db.papers[paper]["shelf"] = shelf
        return dict(self.db.papers[paper])

    @tool(writes=True)
    def burn_paper(self, paper: str) -> dict[str, Any]:
        """Burn a paper.

        paper: its number
        """
        self._open()
        return dict(self.db.papers.pop(paper))

    def _open(self) -> None:
        if self.db.cabinet["cabinet"]["locked"]:
            raise ValueError("the cabinet is locked")


def tables(make: Maker) -> dict[str, dict[str, Any]]:
    people = {
        name: {"name": name, "code": f"c{make.rng.randint(100, 999)}"}
        for name in (make.name(), make.name(), make.name())
    }
    papers = {
        number: {"paper": number, "owner": make.rng.choice(list(people)), "shelf": "none"}
        for number in (make.id("paper", "P-", 3) for _ in range(8))
    }
    shelves = {shelf: {"shelf": shelf, "full": make.chance(0.3)} for shelf in ("S-1", "S-2", "S-3", "S-4")}
    cabinet = {"cabinet": {"locked": make.chance(0.6), "inside": []}}
    return {"people": people, "papers": papers, "shelves": shelves, "cabinet": cabinet}


IDENTITY = Identity(
    tool="",
    table="people",
    key="name",
    facts=(Fact("name", "person", tells="My name is {name}.", cue="i am|my name is"),),
    ask="May I have your name?",
    say=["I am {name}.", "My name is {name}."],
)
PAPER = Slot(
    "paper", pattern(r"P-\d{3}"), ask="Which paper is it?", phrase="paper {}", draw=rows("papers", "paper"),
    change="Actually, paper {}.",
)  # fmt: skip
SHELF = Slot("shelf", pattern(r"S-\d"), ask="Which shelf?", phrase="shelf {}", draw=rows("shelves", "shelf"))
CODE = Slot(
    "code", pattern(r"c\d{3}"), ask="What is your code?", draw=of(lambda drawn: [drawn.user], "code"), wrong=True
)  # fmt: skip


@intent(says=["file {paper} on {shelf}", "file {paper}"], slots=[PAPER, SHELF])
def file_paper(it: Plan) -> None:
    it.p = it.look("look_up", paper=it.paper)
    filed = it.write(
        "file_paper", paper=it.paper, shelf=it.shelf, propose="file {paper} on {shelf}", done="It is on {shelf}.",
        fails="is full",
    )  # fmt: skip
    if not filed:
        it.unavailable(SHELF)


@intent(says=["burn {paper}", "burn a paper"], slots=[PAPER, CODE])
def burn_paper(it: Plan) -> None:
    it.inside = it.peek("who_is_in")
    if it.inside is None or it.user.name not in it.inside.inside:
        if "wrong code" in it.do("sign_in", name=it.user.name, code=it.code, fails="wrong code"):
            it.missing(CODE, "That code is wrong.")
    it.write("burn_paper", paper=it.paper, propose="burn {paper}", done="It is burnt.")


OFFICE = Service(
    domain=Office,
    about="an office",
    today="2026-03-14",
    identity=IDENTITY,
    intents=(file_paper, burn_paper),
    tables=tables,
    outside=(),
    free_writes=("sign_in",),
    remedies=(Remedy("cabinet is locked", "unlock"),),
    apart=(frozenset({"file_paper", "burn_paper"}),),
    more_requests=(0.05,),  # where two are wanted, many worlds are drawn in vain
)
ENV = environment(OFFICE, name="office")


@pytest.fixture(scope="module")
def tasks():
    return made(ENV, "small", "train", 31)


def locked(task):
    return task.database.tables["cabinet"]["cabinet"]["locked"]


def names(task):
    return [action.name for action in task.actions]


def test_the_expert_does_what_helps_and_tries_again_with_the_yes_that_it_has(tasks):
    for task, episode in zip(tasks, expert(ENV, tasks, "small"), strict=True):
        assert episode.reward == 1, task.id
        assert [c.name for c in calls(episode)].count("unlock") == (locked(task) and "unlock" in names(task))
        assert episode.verdict.audit["writes_without_consent"] == 0
    assert any(map(locked, tasks)) and not all(map(locked, tasks))


def test_gold_actions_hold_what_helps_and_no_call_that_fails(tasks):
    for task in tasks:
        world = ENV.make_domain("small").world(task)
        assert not [a for a in task.actions if world.call("assistant", _call(a)).error], task.id
        assert "who_is_in" not in names(task), "it fails where nobody is in"
        needs = {"look_up", "file_paper", "burn_paper"} & set(names(task))
        assert ("unlock" in names(task)) == (locked(task) and bool(needs))


def _call(action):
    return ToolCall("", action.name, dict(action.arguments))


def test_a_refusal_after_the_yes_takes_the_request_up_again(tasks):
    full = [t for t in tasks if t.tags["intent"] == "file_paper_unavailable"]
    assert full
    for task, episode in zip(full, expert(ENV, full, "small"), strict=True):
        assert episode.reward == 1, task.id
        assert len(calls(episode, "file_paper")) >= 2
        assert any("not available" in text for text in said(episode))


def test_users_may_get_a_slot_wrong_at_first(tasks):
    wrong = [t for t in tasks if t.agenda["wrong"]]
    assert wrong and all("burn_paper" in [r["kind"] for r in t.agenda["requests"]] for t in wrong)
    for task, episode in zip(wrong, expert(ENV, wrong, "small"), strict=True):
        assert episode.reward == 1 and any("That code is wrong." in text for text in said(episode))
        given = [c.arguments["code"] for c in calls(episode, "sign_in")]
        assert given[0] == task.agenda["wrong"]["code"] != given[-1]
        assert f"At first you give the code {given[0]} by mistake" in task.scenario


def test_a_conversation_never_has_two_requests_that_are_apart(tasks):
    assert all(len(t.agenda["requests"]) == 1 for t in tasks)


def test_users_are_taken_at_their_word_and_only_at_that(tasks):
    assert all(list(t.agenda["identity"]) == ["name"] for t in tasks)
    assert identity_in(OFFICE, "Send it to Mia Berg. I am Omar Silva.", asked=False) == {"name": "Omar Silva"}
    assert identity_in(OFFICE, "Send it to Mia Berg.", asked=False) == {}
    assert identity_in(OFFICE, "Mia Berg.") == {"name": "Mia Berg"}
    rules = audit_rules(Worlds(OFFICE))
    assert rules.auth_tools == frozenset() and rules.free_writes == {"sign_in", "unlock"}


def test_a_refusal_is_false_and_can_be_looked_into_until_the_request_changes():
    refused = WriteRefusal("shelf S-1 is full")
    assert not refused and "full" in refused
    request = Request(
        "file_paper", {"paper": "P-1", "shelf": "S-1"}, written=[{"a": 1}, refused, WriteRefusal("again")]
    )
    request.forget_refusals()
    assert request.written == [{"a": 1}]


def test_a_refused_write_is_not_what_texts_call_the_result():
    def plan(it: Plan) -> None:
        it.write("file_paper", paper="P-1", shelf="S-1", propose="file it", done="It is {result.shelf}.", fails="full")
        it.then("file_paper", paper="P-1", shelf="S-2", done="It lies on {result.shelf}.")

    served = planned(plan, ())
    written = [WriteRefusal("full"), {"shelf": "S-2"}]
    move = next_move(served, Request(served.name, written=written), {}, {}, "2026-03-14")
    assert (move.kind, move.texts, move.known["result"]) == (
        "finished",
        ("It lies on {result.shelf}.",),
        {"shelf": "S-2"},
    )


def test_what_is_declared_is_checked():
    with pytest.raises(ConfigError, match="remedies: the domain has no tool 'kick'"):
        replace(OFFICE, remedies=(Remedy("locked", "kick"),))
    with pytest.raises(ConfigError, match="free_writes: the domain has no tool 'kick'"):
        replace(OFFICE, free_writes=("kick",))
    with pytest.raises(ConfigError, match="is no regular expression"):
        Remedy("(", "unlock")


# several services


def shared():
    def domain(size):
        return Both()

    return shared_environment({OFFICE: 1, LIBRARY: 1}, name="both", domain=domain, about="Two places.")


class Both(Domain):
    """The domain of either service, as a task needs it."""

    name = "both"
    policy = "Serve."

    def world(self, task=None):
        service = OFFICE if task is None or "cabinet" in task.database.tables else LIBRARY
        return service.domain(database={}).world(task)

    def specs_for(self, task):
        service = OFFICE if "cabinet" in task.database.tables else LIBRARY
        return service.domain(database={}).tool_specs()

    def kind_of(self, tool_name):
        return {**OFFICE.tool_kinds, **LIBRARY.tool_kinds}[tool_name]


def test_tasks_of_several_services_are_drawn_by_share_and_served_by_the_right_expert():
    both = shared()
    tasks = made(both, "small", "train", 20)
    assert {t.agenda["service"] for t in tasks} == {"office", "library"}
    assert {t.domain for t in tasks} == {"both"} and len({t.id for t in tasks}) == 20
    assert mean(expert(both, tasks, "small")) == 1
    assert {"Old Maps", "S-1"} <= set(both.entities())


def test_without_tools_the_first_words_say_which_service_it_is():
    guess = AnyServiceExpert((OFFICE, LIBRARY), seed=0, error_profile=ErrorProfile())
    assert guess.act([]).content
    assert "name and phone" in (guess.act([Message("user", "I want to extend a loan.")]).content or "")
    other = AnyServiceExpert((OFFICE, LIBRARY), seed=0)
    other.offer([ToolSpec("unlock", "", {})])
    assert "your name?" in (other.act([Message("user", "I want to burn a paper.")]).content or "")


def test_audit_rules_of_several_services_keep_what_each_says_of_its_tools():
    rules = merged_rules([audit_rules(TaskMaker(s).worlds) for s in (OFFICE, LIBRARY)])
    assert rules.auth_tools == {"find_reader"} and rules.person == "reader_id"
    assert {"look_up", "burn_paper"} <= rules.open_tools and "list_loans" not in rules.open_tools
    assert {"burn_paper", "extend_loan"} <= set(rules.forbids) and set(rules.spoken) >= {"burn_paper", "extend_loan"}
    with pytest.raises(ConfigError, match="by one field"):
        merged_rules([AuditRules(auth_tools=frozenset({"a"})), AuditRules(auth_tools=frozenset({"b"}), person="id")])
