"""What requests come to: every kind changes the state as its words say, or finds the answer, and nothing else.

Those about stocks, trips, cars and sums stand in test_recipes_money.py.
"""

from __future__ import annotations

import pytest

from muarl.types.chat import ToolResult
from muarl_worlds.bfcl import recipes
from muarl_worlds.bfcl.requests import LOGINS, RECIPES
from support.bfcl import Served, at, check_effect, sent, serve, text_of, user

FILES, MESSAGES, POSTS = "GorillaFileSystem", "MessageAPI", "TwitterAPI"
TICKETS = "TicketAPI"
OURS = ("file_", "message_", "post_", "ticket_")
TIMES = 6


def files(served: Served, *, gone=(), new=()):
    """The files that should be there: the old ones without ``gone`` and with ``new`` (path to text)."""
    return {p: t for p, t in served.before[FILES]["files"].items() if p not in gone} | dict(new)


def file_move(s):
    old, new = at(s.slots, "file"), f"{at(s.slots, 'into')}/{s.slots['file']}"
    assert s.after[FILES]["files"] == files(s, gone=[old], new={new: text_of(s)})


def file_collect(s):
    folder = at(s.slots, "new_folder")
    new = {folder: None, f"{folder}/{s.slots['file']}": text_of(s)}
    assert s.after[FILES]["files"] == files(s, gone=[at(s.slots, "file")], new=new)


def file_safe_copy(s):
    folder = at(s.slots, "new_folder")
    assert s.after[FILES]["files"] == files(s, new={folder: None, f"{folder}/{s.slots['file']}": text_of(s)})


def file_copy(s):
    assert s.after[FILES]["files"] == files(s, new={at(s.slots, "new_file"): text_of(s)})


def file_rename(s):
    assert s.after[FILES]["files"] == files(s, gone=[at(s.slots, "file")], new={at(s.slots, "new_file"): text_of(s)})


def file_delete(s):
    assert s.after[FILES]["files"] == files(s, gone=[at(s.slots, "file")])


def file_hunt(s):
    (path,) = [p for p in s.before[FILES]["files"] if p.rpartition("/")[2] == s.slots["file"]]
    assert s.after[FILES]["files"] == files(s, gone=[path]) and "find" in [name for name, _ in s.calls]


def file_write(s):
    assert s.after[FILES]["files"] == files(s, new={at(s.slots, "new_file"): s.slots["text"]})


def file_overwrite(s):
    assert s.after[FILES]["files"] == files(s, new={at(s.slots, "file"): s.slots["text"]})


def file_retype(s):
    assert s.after[FILES]["files"] == files(s, new={at(s.slots, "new_file"): text_of(s)})


def file_count(s):
    assert s.answer == str(len(text_of(s)))


def file_grep(s):
    assert [s.answer] == [line for line in text_of(s).splitlines() if s.slots["word"] in line]


def file_last(s):
    assert s.answer == text_of(s).splitlines()[-1]


def file_rmdir(s):
    assert s.after[FILES]["files"] == files(s, gone=[at(s.slots, "into")])


def message_send(s):
    sent(s, user(s, s.slots["name"]), s.slots["text"])


def message_delete(s):
    inbox = list(s.before[MESSAGES]["inbox"])
    last = max(n for n, message in enumerate(inbox) if user(s, s.slots["name"]) in message)
    assert len(s.after[MESSAGES]["inbox"]) == len(inbox) - 1
    assert s.after[MESSAGES]["inbox"] in (inbox[:last] + inbox[last + 1 :], _without_equal(inbox, inbox[last]))


def _without_equal(inbox, message):
    inbox = list(inbox)
    inbox.remove(message)
    return inbox


def message_contact(s):
    added = s.after[MESSAGES]["user_map"][s.slots["name"]]
    assert added not in s.before[MESSAGES]["user_map"].values()
    sent(s, added, s.slots["text"])


def message_search(s):
    assert [s.answer] == [u for m in s.config[MESSAGES]["inbox"] for u, text in m.items() if s.slots["word"] in text]


def message_file(s):
    sent(s, user(s, s.slots["name"]), text_of(s))


def posted(s):
    (number,) = set(s.after[POSTS]["tweets"]) - set(s.before[POSTS]["tweets"])
    return number, s.after[POSTS]["tweets"][number]


def post_write(s):
    _, post = posted(s)
    assert (post["content"], post["tags"], post["mentions"]) == (s.slots["text"], [s.slots["tag"]], [])


def post_discuss(s):
    number, post = posted(s)
    assert post["content"] == s.slots["text"]
    assert [c["content"] for c in s.after[POSTS]["comments"][number]] == [s.slots["comment"]]


def post_file(s):
    assert posted(s)[1]["content"] == text_of(s)


def post_mention(s):
    assert s.after[POSTS]["tweets"][s.memory["post"]]["mentions"] == ["@" + s.slots["handle"]]


def _about(s):
    (number,) = [n for n, post in s.before[POSTS]["tweets"].items() if f"The {s.slots['word']} " in post["content"]]
    return number


def post_retweet(s):
    assert s.after[POSTS]["retweets"] == {s.config[POSTS]["username"]: [_about(s)]}


def post_reply(s):
    assert s.after[POSTS]["comments"] == {
        _about(s): [{"username": s.config[POSTS]["username"], "content": s.slots["text"]}]
    }


def post_follow(s):
    assert s.after[POSTS]["following_list"] == [*s.config[POSTS]["following_list"], s.slots["handle"]]


def post_unfollow(s):
    assert s.slots["handle"] in s.config[POSTS]["following_list"]
    assert s.slots["handle"] not in s.after[POSTS]["following_list"]


def opened(s):
    assert s.after[TICKETS]["ticket_queue"][:-1] == s.before[TICKETS]["ticket_queue"]
    return s.after[TICKETS]["ticket_queue"][-1]


def ticket_create(s):
    ticket = opened(s)
    assert (ticket["title"], ticket["priority"], ticket["status"]) == (s.slots["title"], int(s.slots["level"]), "Open")


def ticket_report(s):
    ticket_create(s)
    assert opened(s)["description"] == s.slots["text"]


def ticket_file(s):
    assert (opened(s)["title"], opened(s)["description"]) == (s.slots["title"], text_of(s))


def tickets(s):
    """Tickets that changed: (before, after)."""
    pairs = zip(s.before[TICKETS]["ticket_queue"], s.after[TICKETS]["ticket_queue"], strict=True)
    return [(old, new) for old, new in pairs if old != new]


def ticket_close(s):
    ((old, new),) = tickets(s)
    assert new == old | {"status": "Closed"} and old["id"] == int(s.slots["ticket"])


def ticket_resolve(s):
    ((old, new),) = tickets(s)
    assert new == old | {"status": "Resolved", "resolution": s.slots["resolution"]}
    assert old["id"] == int(s.slots["ticket"])


def ticket_resolve_last(s):
    ((old, new),) = tickets(s)
    assert new == old | {"status": "Resolved", "resolution": s.slots["resolution"]}
    assert old is s.before[TICKETS]["ticket_queue"][-1] and old["id"] == s.memory["ticket"]


def ticket_close_mine(s):
    ((old, new),) = tickets(s)
    assert new == old | {"status": "Closed"} and old["title"] == s.slots["title"]


def ticket_level(s):
    ((old, new),) = tickets(s)
    assert new == old | {"priority": int(s.slots["level"])} and old["id"] == int(s.slots["ticket"])


def ticket_question(s):
    wanted = [t["description"] for t in s.config[TICKETS]["ticket_queue"] if t["id"] == int(s.slots["ticket"])]
    assert [s.answer] == wanted


def ticket_logout(s):
    assert s.before[TICKETS]["current_user"] and not s.after[TICKETS]["current_user"]


@pytest.mark.parametrize("kind", [k for k in RECIPES if k.startswith(OURS)])
def test_a_request_comes_to_what_its_words_say(kind):
    for seed in range(TIMES):
        check_effect(kind, serve(kind, seed), globals()[kind])


@pytest.mark.parametrize("kind", sorted({*LOGINS} - {"travel_token"}))
def test_logins_log_in(kind):
    for seed in range(TIMES):
        served = serve(kind, seed)
        state = served.after[served_api(kind)]
        assert state.get("authenticated") or state.get("current_user") or state.get("access_token")
        if kind == "travel_login":
            assert served.memory["token"] == state["access_token"]


def served_api(kind):
    return LOGINS[kind].apis[0]


class Anything:
    """A world in which every call works."""

    def call(self, requestor, call):
        return ToolResult("{}", False)


def serve_in(world, recipe, slots, memory):
    return recipes.serve(recipe, slots, memory, world)


def test_a_travel_token_is_only_remembered():
    assert serve_in(None, LOGINS["travel_token"], {"given": "tok1"}, memory := {}) == ([], "")
    assert memory == {"token": "tok1"}


def test_each_folder_is_reached_from_each_other_one_level_at_a_time():
    memory = {"cwd": []}

    def walk(folder):
        actions, _ = serve_in(Anything(), RECIPES["file_delete"], {"folder": folder, "file": "x.txt"}, memory)
        return [action.arguments["folder"] for action in actions if action.name == "cd"]

    assert walk("the root folder") == []
    assert walk("barn/attic") == ["barn", "attic"]
    assert walk("barn/attic") == []
    assert walk("barn/cellar") == ["..", "cellar"]
    assert walk("harbor") == ["..", "..", "harbor"]
    assert walk("the root folder") == [".."]
    assert memory["cwd"] == []
