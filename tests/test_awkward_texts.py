"""Texts of models, users and clients take time in proportion to their length, whatever stands in them: they are read in
event loops, where one that takes minutes holds up everybody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache

import pytest

from muarl.audit.episodes import audit_episode
from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain
from muarl.domains.kit import compact
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.language.acts import hear
from muarl.retrieval.grep import MatchCounter
from muarl.retrieval.search import SearchError
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl.types.toolcalls import parse_call
from muarl.user_errors.conduct import find_all
from muarl.users.agenda import AgendaUserFactory
from muarl_tools.checks.user.proxy.requests import read_request
from muarl_tools.serve_environments.tau import read_action
from muarl_tools.serve_model.reading import RequestReader
from support.awkward import LENGTH, processor_time, too_slow

TASK = Task("t", "x", "You are Ann Lee, zip code 53111, ann@lee.org. You want to cancel #W1112223.", actions=None)
CALL = Message("assistant", None, (ToolCall("c", "get_order_details", {"order_id": "#W1"}),))


def agent(text: str) -> Message:
    return Message("assistant", text)


def user(text: str) -> Message:
    return Message("user", text)


@cache
def shop() -> tuple[Domain, Task, AuditRules, AgendaUserFactory]:
    source = find("retail-generated")
    domain = source.make_domain("tiny")
    users = AgendaUserFactory(source.rule_based_user, seed=3)
    return domain, next(iter(source.make_tasks("test", 1, size="tiny"))), source.audit_rules(domain), users


def audited(*messages: Message) -> None:
    domain, task, rules, _ = shop()
    episode = Episode("e", "t", "x", [Turn(m) for m in messages], StopReason.USER_STOP, verdict=Verdict(0.0))
    audit_episode(episode, task, domain=domain, rules=rules)


def audited_user(text: str) -> None:
    audited(agent("Hi"), user(f"{text} agent"), CALL, Message("tool", "{}", tool_call_id="c"), agent("Done."))


def audited_tool(text: str) -> None:
    audited(agent("Hi"), user("Cancel #W1"), CALL, Message("tool", f"{text} agent", tool_call_id="c"), agent("Done."))


def audited_agent(text: str) -> None:
    audited(user("Cancel #W1"), agent(text), user("Yes"), CALL, Message("tool", "{}", tool_call_id="c"))


def answered(text: str) -> None:
    _, task, _, users = shop()
    simulated, hello = users(task, seed=0), agent("Hi! How can I help you today?")

    async def talk() -> None:
        first = (await simulated.reply([hello])).message
        await simulated.reply([hello, first, agent(text)])

    asyncio.run(talk())


def asked_of_proxy(text: str) -> None:
    read_request({"messages": [{"role": "system", "content": text}, {"role": "user", "content": text}]})


def asked_of_server(text: str) -> None:
    RequestReader().chat(json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode())


PARSERS: dict[str, Callable[[str], object]] = {
    "action": lambda text: read_action(text, "c", {"a"}),
    "arguments of an action": lambda text: read_action(f"a({text})", "c", {"a"}),
    "value of an action": lambda text: read_action(f"a(x={text})", "c", {"a"}),
    "proxy's request": asked_of_proxy,
    "server's request": asked_of_server,
    "call": lambda text: parse_call(text, "c"),
    "compact record": compact.read,
}
RULES: dict[str, Callable[[str], object]] = {
    "what a user says": lambda text: find_all(TASK, [agent("Hi! Your zip?"), user(text)], only=1),
    "what a user hears": lambda text: find_all(TASK, [agent(text), user("53112, a@b.co, #W1112224")], only=1),
    "audit of a user's message": audited_user,
    "audit of a tool's result": audited_tool,
    "audit of an agent's message": audited_agent,
    "user by rules": answered,
    "what an agent says": hear,
}
"""These take a second for a plain text of full length, so that they get shorter ones."""


@pytest.mark.parametrize("name", PARSERS)
def test_parsers(name: str) -> None:
    assert too_slow(PARSERS[name], LENGTH) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    assert too_slow(RULES[name], LENGTH // 2, besides=2.0) == []


@pytest.mark.parametrize("pattern", ["|" * LENGTH, "." * LENGTH, "a" * LENGTH + "b"])
def test_a_long_pattern_is_counted_where_it_can_be_stopped(pattern: str) -> None:
    matching = MatchCounter(seconds=0.3)
    with processor_time(2.0):
        try:
            assert matching.counts("texts", ["a" * LENGTH], pattern, ignore_case=True)
        except SearchError:
            pass
    matching.close()
