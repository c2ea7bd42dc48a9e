"""How far the world is on the way to its right final state, before each of the agent's turns.

It is read off the states that an episode's recorded calls lead to, compared with the one that the task's gold actions
lead to. **Progress is never paid**: who is paid for it repeats a write, or undoes and redoes it. It is what outcomes
are compared at (learning/progress_credit.py).
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
class Progress:
    """A state of the world, before one of the agent's turns. ``right``: records that are as the right final state has
    them and were not so at the start; ``left``: that still are not; ``wrong``: records that are neither as at the start
    nor as they should be; ``asked``: whether the agent has asked for a yes and nothing was written since."""

    right: int
    left: int
    wrong: int
    asked: bool

    @property
    def potential(self) -> float:
        """The share of the right changes that are made, less the wrong ones: within [-1, 1], 0 where there are none."""
        whole = self.right + self.left
        return max(-1.0, (self.right - self.wrong) / whole if whole else -float(self.wrong > 0))


def turn_scores(domain: Domain, task: Task, episode: Episode) -> list[float] | None:
    """How far the world was after each of the agent's messages: ``Progress.potential``, for trainers that give credit
    by turn. It is no reward: paid by itself, it is gamed; see this module's docstring. None where it cannot be had."""
    found = _tried(domain, task, episode)
    if found is None:
        return None
    before, end = found
    begun = next((n for n, turn in enumerate(episode.turns) if turn.message.role == "user"), 0)
    own = [progress.potential for index, progress in before if index >= begun]
    return [*own[1:], end.potential] if own else []


def progress_of(domain: Domain, task: Task, episode: Episode) -> list[Progress] | None:
    """The progress before each of the agent's sampled turns. None where it cannot be had: the task does not say what is
    right, its tools run elsewhere, or the calls cannot be run again."""
    found = _tried(domain, task, episode)
    return None if found is None else [p for index, p in found[0] if episode.turns[index].span is not None]


_Found = tuple[list[tuple[int, Progress]], Progress]
"""The progress before each of the agent's messages, with their indices among the turns, and at the end."""


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

    def progress(now: State, asked: bool) -> Progress:
        right = sum(at(now, key) == at(gold, key) for key in due)
        wrong = sum(at(now, key) not in (at(start, key), at(gold, key)) for key in now)
        return Progress(right, len(due) - right, wrong, asked)

    out: list[tuple[int, Progress]] = []
    now, asked = start, False
    for index, turn in enumerate(episode.turns):
        if turn.message.role == "assistant":
            out.append((index, progress(now, asked)))
        for number in range(len(turn.message.tool_calls)):
            before, now = now, after.get((index, number), now)
            asked = asked and now == before
        if turn.message.role == "assistant" and turn.message.content:
            asked = asks_for_yes(turn.message.content)
    return out, progress(now, asked)
