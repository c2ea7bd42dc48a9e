"""Services without people, whose tools run on a server and answer in texts: a notebook, with its server away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.auditing import Occasion
from muarl.domains.base import Domain
from muarl.domains.generated import split_of
from muarl.domains.kit import reading
from muarl.domains.kit.audit import audit_rules
from muarl.domains.kit.expert import ServiceExpert
from muarl.domains.kit.moves import Request
from muarl.domains.kit.plan import next_move
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.kit.worlds import Worlds
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tooling import tool
from muarl.kit import (
    Plan,
    RecordDescription,
    Service,
    Slot,
    WorldSize,
    environment,
    intent,
    names,
    of,
    one_of,
    pattern,
    rows,
)
from muarl.language.acts import hear
from muarl.types.chat import Message, ToolCall
from support.kit import calls, made, mean, play, said

TEXTS = ("the milk is sour", "look up the plan", "call Otto", "the key is lost")


class Rehearsal(Domain):
    """The notebook in this process."""

    name = "notebook"

    @tool
    def read_page(self, page: str) -> str:
        """Read a page."""
        if page not in self.db.pages:
            raise ValueError(f"no page {page}")
        return "\n".join(self.db.pages[page]["lines"])

    @tool
    def list_pages(self) -> str:
        """All pages."""
        return "\n".join(sorted(self.db.pages))

    @tool(writes=True)
    def add_page(self, page: str) -> str:
        """Add a page."""
        self.db.pages[page] = {"page": page, "topic": "", "lines": []}
        return "added"

    @tool(writes=True)
    def write_line(self, page: str, line: str) -> str:
        """Write a line."""
        self.db.pages[page]["lines"].append(line)
        return "written"


class Notebook(Domain):
    """The notebook, as a server keeps it."""

    name = "notebook"
    policy = "Keep the notebook."

    @tool
    def read_page(self, page: str) -> str:
        """Read a page."""
        raise InfrastructureError("the server is away", boundary="world")

    @tool
    def list_pages(self) -> str:
        """All pages."""
        raise InfrastructureError("the server is away", boundary="world")

    @tool(writes=True)
    def add_page(self, page: str) -> str:
        """Add a page."""
        raise InfrastructureError("the server is away", boundary="world")

    @tool(writes=True)
    def write_line(self, page: str, line: str) -> str:
        """Write a line."""
        raise InfrastructureError("the server is away", boundary="world")


def tables(make):
    rng = make.rng
    found = make.some("page", lambda: f"{rng.choice('abcdefghij')}-{rng.randint(10, 99)}.note", 7)
    pages = {
        page: {"page": page, "topic": topic, "lines": [f"topic: {topic}", *(["locked"] if make.chance(0.2) else [])]}
        for page, topic in zip(found[3:], ("tea", "rent", "tools", "trips"), strict=False)
    }
    return {"pages": pages, "free": {page: {"page": page} for page in found[:3]}}


def by_topic(it: Plan, topic: str) -> list[str]:
    pages = it.look("list_pages").split("\n")
    return [page for page in pages if f"topic: {topic}" in it.look("read_page", page=page).split("\n")]


PAGE = Slot(
    "page",
    pattern(r"[a-z]-\d\d\.note"),
    ask="Which page is it?",
    draw=rows("pages", "page"),
    described=RecordDescription(
        kind=names(["tea", "rent", "tools", "trips"]),
        match="topic",
        find=by_topic,
        phrase="the page about {}",
        say="The one about {}.",
    ),
)
NEW_PAGE = replace(
    PAGE,
    name="new_page",
    ask="What should the new page be called?",
    described=None,
    draw=of(lambda drawn: [drawn.tables[t][page] for t in ("pages", "free") for page in drawn.tables[t]], "page"),
)
LINE = Slot(
    "line", "quoted", ask="What should it say?", change="Actually, {}.", draw=one_of(*TEXTS), guess=("nothing yet",)
)  # fmt: skip


@intent(says=["write {line} on {page}", "write something on {page}", "write on a page"], slots=[PAGE, LINE])
def jot(it: Plan) -> None:
    it.refuse_if("locked" in it.look("read_page", page=it.page).split("\n"), "page {page} is locked")
    it.write("write_line", page=it.page, line=it.line, propose="write {line} on {page}", done="It is on {page}.")


@intent(says=["start the page {new_page} with {line}", "start a new page"], slots=[NEW_PAGE, LINE])
def start(it: Plan) -> None:
    taken = it.new_page in it.look("list_pages").split("\n")
    it.unavailable_if(taken, NEW_PAGE, why="a page {new_page} already exists")
    it.write("add_page", page=it.new_page, propose="start the page {new_page} with {line}", done="There it is.")
    it.then("write_line", page=it.new_page, line=it.line)


@intent(says=["look up the topic of {page}", "look up a topic"], slots=[PAGE])
def ask_topic(it: Plan) -> None:
    it.first = it.look("read_page", page=it.page).split("\n")[0]
    if not it.first.startswith("topic: "):
        it.missing(PAGE)
    it.topic = it.first.removeprefix("topic: ")
    it.answer("It is about {topic}.", tell="{topic}")


SERVICE = Service(
    domain=Notebook,
    rehearsal=Rehearsal,
    about="a notebook that a team shares",
    today="2026-03-14",
    intents=(jot, start, ask_topic),
    tables=tables,
    sizes=(WorldSize("tiny", 1, 1, tiny=True), WorldSize("large", 1, 1)),
    vocabulary=("topic: ",),
)
ENV = environment(SERVICE, domain=lambda size: Rehearsal(policy="Keep the notebook."))
"""The notebook with its server's tools in this process, so that episodes can be played."""


def expert(tasks, **errors):
    return play(ENV, ExpertAgent(ErrorProfile(**errors), make=ENV.expert), tasks, "large")


def test_tasks_are_made_without_the_server():
    assert ENV.sizes == ("tiny", "large")
    tasks = made(ENV, "large", "train", 120)
    assert {t.tags["intent"] for t in tasks} >= {"jot", "start", "start_unavailable", "ask_topic", "forbidden"}
    assert not any(t.tags["intent"] in ("outside", "impostor") for t in tasks), "there is nobody to hand over to"
    task = next(t for t in tasks if t.tags["intent"] == "start")
    assert [a.name for a in task.actions] == ["list_pages", "add_page", "write_line"]


def test_the_clean_expert_solves_everything_with_one_yes_for_two_calls():
    tasks = made(ENV, "large", "train", 120)
    episodes = expert(tasks)
    assert mean(episodes) == 1
    assert not any(e.verdict.audit["writes_without_consent"] + e.verdict.audit["tool_errors"] for e in episodes)
    task, episode = next((t, e) for t, e in zip(tasks, episodes, strict=True) if t.tags["intent"] == "start")
    assert [c.name for c in calls(episode)][-2:] == ["add_page", "write_line"]
    assert sum("new_page" not in text and "start the page" in text for text in said(episode)) == 1 + bool(
        task.agenda["requests"][0]["then"]
    )


def test_splits_share_no_page():
    def pages(split):
        found = set()
        for task in made(ENV, "large", split, 60):
            for request in task.agenda["requests"]:
                found |= {v for k, v in request["goal"].items() if k in ("page", "new_page")}
        assert all(split_of("page", page) == split for page in found)
        return found

    assert pages("train") and pages("validation") and pages("test")


def test_no_two_requests_of_a_task_are_about_one_page():
    for task in made(ENV, "large", "train", 120):
        named = [
            {
                goal.get(slot)
                for goal in (r["goal"], r["then"] or {}, r["fallback"] or {})
                for slot in ("page", "new_page")
            }
            for r in task.agenda["requests"]
        ]
        assert len(named) == 1 or not set.intersection(*named) - {None}


def test_another_value_may_be_chosen_where_no_options_can_be_told():
    task = next(t for t in made(ENV, "large", "train", 120) if t.tags["intent"] == "start_unavailable")
    (request,) = task.agenda["requests"]
    assert request["fallback"]["new_page"] != request["goal"]["new_page"]
    (episode,) = expert([task])
    assert any(f"a page {request['goal']['new_page']} already exists" in text for text in said(episode))
    assert hear("I'm afraid a page a-10.note already exists. What should it be called?") >= {"unavailable"}


def test_a_quotation_is_a_value_and_nothing_else():
    assert SERVICE.intents_in('Write "look up the plan" on a-10.note.') == ["jot"]
    found = reading.read_slots(SERVICE, 'Write "look at b-20.note" on a-10.note.', ["page", "line"])
    assert found == {"page": "a-10.note", "line": "look at b-20.note"}
    assert SERVICE.show("line", "call Otto") == '"call Otto"'


def test_a_record_may_be_found_by_several_look_ups():
    seen = {"list_pages {}": "a-10.note\nb-20.note", 'read_page {"page": "a-10.note"}': "topic: tea"}
    request = Request("ask_topic", {}, {"page": "rent"})
    move = next_move(ask_topic, request, seen, {}, SERVICE.today)
    assert (move.kind, move.arguments) == ("call", {"page": "b-20.note"})
    seen['read_page {"page": "b-20.note"}'] = "topic: rent"
    assert next_move(ask_topic, request, seen, {}, SERVICE.today).tell == ("{topic}",)
    seen['read_page {"page": "b-20.note"}'] = "topic: tea"
    assert next_move(ask_topic, Request("ask_topic", {}, {"page": "tea"}), seen, {}, SERVICE.today).kind == "missing"


def test_what_a_look_up_does_not_show_is_asked_for_again():
    move = next_move(
        ask_topic, Request("ask_topic", {"page": "a-10.note"}), {'read_page {"page": "a-10.note"}': ""}, {}, ""
    )
    assert (move.kind, move.slot) == ("missing", "page")


def test_a_call_that_follows_nothing_is_told():
    @intent(says="write", slots=[PAGE])
    def rash(it: Plan) -> None:
        it.then("write_line", page=it.page, line="x")

    with pytest.raises(ConfigError, match="rash calls it.then before it.write"):
        next_move(rash, Request("rash", {"page": "a-10.note"}), {}, {}, "")


def test_errors_of_experts_without_ids_and_transfers():
    single = [t for t in made(ENV, "large", "train", 120) if t.tags["intent"] in ("jot", "ask_topic")]
    tasks = [t for t in single if not t.agenda["requests"][0]["unknown"]]
    for episode in expert(tasks, wrong_id=1.0):
        asked = [c.arguments["page"] for c in calls(episode, "read_page") if "page" in c.arguments]
        assert any(not page.endswith(".note") for page in asked), "a name is cut short, and then got right"
    assert mean(expert(tasks, wrong_id=1.0)) == 1
    for episode in expert(tasks, needless_transfer=1.0):
        assert not calls(episode) and any("I cannot help you with that" in text for text in said(episode))


def test_a_careless_expert_takes_for_granted_what_the_author_says():
    agent = ServiceExpert(SERVICE, seed=0, error_profile=ErrorProfile(guess=1.0))
    agent.act([Message("user", "I want to write something on a-10.note.")])
    proposal = agent.act([Message("tool", "topic: tea", tool_call_id="call_1")])
    assert 'write "nothing yet" on a-10.note' in proposal.content


def test_observations_are_read_as_texts_unless_they_are_json():
    assert SERVICE.read("find", "title a; status b") == "title a; status b"
    assert SERVICE.read("find", '{"a": 1}') == {"a": 1}


def test_what_texts_show_is_known_to_audits():
    forbids = audit_rules(Worlds(replace(SERVICE, intents=(jot,)))).forbids["write_line"]

    def why(shown):
        call = ToolCall("x", "write_line", {"page": "a-10.note", "line": "x"})
        return forbids(Occasion(call, lambda table, key: None, shown=lambda name, given: shown))

    assert why("topic: tea\nlocked") == "page a-10.note is locked"
    assert why("topic: tea") is None and why(None) is None


def test_unknown_sizes_are_told_and_the_vocabulary_is_in_the_words():
    with pytest.raises(ValueError, match="size must be one of tiny, large, not 'small'"):
        TaskMaker(SERVICE).iter_tasks("train", size="small")
    assert "topic: " in ENV.phrases() and "the milk is sour" in ENV.entities()
