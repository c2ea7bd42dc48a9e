"""Users with a device of their own: plans instruct them, the rule-based user does what it is told, tasks prove it."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any, ClassVar

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.basics.errors import ConfigError
from muarl.domains.base import Domain, World
from muarl.domains.kit.device import OVER, BrokenDevice, Device, Step, Trouble
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.environments.environment import GENERATED_RULES, Environment
from muarl.kit import Fact, Identity, Maker, Plan, Service, environment, intent, pattern
from muarl.language.user_acts import tells_works
from muarl.rewards import outcome
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.chat import Message
from muarl.users.agenda import AgendaUserFactory


class Box(Domain):
    """A router at home, with a switch and a cable."""

    name = "box"
    database: ClassVar[Any] = {"boxes": {"mine": {"on": True, "cable": "in", "line": "open"}}}

    @tool
    def check_lamp(self) -> str:
        """Look at the lamp."""
        return "The lamp is green." if self.works() else "The lamp is red."

    @tool
    def check_back(self) -> str:
        """Look at the back of the box."""
        mine = self.db.boxes["mine"]
        return f"The switch is {'up' if mine['on'] else 'down'}, the cable is {mine['cable']}."

    @tool(writes=True)
    def flip_switch(self) -> str:
        """Flip the switch."""
        self.db.boxes["mine"]["on"] = not self.db.boxes["mine"]["on"]
        return f"The switch is {'up' if self.db.boxes['mine']['on'] else 'down'}."

    @tool(writes=True)
    def push_cable(self) -> str:
        """Push the cable in."""
        self.db.boxes["mine"]["cable"] = "in"
        return "The cable is in."

    def works(self) -> bool:
        return bool(
            self.db.boxes["mine"]["on"]
            and self.db.boxes["mine"]["cable"] == "in"
            and self.db.boxes["mine"]["line"] == "open"
        )

    def assert_works(self, expected: bool) -> bool:
        return self.works() is expected

    def break_it(self, **fields: Any) -> None:
        for name, value in fields.items():
            self.db.boxes["mine"][name] = value


class Provider(Domain):
    """An internet provider."""

    name = "provider"
    policy = "Help customers whose internet is down."
    user_toolkit = Box

    @tool
    def find_customer(self, number: str) -> dict[str, Any]:
        """Find a customer."""
        found = next((one for one in self.db.customers.values() if one["number"] == number), None)
        if found is None:
            raise ValueError("nobody has that number")
        return dict(found)

    @tool(writes=True)
    def open_line(self, customer_id: str) -> dict[str, Any]:
        """Open a customer's line."""
        self.db.customers[customer_id]["opened"] += 1
        return {"customer_id": customer_id}

    @tool
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over."""
        return "done"

    def prepare(self, world: World) -> None:
        for action in world.task.initial_actions if world.task else ():
            getattr(world.toolkit(action["env_type"]), action["func_name"])(**action["arguments"])


def read(text: str) -> dict[str, str]:
    facts = {"lamp green": {"lamp": "green"}, "lamp red": {"lamp": "red"}, "switch up": {"switch": "up"}}
    facts |= {"switch down": {"switch": "down"}, "cable in": {"cable": "in"}, "cable out": {"cable": "out"}}
    said = text.lower().replace(" is ", " ")
    return {name: value for words, fact in facts.items() if words in said for name, value in fact.items()}


WORDS = {part: {state: f"the {part} {state}" for state in ("green", "red", "up", "down", "in", "out")}
         for part in ("lamp", "switch", "cable")}  # fmt: skip
LOOK = Step(name="look", says="Please look at the back of the box.", calls=[("check_back", {})])
SWITCH = Step(
    name="switch", says="Please bring the switch up.", calls=[("flip_switch", {})], look="check_back",
    sets={"switch": "up"}, heard=r"switch (?:it )?up|switch on",
)  # fmt: skip
CABLE = Step(name="cable", says="Please push the cable in.", calls=[("push_cable", {})])


def broken(rng: random.Random, drawn: Any, split: str, solvable: bool) -> BrokenDevice:
    wrong: dict[str, Any] = rng.choice([{"on": False}, {"cable": "out"}, {"on": False, "cable": "out"}])
    wrong |= {} if solvable else {"line": "shut"}
    actions = [{"env_type": "user", "func_name": "break_it", "arguments": wrong}]
    check = {"env_type": "user", "func_name": "assert_works", "arguments": {"expected": solvable}}
    return BrokenDevice(actions, lambda goal: [check], sorted(wrong))


DOWN = Trouble(shown_by="check_lamp", over=lambda facts: facts.get("lamp") == "green", breaks=broken)


@intent(says="get my internet to work", trouble=DOWN)
def internet_down(it: Plan) -> None:
    facts = it.instruct(LOOK)
    if facts.switch == "down":
        it.instruct(SWITCH)
    if facts.cable == "out":
        it.instruct(CABLE)
    it.transfer("The line is dead.")


def tables(maker: Maker) -> dict[str, Any]:
    people = [{"customer_id": maker.id("customer", "C-", 4), "name": maker.name(), "number": maker.id("n", "N-", 4)}
              for _ in range(maker.people)]  # fmt: skip
    return {"customers": {one["customer_id"]: {**one, "opened": 0} for one in people}}


def service(**more: Any) -> Service:
    identity = Identity(
        tool="find_customer", table="customers", key="customer_id", ask="What is your number?", say="It is {number}.",
        facts=(Fact("number", pattern("N-[0-9]{4}"), tells="My number is {number}."),),
    )  # fmt: skip
    given = {
        "domain": Provider, "about": "an internet provider", "today": "2026-03-14", "intents": (internet_down,),
        "identity": identity, "tables": tables, "device": Device(read=read, words=WORDS, steps=(LOOK, SWITCH, CABLE)),
    }  # fmt: skip
    return Service(**{**given, **more})


@pytest.fixture(scope="module")
def provider() -> Environment:
    return environment(service())


def tasks(provider: Environment, count: int) -> list[Task]:
    return list(itertools.islice(provider.tasks("train", size="small"), count))


def play(provider: Environment, made: list[Task], **errors: float) -> list[Any]:
    runner = EpisodeRunner(
        make_world=provider.domain("small").world,
        agent=ExpertAgent(ErrorProfile(**errors), make=provider.expert),
        make_user=AgendaUserFactory(provider.rule_based_user, seed=1),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        rules=GENERATED_RULES,
    )
    return asyncio.run(rollout(requests_for(made, 1, seed=0), LocalExecutor(runner.play))).episodes


def test_tasks_are_broken_and_their_gold_actions_mend_them(provider):
    made = [t for t in tasks(provider, 40) if t.agenda["requests"][0]["kind"] == "internet_down"]
    mended = [t for t in made if t.tags["intent"] == "internet_down"]
    assert mended and {t.tags["faults"] for t in mended} == {"on", "cable", "cable|on"}
    for task in mended:
        assert task.reward_basis == ("ENV_ASSERTION",) and task.initial_actions
        assert all(a.requestor == "user" for a in task.actions[1:]) and len(task.actions) > 1
    handed = [t for t in made if t.tags["intent"].endswith("_handover")]
    assert all("line" in t.tags["faults"] and t.reward_basis == ("ENV_ASSERTION", "ACTION") for t in handed)


def test_expert_and_user_get_through_every_task(provider):
    episodes = play(provider, tasks(provider, 60))
    assert [e.id for e in episodes if e.reward != 1] == []
    used = {c.name for e in episodes for m in e.messages if m.role == "user" for c in m.tool_calls or ()}
    assert used == {"check_back", "flip_switch", "push_cable", "check_lamp"}


def test_experts_who_give_up_after_a_step_are_marked_down(provider):
    made = [t for t in tasks(provider, 60) if t.tags.get("faults") == "cable|on" and "handover" not in t.tags["intent"]]
    assert made and all(e.reward == 0 for e in play(provider, made, transfer_if_unavailable=1.0))


class Caller:
    """A user of one task, and its box."""

    def __init__(self, provider: Environment, faults: str) -> None:
        task = next(t for t in tasks(provider, 80) if t.tags.get("faults") == faults and t.agenda["persona"] == "terse")
        self.world = provider.domain("small").world(task)
        self.user = provider.rule_based_user(task, seed=0)
        self.messages: list[Message] = []
        self.hear("Hello.")

    def hear(self, text: str) -> str:
        self.messages.append(Message("assistant", text))
        self.did: list[str] = []
        for _ in range(10):
            message = asyncio.run(self.user.reply(self.messages)).message
            self.messages.append(message)
            if not message.tool_calls:
                return message.content or ""
            (call,) = message.tool_calls
            self.did.append(call.name)
            result = self.world.call("user", call)
            self.messages.append(Message("tool", result.content, tool_call_id=call.id, requestor="user"))
        raise AssertionError(self.did)


def test_users_tell_what_they_see_and_nothing_else(provider):
    caller = Caller(provider, "cable")
    assert caller.hear("Please look at the back of the box.") == "It says the switch up, the cable out."
    assert caller.did == ["check_back"]


def test_a_switch_that_is_right_already_is_not_turned_over(provider):
    caller = Caller(provider, "cable")
    caller.hear("Could you bring the switch up?")
    assert caller.did == ["check_back"] and caller.world.toolkit("user").db.boxes["mine"]["on"]


def test_users_see_for_themselves_whether_the_trouble_is_over(provider):
    caller = Caller(provider, "cable|on")
    assert tells_works(caller.hear("Please bring the switch up.")) is False
    assert caller.did == ["check_back", "flip_switch", "check_lamp"]
    assert tells_works(caller.hear("Now please push the cable in.")) is True
    assert "###STOP###" in caller.hear("Is there anything else I can do for you?")


def test_users_are_not_told_that_it_works(provider):
    caller = Caller(provider, "cable")
    assert tells_works(caller.hear("That has been done. Anything else?")) is False and caller.did == ["check_lamp"]


def test_scenarios_say_how_to_use_the_device(provider):
    assert all("You have tools of your own" in task.scenario for task in tasks(provider, 3))


def test_told_facts_are_read_back():
    device = Device(read=read, words=WORDS)
    assert device.told(f"I think it says {device.tell({'switch': 'down', 'cable': 'in'})}.") == {
        "switch": "down", "cable": "in",
    }  # fmt: skip
    assert device.report({"switch": "up"}, over=False) == {"lamp": "", "switch": "up", "cable": "", OVER: False}
    assert Device(read=read, words={}).told("Nothing.") == {}


def test_plans_may_only_instruct_users_who_have_something_at_hand():
    with pytest.raises(ConfigError, match="internet_down.*instructs the user, and the service has no device"):
        next(environment(service(device=None)).tasks("train", size="small"))


def test_steps_are_heard_by_a_regular_expression():
    with pytest.raises(ConfigError, match="step lamp: heard: .* is no regular expression"):
        Step(name="lamp", heard="(")
