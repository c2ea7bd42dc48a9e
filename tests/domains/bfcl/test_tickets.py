"""TicketAPI: what its tools answer and change, in both revisions."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl_worlds.bfcl.tickets import REVISIONS

TICKETS = {
    "ticket_queue": [
        {"id": 7, "title": "Printer", "description": "", "status": "Open", "priority": 2, "created_by": "ann"},
        {"id": 8, "title": "Screen", "description": "", "status": "Closed", "priority": 1, "created_by": "bob"},
    ],
    "ticket_counter": 9,
    "current_user": "ann",
}


@pytest.fixture(params=["v3", "v4"])
def desk(request):
    return loaded(request.param, TICKETS)


def loaded(revision, config):
    desk = REVISIONS[revision]()
    desk.load(config)
    return desk


def test_an_empty_scenario_gives_the_default_state():
    desk = loaded("v4", {})
    assert desk.state() == {"ticket_queue": [], "ticket_counter": 1, "current_user": None}
    assert desk.create_ticket("x") == {"error": "User not authenticated. Please log in to create a ticket."}
    assert desk.get_user_tickets() == [{"error": "User not authenticated. Please log in to view tickets."}]


def test_a_new_ticket_is_queued_under_the_next_number(desk):
    made = desk.create_ticket("Mouse", priority=5)
    assert list(made.items()) == [
        ("id", 9), ("title", "Mouse"), ("description", ""), ("status", "Open"), ("priority", 5), ("created_by", "ann")
    ]  # fmt: skip
    assert desk.ticket_counter == 10
    assert desk.get_ticket(9) == made


@pytest.mark.parametrize("priority", [0, 6, 5.5, float("-inf")])
def test_priorities_have_bounds(desk, priority):
    assert desk.create_ticket("x", "y", priority) == {"error": "Invalid priority. Priority must be between 1 and 5."}


def test_tickets_are_closed_and_resolved_once(desk):
    assert desk.close_ticket(7) == {"status": "Ticket 7 has been closed successfully."}
    assert desk.close_ticket(7) == {"error": "Ticket with ID 7 is already closed."}
    assert desk.resolve_ticket(7, "done") == {"status": "Ticket 7 has been resolved successfully."}
    assert desk.resolve_ticket(7, "done") == {"error": "Ticket with ID 7 is already resolved."}
    assert desk.get_ticket(7)["resolution"] == "done"
    assert desk.close_ticket("7") == {"error": "Ticket with ID 7 not found."}


def test_editing_takes_what_is_given_and_refuses_other_fields(desk):
    assert desk.edit_ticket(7, {"title": None, "priority": 99}) == {"status": "Ticket 7 has been updated successfully."}
    assert (desk.get_ticket(7)["title"], desk.get_ticket(7)["priority"]) == ("Printer", 99)
    assert desk.edit_ticket(7, {"owner": "x", "title": "y"}) == {"error": "Invalid fields for update: owner"}
    assert desk.get_ticket(7)["title"] == "Printer"
    with pytest.raises(AttributeError, match="'list' object has no attribute 'keys'"):
        desk.edit_ticket(7, ["title"])


def test_a_users_tickets_are_found_by_status_in_any_case(desk):
    assert [t["id"] for t in desk.get_user_tickets()] == [7]
    assert desk.get_user_tickets("OPEN") == desk.get_user_tickets()
    assert desk.get_user_tickets("closed") == []


def test_the_login_status_has_another_name_in_each_revision():
    assert loaded("v3", TICKETS).ticket_get_login_status() == {"username": True}
    assert loaded("v4", TICKETS).ticket_get_login_status() == {"login_status": True}


def test_logging_in_and_out(desk):
    assert [desk.logout(), desk.logout()] == [{"success": True}, {"success": False}]
    assert desk.ticket_login("bob", "") == {"success": False}
    assert desk.ticket_login("bob", "pw") == {"success": True}
    assert [t["id"] for t in desk.get_user_tickets()] == [8]


def test_errors_about_arguments_name_upstreams_class(desk):
    with pytest.raises(TypeError, match=r"^TicketAPI.logout\(\) got an unexpected keyword argument 'x'"):
        desk.logout(x=1)
    with pytest.raises(TypeError, match=r"^TicketAPI.ticket_get_login_status\(\) takes 1 positional argument but 2"):
        desk.ticket_get_login_status(1)


def test_the_scenario_is_neither_kept_nor_changed(desk):
    before = copy.deepcopy(TICKETS)
    desk.create_ticket("x")
    desk.close_ticket(7)
    assert before == TICKETS


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create_ticket"), st.tuples(st.text(max_size=5), st.text(max_size=5), st.integers(0, 6))),
        st.tuples(st.just("close_ticket"), st.tuples(st.integers(6, 12))),
        st.tuples(st.just("edit_ticket"), st.tuples(st.integers(6, 12), st.just({"title": ["a", {"b": []}]}))),
        st.tuples(st.just("resolve_ticket"), st.tuples(st.integers(6, 12), st.text(max_size=5))),
        st.tuples(st.just("logout"), st.just(())),
    ),
    max_size=8,
)


@given(first=STEPS, then=STEPS)
def test_a_copy_goes_its_own_way(first, then):
    desk = loaded("v4", TICKETS)
    for name, args in first:
        getattr(desk, name)(*args)
    before = copy.deepcopy(desk.state())
    twin, other = desk.copy(), copy.deepcopy(desk)
    assert twin.state() == before
    for name, args in then:
        assert getattr(twin, name)(*args) == getattr(other, name)(*args)
    assert twin.state() == other.state()
    assert desk.state() == before
