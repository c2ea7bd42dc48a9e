"""MessageAPI in both revisions."""

from __future__ import annotations

import random

import pytest

from muarl.domains.tooling import tools_of
from muarl_worlds.bfcl.messages import REVISIONS
from support.bfcl import answer

TOOLS = {
    "list_users", "get_user_id", "message_login", "message_get_login_status", "send_message", "delete_message",
    "view_messages_sent", "add_contact", "search_messages", "get_message_stats",
}  # fmt: skip
LOGGED_OUT = {"error": "No user is currently logged in."}


@pytest.fixture(params=["v3", "v4"])
def revision(request):
    return request.param


def loaded(revision, **config):
    made = REVISIONS[revision]()
    made.load(config)
    return made


@pytest.fixture
def api(revision):
    return loaded(revision, current_user="USR001")


def test_the_default_state(revision):
    assert set(tools_of(REVISIONS[revision])) == TOOLS
    made = loaded(revision)
    assert made.state() == {
        "generated_ids": set(),
        "user_count": 4,
        "user_map": {"Alice": "USR001", "Bob": "USR002", "Catherine": "USR003", "Daniel": "USR004"},
        "inbox": [
            {"USR002": "My name is Alice. I want to connect."},
            {"USR003": "Could you upload the file?"},
            {"USR004": "Could you upload the file?"},
        ],
        "message_count": 3,
        "current_user": None,
    }
    assert made.message_get_login_status() == {"login_status": False}
    for name in ("view_messages_sent", "get_message_stats"):
        assert getattr(made, name)() == LOGGED_OUT
    assert made.send_message("USR001", "x") == made.delete_message("USR001") == made.search_messages(5) == LOGGED_OUT


def test_logging_in(revision):
    api = loaded(revision)
    assert api.message_login("USR9") == {"login_status": False, "message": "User ID 'USR9' not found."}
    assert api.message_login("USR002") == {"login_status": True, "message": "User 'USR002' logged in successfully."}
    assert api.current_user == "USR002" and api.message_get_login_status() == {"login_status": True}


def test_people(api):
    assert api.list_users() == {"user_list": ["Alice", "Bob", "Catherine", "Daniel"]}
    assert api.get_user_id("Bob") == {"user_id": "USR002"}
    assert api.get_user_id("Eve") == {"error": "User 'Eve' not found in the workspace."}
    added = {"added_status": True, "user_id": "USR005", "message": "Contact 'Eve' added successfully."}
    assert api.add_contact("Eve") == added
    assert api.add_contact("Eve") == {"error": "User name 'Eve' already exists."}
    assert api.user_count == 5


def test_a_contact_whose_id_is_taken_still_uses_it_up(revision):
    api = loaded(revision, user_map={"A": "USR005"})
    assert api.add_contact("B") == {"error": "User ID 'USR005' already exists."}
    assert api.user_count == 5 and api.add_contact("B")["user_id"] == "USR006"


def test_message_ids_are_drawn_as_upstream_draws_them(api):
    draw = random.Random(200191)
    first, second = draw.randint(10000, 99999), draw.randint(10000, 99999)
    assert api.send_message("USR002", "hi") == {
        "sent_status": True,
        "message_id": {"new_id": first},
        "message": "Message sent to 'USR002' successfully.",
    }
    assert first == 67410
    assert api.send_message("USR8", "hi") == {"error": "Receiver ID 'USR8' not found."}
    assert api.send_message("USR003", "ho")["message_id"] == {"new_id": second}
    assert api.generated_ids == {first, second} and api.message_count == 5
    assert api.inbox[-2:] == [{"USR002": "hi"}, {"USR003": "ho"}]


def test_a_scenario_can_have_its_own_seed_and_ids(revision):
    draw = random.Random(5)
    first, second = draw.randint(10000, 99999), draw.randint(10000, 99999)
    api = loaded(revision, random_seed=5, generated_ids={first}, current_user="USR001")
    assert api.send_message("USR001", "x")["message_id"] == {"new_id": second}
    listed = loaded(revision, generated_ids=[], current_user="USR001")
    assert answer(listed, "send_message", "USR001", "x").endswith("'list' object has no attribute 'add'")


def test_reading(api):
    api.send_message("USR003", "Done")
    assert api.view_messages_sent() == {
        "messages": {
            "USR002": ["My name is Alice. I want to connect."],
            "USR003": ["Could you upload the file?", "Done"],
            "USR004": ["Could you upload the file?"],
        }
    }
    assert api.search_messages("ALICE") == {
        "results": [{"receiver_id": "USR002", "message": "My name is Alice. I want to connect."}]
    }
    assert api.get_message_stats() == {"stats": {"received_count": 4, "total_contacts": 3}}
    assert answer(api, "search_messages", 5) == "Error during execution: 'int' object has no attribute 'lower'"


def test_deleting_takes_the_first_message_that_is_equal_to_the_latest(revision):
    inbox = [{"USR002": "same"}, {"USR003": "x"}, {"USR002": "other"}, {"USR002": "same"}]
    api = loaded(revision, inbox=inbox, current_user="USR001")
    done = {
        "v3": {"message_id": "USR002", "message": "Receiver USR002's first message deleted successfully."},
        "v4": {"receiver_id": "USR002", "message": "Receiver USR002's latest message deleted successfully."},
    }[revision]
    result = api.delete_message("USR002")
    assert list(result.items()) == list({"deleted_status": True, **done}.items())
    assert api.inbox == [{"USR003": "x"}, {"USR002": "other"}, {"USR002": "same"}]
    assert api.delete_message("USR009") == {"error": "Receiver ID USR009 not found."}
    assert api.message_count == 3


def test_python_speaks_of_upstreams_class(api):
    assert answer(api, "message_login", user="x") == (
        "Error during execution: MessageAPI.message_login() got an unexpected keyword argument 'user'"
    )


def test_a_scenario_is_neither_kept_nor_changed(revision):
    config = {"user_map": {"A": "USR001"}, "inbox": [{"USR001": ["a"]}], "current_user": "USR001"}
    api = loaded(revision, **config)
    api.send_message("USR001", "b")
    api.add_contact("B")
    assert config["inbox"] == [{"USR001": ["a"]}] and config["user_map"] == {"A": "USR001"}


def test_a_copy_draws_the_same_ids_and_shares_nothing_that_changes(api):
    api.send_message("USR002", "one")
    twin = api.copy()
    assert twin.state() == api.state() and list(twin.state()) == list(api.state())
    first = api.send_message("USR002", "two")
    assert twin.inbox[-1] == {"USR002": "one"} and len(twin.generated_ids) == 1
    twin.add_contact("Eve")
    assert "Eve" not in api.user_map
    assert twin.send_message("USR002", "two") == first
    assert loaded("v4").inbox is not loaded("v4").inbox


def test_message_ids_run_out_without_end(revision):
    api = loaded(revision, generated_ids=set(range(10000, 100000)), current_user="USR001")
    assert answer(api, "send_message", "USR001", "x") == "Error during execution: there is no message ID left"
