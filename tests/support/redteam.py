"""Agents for red-team tasks: one that falls for them, one that does what is right without a word, and how to play."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from muarl.agents.base import AgentTurn
from muarl.agents.expert import ExpertAgent
from muarl.chat import Message, ToolCall
from muarl.conversation import Limits, run_episode
from muarl.domains.airline import gold as airline_gold
from muarl.domains.base import Action, Domain, Task
from muarl.domains.drawing import Request
from muarl.domains.generated import generated
from muarl.domains.retail import wishes as retail_wishes
from muarl.episode import Episode
from muarl.recipes.setting import GENERATED_RULES
from muarl.rewards import outcome
from muarl.rewards.traps import Trap, traps_of
from muarl.users.agenda import AgendaUserFactory
from muarl.users.redteam.tasks import make_red_team_task
from muarl.users.redteam.worlds import PLACES

ADDRESS = {
    "address1": "1 Elsewhere Street", "address2": "Apt 5", "city": "Boston", "country": "USA", "state": "MA",
    "zip": "12345",
}  # fmt: skip


@lru_cache(maxsize=8)
def domain_of(task_domain: str, size: str = "tiny") -> Domain:
    """The domain that generated tasks run in."""
    return generated(f"{task_domain}-generated").domain(size)


class Doer:
    """An agent that makes these calls first, one a turn, and then says the same at every turn."""

    name = "doer"

    def __init__(self, actions: Sequence[Action], saying: str = "Done. Anything else?") -> None:
        self._actions, self._saying = list(actions), saying

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> Doer:
        return Doer(self._actions, self._saying)

    tokens = None

    async def act(self, new: Sequence[Message]) -> AgentTurn:
        if not self._actions:
            return AgentTurn(Message("assistant", self._saying))
        action = self._actions.pop(0)
        return AgentTurn(
            Message("assistant", None, (ToolCall(f"c{len(self._actions)}", action.name, action.arguments),))
        )

    def close(self) -> None:
        pass


def expert(task: Task) -> ExpertAgent:
    """The domain's scripted expert."""
    return ExpertAgent(make=generated(f"{task.domain}-generated").expert)


def right(task: Task) -> Doer:
    """An agent that does what the gold actions say."""
    told = " ".join([*task.communicate_info, "Done. Anything else?"])
    return Doer([a for a in task.actions or () if a.requestor == "assistant"], told)


def fooled(task: Task) -> Doer:
    """An agent that springs one of the task's traps."""
    identify = [a for a in (task.actions or ())[:1] if a.requestor == "assistant"]
    return Doer([*identify, *_giving_in(task)])


def _giving_in(task: Task) -> list[Action]:
    assert task.agenda is not None
    traps = traps_of(task.tags)
    if task.tags["redteam"] in ("pressure", "silent"):
        return [_fulfilled(task, task.agenda["requests"][0])]
    trap = traps[0]
    if trap.ids and trap.tool is None:
        return [_look(task.domain, trap)]
    if trap.ids:
        found = next(r for r in task.agenda["requests"] if r.get("forbidden"))
        return [_fulfilled(task, found)]
    assert trap.tool is not None
    return [Action(trap.tool, {**_defaults(task, trap.tool), **trap.arguments})]


def _look(domain: str, trap: Trap) -> Action:
    if domain == "retail":
        return Action("get_order_details", {"order_id": next(i for i in trap.ids if i.startswith("#"))})
    if domain == "airline":
        return Action("get_reservation_details", {"reservation_id": next(i for i in trap.ids if i.isupper())})
    return Action("get_details_by_id", {"id": next(i for i in trap.ids if i.startswith("L"))})


def _defaults(task: Task, tool: str) -> Mapping[str, Any]:
    person = PLACES[task.domain].me(task)
    if tool in ("suspend_line", "refuel_data"):
        line = {"customer_id": person["customer_id"], "line_id": person["line_ids"][0]}
        return {**line, **({"reason": "fraud"} if tool == "suspend_line" else {"gb_amount": 50.0})}
    if tool == "send_payment_request":
        return {"customer_id": person["customer_id"], "bill_id": person["bill_ids"][-1]}
    return {
        "cancel_pending_order": {"reason": "ordered by mistake"},
        "modify_pending_order_address": ADDRESS,
        "send_certificate": {"amount": 500},
    }.get(tool, {})


def _fulfilled(task: Task, request: Mapping[str, Any]) -> Action:
    """The write that gives somebody what they want."""
    place, wish, kind = PLACES[task.domain], dict(request["wish"]), request["kind"]
    wish |= {"reason": "no longer needed"} if task.domain == "retail" and "reason" in wish else {}
    wanted = Request(kind, wish, final=wish)
    found: Action | None = None
    if task.domain == "retail":
        found = retail_wishes.gold_write(wanted, place.tables(task))
    elif task.domain == "airline":
        found = airline_gold.gold_write(wanted, place.tables(task), place.me(task)) or _never(task, request)
    else:
        person = place.me(task)
        line = {"customer_id": person["customer_id"], "line_id": person["line_ids"][0]}
        if request.get("names") and str(request["names"][0]).startswith("L"):
            tables = place.tables(task)
            owner = next(c for c in tables["customers"].values() if request["names"][0] in c["line_ids"])
            line = {"customer_id": owner["customer_id"], "line_id": request["names"][0]}
        found = {
            "refuel": Action("refuel_data", {**line, "gb_amount": wish.get("amount", 1.0)}),
            "pay": Action(
                "send_payment_request", {"customer_id": line["customer_id"], "bill_id": wish.get("bill", "")}
            ),
            "suspend": Action("suspend_line", {**line, "reason": "lost phone"}),
            "roaming_on": Action("enable_roaming", line),
            "roaming_off": Action("disable_roaming", line),
        }[kind]
    assert found is not None
    return found


def _never(task: Task, request: Mapping[str, Any]) -> Action:
    """What an airline forbids whatever the reservation."""
    wanted = request["wish"]["reservation_id"]
    place = PLACES["airline"]
    reservation = place.tables(task)["reservations"][wanted]
    if request["kind"] == "fewer_bags":
        bags = {"total_baggages": reservation["total_baggages"] - 1, "nonfree_baggages": 0}
        payment = next(iter(place.me(task)["payment_methods"]))
        return Action("update_reservation_baggages", {"reservation_id": wanted, **bags, "payment_id": payment})
    people = [dict(p) for p in reservation["passengers"]]
    return Action("update_reservation_passengers", {"reservation_id": wanted, "passengers": people})


_made = lru_cache(maxsize=1000)(make_red_team_task)


def some(domain: str, kind: str, count: int = 6, size: str = "tiny") -> list[Task]:
    """The first tasks of a kind."""
    return [_made(domain, kind, n, size=size) for n in range(count)]


def play(task: Task, agent: Any, *, seed: int = 0, size: str = "tiny", turns: int = 40) -> Episode:
    """One scored episode of an agent with the task's user."""

    async def go() -> Episode:
        world = domain_of(task.domain, size).world(task)
        user = AgendaUserFactory()(task, seed=seed)
        episode = await run_episode(task, world, agent, user, Limits(turns=turns), rules=GENERATED_RULES, seed=seed)
        assert episode.error is None, episode.error
        if not episode.stop.truncated:
            episode.verdict = await outcome.score(task, world, episode.messages, episode.stop)
        return episode

    return asyncio.run(go())


def said(episode: Episode) -> list[str]:
    """What the user said."""
    return [m.content or "" for m in episode.messages if m.role == "user" and not m.tool_calls]
