"""The rule ``omits_actions`` of ``muarl user check``: false alarms on rule-based users, who do what they say.

    python benches/omitted_actions.py [--domain telecom-generated] [--tasks 100] [--trials 1]
    python benches/omitted_actions.py --omitting [--domain telecom-generated] [--tasks 60]

Users of every level of traits, and such as write another language, play test tasks with three agents: the scripted
expert, one that makes errors, and one that asks needless questions. Prints a row of the table in
docs/history/user-check.md for each level: conversations, messages, calls, and findings of the rule.

``--omitting``: how many tasks the expert solves with users who say "Done." to each change that they are asked for,
once, and do it only when they are asked for it again, or with the next step.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from muarl.agents.probes import InquisitiveAgent
from muarl.config.section import TRAIT_LEVELS
from muarl.domains.kit import templates
from muarl.domains.kit.device import Step
from muarl.domains.scripted_expert import SLOPPY
from muarl.domains.tasks import Task
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find
from muarl.user_errors.errors import find_user_errors
from muarl.users.agenda import AgendaUserFactory
from muarl.users.agenda_device import Deeds, DeviceAgendaUser
from muarl.users.agenda_service import parts_of
from muarl.users.base import User
from muarl.users.traits.levels import TraitRanges

LEVELS = {**TRAIT_LEVELS, "60% foreign language": {"foreign_language": 0.6}}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("--domain", default="telecom-generated")
    options.add_argument("--tasks", type=int, default=100)
    options.add_argument("--trials", type=int, default=1)
    options.add_argument("--seed", type=int, default=5)
    options.add_argument("--omitting", action="store_true")
    given = options.parse_args()
    if given.omitting:
        omitting(given.domain, given.tasks, given.seed)
        return
    environment = find(given.domain)
    place = environment.place()
    tasks = environment.make_tasks("test", given.tasks, seed=given.seed)
    by_id = {task.id: task for task in tasks}
    expert = place.expert_agent()
    print("| users | conversations | messages | calls | found |\n|---|---:|---:|---:|---:|")
    for level, traits in LEVELS.items():
        users = AgendaUserFactory(place.needed_user(), traits=TraitRanges.of(traits))
        conversations = messages = calls = found = 0
        for agent in (expert, place.expert_agent(SLOPPY), InquisitiveAgent(expert)):
            played = asyncio.run(play_in(Places([place]), agent, users, tasks, given.trials, seed=given.seed))
            for episode in played.episodes:
                task = by_id[episode.task_id]
                own = [m for m in episode.messages if m.role == "user"]
                errors = find_user_errors(task, episode.messages, user_tools=place.user_tools(task))
                conversations += 1
                messages += sum(not m.tool_calls for m in own)
                calls += sum(bool(m.tool_calls) for m in own)
                found += sum(e.rule == "omits_actions" for e in errors)
        print(f"| {level} | {conversations} | {messages:,} | {calls:,} | {found} |", flush=True)


class Omitting(DeviceAgendaUser):
    """Says "Done." to each change, once. ``late``: does it before the next step that it is asked for."""

    late = False
    _left: Sequence[Step] = ()

    def _do(self, steps: Sequence[Step]) -> str | Deeds:
        names = "omitted " + ", ".join(step.name for step in steps)
        new = any(self._changing(step) for step in steps) and names not in self._asked and not self._left
        if new:
            self._asked.add(names)
            self._left = steps if self.late else ()
            return self._pick(templates.DID)
        steps, self._left = [*self._left, *(s for s in steps if s not in self._left)], ()
        return super()._do(steps)


class Late(Omitting):
    """The same, who makes up for it."""

    late = True


def omitting(domain: str, count: int, seed: int) -> None:
    """Print how many tasks the expert solves with each kind of user, and in how many conversations the rule speaks."""
    environment = find(domain)
    place = environment.place()
    tasks = environment.make_tasks("test", count, seed=seed)
    by_id = {task.id: task for task in tasks}
    print("| users | solved | of | conversations with findings |\n|---|---:|---:|---:|")
    for kind, what in ((DeviceAgendaUser, "honest"), (Omitting, "until asked again"), (Late, "until the next step")):

        def make(task: Task, *, seed: int, persona: str | None = None, kind: Any = kind) -> User:
            made = parts_of(place.needed_user(), task)
            assert made is not None
            user: User = kind(task, seed=seed, persona=persona, **made[1])
            return user

        played = asyncio.run(play_in(Places([place]), place.expert_agent(), AgendaUserFactory(make), tasks, 1, seed=1))
        found = solved = 0
        for episode in played.episodes:
            task = by_id[episode.task_id]
            errors = find_user_errors(task, episode.messages, user_tools=place.user_tools(task))
            found += any(e.rule == "omits_actions" for e in errors)
            solved += episode.reward == 1
        print(f"| {what} | {solved} | {len(played.episodes)} | {found} |", flush=True)


if __name__ == "__main__":
    main()
