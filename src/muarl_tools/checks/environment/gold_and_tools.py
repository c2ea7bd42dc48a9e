"""Checks of what tasks do in their worlds: gold actions that work and are worth the reward, tools that refuse well."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muarl.basics.errors import DataError, InfrastructureError
from muarl.domains import authoring
from muarl.domains.checking import CheckReport, NotChecked, Problem, for_each, of_task, of_tool
from muarl.domains.gold import GoldFailure
from muarl.domains.tasks import Task
from muarl.rewards.gold import check_tasks
from muarl.types.chat import ToolCall, ToolResult
from muarl_tools.checks.environment.samples import CheckContext
from muarl_tools.checks.gold_replay import gold_ending, replayed

ENOUGH = 80
"""Tasks in which a tool must occur that is of any use."""
CALLS = 60
"""Tasks whose gold actions are made one by one."""
ODD = ("", "x", "no such", "2026-13-40")
"""What no tool expects."""
BUGS = frozenset(f"raises {bug.__name__}" for bug in (*authoring.BUGS, KeyError, IndexError, ZeroDivisionError))


def gold(context: CheckContext) -> CheckReport:
    """The gold actions of every task succeed when they are replayed."""
    if context.environment.is_benchmark:
        raise NotChecked("a benchmark's gold actions, some of which fail, count as they are")
    every = [task for split in context.splits for task in context.tasks(split)]
    failing = [(task, failures[0]) for task in every if (failures := context.broken(task))]
    found = _by_intent(context, failing)
    broken = {id(task) for task, _ in failing}
    for task in every:
        if id(task) not in broken:
            found += _unmarked(context, task)
    actions = sum(len(task.actions or ()) for task in every)
    return CheckReport(f"{actions} actions of {len(every)} tasks", tuple(found))


def _by_intent(context: CheckContext, failing: Sequence[tuple[Task, Any]]) -> list[Problem]:
    """One problem for each intent and tool whose gold actions fail."""
    groups: dict[tuple[Any, Any], list[tuple[Task, Any]]] = {}
    for task, failure in failing:
        tool = failure.action.name if isinstance(failure, GoldFailure) else None
        groups.setdefault((task.tags.get("intent"), tool), []).append((task, failure))
    return [_failing(context, *several[0], len(several) - 1) for several in groups.values()]


def _failing(context: CheckContext, task: Task, failure: Any, more: int) -> Problem:
    tool = f" [{of_tool(context.domain, failure.action.name)}]" if isinstance(failure, GoldFailure) else ""
    what = failure.what if isinstance(failure, GoldFailure) else f"its history cannot be replayed: {failure}"
    others = f"; so do {more} more tasks of this kind" if more else ""
    return Problem(f"{what.rstrip('.')}{tool}{others}", of_task(task), "Fix the action, or the tool")


def _unmarked(context: CheckContext, task: Task) -> Iterator[Problem]:
    if context.domain.allow_failing_gold:
        return
    try:
        check_tasks(context.domain, [task])
    except DataError as problem:
        yield Problem(str(problem).removeprefix(f"task {task.id}: ").rstrip("."), of_task(task))


def reward(context: CheckContext) -> CheckReport:
    """Who makes the gold actions and says what is to be said earns the whole reward; the world changes exactly where
    a write is expected; one world does not touch another."""
    tasks = context.playable(count=CALLS)
    return CheckReport(f"{len(tasks)} tasks", for_each(asyncio.run(_rewards(context, tasks))))


async def _rewards(context: CheckContext, tasks: Sequence[Task]) -> list[Problem | None]:
    try:
        return [await _reward(context, task) for task in tasks]
    except InfrastructureError as problem:
        raise NotChecked(str(problem)) from None


async def _reward(context: CheckContext, task: Task) -> Problem | None:
    where, fresh = of_task(task), await _digest(context, task)
    ending, lost = await gold_ending(context.domain, task)
    if lost:
        what = f"its gold actions are not worth the reward, for {lost}"
        return Problem(what, where, "Correct the actions, or what the reward is made of")
    if fresh != await _digest(context, task):
        return Problem("what is done in one world changes another", where, "Let tools change nothing but self.db")
    writes = any(context.domain.kind_of(action.name) == "write" for action in task.actions or ())
    if ending != fresh and not writes:
        return Problem("the world changes, though no gold action writes", where, "Mark the tool @tool(writes=True)")
    if writes and ending == fresh and set(task.reward_basis) == {"DB"}:
        return Problem("its writes change nothing, so that doing nothing is right", where, "Choose another task")
    return None


async def _digest(context: CheckContext, task: Task) -> str:
    async with replayed(context.domain, task) as fresh:
        return await fresh.world.state_digest()


def coverage(context: CheckContext) -> CheckReport:
    """Every tool that writes is needed by some task, so that what the policy says of it is practised."""
    if context.environment.is_benchmark:
        raise NotChecked("a benchmark's tasks are as they are")
    looked = sum(len(context.tasks(split)) for split in context.splits)
    if context.environment.endless and looked < ENOUGH:
        raise NotChecked(f"{looked} tasks are too few to tell (--tasks 200)")
    domain = context.domain
    used = Counter(a.name for split in context.splits for task in context.tasks(split) for a in task.actions or ())
    offered = {spec.name for task in context.tasks() for spec in domain.specs_for(task)}
    writes = [name for name in context.writing if name in offered]
    what = f"none of {looked} tasks needs it, so that nobody practises what the policy says of it"
    remedy = "Add tasks that need it, or do not offer it"
    found = tuple(Problem(what, of_tool(domain, name), remedy) for name in writes if not used[name])
    return CheckReport(f"{len(writes)} writing tools", found)


def bad_calls(context: CheckContext) -> CheckReport:
    """Calls with missing or odd arguments are refused in words, and what is refused changes nothing."""
    domain = context.domain
    if context.environment.is_benchmark or domain.semantics == "official":
        raise NotChecked("a benchmark's tools fail as the originals do")
    if context.environment.on_server:
        raise NotChecked("its tools are a server's")
    log = logging.getLogger(authoring.__name__)
    level = log.level
    log.setLevel(logging.CRITICAL)  # what is a bug is told as a problem
    try:
        task = context.tasks(count=1)[0]
        found = {spec.name: list(_of_tool(context, task, spec.name)) for spec in domain.specs_for(task)}
    finally:
        log.setLevel(level)
    problems = tuple(several[0] for several in found.values() if several)
    return CheckReport(f"{len(found)} tools, {len(ODD) + 1} calls each", problems)


def _of_tool(context: CheckContext, task: Task, name: str) -> Iterator[Problem]:
    spec = next(s for s in context.domain.specs_for(task) if s.name == name)
    properties = spec.parameters.get("properties", {})
    odd_calls: list[dict[str, Any]] = [{key: _odd(schema, odd) for key, schema in properties.items()} for odd in ODD]
    required = spec.parameters.get("required", ())
    for arguments in [{}, *odd_calls] if required else odd_calls:
        world = context.domain.world(task)
        before = world.digest()
        result = world.call("assistant", ToolCall("odd", name, arguments))
        said = _wrong(context, name, result, changed=world.digest() != before)
        if said is not None:
            yield Problem(f"called with {arguments}, {said[0]}", of_tool(context.domain, name), said[1])


def _wrong(context: CheckContext, name: str, result: ToolResult, *, changed: bool) -> tuple[str, str] | None:
    if result.error and result.cause in BUGS:
        bug = result.cause.removeprefix("raises ")
        return f"it has a bug ({bug}): {result.content}", "Refuse with ValueError and a sentence that helps"
    if changed and result.error:
        return "it refuses and changes the world", "Look at all arguments before the first change"
    if changed and context.domain.kind_of(name) == "read":
        return "it changes the world, and is not marked as writing", "Mark it @tool(writes=True)"
    return None


def _odd(schema: Mapping[str, Any], text: str) -> Any:
    """A value of the right type that stands for nothing."""
    for one in schema.get("anyOf", ()):
        if one.get("type") != "null":
            return _odd(one, text)
    if schema.get("enum"):
        return schema["enum"][0]
    plain = {"integer": 3, "number": 2.5, "boolean": True, "array": [], "object": {}}
    kind = schema.get("type")
    return plain.get(kind, text) if isinstance(kind, str) else text
