"""BFCL-like tasks from seeds: requests over some API classes turn by turn, and the gold calls that serve them.

The gold calls are found by serving the requests in the task's world, so that later ones may depend on what earlier
ones gave. Some turns cannot be served at first: a value is missing, which the next turn gives, or a tool is, which the
next turn brings.

A task never comes from a benchmark. Train, validation and test differ by what is asked for: ``combination_split`` sends
every first request, and every later one whose values are freely chosen, to exactly one split.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.domains.auditing import UserQuestion
from muarl.domains.generated import SPLITS, Infeasible, SeededId, split_of
from muarl.domains.kit.declaration import several
from muarl.domains.kit.records import Record, fill
from muarl.domains.tasks import Action, Task
from muarl_worlds.bfcl import requests
from muarl_worlds.bfcl.calls import call_text
from muarl_worlds.bfcl.generated import REVISION, every_spec, generated_bfcl, turn_lines
from muarl_worlds.bfcl.recipes import Memory, Recipe, Scene, Slots, serve
from muarl_worlds.bfcl.scenes import SIZES, TASK_CLASSES, Size, make_scene

SALT = "bfcl 4079"
"""Enters the hash that sends requests to splits. With this one each kind that may come first has several in each split,
those with one narrow slot too."""

ATTEMPTS, ATTEMPTS_EACH = 2000, 400
"""How many scenes are tried for a task, and how many before it is planned anew."""
TRIES = 60
"""How many requests are drawn for a place in the script."""
LONGEST = 24
"""Gold calls and answers of the agent in a task at most."""
IDLE = "I am sorry, but I cannot do that for you."


def tasks(split: str, count: int, *, size: str = "tiny", seed: int = 0, start: int = 0) -> list[Task]:
    """``count`` tasks of one split, by seed. The same arguments give the same tasks; other seeds give other ones.

    size: "tiny", "small", "medium" or "official" (scenes.SIZES). ValueError for an unknown split or size.
    """
    return list(itertools.islice(iter_tasks(split, size=size, seed=seed, start=start), count))


def iter_tasks(split: str, *, size: str = "tiny", seed: int = 0, start: int = 0) -> Iterator[Task]:
    """Tasks of one split without end, from index ``start`` on."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
    for index in itertools.count(start):
        yield make_task(split, index, size=size, seed=seed)


def make_task(split: str, index: int, *, size: str = "tiny", seed: int = 0) -> Task:
    """Task number ``index`` of a split. Its gold calls have been run: every one succeeded."""
    rng = random.Random(f"bfcl task {size} {split} {seed} {index}")
    for attempt in range(ATTEMPTS):
        if attempt % ATTEMPTS_EACH == 0:
            shape = _shape(rng, SIZES[size])
            first = _first(rng, SIZES[size], shape[0])
        try:
            task_id = str(SeededId("bfcl", size, split, seed, index))
            return _Writer(rng, SIZES[size], split, task_id).write(shape, first, seed)
        except Infeasible:
            continue
    raise RuntimeError(f"no world could host bfcl task {split} {index} of size {size}")


def combination_split(kind: str, slots: Slots) -> str:
    """The split that a request belongs to."""
    return split_of(SALT, kind, *(f"{name}={slots[name]}" for name in sorted(slots)))


def _shape(rng: random.Random, size: Size) -> list[str]:
    """What each turn is like: one request, two, or one that lacks a value ("value") or a tool ("tool")."""
    count = rng.choices(list(size.turns), list(size.turns.values()))[0]
    shape = ["two" if rng.random() < size.two / (1 if count == 1 else 1.6) else "one" for _ in range(count)]
    if rng.random() < size.unanswerable:
        shape[rng.randrange(count)] = rng.choice(("value", "tool"))
    return shape


def _recipes(size: Size) -> list[Recipe]:
    return [r for r in requests.RECIPES.values() if r.tiny or size.name != "tiny"]


def _first(rng: random.Random, size: Size, turn: str) -> Recipe:
    able = [r for r in _recipes(size) if not r.narrow and (turn != "value" or r.missing)]
    able = [r for r in able if len(r.apis) <= size.classes[1]]
    return rng.choices(able, [r.share for r in able])[0]


@dataclass(slots=True)
class _Served:
    """A request that was put into the script: its kind and slots, and how it sounds."""

    recipe: Recipe
    slots: Slots
    said: str
    used: list[str] = field(default_factory=list)


class _Writer:
    """Writes one task's script while it serves it."""

    def __init__(self, rng: random.Random, size: Size, split: str, task_id: str) -> None:
        self.rng, self.size, self.split, self.task_id = rng, size, split, task_id
        self.memory: Memory = {"cwd": []}
        self.turns: list[str] = []
        self.brings: dict[str, list[str]] = {}
        self.gold: list[list[Action]] = []
        self.answers: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.persona = rng.choice(requests.PERSONAS)

    def write(self, shape: Sequence[str], first: Recipe, seed: int) -> Task:
        """The whole task. Infeasible if the scene that is drawn cannot host it."""
        classes = self._classes(first)
        data = {
            "involved_classes": list(classes),
            "initial_config": make_scene(self.rng, classes, self.size),
            "long_context": False,
        }
        self.world = generated_bfcl("official").world(Task("made-up", "bfcl", "", None, initial_data=data))
        before = self.world.digest()
        self.recipes = [r for r in _recipes(self.size) if set(r.apis) <= set(classes)]
        for turn in shape:
            self._turn(turn, first if not self.requests else None)
        actions = tuple(action for turn in self.gold for action in turn)
        if (self.world.digest() == before and not self.answers) or len(actions) + len(self.turns) > LONGEST:
            raise Infeasible
        return self._task(data, actions, shape, seed)

    def _classes(self, first: Recipe) -> tuple[str, ...]:
        """The classes of the task: those that the first request needs, and others."""
        count = max(len(first.apis), self.rng.randint(*self.size.classes))
        known = {api for r in _recipes(self.size) for api in r.apis}
        others = [name for name in TASK_CLASSES if name in known and name not in first.apis]
        chosen = {*first.apis, *self.rng.sample(others, count - len(first.apis))}
        return tuple(name for name in TASK_CLASSES if name in chosen)

    # turns

    def _turn(self, shape: str, first: Recipe | None) -> None:
        used = {a.name for turn in self.gold for a in turn}
        start = len(self.turns)
        if shape == "value":
            served = self._serve(first, lacking=True)
            slot = self.requests[-1]["unknown"]
            words = self._words(served)
            if str(self.requests[-1]["slots"][slot]) in words:  # a folder of that very name is spoken of
                raise Infeasible
            self.turns += [words, _fill_reply(self.rng, served[-1], slot, self.size)]
            self.gold.insert(start, [])
            return
        served = self._serve(first)
        if shape == "two":
            served += self._serve(None)
            self.gold[-2:] = [self.gold[-2] + self.gold[-1]]
        self.turns.append(self._words(served))
        if shape == "tool":
            held = self.rng.choice(sorted(set(served[-1].used) - used) or [""])
            if not held or any(held in s.used for s in served[:-1]):
                raise Infeasible
            self.requests[-1]["withheld"] = held
            self.turns.append(_brings(self.rng, held, self.size))
            self.brings[str(start + 1)] = [held]
            self.gold.insert(start, [])

    def _words(self, served: Sequence[_Served]) -> str:
        leads = requests.LATER if self.turns else requests.LEADS
        lead = "" if self.size.name == "tiny" else self.rng.choice(leads[self.persona])
        return lead + requests.join(self.rng, [s.said for s in served], self.size)

    def _serve(self, recipe: Recipe | None, *, lacking: bool = False) -> list[_Served]:
        """Draw a request, after the login that it may need, and serve both."""
        begun = not self.requests
        for _ in range(TRIES):
            drawn = recipe or self._other(lacking)
            needed = self._login(drawn)
            try:
                slots = drawn.draw(self._scene())
            except Infeasible:
                continue
            strict = drawn.open or (begun and not drawn.narrow)
            if strict and combination_split(drawn.name, slots) != self.split:
                continue
            if any(r["kind"] == drawn.name and r["slots"] == slots for r in self.requests):
                continue
            break
        else:
            raise Infeasible
        self.gold.append([])
        served = [] if needed is None else [self._run(needed, needed.draw(self._scene()))]
        unknown = self.rng.choice(sorted(drawn.missing)) if lacking else ""
        self.requests.append({"kind": drawn.name, "slots": slots, "unknown": unknown, "withheld": ""})
        served.append(self._run(drawn, slots, unknown))
        return served

    def _other(self, lacking: bool) -> Recipe:
        able = [r for r in self.recipes if not lacking or r.missing]
        if not able:
            raise Infeasible
        return self.rng.choices(able, [r.share for r in able])[0]

    def _scene(self) -> Scene:
        state, memory = Record(self.world.instances.state()), Record(self.memory)
        return Scene(state, memory, "", {}, self.rng, self.size)

    def _login(self, recipe: Recipe) -> Recipe | None:
        """What must be done before a request of this kind can be served, None if nothing."""
        state = self.world.instances.state()
        done = {
            "": lambda: True,
            "message_login": lambda: state["MessageAPI"]["current_user"],
            "post_login": lambda: state["TwitterAPI"]["authenticated"],
            "ticket_login": lambda: state["TicketAPI"]["current_user"],
            "trading_login": lambda: state["TradingBot"]["authenticated"],
            "travel": lambda: "token" in self.memory,
        }
        if done[recipe.needs]():
            return None
        if recipe.needs == "travel":
            return requests.LOGINS["travel_token" if state["TravelAPI"]["access_token"] else "travel_login"]
        return requests.LOGINS[recipe.needs]

    def _run(self, recipe: Recipe, slots: Slots, unknown: str = "") -> _Served:
        """Serve a request in the world, write down the calls and the answer, and put it into words."""
        clauses = recipe.missing[unknown] if unknown else recipe.clauses
        clause = self.rng.choice(clauses[: self.size.clauses])
        said = fill(requests.say(self.rng, clause, self.size, self.persona), slots)
        actions, answer = serve(recipe, slots, self.memory, self.world)
        if answer and (len(answer) < 2 or "," in answer or answer.lower() in IDLE.lower()):
            raise Infeasible
        self.gold[-1] += actions
        self.answers += [answer] if answer else []
        return _Served(recipe, slots, said, [action.name for action in actions])

    # the task

    def _task(self, data: dict[str, Any], actions: tuple[Action, ...], shape: Sequence[str], seed: int) -> Task:
        lacking = next((s for s in shape if s in ("value", "tool")), None)
        crossing = any(len(requests.RECIPES[r["kind"]].apis) > 1 for r in self.requests)
        intent = {"value": "missing_value", "tool": "missing_tool"}.get(lacking or "", "")
        if not intent:
            intent = "several_apis" if crossing else "several_requests" if len(self.requests) > 1 else "one_request"
        truth = [[call_text(a.name, a.arguments) for a in turn] for turn in self.gold]
        agenda = {"persona": self.persona, "turns": self.turns, "brings": self.brings, "ground_truth": truth}
        return Task(
            id=self.task_id,
            domain="bfcl",
            scenario=scenario_text(self.turns),
            actions=actions,
            reward_basis=("DB", "COMMUNICATE") if self.answers else ("DB",),
            communicate_info=tuple(self.answers),
            initial_data=data,
            agenda=agenda | {"requests": self.requests},
            tags={
                "intent": intent, "persona": self.persona, "difficulty": len(actions), "split": self.split,
                "seed": seed, "kinds": [r["kind"] for r in self.requests], "revision": REVISION,
                "category": {"value": "miss_param", "tool": "miss_func"}.get(lacking or "", "base"),
            },
        )  # fmt: skip


def scenario_text(turns: Sequence[str]) -> str:
    """What an LLM user is told: the lines of the script."""
    lines = [f"{number}. {text}" for number, text in enumerate(turns, 1)]
    told = "Say these messages one after another, word for word, each once the agent has finished with the one before."
    return "\n".join([told, "Then end the conversation, whatever the agent says.", *lines])


BENCHMARKS_OWN = ("The company is Nvidia.",)
"""What a user says in the benchmark itself, and no generated one may."""


def asked(task: Task, said: Sequence[str]) -> Iterator[UserQuestion]:
    """The questions of a task, once its user has said all of the script: no line tells which of them it asks."""
    if all(any(turn in text for text in said) for turn, _ in turn_lines(task)):
        yield from (UserQuestion("in one of the script's lines", answer) for answer in task.communicate_info)


def _fill_reply(rng: random.Random, served: _Served, slot: str, size: Size) -> str:
    said = several(served.recipe.slot(slot).say)[: size.clauses]
    replies = (text.replace("{}", served.slots[slot]) for text in said)
    return rng.choice([text for text in replies if text not in BENCHMARKS_OWN])


def _brings(rng: random.Random, name: str, size: Size) -> str:
    lead = requests.BRINGS[0] if size.name == "tiny" else rng.choice(requests.BRINGS)
    return f"{lead}\n{json.dumps(every_spec()[name].to_openai(), ensure_ascii=False)}\n{requests.NOW}"


def combination(task: Task) -> tuple[str, ...]:
    """What makes a generated task itself: each request's kind and values."""
    if task.agenda is None or "requests" not in task.agenda:
        raise ValueError(f"task {task.id} was not generated: it has no agenda")
    return tuple(
        " ".join([r["kind"], *(f"{k}={r['slots'][k]}" for k in sorted(r["slots"]))]) for r in task.agenda["requests"]
    )
