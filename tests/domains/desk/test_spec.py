"""Files that describe intents: what is wrong with one is said with its place."""

from __future__ import annotations

import pytest

from muarl.domains.desk.people import FIRST_NAMES
from muarl.domains.desk.spec import Script, Step, read_spec
from muarl.errors import DataError
from support.desk import TITLES, library, written


def script(tmp_path, vocabulary=TITLES, **changes):
    return Script("library", read_spec(written(tmp_path, library(**changes))), vocabulary, FIRST_NAMES)


def test_a_whole_file_is_read(tmp_path):
    made = script(tmp_path)
    assert [n for n, i in made.spec.intents.items() if i.question] == ["ask_title"]
    assert made.say("why", "lost") == "I lost it" and made.show("why", "lost") == "lost"
    assert made.intents_with(["list_loans"]) == ("report", "ask_title")
    assert made.intents_with(["list_loans", "extend_loan"]) == tuple(made.spec.intents)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"intents__extend__slots": ["loan", "weeks"]}, ("intents.extend.slots", "'weeks'")),
        ({"intents__extend__say": ["extend {book}"]}, ("intents.extend.say", "'book'")),
        ({"intents__extend__share": 0}, ("intents.extend.share", "greater than 0")),
        ({"intents__extend__colour": "red"}, ("intents.extend.colour", "Extra inputs")),
        ({"intents__extend__steps": []}, ("intents.extend.steps",)),
        ({"intents__extend__steps__0": {"look": "a", "write": "b"}}, ("intents.extend.steps.0", "exactly one of")),
        ({"intents__extend__steps__0": {"as": "x"}}, ("intents.extend.steps.0", "exactly one of")),
        ({"intents__extend__steps__1": {"pick": "l"}}, ("intents.extend.steps.1", "pick needs from")),
        ({"intents__extend__steps__4": {"write": "extend_loan"}}, ("steps.4", "propose and done")),
        ({"kinds__why": {"pattern": "x", "names": "titles"}}, ("kinds.why", "exactly one of pattern")),
        ({"intents__extend__steps__2__when": {"k.waiting": True}}, ("intents.extend.steps.2", "'k'")),
        ({"intents__extend__steps__2__refuse": "{x} is late"}, ("intents.extend.steps.2", "'x'")),
        ({"intents__extend__steps__0__with": {"reader_id": "$reader"}}, ("intents.extend.steps.0", "'reader'")),
        ({"intents__extend__heard": "(extend"}, ("intents.extend.heard", "no regular expression")),
        ({"kinds__phone__pattern": "["}, ("kinds.phone.pattern", "no regular expression")),
        ({"outside": []}, ("outside",)),
        ({"today": None}, ("today",)),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, changes, words):
    with pytest.raises(DataError) as caught:
        read_spec(written(tmp_path, library(**changes)))
    assert str(tmp_path / "intents.yaml") in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slots__days__kind": "weeks"}, ("slots.days.kind", "'weeks'")),
        ({"slots__loan__described__kind": "book"}, ("slots.loan.described.kind", "'book'")),
        ({"identify__fields__phone__kind": "fax"}, ("identify.fields.phone.kind", "'fax'")),
        ({"kinds__title__names": "films"}, ("kinds.title.names", "'films'")),
    ],
)
def test_kinds_that_do_not_exist_are_named(tmp_path, changes, words):
    with pytest.raises(DataError) as caught:
        script(tmp_path, **changes)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("text", ["", "- a list", "about: [", "about: !!python/object:os.system x"])
def test_files_that_are_none_are_refused(tmp_path, text):
    with pytest.raises(DataError, match=r"intents\.yaml"):
        read_spec(written(tmp_path, text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"intents\.yaml cannot be read"):
        read_spec(tmp_path / "intents.yaml")


def test_the_verb_of_a_step():
    assert Step.model_validate({"pick": "a", "from": "$b", "refuse": "no"}).verb == "pick"
    assert Step.model_validate({"refuse": "no"}).verb == "refuse"
