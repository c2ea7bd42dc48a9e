"""The ledger: what an answer may not say, given what was said before."""

from __future__ import annotations

import pytest

from muarl.domains.imagined.ledger import Ledger
from muarl.domains.imagined.scenario import read_scenario
from support.imagined import folder


@pytest.fixture
def tools(tmp_path):
    return read_scenario(folder(tmp_path)).by_name


@pytest.fixture
def ledger(tools):
    made = Ledger(frozenset({"box_id", "owner_id"}))
    made.keep(tools["get_box"], {"box_id": "B1"}, box("B1", seen=3))
    return made


def box(name, shelf="top", weight=2, owner="O1", **more):
    return {"box_id": name, "owner_id": owner, "shelf": shelf, "weight": weight, **more}


def problems(ledger, tools, tool, arguments, result):
    return "; ".join(ledger.problems(tools[tool], arguments, result))


def test_reads_agree_with_what_was_said(ledger, tools):
    look = {"box_id": "B1"}
    assert not problems(ledger, tools, "get_box", look, box("B1"))
    assert not problems(ledger, tools, "get_box", look, box("B1", shelf="TOP ", weight=2.0, seen=9)), "seen may differ"
    wrong = problems(ledger, tools, "get_box", look, box("B1", shelf="low"))
    assert wrong == 'box_id B1: shelf was "top" and nothing has changed it since, but is "low" here'
    assert "owner_id" in problems(ledger, tools, "get_box", look, box("B1", owner="O2"))
    assert "weight" in problems(ledger, tools, "list_boxes", {"owner_id": "O1"}, {"boxes": [box("B1", weight=3)]})


def test_an_answer_is_about_what_was_asked_for(ledger, tools):
    assert "box_id" in problems(ledger, tools, "get_box", {"box_id": "B2"}, box("B3"))
    assert "O2" in problems(ledger, tools, "list_boxes", {"owner_id": "O1"}, {"boxes": [box("B2", owner="O2")]})
    assert "shelf is" in problems(ledger, tools, "find_box", {"shelf": "low"}, box("B2", shelf="mid"))
    assert not problems(ledger, tools, "find_box", {"shelf": "LOW"}, box("B2", shelf="low"))
    twice = {"boxes": [box("B2"), box("B2", weight=5)]}
    assert "stands there twice" in problems(ledger, tools, "list_boxes", {"owner_id": "O1"}, twice)


def test_writes_change_what_they_name_and_nothing_else(ledger, tools):
    move = {"box_id": "B1", "shelf": "low"}
    assert not problems(ledger, tools, "move_box", move, box("B1", shelf="low"))
    assert not problems(ledger, tools, "move_box", move, box("B1", shelf="low", weight=3)), "it is about this box"
    assert "shelf is" in problems(ledger, tools, "move_box", move, box("B1", shelf="mid"))
    assert "owner_id" in problems(ledger, tools, "move_box", move, box("B1", shelf="low", owner="O9"))
    assert "box_id" in problems(ledger, tools, "move_box", {"box_id": "B2", "shelf": "low"}, box("B1", shelf="low"))
    ledger.keep(tools["move_box"], move, box("B1", shelf="low"))
    assert ledger.events[-1].what == "changed"
    assert not problems(ledger, tools, "get_box", {"box_id": "B1"}, box("B1", shelf="low"))
    assert problems(ledger, tools, "get_box", {"box_id": "B1"}, box("B1", shelf="top"))


def test_what_a_write_names_without_showing_it_may_have_changed_once(ledger, tools):
    ledger.keep(tools["get_box"], {"box_id": "B3"}, box("B3"))
    ledger.keep(tools["swap_boxes"], {"first": "B1", "second": "B2"}, {"done": True})
    assert "(as it was before the last change" in ledger.text()
    assert not problems(ledger, tools, "get_box", {"box_id": "B1"}, box("B1", shelf="low"))
    assert problems(ledger, tools, "get_box", {"box_id": "B3"}, box("B3", shelf="low")), "B3 was not named"
    assert problems(ledger, tools, "get_box", {"box_id": "B1"}, box("B1", owner="O2")), "ids never change by themselves"
    ledger.keep(tools["get_box"], {"box_id": "B1"}, box("B1", shelf="low"))
    assert problems(ledger, tools, "get_box", {"box_id": "B1"}, box("B1", shelf="top"))


def test_what_is_created_is_new(ledger, tools):
    order = {"owner_id": "O1", "shelf": "low"}
    assert not problems(ledger, tools, "new_box", order, box("B7", shelf="low"))
    assert "exists already" in problems(ledger, tools, "new_box", order, box("B1", shelf="low"))
    ledger.keep(tools["new_box"], order, box("B7", shelf="low"))
    assert ledger.events[-1].what == "created" and "created by new_box" in ledger.text()
    assert problems(ledger, tools, "get_box", {"box_id": "B7"}, box("B7", shelf="mid"))


def test_what_exists_is_found_and_what_was_not_found_stays_missing(ledger, tools):
    assert "exists" in ledger.error_problem(tools["get_box"], {"box_id": "B1"})
    assert "O1 exists" in ledger.error_problem(tools["list_boxes"], {"owner_id": "O1"}), "a box names its owner"
    assert ledger.error_problem(tools["get_box"], {"box_id": "B2"}) is None
    assert "fits what was asked for" in ledger.error_problem(tools["find_box"], {"shelf": "Top"})
    assert ledger.error_problem(tools["move_box"], {"box_id": "B1", "shelf": "low"}) is None, "writes may always fail"
    ledger.keep_error(tools["get_box"], {"box_id": "B2"}, "no such box")
    assert "no such box" in problems(ledger, tools, "get_box", {"box_id": "B2"}, box("B2"))
    assert "B2" in ledger.text()
    ledger.keep(tools["new_box"], {"owner_id": "O1", "shelf": "low"}, box("B2", shelf="low"))
    assert not problems(ledger, tools, "get_box", {"box_id": "B2"}, box("B2", shelf="low"))


def test_lists_stay_whole(ledger, tools):
    ledger.keep(tools["list_boxes"], {"owner_id": "O1"}, {"boxes": [box("B1"), box("B2")]})
    lost = problems(ledger, tools, "list_boxes", {"owner_id": "O1"}, {"boxes": [box("B1")]})
    assert lost == "box_id B2 belongs to this list and is missing from it"
    assert "was not among what list_boxes listed" in problems(ledger, tools, "get_box", {"box_id": "B5"}, box("B5"))
    assert not problems(ledger, tools, "get_box", {"box_id": "B5"}, box("B5", owner="O2"))
    ledger.keep(tools["new_box"], {"owner_id": "O1", "shelf": "low"}, box("B6", shelf="low"))
    assert not problems(ledger, tools, "get_box", {"box_id": "B6"}, box("B6", shelf="low"))
    again = {"boxes": [box("B1"), box("B2")]}
    assert "B6 belongs" in problems(ledger, tools, "list_boxes", {"owner_id": "O1"}, again)
    assert not problems(
        ledger, tools, "list_boxes", {"owner_id": "O1"}, {"boxes": [*again["boxes"], box("B6", shelf="low")]}
    )


def test_records_within_records_are_known_too(ledger, tools):
    ledger.keep(tools["get_owner"], {"owner_id": "O1"}, {"owner_id": "O1", "boxes": [box("B1"), box("B2")]})
    assert ("box_id", "B2") in ledger.records and ledger.records[("owner_id", "O1")]["boxes"] == ["B1", "B2"]
    assert not problems(
        ledger, tools, "get_owner", {"owner_id": "O1"}, {"owner_id": "O1", "boxes": [box("B2"), box("B1")]}
    )
    fewer = problems(ledger, tools, "get_owner", {"owner_id": "O1"}, {"owner_id": "O1", "boxes": [box("B1")]})
    assert "boxes was" in fewer


def test_the_same_read_has_the_same_answer_until_something_is_written(ledger, tools):
    assert ledger.answer_to(tools["get_box"], {"box_id": "B1"})["shelf"] == "top"
    assert ledger.answer_to(tools["get_box"], {"box_id": "B2"}) is None
    ledger.keep(tools["move_box"], {"box_id": "B1", "shelf": "low"}, box("B1", shelf="low"))
    assert ledger.answer_to(tools["get_box"], {"box_id": "B1"}) is None


def test_the_text_is_bounded_and_keeps_what_was_touched_last(ledger, tools):
    for n in range(200):
        ledger.keep(tools["find_box"], {"shelf": f"s{n}"}, box(f"B{n % 10}", shelf=f"s{n}" * 20, owner=f"O{n}"))
    short = ledger.text(900)
    assert len(short) < 1200 and "older records are left out" in short and "s199" in short
