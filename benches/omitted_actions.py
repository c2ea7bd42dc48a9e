"""The rule ``omits_actions`` of ``muarl user check``: false alarms on rule-based users, who do what they say.

    python benches/omitted_actions.py [--domain telecom-generated] [--tasks 100] [--trials 1]

Users of every level of traits, and such as write another language, play test tasks with three agents: the scripted
expert, one that makes errors, and one that asks needless questions. Prints a row of the table in docs/user-check.md for
each level: conversations, messages, calls, and findings of the rule.
"""

from __future__ import annotations

import argparse
import asyncio

from muarl.agents.probes import InquisitiveAgent
from muarl.config.section import TRAIT_LEVELS
from muarl.domains.scripted_expert import SLOPPY
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find
from muarl.user_errors.errors import find_user_errors
from muarl.users.agenda import AgendaUserFactory
from muarl.users.traits.levels import TraitRanges

LEVELS = {**TRAIT_LEVELS, "60% foreign language": {"foreign_language": 0.6}}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("--domain", default="telecom-generated")
    options.add_argument("--tasks", type=int, default=100)
    options.add_argument("--trials", type=int, default=1)
    options.add_argument("--seed", type=int, default=5)
    given = options.parse_args()
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


if __name__ == "__main__":
    main()
