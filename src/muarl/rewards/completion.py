"""How much of a task was done, beside whether all of it was: a metric, and never part of a reward.

What was to be done are the task's expected changes (its gold actions that write, by either side), the hand-over where
one is right, what the agent had to say, and assertions that do not hold from the start. What was done besides takes
nothing away: success, and the audit, tell that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from muarl.basics.errors import InfrastructureError
from muarl.domains.auditing import spelled_out
from muarl.domains.base import World
from muarl.domains.tasks import Action, Task
from muarl.rewards.checks import Checks, asserted
from muarl.rewards.gold import exempt, slow
from muarl.rewards.replay import ReplayError, replay
from muarl.types.chat import Message, ToolCall

COMPLETION = "completion"
"""Its name in ``Verdict.audit``."""


def expected(task: Task, kind_of: Callable[[str], str]) -> tuple[Action, ...]:
    """The gold actions that are to be done: those that write, and others that are no look-ups (a hand-over) where the
    reward asks for the actions themselves."""
    asked = "ACTION" in task.reward_basis

    def counts(action: Action) -> bool:
        kind = _kind(kind_of, action.name)
        return kind == "write" or (asked and kind == "generic")

    return tuple(action for action in task.actions or () if counts(action))


def is_counted(task: Task, kind_of: Callable[[str], str]) -> bool:
    """Whether there is anything to be done in a task: where a refusal is right, there is nothing."""
    return bool(task.communicate_info or task.env_assertions or expected(task, kind_of))


def completion(task: Task, world: World, messages: Sequence[Message], checks: Checks, *, success: bool) -> float | None:
    """The share of what was to be done that was done, in [0, 1]; None where nothing was.

    ``success``: it is 1 then, whichever way was taken. ``checks``: the task's criteria. An expected change counts as
    made if a call that went through has its name and arguments, or if the database is as it should be. Tasks of TAU2's
    telecom have the rate that MUA-RL reports (``Checks.completion``), in which all gold actions and assertions count.
    """
    if task.env_assertions and exempt(world.domain, task):
        return checks.completion
    actions = expected(task, world.domain.kind_of)
    in_place = [_kind(world.domain.kind_of, action.name) == "write" and checks.db is True for action in actions]
    done = [brought_about or called for brought_about, called in zip(in_place, made(actions, messages), strict=True)]
    everything = [*done, *checks.communicate, *_brought_about(task, world, checks)]
    if not everything:
        return None
    return 1.0 if success else sum(everything) / len(everything)


def made(actions: Sequence[Action], messages: Sequence[Message]) -> tuple[bool, ...]:
    """For each action whether a call that was answered without an error is it; one call is one action."""
    left = list(_succeeded(messages))
    out = []
    for action in actions:
        match = next((call for call in left if _is(action, call)), None)
        out.append(match is not None)
        left = [call for call in left if call is not match]
    return tuple(out)


def _succeeded(messages: Sequence[Message]) -> Iterator[ToolCall]:
    for index, message in enumerate(messages):
        for number, call in enumerate(message.tool_calls, 1):
            answer = messages[index + number] if index + number < len(messages) else None
            if answer is None or answer.role != "tool" or call.invalid is not None:
                continue
            fault = answer.failed
            if not answer.error or (fault is not None and fault.ran and fault.writes):  # timed out, and carried out
                yield call


def _is(action: Action, call: ToolCall) -> bool:
    if action.name != call.name:
        return False
    expected_arguments, actual_arguments = spelled_out(action.arguments), spelled_out(call.arguments)
    if action.compare_args is not None:
        expected_arguments = {name: expected_arguments.get(name) for name in action.compare_args}
        actual_arguments = {name: actual_arguments.get(name) for name in action.compare_args}
    return _plain(expected_arguments) == _plain(actual_arguments)


def _plain(arguments: Mapping[str, Any]) -> str:
    """Arguments as text: 1 and 1.0 are the same, and so are null ones and those that are not given."""
    return json.dumps(_numbers(arguments), sort_keys=True, default=str)


def _numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _numbers(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_numbers(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _brought_about(task: Task, world: World, checks: Checks) -> list[bool]:
    """Which assertions hold, of those that do not hold from the start."""
    if not task.env_assertions or slow(world):
        return list(checks.env_assertions)
    try:
        fresh = world.domain.world(task)
        if task.history:
            replay(fresh, task.history)
        before = asserted(task, fresh)
    except (ReplayError, InfrastructureError):  # whatever is wrong with it, the scoring itself has told
        return list(checks.env_assertions)
    return [now for then, now in zip(before, checks.env_assertions, strict=True) if not then]


def _kind(kind_of: Callable[[str], str], name: str) -> str:
    try:
        return kind_of(name)
    except KeyError:  # a gold action without a tool
        return "read"
