"""TAU2's mock domain: what the original answers, its errors to the letter, and a task's own data laid over it."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.basics.errors import DataError
from muarl.domains.tasks import Task
from muarl.types.chat import ToolCall
from muarl_worlds.tau.mock.domain import Mock
from muarl_worlds.tau.mock.records import inbox_database, mock_database

TABLES = {
    "tasks": {"task_1": {"task_id": "task_1", "title": "Test", "description": "A test", "status": "pending"}},
    "users": {"user_1": {"user_id": "user_1", "name": "Ann", "tasks": ["task_1"]}},
}
INBOX = {"notifications": {"n1": {"notification_id": "n1", "message": "Hi.", "task_id": "task_1"}}}
TASK = Task("t", "mock", "", ())


def mock(semantics="official", **options):
    return Mock(database=TABLES, inbox=INBOX, policy="Be kind.", semantics=semantics, **options)


def use(world, name, requestor="assistant", **arguments):
    return world.call(requestor, ToolCall("c", name, arguments, requestor))


@pytest.fixture
def official():
    return mock().world()


def test_both_sides_answer_as_tau2_does(official):
    assert use(official, "get_users").content == '[{"user_id": "user_1", "name": "Ann", "tasks": ["task_1"]}]'
    made = use(official, "create_task", user_id="user_1", title="é")
    assert made.content == '{"task_id": "task_2", "title": "\\u00e9", "description": null, "status": "pending"}'
    assert '"tasks": ["task_1", "task_2"]' in use(official, "get_users").content
    assert '"status": "completed"' in use(official, "update_task_status", task_id="task_2", status="completed").content
    assert use(official, "transfer_to_human_agents", summary="x").content == "Transfer successful"
    shown = use(official, "check_notifications", "user").content
    assert shown == '[{"notification_id": "n1", "message": "Hi.", "status": "unread", "task_id": "task_1"}]'
    before = official.full_hash("user")
    assert use(official, "dismiss_notification", "user", notification_id="n1").content == "Notification n1 dismissed"
    assert official.full_hash("user") != before
    assert [w.name for w in official.writes] == ["create_task", "update_task_status", "dismiss_notification"]


@pytest.mark.parametrize(
    ("name", "side", "arguments", "text"),
    [
        ("create_task", "assistant", {"user_id": "u", "title": "x"}, "User u not found"),
        ("create_task", "assistant", {"user_id": [], "title": "x"}, "unhashable type: 'list'"),
        ("update_task_status", "assistant", {"task_id": "task_9", "status": 5}, "Task task_9 not found"),
        ("dismiss_notification", "user", {"notification_id": "n9"}, "Notification n9 not found"),
        ("dismiss_notification", "assistant", {"notification_id": "n1"}, "Tool 'dismiss_notification' not found."),
        ("get_users", "user", {}, "Tool 'get_users' not found."),
        ("get_users", "assistant", {"x": 1}, "MockTools.get_users() got an unexpected keyword argument 'x'"),
        (
            "create_task",
            "assistant",
            {"title": "x"},
            "MockTools.create_task() missing 1 required positional argument: 'user_id'",
        ),
        (
            "dismiss_notification",
            "user",
            {},
            "MockUserTools.dismiss_notification() missing 1 required positional argument: 'notification_id'",
        ),
    ],
)
def test_errors_are_tau2s(official, name, side, arguments, text):
    before = official.digest()
    result = use(official, name, side, **arguments)
    assert result.error and result.content == f"Error: {text}"
    assert official.digest() == before


def test_a_title_of_another_type_meets_pydantics_error_under_tau2s_name(official):
    result = use(official, "create_task", user_id="user_1", title=5)
    assert result.error and result.content.startswith("Error: 1 validation error for Task\ntitle\n  Input should be a")


def test_a_status_is_stored_as_given_officially_and_checked_when_fixed(official):
    odd = use(official, "update_task_status", task_id="task_1", status=[1.0])
    assert not odd.error and odd.content.endswith('"status": [1.0]}')
    fixed = mock("fixed").world()
    refused = use(fixed, "update_task_status", task_id="task_1", status="lost")
    assert refused.error and "'pending', 'completed'" in refused.content
    assert not use(fixed, "create_task", user_id="user_1", title="x").error


def test_a_tasks_own_data_and_actions_come_first():
    partial = {"tasks": {"task_1": {"title": "New"}}, "users": {"user_1": {"tasks": []}}}
    action = {
        "env_type": "user",
        "func_name": "add_notification",
        "arguments": {"notification_id": "n2", "message": "m"},
    }
    task = replace(
        TASK, initial_data={"user": {"notifications": {"n1": {"status": "read"}}}}, initial_actions=(action,)
    )
    world = mock("fixed").world(task)
    shown = json.loads(use(world, "check_notifications", "user").content)
    assert [(n["notification_id"], n["status"]) for n in shown] == [("n1", "read"), ("n2", "unread")]
    for semantics, shared in (("fixed", False), ("official", True)):
        world = mock(semantics).world(replace(TASK, initial_data={"assistant": partial}))
        record = world.toolkit().db.tasks.peek("task_1")
        assert (record["title"], record["description"]) == ("New", "A test")
        assert world.toolkit().db.users.peek("user_1")["tasks"] == []
        inbox = use(world, "check_notifications", "user")
        assert inbox.error is shared  # officially both sides have the agent's database then
        assert (world.full_hash("user") == world.full_hash("assistant")) is shared
    assert inbox.content == "Error: 'MockDB' object has no attribute 'notifications'"


@pytest.mark.parametrize("name", ["lose_everything", "_inbox", "world", "policy_text"])
def test_an_unknown_initial_action_is_named(name):
    action = {"env_type": "user", "func_name": name, "arguments": {}}
    with pytest.raises(DataError, match=f"mock task 't': initial action '{name}' is no function here"):
        mock().world(replace(TASK, initial_actions=(action,)))


def test_malformed_databases_are_named():
    with pytest.raises(DataError, match=r"mock database: users\.u\.name: Field required"):
        mock_database({"tasks": {}, "users": {"u": {"user_id": "u", "tasks": []}}})
    with pytest.raises(DataError, match="Extra inputs are not permitted"):
        inbox_database({"letters": {}})
    with pytest.raises(DataError, match="an object of tables"):
        mock_database(3)  # type: ignore[arg-type]
    assert inbox_database({}).tables == {"notifications": {}}


NAMES = ("create_task", "get_users", "update_task_status", "check_notifications", "dismiss_notification", "nothing")
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.lists(st.text(max_size=2)),
    st.sampled_from(["user_1", "task_1", "task_2", "n1", "pending", "completed"]),
)  # fmt: skip
CALLS = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(["assistant", "user"]),
    st.dictionaries(st.sampled_from(["user_id", "title", "task_id", "status", "notification_id", "x"]), VALUES),
)


@given(st.lists(CALLS, max_size=8), st.sampled_from(["official", "fixed"]))
def test_no_call_ever_raises_and_errors_leave_no_trace(calls, semantics):
    world = mock(semantics).world()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, side, arguments in calls:
            before = world.digest()
            result = use(world, name, side, **arguments)
            if result.error or name in ("get_users", "check_notifications"):
                assert world.digest() == before
            assert isinstance(result.content, str)
    assert len(world.full_hash()) == len(world.full_hash("user")) == 64
