"""How far the world is on the way to its right final state, before each of the agent's turns.

It is read off the states that an episode's recorded calls lead to, compared with the one that the task's gold actions
lead to. **Progress is never paid**: who is paid for it repeats a write, or undoes and redoes it. It is what outcomes
are compared at (rewards/known_outcomes.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from muarl.basics.errors import MuarlError
from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.language.acts import asks_for_yes
from muarl.rewards.gold import gold_world, slow
from muarl.rewards.replay import replay
from muarl.rewards.state_changes import State, base_record, compared_state, recorded_answers, state_of
from muarl.types.episode import Episode


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """A state of the world, before one of the agent's turns."""

    right: int
    """Records that are as the right final state has them and were not so at the start."""
    left: int
    """Records that still are not."""
    wrong: int
    """Records that are neither as at the start nor as they should be."""
    asked: bool
    """Whether the agent has asked for a yes and nothing was written since."""

    def key(self, kind: str) -> str:
        """The place at which outcomes of tasks of a kind are compared: wrong changes count up to two."""
        return f"{kind} {self.right} {self.left} {min(self.wrong, 2)} {int(self.asked)}"


def progress_by_message(domain: Domain, task: Task, episode: Episode) -> list[TaskProgress] | None:
    """The progress before each of the agent's messages, whoever sampled them. None as for ``progress_of``."""
    steps = _tried(domain, task, episode)
    begun = next((n for n, turn in enumerate(episode.turns) if turn.message.role == "user"), 0)
    return None if steps is None else [progress for index, progress in steps if index >= begun]


def progress_of(domain: Domain, task: Task, episode: Episode) -> list[TaskProgress] | None:
    """The progress before each of the agent's sampled turns. None where it cannot be had: the task does not say what is
    right, its tools run elsewhere, or the calls cannot be run again."""
    steps = _tried(domain, task, episode)
    return None if steps is None else [p for index, p in steps if episode.turns[index].span is not None]


_Found = list[tuple[int, TaskProgress]]
"""The progress before each of the agent's messages, with their indices among the turns."""


def _tried(domain: Domain, task: Task, episode: Episode) -> _Found | None:
    if task.actions is None or domain.waits or slow(domain.world(task)):
        return None
    try:
        return _progress(domain, task, episode)
    except MuarlError:
        return None


def _progress(domain: Domain, task: Task, episode: Episode) -> _Found:
    world = domain.world(task)
    if task.history:
        replay(world, task.history)
    start = compared_state(state_of(world), world)
    gold = compared_state(state_of(gold_world(domain, task)), world)

    def at(state: State, key: tuple[str, str]) -> object:
        return state[key] if key in state else base_record(world, key)

    due = [key for key in gold if at(gold, key) != at(start, key)]
    skipped = len(task.history)
    after = {
        (index + skipped, number): compared_state(state_of(world), world)
        for (index, number), *_ in recorded_answers(world, episode.messages[skipped:])
    }
    out: _Found = []
    now, asked = start, False
    for index, turn in enumerate(episode.turns):
        if turn.message.role == "assistant":
            right = sum(at(now, key) == at(gold, key) for key in due)
            wrong = sum(at(now, key) not in (at(start, key), at(gold, key)) for key in now)
            out.append((index, TaskProgress(right, len(due) - right, wrong, asked)))
        for number in range(len(turn.message.tool_calls)):
            before, now = now, after.get((index, number), now)
            asked = asked and now == before
        if turn.message.role == "assistant" and turn.message.content:
            asked = asks_for_yes(turn.message.content)
    return out
