"""What an author gets wrong in a declaration is told with its place and remedy: the starter with one slip at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.environments.registry import load_reference

THE_LOOK = 'it.look("get_booking", booking_id=it.booking)'
THE_WRITE = 'it.write("cancel_booking", booking_id=it.booking'

DECLARED = {
    "a slot in a clause": (
        '"cancel {booking}"',
        '"cancel {bokking}"',
        "which is no slot of it; did you mean 'booking'",
    ),
    "a tool of the identity": ('tool="find_visitor"', 'tool="find"', "identity: tool: the domain has no tool 'find'"),
    "a fact": ('Fact("email"', 'Fact("mail"', "fact mail: tells: "),
    "a place of the identity": ('say=("My e-mail address is {email}."', 'say=("I am {x}, {email}."', "speaks of 'x'"),
    "a kind": ('"date",\n', '"day",\n', "slot day: kind: there is no 'day'; there are date"),
    "a field of Service": ("intents=(cancel", "intent=(cancel", "unexpected keyword argument 'intent'"),
    "a field of Slot": ('phrase="booking {}"', 'phrases="booking {}"', "unexpected keyword argument 'phrases'"),
    "a field of intent": ('@intent(says=("know', '@intent(say=("know', "unexpected keyword argument 'say'"),
    "an open tool": ('("get_free_days",)', '("get_free_day",)', "did you mean 'get_free_days'?"),
    "the date": ('TODAY = "2026-03-14"', 'TODAY = "14 March"', "today must be a date such as '2026-03-14'"),
    "a plan without @intent": ("intents=(cancel, move", "intents=(look_up, move", "write @intent(says=...) above"),
    "a slot by its name": ("slots=[THE_BOOKING])\ndef cancel", 'slots=["booking"])\ndef cancel', "is no Slot"),
    "days": ("draw=days(1, 14)", "draw=days(14, 1)", "the first day is after the last"),
}
"""What is told when the file is imported, with the line."""
PLANNED = {
    "a tool that reads": (THE_LOOK, 'it.look("get_bookings", booking_id=it.booking)', "did you mean 'get_booking'?"),
    "a tool that writes": (THE_WRITE, 'it.write("cancel_bookings", booking_id=it.booking', "'cancel_booking'?"),
    "an argument": (
        THE_LOOK,
        'it.look("get_booking", bookingid=it.booking)',
        "get_booking has no argument 'bookingid'; it takes booking_id; did you mean 'booking_id'? (",
    ),
    "no argument": (THE_LOOK, 'it.look("get_booking")', "get_booking: missing argument 'booking_id'"),
    "an argument of a write": (
        THE_WRITE,
        'it.write("cancel_booking", id=it.booking',
        "cancel_booking has no argument 'id'; it takes booking_id (",
    ),
    "a read that is to write": (
        THE_WRITE,
        'it.write("get_booking", booking_id=it.booking',
        "; if get_booking changes something, mark it @tool(writes=True) (",
    ),
    "a tool that is not marked": (
        "@tool(writes=True)\n    def cancel_booking",
        "@tool\n    def cancel_booking",
        "; if cancel_booking changes something, mark it @tool(writes=True) (",
    ),
    "a write that is to read": (
        THE_LOOK,
        'it.look("cancel_booking", booking_id=it.booking)',
        "; call cancel_booking by it.write, which asks first, or by it.do (",
    ),
    "a slot": (
        THE_LOOK,
        'it.look("get_booking", booking_id=it.boking)',
        "it.boking: neither a slot of cancel nor set before; did",
    ),
    "a field of a record": ("it.b.status ==", "it.b.state ==", "the record has no field 'state'; it has booking_id"),
    "a slot in a proposal": ('"cancel booking {booking} for', '"cancel {bokking} for', "did you mean 'booking'?"),
    "a slot in a refusal": ('"booking {booking} is not', '"booking {bookin} is not', "did you mean 'booking'?"),
    "a slot in a summary": ("cancel booking {booking}, w", "cancel booking {x}, w", "speaks of 'x'"),
    "a field in a text": ("{booking} is cancelled.", "{booking} is cancelled. {b.totl}", "'b' has no 'totl'"),
    "a field to be told": ('tell="{b.total|plain}"', 'tell="{b.totl|plain}"', "'b' has no 'totl'"),
    "a form": ("{b.total|money}", "{b.total|mony}", "there is no form 'mony'; there are money"),
    "a brace": ("{b.total|money}", "{b.total|money", "has a brace of no place"),
    "a slot that is not known yet": ('{booking} is not yours"', '{booking} {day} no"', "did you mean"),
    "a slot to choose anew": (
        "free.days, THE_DAY, it",
        'free.days, "dai", it',
        "unavailable: 'dai' is no slot; did you mean 'day'?",
    ),
    "a slot that is set": ("it.b = " + THE_LOOK, "it.booking = " + THE_LOOK, "sets it.booking, which is a slot of it"),
    "a condition as a text": ('it.refuse_if(it.b.status == "cancelled", "b', 'it.refuse_if("", 1 == "b', "is no text"),
    "a plan without an end": ("    it.answer(", "    dict(text=", "comes to its end and has done nothing"),
    "a bug": ("    it.free = it", "    int('x')\n    it.free = it", "ValueError: invalid literal for int()"),
}
"""What is told when tasks are made, with the file and the line of the plan."""
DRAWN = {
    "a table": ('own("bookings", "booking_id")', 'own("bokings", "booking_id")', "no table 'bokings'; did you mean"),
    "a field": (
        'own("bookings", "booking_id")',
        'own("bookings", "id")',
        "slot booking: draw: the record has no field",
    ),
    "the users' table": ('table="visitors"', 'table="visitrs"', "identity: there is no table 'visitrs'"),
    "the users' key": ('key="visitor_id"', 'key="visitorid"', "identity: key: the table visitors shows no 'visitorid'"),
    "values of another form": (r'pattern(r"V-\d{4}")', r'pattern(r"B-\d{4}")', "the kind must fit the values"),
    "no tables": ('    return {"visitors"', '    {"visitors"', "tables must return a dict of tables, not NoneType"),
    "users that are not found": (
        '["email"] == email.lower()',
        '["name"] == email',
        "a user of the table visitors is not",
    ),
    "a write that always fails": (
        '= "cancelled"\n        return',
        '= {}["x"]\n        return',
        "no trial request came to an end: cancel_booking",
    ),
    "a look-up that always fails": (
        "not in self.db.bookings",
        "not in self.db.days",
        "no trial request came to an end: get_booking",
    ),
    "nothing to draw": ("days(1, 14)", "one_of()", "its slots have no values in the worlds"),
}
"""What is told of the worlds when tasks are made."""


def said_of(repository: Path, tmp_path: Path, old: str, new: str) -> tuple[str, Path]:
    """The error, and the file."""
    folder = repository / "src" / "muarl" / "assets" / "starter"
    text = (folder / "zoo.py").read_text()
    assert old in text
    file = tmp_path / "zoo.py"
    file.write_text(text.replace(old, new, 1).replace("import Fact,", "import one_of, Fact,"))
    (tmp_path / "policy.md").write_text((folder / "policy.md").read_text())
    with pytest.raises(ConfigError) as problem:
        load_reference(f"{file}:ZOO").make_tasks("train", 1)
    return str(problem.value), file


@pytest.mark.parametrize("slip", DECLARED)
def test_a_slip_in_the_declaration(slip: str, repository: Path, tmp_path: Path) -> None:
    old, new, remedy = DECLARED[slip]
    said, file = said_of(repository, tmp_path, old, new)
    assert said.startswith(f"{file}:ZOO") and "(line " in said
    assert remedy in said


@pytest.mark.parametrize("slip", PLANNED)
def test_a_slip_in_a_plan(slip: str, repository: Path, tmp_path: Path) -> None:
    old, new, remedy = PLANNED[slip]
    said, file = said_of(repository, tmp_path, old, new)
    assert "intent " in said or "is no text" in said
    assert f"{file}, line " in said
    assert remedy in said


@pytest.mark.parametrize("slip", DRAWN)
def test_a_slip_in_the_worlds(slip: str, repository: Path, tmp_path: Path) -> None:
    old, new, remedy = DRAWN[slip]
    said, _ = said_of(repository, tmp_path, old, new)
    assert said.startswith("zoo: ")
    assert remedy in said


def test_the_starter_itself_is_sound(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception):
        said_of(repository, tmp_path, "The zoo", "The zoo")
