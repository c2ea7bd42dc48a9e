"""Tasks read from TAU2's files: every field, and what is said of malformed ones."""

from __future__ import annotations

import pytest

from muarl.basics.errors import DataError
from muarl.types.chat import Message, ToolCall
from muarl_worlds.tau import tau2_benchmark as tau2

ROW = {
    "id": "t1",
    "user_scenario": {
        "persona": "Calm.\n\nOld.",
        "instructions": {
            "domain": "retail",
            "reason_for_call": "A mug\n\nbroke.",
            "known_info": None,
            "unknown_info": "All.",
            "task_instructions": "Wait.",
        },
    },
    "evaluation_criteria": {
        "actions": [{"action_id": "0", "name": "x", "arguments": {"a": 1}, "compare_args": []}],
        "reward_basis": ["DB", "ACTION"],
    },
}
CALL = {"env_type": "user", "func_name": "f", "arguments": {"a": 1}}
PLAIN = {**ROW, "user_scenario": {"instructions": "Ask\nit."}, "evaluation_criteria": {"actions": None}}


def criteria(**changes):
    return {"evaluation_criteria": {**ROW["evaluation_criteria"], **changes}}


def begun(**changes):
    return {"initial_state": changes}


def test_a_task_reads_as_tau2_reads_it():
    task = tau2.task_from_json(ROW, "retail")
    assert task.scenario == (
        "Persona:\n\tCalm.\n\n\tOld.\nInstructions:\n\tDomain: retail\n\tReason for call:\n\t\tA mug\n\n\t\tbroke.\n"
        "\tUnknown info:\n\t\tAll.\n\tTask instructions:\n\t\tWait."
    )
    assert task.benchmark and task.reward_basis == ("DB", "ACTION") and task.actions[0].compare_args == ()
    task = tau2.task_from_json(PLAIN, "retail")
    assert task.scenario == "Instructions:\n\tAsk\n\tit."
    assert (task.actions, task.reward_basis) == (None, ("DB", "COMMUNICATE"))
    assert tau2.task_from_json({**PLAIN, "evaluation_criteria": None}, "retail").reward_basis == ()
    assert tau2.task_from_json({**ROW, **criteria(reward_basis=[])}, "retail").reward_basis == ()


def test_what_a_world_begins_with():
    history = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "arguments": {}}], "turn_idx": 3},
        {"role": "tool", "id": "c", "content": "{}"},
    ]
    data = {"agent_data": {"tasks": {}}, "user_data": None}
    row = ROW | begun(initialization_data=data, initialization_actions=[CALL], message_history=history)
    task = tau2.task_from_json(row | {"ticket": "Do it.", "user_tools": ["a"]}, "mock")
    assert task.initial_data == {"assistant": {"tasks": {}}} and task.initial_actions == (CALL,)
    assert task.history[1:] == (
        Message("assistant", None, (ToolCall("c", "f", {}),)),
        Message("tool", "{}", tool_call_id="c"),
    )
    assert (task.ticket, task.user_tools) == ("Do it.", ("a",))
    bare = tau2.task_from_json(ROW | {"initial_state": None, "user_tools": []}, "mock")
    assert (bare.initial_data, bare.initial_actions, bare.history, bare.user_tools) == (None, (), (), ())


def test_assertions_without_actions_compare_with_the_untouched_database():
    task = tau2.task_from_json(
        {**ROW, **criteria(actions=None, env_assertions=[{**CALL, "assert_value": False}])}, "mock"
    )
    assert task.actions == () and task.env_assertions[0]["assert_value"] is False


def test_a_telecom_id_tells_intent_persona_and_difficulty():
    row = {**ROW, "id": "[mms_issue]airplane_mode_on|bad_wifi_calling|unseat_sim_card[PERSONA:Hard]"}
    tags = tau2.task_from_json(row, "telecom", split="test").tags
    assert tags == {"benchmark": "tau2", "split": "test", "intent": "mms_issue", "persona": "Hard", "difficulty": 3}
    assert tau2.task_from_json(ROW, "retail").tags == {"benchmark": "tau2", "split": None}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"user_scenario": {}}, "task 't1': it lacks the field 'instructions'"),
        ({"evaluation_criteria": {"actions": [{"name": "x"}]}}, "it lacks the field"),
        (criteria(reward_basis=["LUCK"]), "reward_basis: unknown component 'LUCK'"),
        (criteria(reward_basis="DB"), "malformed: reward_basis must be a list, not str"),
        (criteria(communicate_info=[3]), "malformed: communicate_info must hold strings, not int"),
        (criteria(env_assertions=[{**CALL, "env_type": "x"}]), "env_type must be assistant or user, not 'x'"),
        (criteria(env_assertions=[{**CALL, "assert_value": 1}]), "assert_value must be true or false"),
        (criteria(env_assertions=[3]), "env_assertions must hold objects, not int"),
        (criteria(actions=[{"action_id": "0", "name": "x", "arguments": "{}"}]), "arguments must be an object"),
        ({"user_scenario": {"instructions": 3}}, "is malformed"),
        ({"evaluation_criteria": []}, "evaluation_criteria must be an object, not list"),
        (begun(initialization_actions=[{"func_name": "f"}]), "it lacks the field 'env_type'"),
        (begun(initialization_data={"agent_data": []}), "agent_data must be an object"),
        (begun(message_history=[{"role": "tool"}]), r"message_history\[0\]: it lacks the field tool_call_id"),
        ({"user_tools": "all"}, "user_tools must be a list, not str"),
        ({"id": 7}, "id must be a string, not int"),
    ],
)
def test_a_malformed_task_is_named(change, part):
    with pytest.raises(DataError, match=part):
        tau2.task_from_json({**ROW, **change}, "retail")


def test_what_is_no_task_at_all_is_refused():
    with pytest.raises(DataError, match="malformed"):
        tau2.task_from_json([], "retail")  # type: ignore[arg-type]
