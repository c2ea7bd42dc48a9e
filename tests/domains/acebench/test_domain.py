"""ACEBench as a domain: worlds, tools, policies, and calls in both semantics."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.tasks import Task
from muarl.types.chat import ToolCall
from muarl_worlds.acebench.domain import AceBench, policy, read_result, result_text, toolbox
from muarl_worlds.acebench.execute import ERROR

DOCUMENT = {
    "name": "turn_on_wifi",
    "description": "Wi-Fi.",
    "parameters": {
        "type": "dict",
        "required": ["nothing"],
        "properties": {"items": {"type": "list", "items": {"type": "dict"}}},
    },
}
PHONE = ("BaseApi", "MessageApi", "ReminderApi")
TASK = Task("t", "acebench", "Do it.", None, initial_data={"classes": PHONE, "config": {"BaseApi": {"wifi": True}}})


def call(name, raw=None, **arguments):
    return ToolCall("1", name, arguments, raw=raw)


def answer(world, name, **arguments):
    return world.call("assistant", call(name, **arguments))


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match="language"):
        AceBench("fr")
    with pytest.raises(ConfigError, match="fly"):
        AceBench(tools=["fly"])
    with pytest.raises(DataError, match="'Finance'"):
        AceBench().world(replace(TASK, initial_data={"classes": ["Finance"]}))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_tool_is_described(language):
    for name, known in toolbox(language).items():
        spec = known.schema.spec
        assert spec.name == name and spec.description != name
        assert all(p.get("description") for p in spec.parameters["properties"].values()), name
        assert ("\u4e00" <= spec.description[0] <= "\u9fff") is (language == "zh")
    kinds = {name for name, known in toolbox(language).items() if known.kind == "write"}
    assert kinds >= {"send_message", "delete_message", "reserve_flight", "login_device"}
    assert "check_balance" not in kinds


def test_a_task_offers_the_tools_of_its_classes_or_documents():
    names = [spec.name for spec in AceBench().specs_for(TASK)]
    assert names[:3] == ["turn_on_wifi", "login_device", "send_message"]
    assert "get_products" not in names
    documents = [DOCUMENT, {**DOCUMENT, "name": "search_reminders"}]
    shown = replace(TASK, initial_data={**TASK.initial_data, "functions": documents})
    first, second = AceBench(semantics="official").specs_for(shown)
    assert first.doc == DOCUMENT and second.name == "search_reminders"
    assert first.parameters == {
        "type": "object",
        "required": [],
        "properties": {"items": {"type": "array", "items": {"type": "object"}}},
    }
    assert [spec.name for spec in AceBench().specs_for(shown)] == ["turn_on_wifi"]  # English reminders have no search


def test_policies():
    official, fixed = AceBench(semantics="official"), AceBench()
    assert official.policy_for(TASK) == policy("phone", "en")
    assert "[ApiName(" in official.policy_for(TASK) and "[ApiName(" not in fixed.policy_for(TASK)
    assert fixed.policy_for(TASK).rstrip().endswith('respond with "finish conversation" to end the dialogue.')
    steps = replace(TASK, initial_data={**TASK.initial_data, "category": "multi_step"})
    assert fixed.policy_for(steps) == policy("alone", "en")
    desk = replace(TASK, initial_data={"classes": ("Travel",)})
    for language in ("en", "zh"):
        assert AceBench(language).policy_for(desk).endswith(policy("travel", language)[-40:])
    assert AceBench(policy="Be kind.").policy_for(TASK) == "Be kind."


def test_fixed_calls_are_checked_and_undone():
    world = AceBench().world(TASK)
    before = world.digest()
    assert json.loads(answer(world, "delete_message", message_id="3").content)["error"].startswith(
        "delete_message: argument"
    )
    assert json.loads(answer(world, "get_products", merchant_name="Heytea").content)["error"].startswith(
        "there is no tool"
    )
    assert world.call("user", call("login_device")).error
    assert world.call("assistant", replace(call("login_device"), invalid="no JSON")).error
    assert world.digest() == before and not world.writes
    done = answer(world, "delete_message", message_id=3)
    assert json.loads(done.content)["status"] is True and not done.error
    assert (
        answer(world, "delete_message", message_id=3).content
        == '{"status": false, "message": "Message ID does not exist"}'
    )
    assert [c.arguments for c in world.writes] == [{"message_id": 3}]
    assert world.digest() != before
    assert list(world.final_state()[1]["MessageApi"]["inbox"]) == ["1", "2", "4", "5", "6"]


def test_a_tool_that_raises_changes_nothing(monkeypatch):
    world = AceBench().world(TASK)
    before = world.digest()

    def broken(message_id):
        world.instances["MessageApi"].inbox.clear()
        raise RuntimeError("no")

    monkeypatch.setattr(
        type(world.instances["MessageApi"]), "delete_message", lambda self, message_id: broken(message_id)
    )
    assert json.loads(answer(world, "delete_message", message_id=1).content) == {"error": "no"}
    assert world.digest() == before


def test_official_calls_of_a_message_are_run_together():
    world = AceBench(semantics="official").world(TASK)
    results = list(world.call_all("assistant", [call("login_device"), call("no_such")]))
    assert [r.content for r in results] == ['{"status": true, "message": "Device has been logged in"}'] * 2
    results = list(
        world.call_all("assistant", [call("delete_message", message_id=3), call("delete_message", message_id=[])])
    )
    assert [(r.content, r.error) for r in results] == [(ERROR, True)] * 2
    assert 3 not in world.instances["MessageApi"].inbox
    (result,) = world.call_all("assistant", [call("delete_message", raw="delete_message(message_id=4)", message_id=99)])
    assert json.loads(result.content)["message"] == "Message ID 4 has been successfully deleted."
    assert next(iter(world.call_all("assistant", [call("", raw="")]))).content == ""
    assert [c.name for c in world.writes] == ["login_device", "delete_message"]


def test_official_multi_step_calls_fail_one_by_one():
    steps = replace(TASK, initial_data={**TASK.initial_data, "category": "multi_step"})
    world = AceBench(semantics="official").world(steps)
    failed, done = world.call_all("assistant", [call("delete_message"), call("delete_message", message_id=1)])
    assert failed.error and failed.content.startswith("Error during execution: MessageApi.delete_message() missing 1")
    assert not done.error


@pytest.mark.parametrize("value", [1, 1.5, None, True, "text", "[{'a': 1}]", {"1": "中"}, [], "None"])
def test_results_survive_as_text(value):
    assert read_result(result_text(value)) == value


def test_a_world_of_ones_own():
    state = {
        "MessageApi": {
            "inbox": {"1": {"sender_id": "USR100", "receiver_id": "USR101", "message": "x", "time": "2024-01-02"}}
        }
    }
    world = AceBench().world(replace(TASK, initial_data={**TASK.initial_data, "state": state}))
    assert json.loads(answer(world, "get_latest_message_id").content)["message_id"] == 1
    assert world.digest() != AceBench().world(TASK).digest()


def test_a_thousand_episodes_of_one_task_do_not_touch_each_other():
    domain = AceBench(semantics="official")
    worlds = [domain.world(TASK) for _ in range(1000)]
    fresh = worlds[0].digest()
    for n, world in enumerate(worlds):
        if n % 2:
            world.execute_message(
                f"[delete_message(message_id={n % 6 + 1}), add_reminder(title='{n}', description='', time='')]"
            )
    assert all(world.digest() == fresh for world in worlds[::2])
    assert len({world.digest() for world in worlds[1::2]}) == 500


def test_gold_actions_can_be_invoked():
    world = AceBench().world(TASK)
    assert world.invoke("assistant", "delete_message", {"message_id": 1})["status"]
    with pytest.raises(ValueError, match="not found"):
        world.invoke("assistant", "fly", {})
