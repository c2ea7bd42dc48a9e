"""Generated BFCL tasks for tests: drawn once, played by an agent against their scripted users, and scored; and single
requests served in worlds of their own."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.domains.generated import Infeasible
from muarl.domains.kit.records import Record
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task
from muarl.environments.environment import GENERATED_RULES
from muarl.rewards import outcome
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.types.episode import Episode
from muarl_worlds.bfcl import generator, recipes, requests
from muarl_worlds.bfcl.api import Api
from muarl_worlds.bfcl.expert import BfclExpert
from muarl_worlds.bfcl.generated import generated_bfcl
from muarl_worlds.bfcl.recipes import Recipe, Scene, Slots
from muarl_worlds.bfcl.scenes import SIZES, make_scene
from support.environments import users_of


@cache
def _drawn(size: str, split: str, seed: int) -> tuple[list[Task], Iterator[Task]]:
    return [], generator.iter_tasks(split, size=size, seed=seed)


def made(size: str, split: str, count: int, seed: int = 0) -> tuple[Task, ...]:
    """The first tasks of a split; all tests share them."""
    tasks, more = _drawn(size, split, seed)
    while len(tasks) < count:
        tasks.append(next(more))
    return tuple(tasks[:count])


def play(agent: Agent, tasks: Sequence[Task], size: str = "tiny") -> list[Episode]:
    """One scored episode of every task."""
    runner = EpisodeRunner(
        make_world=generated_bfcl(size).world,
        agent=agent,
        make_user=users_of("bfcl", seed=1),
        score=lambda task, world, episode: outcome.score(task, world, episode.messages, episode.stop),
        rules=GENERATED_RULES,
    )
    played = rollout(requests_for(tasks, 1, seed=0), LocalExecutor(runner.play))
    return asyncio.run(played).episodes


def expert(tasks: Sequence[Task], size: str = "tiny", **error_profile: float) -> list[Episode]:
    return play(ExpertAgent(ErrorProfile(**error_profile), make=BfclExpert), tasks, size)


BEFORE = {
    "post_mention": "post_write", "ticket_resolve_last": "ticket_create", "stock_cancel_last": "stock_buy",
    "trip_insure": "trip_book", "trip_cancel_last": "trip_book",
}  # fmt: skip
"""What must have been asked for before some kinds of request make sense."""


@dataclass
class Served:
    """One request that was served: its slots, the state before and after (as ``seen`` shows it), calls and answer."""

    slots: Slots
    before: dict[str, Any]
    after: dict[str, Any]
    calls: list[tuple[str, dict[str, Any]]]
    answer: str
    memory: dict[str, Any]
    config: dict[str, Any]


def serve(kind: str, seed: int, size: str = "official") -> Served:
    """A request of a kind in a world that can host it."""
    rng = random.Random(f"{kind} {seed}")
    large = replace(SIZES[size], logins=0.0)
    recipe = requests.ALL[kind]
    for _ in range(300):
        config = make_scene(rng, recipe.apis, large)
        if kind.endswith("_login"):
            for state in config.values():
                state["authenticated"] = False
                state.pop("current_user", None)
        data = {"involved_classes": list(recipe.apis), "initial_config": config, "long_context": False}
        world = generated_bfcl("official").world(Task("one", "bfcl", "", None, initial_data=data))
        memory: dict[str, Any] = {"cwd": []}

        def run(
            what: Recipe, world: Any = world, memory: dict[str, Any] = memory
        ) -> tuple[Slots, list[tuple[str, dict[str, Any]]], str]:
            slots = what.draw(Scene(Record(world.instances.state()), Record(memory), "", {}, rng, large))
            try:
                actions, answer = recipes.serve(what, slots, memory, world)
            except Infeasible as problem:
                raise AssertionError(f"{kind} {slots}") from problem
            return slots, [(a.name, dict(a.arguments)) for a in actions], answer

        try:
            if recipe.needs == "travel" or kind == "trip_insure" or kind == "trip_cancel_last":
                token = world.instances.state()["TravelAPI"]["access_token"]
                run(requests.LOGINS["travel_token" if token else "travel_login"])
            if kind in BEFORE:
                run(requests.ALL[BEFORE[kind]])
            before = seen_state(world)
            slots, calls, answer = run(recipe)
        except Infeasible:
            continue
        return Served(slots, before, seen_state(world), calls, answer, memory, config)
    raise AssertionError(f"no world can host {kind}")


def seen_state(world: Any) -> dict[str, Any]:
    """The public state by class as plain values that do not change any more; files as path to text."""
    out: dict[str, Any] = {}
    for name, state in world.instances.copy().state().items():
        out[name] = dict(state)
        if name == "GorillaFileSystem":
            out[name] = {"files": _paths(state["root"])}
    return out


def _paths(folder: Any, path: str = "") -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, item in folder.contents.items():
        if hasattr(item, "contents"):
            found[path + name] = None
            found |= _paths(item, f"{path}{name}/")
        else:
            found[path + name] = item.content
    return found


def at(slots: Slots, name: str) -> str:
    """The path of what a slot names, from the root folder."""
    folder = slots["folder"]
    return slots[name] if folder == "the root folder" else f"{folder}/{slots[name]}"


def changed(served: Served, api: str, **wanted: Any) -> dict[str, Any]:
    """The state of a class before, but for some attributes that should have changed."""
    return {**served.before[api], **wanted}


def user(served: Served, name: str) -> str:
    """A person's user id."""
    return str(served.config["MessageAPI"]["user_map"][name])


def sent(served: Served, receiver: str, text: str) -> None:
    """Assert that one message was sent, and no more."""
    before, after = served.before["MessageAPI"], served.after["MessageAPI"]
    assert after["inbox"] == [*before["inbox"], {receiver: text}]
    assert after["message_count"] == before["message_count"] + 1


def text_of(served: Served) -> str:
    """What the file that a request names said before."""
    return str(served.before["GorillaFileSystem"]["files"][at(served.slots, "file")])


def check_effect(kind: str, served: Served, effect: Any) -> None:
    """A request does what its words say (``effect``) and touches nothing but what it is about."""
    effect(served)
    apis = {api for api in served.before if served.before[api] != served.after[api]}
    assert bool(served.answer) != bool(apis), "it changes something or has an answer, never both"
    assert 1 <= len(served.calls) <= 7
    if not kind.endswith("_file"):
        assert len([name for name, _ in served.calls if name != "cd"]) <= 4


def shown(value: Any) -> str:
    """A tool's result as BFCL shows it."""
    if type(value) is str:
        return value
    if type(value) is dict:
        try:
            return json.dumps(value)
        except (TypeError, ValueError):
            return str(value)
    return str(value)


def answer(api: Api, name: str, /, *args: Any, **kwargs: Any) -> str:
    """What calling a tool shows, errors included."""
    try:
        return shown(getattr(api, name)(*args, **kwargs))
    except Exception as error:
        return f"Error during execution: {error}"
