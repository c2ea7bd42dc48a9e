"""The service desks of companies: tasks, what is right in them, the expert, and what agents get away with."""

from __future__ import annotations

import json
from functools import cache

import pytest

from muarl.types.chat import ToolCall
from muarl_worlds.companies import finding
from muarl_worlds.companies.making import company
from muarl_worlds.companies.wording import value_in_words
from support.companies import NAMES, first_shown, for_all
from support.kit import calls, env, expert, made, mean


@cache
def domain_of(name, size):
    return env(name).make_domain(size)


def company_of(name, size, task):
    return company(domain_of(name, size).trade, next(iter(task.database.tables["company"])))


def used(task):
    """The tools that documents name which the gold actions use, with their arguments."""
    for action in task.actions:
        given = action.arguments
        if action.name == "call_discoverable_agent_tool":
            yield given["agent_tool_name"], json.loads(given["arguments"])
        if action.name == "give_discoverable_user_tool":
            yield given["discoverable_tool_name"], json.loads(given["arguments"])


@pytest.mark.parametrize("size", ["tiny", "small"])
@pytest.mark.parametrize("name", NAMES)
def test_gold_uses_what_holds_and_the_searches_show_it(name, size):
    """Against the company's own rules, which the plans do not see; and everything that a write needs was shown."""
    checked = 0
    for task in made(name, size, "train", 16):
        own, world, shown = company_of(name, size, task), domain_of(name, size).world(task), ""
        tables = task.database.tables
        for action in task.actions:
            result = world.call("assistant", ToolCall("gold", action.name, action.arguments))
            assert not result.error, result.content
            for tool, given in used_in(action):
                procedure = own.tools[tool]
                operation = own.trade.operation(procedure.operation)
                contract = tables["contracts"][given[dict(procedure.arguments)["contract"]]]
                group = tables["customers"][contract["customer_id"]]["group"]
                product = contract["product"]
                assert procedure == own.procedure(operation.name, own.trade.family(product))
                rule = own.rule(operation.topic, product, group)
                values = {role: given[name_] for role, name_ in procedure.arguments}
                assert values["code"] == procedure.code
                if operation.kind == "charge":
                    assert values["fee"] == rule.value
                elif operation.kind == "amount":
                    assert values["amount"] <= rule.value
                elif operation.kind == "switch":
                    assert values["target"] == rule.value
                else:
                    assert contract["held_for_days"] >= rule.value
                for needed in (tool, procedure.code, value_in_words(rule.value, own.trade.topic(rule.topic).unit)):
                    assert needed in shown
                checked += 1
            shown += result.content
    assert checked > 5


def used_in(action):
    return used(type("One", (), {"actions": [action]}))


@pytest.mark.parametrize("name", NAMES)
def test_held_out_companies_are_never_trained_on(name):
    def companies(split):
        return {next(iter(task.database.tables["company"])) for task in made(name, "tiny", split, 16)}

    trained = companies("train")
    assert all("-known-" in key for key in trained | companies("validation"))
    assert all("-new-" in key for key in companies("test"))
    assert len(trained) > 5


@pytest.mark.parametrize("name", NAMES)
def test_people_of_the_splits_differ(name):
    def people(split):
        return {c["name"] for t in made(name, "tiny", split, 16) for c in t.database.tables["customers"].values()}

    assert not people("train") & people("validation") and not people("train") & people("test")


@pytest.mark.parametrize("careless", [first_shown, for_all])
def test_careless_reading_costs(monkeypatch, careless):
    tasks = made("bank-knowledge", "tiny", "test", 60)
    monkeypatch.setattr(finding, "rule_that_holds", careless)
    assert mean(expert("bank-knowledge", tasks, "tiny")) < 0.97


def test_searching_costs_and_locked_tools_do_not_work():
    domain = domain_of("bank-knowledge", "small")
    task = next(t for t in made("bank-knowledge", "small", "train", 16) if any(True for _ in used(t)))
    own = company_of("bank-knowledge", "small", task)
    world = domain.world(task)
    procedure = next(p for p in own.procedures if p.mode == "call")

    def call(name, **given):
        return world.call("assistant", ToolCall("c", name, given))

    locked = call("call_discoverable_agent_tool", agent_tool_name=procedure.tool, arguments="{}")
    assert locked.error and "locked" in locked.content
    assert call("unlock_discoverable_agent_tool", agent_tool_name="close_account_0").error
    shown = call("unlock_discoverable_agent_tool", agent_tool_name=procedure.tool)
    assert not shown.error and all(name in shown.content for _, name in procedure.arguments)
    for wrong in ("{", "[]", '{"fee": 1}', json.dumps({name: 1 for _, name in procedure.arguments})):
        before = world.digest()
        refused = call("call_discoverable_agent_tool", agent_tool_name=procedure.tool, arguments=wrong)
        assert refused.error and world.digest() == before
    direct = call(procedure.tool)
    assert direct.error and direct.cause == "unknown tool"
    assert call("give_discoverable_user_tool", discoverable_tool_name=procedure.tool, arguments="{}").error
    assert "No document" in call("KB_search", query="zzz").content
    assert not call("grep", pattern="closing fee|card fee").error


def test_the_wrong_fee_is_another_state():
    """A tool takes any fee: whether it is the right one shows in the state only."""
    domain = domain_of("bank-knowledge", "tiny")
    task = next(t for t in made("bank-knowledge", "tiny", "train", 16) if any("call" in a.name for a in t.actions))
    ends = []
    for more in (0, 5):
        world = domain.world(task)
        for action in task.actions:
            given = dict(action.arguments)
            if action.name == "call_discoverable_agent_tool":
                numbers = json.loads(given["arguments"])
                changed = {k: v + more if isinstance(v, int) else v for k, v in numbers.items()}
                given["arguments"] = json.dumps(changed)
            assert not world.call("assistant", ToolCall("c", action.name, given)).error
        ends.append(world.digest())
    assert ends[0] != ends[1]


def test_the_index_is_made_once_for_all_worlds_of_a_company():
    domain = domain_of("utility-knowledge", "small")
    one, other = made("utility-knowledge", "small", "train", 2)
    assert domain.world(one).toolkit().knowledge is domain.world(other).toolkit().knowledge


def test_a_conversation_searches_before_it_writes():
    for episode in expert("insurer-knowledge", made("insurer-knowledge", "tiny", "test", 20), "tiny"):
        names = [call.name for call in calls(episode)]
        if "call_discoverable_agent_tool" in names:
            assert names.index("KB_search") < names.index("unlock_discoverable_agent_tool")
            assert names.index("unlock_discoverable_agent_tool") < names.index("call_discoverable_agent_tool")
