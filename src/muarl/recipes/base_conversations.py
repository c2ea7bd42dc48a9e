"""What a base checkpoint reads: conversations of scripted experts whose errors are drawn at random; and the same of
tasks that are held out, to measure it by."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from muarl.backends.users import make_users
from muarl.basics.errors import DataError
from muarl.basics.event_loop import event_loop
from muarl.config.section import UserConfig
from muarl.config.sections import DomainConfig
from muarl.config.stages import BaseConfig
from muarl.domains.scripted_expert import COMMON, ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.recipes.demonstrations import demonstrate
from muarl.runs.context import RunContext
from muarl.runs.results_store import ResultsStore
from muarl.runs.tasks import pretraining_seed
from muarl.types.episode import Episode

MOST, MOST_WRONG_IDS = 0.5, 0.08
"""Errors are drawn up to these shares; wrong ids are kept few, lest the model learns to copy wrongly."""
BLOCK = 500
"""Conversations that share one draw of errors."""
HELD_OUT_BLOCK = 10
"""The same of those that are held out, of which there are few."""
CONVERSATIONS = "conversations"


def conversations(context: RunContext, base: BaseConfig, user: UserConfig, places: Places) -> list[Episode]:
    """Conversations of experts with random errors; every block of them has its own. DataError if all failed."""
    count, seed = base.conversations, pretraining_seed(base)

    def drawn(start: int) -> Sequence[Task]:
        return places.draw("train", min(BLOCK, count - start), seed, start)

    episodes = _played(context, base.seed, user, places, drawn, count, BLOCK, f"base habits {base.seed}")
    if not episodes:
        raise DataError("conversations: every one failed; is the simulated user's endpoint in order?")
    return episodes


def held_out(
    context: RunContext, base: BaseConfig, user: UserConfig, domains: Sequence[DomainConfig], places: Places
) -> dict[str, list[Episode]]:
    """By domain, conversations of its validation tasks, made in the same way; domains without such tasks are left
    out."""
    made, count = {}, base.validation
    for domain, place in zip(domains, places, strict=True):
        if count and "validation" in find(domain.name).splits:
            tasks = place.draw("validation", count, pretraining_seed(base), 0)

            def drawn(start: int, tasks: Sequence[Task] = tasks) -> Sequence[Task]:
                return tasks[start : start + HELD_OUT_BLOCK]

            habits = f"held-out habits {base.seed} {place.name}"
            alone = Places([place])
            made[place.name] = _played(context, base.seed, user, alone, drawn, len(tasks), HELD_OUT_BLOCK, habits)
    return {name: episodes for name, episodes in made.items() if episodes}


def _played(
    context: RunContext,
    seed: int,
    user: UserConfig,
    places: Places,
    drawn: Callable[[int], Sequence[Task]],
    count: int,
    block: int,
    habits: str,
) -> list[Episode]:
    """The conversations of ``count`` tasks, block by block. Those with a language model as the user are paid for, and
    would be others a second time: they are kept in the run's folder for when it is resumed."""
    users = make_users(user, places, context.backend.compute)
    rng = random.Random(habits)
    name = CONVERSATIONS if block == BLOCK else f"held-out {places.name}"
    episodes: list[Episode] = []
    with event_loop() as loop, context.progress.phase(name, count, "conversations") as phase:
        loop.closes(users)
        for start in range(0, count, block):
            errors = {field: rng.random() * MOST for field in COMMON}
            error_profile = ErrorProfile(**errors | {"wrong_id": rng.random() * MOST_WRONG_IDS})
            tasks = drawn(start)
            store_name = f"{name.replace(' ', '-')}-{start}"
            results = ResultsStore(context.folder, store_name, phase=store_name) if user.kind == "llm" else None
            episodes += demonstrate(places, users, tasks, error_profile, seed=seed + start, results=results)
            phase.advance(len(tasks))
    return episodes
