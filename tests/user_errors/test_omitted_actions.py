"""Users who say that they did something on their device, and did not; and those who did, or say nothing of the kind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.user_errors.conduct import find_all
from muarl.user_errors.errors import find_user_errors
from muarl.user_errors.omitted_actions import device_actions
from muarl.users.guard import GUARDED, GuardedUser
from muarl.users.scripted import ScriptedUser


def tools(*declared: tuple[str, str]) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(name, told, {"type": "object", "properties": {}}) for name, told in declared)


PHONE = tools(
    ("check_network_status", "Checks your phone's connection status. Shows airplane mode status."),
    ("run_speed_test", "Measures your current internet connection speed."),
    ("toggle_airplane_mode", "Toggles Airplane Mode ON or OFF. When ON, it disconnects all communications."),
    ("toggle_data", "Toggles your phone's mobile data connection ON or OFF."),
    ("toggle_data_saver_mode", "Toggles Data Saver mode ON or OFF."),
    ("toggle_wifi_calling", "Toggles Wi-Fi Calling ON or OFF."),
    ("reseat_sim_card", "Simulates removing and reinserting your SIM card."),
    ("reset_apn_settings", "Resets your APN settings to the default settings."),
    ("reboot_device", "Restarts your phone completely."),
)
COFFEE = tools(
    ("open_water_tank", "Opens the water tank."),
    ("descale_machine", "Descales the whole machine. Takes half an hour."),
    ("set_grinder_level", "Sets how finely the grinder grinds."),
    ("view_display", "Shows what the display says."),
)
"""No telephone, so that nothing of a telephone can be in the rule."""
TASK = Task("t", "phone", "You have no service. You want it back.", None)


def talk(asked: str, said: str, *calls: str, before: Sequence[str] = ()) -> list[Message]:
    """A conversation in which the agent asks, and the user calls these tools and then says something; ``before``: the
    tools that it had called earlier."""

    def called(names: Sequence[str]) -> list[Message]:
        asks = [Message("user", None, (ToolCall(name, name, {}, "user"),)) for name in names]
        return [m for ask in asks for m in (ask, Message("tool", "OK", tool_call_id=ask.tool_calls[0].id))]

    earlier = [Message("assistant", "Please check your phone."), *called(before), Message("user", "I see.")]
    return [
        Message("assistant", "Hi! How can I help you?"),
        Message("user", "My phone has no service."),
        *(earlier if before else []),
        Message("assistant", asked),
        *called(calls),
        Message("user", said),
    ]  # fmt: skip


def found(messages: Sequence[Message], own: Sequence[ToolSpec] = PHONE) -> list[str]:
    return [e.detail for e in find_user_errors(TASK, messages, user_tools=own) if e.rule == "omits_actions"]


@pytest.mark.parametrize(
    ("asked", "said", "tool"),
    [
        ("Please turn off airplane mode.", "I turned off airplane mode.", "toggle_airplane_mode"),
        ("Please turn off airplane mode.", "Okay, I've just switched airplane mode off.", "toggle_airplane_mode"),
        ("Please turn off airplane mode.", "Done.", "toggle_airplane_mode"),
        ("Please turn off airplane mode.", "OK, I did that.", "toggle_airplane_mode"),
        ("Please turn off airplane mode.", "I have turned it off.", "toggle_airplane_mode"),
        ("Please turn off airplane mode.", "All right, it's off now.", "toggle_airplane_mode"),
        ("Please restart your phone.", "I restarted my phone, still nothing.", "reboot_device"),
        ("Please reset your APN settings and restart.", "I have reset the APN settings.", "reset_apn_settings"),
        ("Could you reseat your SIM card?", "Sure. I removed the SIM card and put it back.", "reseat_sim_card"),
        ("Now turn off Wi-Fi calling.", "I disabled WiFi calling.", "toggle_wifi_calling"),
        ("Please turn off data saver.", "I turned the data saver off.", "toggle_data_saver_mode"),
    ],
)  # fmt: skip
def test_a_claim_without_the_call_is_found(asked: str, said: str, tool: str) -> None:
    (detail,) = found(talk(asked, said))
    assert detail.endswith(f"without a call of {tool}")


@pytest.mark.parametrize(
    ("asked", "said", "calls"),
    [
        ("Please turn off airplane mode.", "I turned off airplane mode.", ["toggle_airplane_mode"]),
        ("Please turn off airplane mode.", "Done.", ["toggle_airplane_mode"]),
        ("Please turn off airplane mode.", "Done.", ["check_network_status"]),  # it may have been off already
        ("Please turn off airplane mode.", "It is off.", []),  # it may have seen that before
        ("Please turn off airplane mode.", "How do I do that?", []),
        ("Please turn off airplane mode.", "If I turned off airplane mode, would that help?", []),
        ("Please turn off airplane mode.", "I have not turned off airplane mode.", []),
        ("Please turn off airplane mode.", "I already tried that: I turned airplane mode off before I called.", []),
        ("Please turn off airplane mode.", "Is it done?", []),
        ("Please wait a moment.", "Done.", []),
        ("Shall I refuel 2 GB of data for 4 dollars?", "Yes, done.", []),
        ("I have reset your line. Anything else?", "I made a mistake with my number.", []),
        ("What is your phone number?", "I changed my name, it is Ann Smith.", []),
    ],
)
def test_what_is_no_such_claim_is_left_alone(asked: str, said: str, calls: list[str]) -> None:
    assert found(talk(asked, said, *calls)) == []


def test_what_was_done_earlier_in_the_conversation_is_done() -> None:
    said = "I turned off airplane mode, as I said."
    assert found(talk("Is airplane mode off?", said, before=["toggle_airplane_mode"])) == []
    assert found(talk("Is airplane mode off?", said, before=["run_speed_test"])) != []


def test_of_two_actions_the_one_that_was_left_out_is_named() -> None:
    asked = "Please reset your APN settings and restart your phone."
    (detail,) = found(talk(asked, "I reset the APN settings and restarted my phone.", "reset_apn_settings"))
    assert detail == "restarted my phone, without a call of reboot_device"


def test_what_the_scenario_is_about_is_no_claim() -> None:
    said = "I have restarted my phone and it is dead."
    assert found([Message("assistant", "Hi! Shall we restart it?"), Message("user", said)]) == []
    unasked = talk("What is your number?", f"{said} 555-123.")
    assert found(unasked) == [], "the agent never spoke of it"


def test_the_actions_are_read_from_the_declarations() -> None:
    actions = {a.tool: a for a in device_actions(tuple((t.name, t.description) for t in COFFEE))}
    assert actions.keys() == {"open_water_tank", "descale_machine", "set_grinder_level"}
    assert actions["set_grinder_level"].about == {"grinder", "level"} and not actions["descale_machine"].about
    assert found(talk("Please open the water tank.", "I opened the water tank.", "view_display"), COFFEE)
    assert found(talk("Please open the water tank.", "I opened the water tank.", "open_water_tank"), COFFEE) == []
    assert found(talk("Please turn off airplane mode.", "I turned off airplane mode."), COFFEE) == []


def test_users_without_tools_omit_nothing() -> None:
    assert found(talk("Please restart your phone.", "I restarted my phone."), ()) == []


def test_one_fault_is_told_once() -> None:
    said = talk("Please restart your phone.", "I restarted my phone.")
    assert [e.rule for e in find_all(TASK, said, user_tools=PHONE)] == ["omits_actions"]
    seen = talk("Please look at the status bar.", "The status bar shows no signal.")
    assert [e.rule for e in find_all(TASK, seen, user_tools=PHONE)] == ["pretends"], "an observation is no action"


def test_a_guarded_user_is_asked_again() -> None:
    class Honest(ScriptedUser):
        async def again(self, conversation, rejected, faults):  # type: ignore[no-untyped-def]
            self.told = faults
            return await self.reply(conversation)

    assert "omits_actions" in GUARDED
    conversation = talk("Please restart your phone.", "")[:-1]
    user = Honest(["I have restarted my phone.", "How do I do that?"])
    guarded = GuardedUser(user, TASK, tools=PHONE)
    said = asyncio.run(guarded.reply(conversation)).message
    assert said.content == "How do I do that?"
    assert "says that it did something on its device" in user.told[0] and "reboot_device" in user.told[0]
    assert guarded.episode_tags()["user_guard"] == {"asked_again": 1, "fixed": 1, "left": []}


def test_a_long_text_takes_little_time() -> None:
    """Whatever a stranger's tool or user says."""
    said = "I turned " * 20_000
    many = tools(*((f"set_{'a_' * 50}{n}", "Sets " * 1000) for n in range(200)))
    assert isinstance(found(talk("Please turn off airplane mode.", said), many), list)
    assert isinstance(found(talk("please turn " * 10_000, "Done."), many), list)
