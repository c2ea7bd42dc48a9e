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
from functools import cache
from typing import Any

from muarl.chat import ToolCall, ToolSpec
from muarl.domains.base import Action, Task
from muarl.domains.bfcl import wishes
from muarl.domains.bfcl.api import Revision
from muarl.domains.bfcl.calls import call_text
from muarl.domains.bfcl.domain import Bfcl
from muarl.domains.bfcl.environment import class_tools
from muarl.domains.bfcl.reading import value_of
from muarl.domains.bfcl.recipes import Answer, Draw, Memory, Recipe, Slots
from muarl.domains.bfcl.scenes import MATH, SIZES, STATEFUL, Size, make_scene
from muarl.domains.drawing import Infeasible, split_of
from muarl.domains.generated import SPLITS

REVISION: Revision = "v4"
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
            return _Writer(rng, SIZES[size], split, f"bfcl-{size}-{split}-{seed}-{index}").write(shape, first, seed)
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
    return [r for r in wishes.RECIPES.values() if r.tiny or size.name != "tiny"]


def _first(rng: random.Random, size: Size, turn: str) -> Recipe:
    able = [r for r in _recipes(size) if not r.narrow and (turn != "value" or r.missing)]
    able = [r for r in able if len(r.apis) <= size.classes[1]]
    return rng.choices(able, [r.weight for r in able])[0]


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
        self.memory: Memory = {}
        self.turns: list[str] = []
        self.brings: dict[str, list[str]] = {}
        self.gold: list[list[Action]] = []
        self.answers: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.persona = rng.choice(wishes.PERSONAS)

    def write(self, shape: Sequence[str], first: Recipe, seed: int) -> Task:
        """The whole task. Infeasible if the scene that is drawn cannot host it."""
        classes = self._classes(first)
        data = {
            "involved_classes": list(classes),
            "initial_config": make_scene(self.rng, classes, self.size),
            "long_context": False,
        }
        self.world = _plain().world(Task("made-up", "bfcl", "", None, initial_data=data))
        before = self.world.digest()
        self.recipes = [r for r in _recipes(self.size) if set(r.apis) <= set(classes)]
        for turn in shape:
            self._turn(turn, first if not self.requests else None)
        actions = tuple(action for turn in self.gold for action in turn)
        if (self.world.digest() == before and not self.answers) or len(actions) + len(self.turns) > LONGEST:
            raise Infeasible
        return self._task(data, actions, shape, seed)

    def _classes(self, first: Recipe) -> tuple[str, ...]:
        """The classes of the task in BFCL's order: those that the first request needs, and others."""
        count = max(len(first.apis), self.rng.randint(*self.size.classes))
        known = {api for r in _recipes(self.size) for api in r.apis}
        others = [name for name in (*STATEFUL, MATH) if name in known and name not in first.apis]
        chosen = {*first.apis, *self.rng.sample(others, count - len(first.apis))}
        return tuple(name for name in (*STATEFUL, MATH) if name in chosen)

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
        leads = wishes.LATER if self.turns else wishes.LEADS
        lead = "" if self.size.name == "tiny" else self.rng.choice(leads[self.persona])
        return lead + wishes.join(self.rng, [s.said for s in served], self.size)

    def _serve(self, recipe: Recipe | None, *, lacking: bool = False) -> list[_Served]:
        """Draw a request, after the login that it may need, and serve both."""
        begun = not self.requests
        for _ in range(TRIES):
            drawn = recipe or self._other(lacking)
            needed = self._login(drawn)
            try:
                slots = drawn.draw(self._draw())
            except Infeasible:
                continue
            strict = drawn.open or (begun and not drawn.narrow)
            if strict and combination_split(drawn.kind, slots) != self.split:
                continue
            if any(r["kind"] == drawn.kind and r["slots"] == slots for r in self.requests):
                continue
            break
        else:
            raise Infeasible
        self.gold.append([])
        served = [] if needed is None else [self._run(needed, needed.draw(self._draw()))]
        unknown = self.rng.choice(sorted(drawn.missing)) if lacking else ""
        self.requests.append({"kind": drawn.kind, "slots": slots, "unknown": unknown, "withheld": ""})
        served.append(self._run(drawn, slots, unknown))
        return served

    def _other(self, lacking: bool) -> Recipe:
        able = [r for r in self.recipes if not lacking or r.missing]
        if not able:
            raise Infeasible
        return self.rng.choices(able, [r.weight for r in able])[0]

    def _draw(self) -> Draw:
        return Draw(self.rng, self.size, self.world.instances.state(), self.memory)

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
            return wishes.LOGINS["travel_token" if state["TravelAPI"]["access_token"] else "travel_login"]
        return wishes.LOGINS[recipe.needs]

    def _run(self, recipe: Recipe, slots: Slots, unknown: str = "") -> _Served:
        """Serve a request in the world, write down the calls and the answer, and put it into words."""
        clauses = recipe.missing[unknown].clauses if unknown else recipe.clauses
        clause = self.rng.choice(clauses[: self.size.clauses])
        served = _Served(recipe, slots, wishes.fill(wishes.say(self.rng, clause, self.size, self.persona), slots))
        plan = recipe.plan(slots, self.memory)
        seen: Any = None
        while True:
            try:
                name, arguments = plan.send(seen)
            except StopIteration as end:
                self._answered(end.value)
                return served
            except (KeyError, IndexError, TypeError, ValueError):  # the scene is not as the request takes it to be
                raise Infeasible from None
            result = self.world.call("assistant", ToolCall("gold", name, arguments))
            if result.error:
                raise Infeasible
            seen = value_of(result.content)
            self.gold[-1].append(Action(name, arguments))
            served.used.append(name)

    def _answered(self, answer: Answer) -> None:
        _, wanted = answer
        if not wanted:
            return
        if len(wanted) < 2 or "," in wanted or wanted.lower() in IDLE.lower():
            raise Infeasible
        self.answers.append(wanted)

    # the task

    def _task(self, data: dict[str, Any], actions: tuple[Action, ...], shape: Sequence[str], seed: int) -> Task:
        lacking = next((s for s in shape if s in ("value", "tool")), None)
        crossing = any(len(wishes.RECIPES[r["kind"]].apis) > 1 for r in self.requests)
        intent = {"value": "missing_value", "tool": "missing_tool"}.get(lacking or "", "")
        if not intent:
            intent = "several_apis" if crossing else "several_requests" if len(self.requests) > 1 else "one_request"
        truth = [[call_text(a.name, a.arguments) for a in turn] for turn in self.gold]
        agenda = {
            "persona": self.persona, "turns": self.turns, "brings": self.brings, "ground_truth": truth,
            "requests": self.requests,
        }  # fmt: skip
        return Task(
            id=self.task_id,
            domain="bfcl",
            scenario=scenario_text(self.turns),
            actions=actions,
            reward_basis=("DB", "COMMUNICATE") if self.answers else ("DB",),
            communicate_info=tuple(self.answers),
            initial_data=data,
            agenda=agenda,
            tags={
                "intent": intent,
                "persona": self.persona,
                "difficulty": len(actions),
                "split": self.split,
                "seed": seed,
                "kinds": [r["kind"] for r in self.requests],
                "category": {"value": "miss_param", "tool": "miss_func"}.get(lacking or "", "base"),
                "revision": REVISION,
            },
        )


def scenario_text(turns: Sequence[str]) -> str:
    """What an LLM user is told: the lines of the script."""
    lines = [f"{number}. {text}" for number, text in enumerate(turns, 1)]
    told = "Say these messages one after another, word for word, each once the agent has finished with the one before."
    return "\n".join([told, "Then end the conversation, whatever the agent says.", *lines])


def _fill_reply(rng: random.Random, served: _Served, slot: str, size: Size) -> str:
    replies = served.recipe.missing[slot].replies[: size.clauses]
    return wishes.fill(rng.choice(replies), served.slots)


def _brings(rng: random.Random, name: str, size: Size) -> str:
    lead = wishes.BRINGS[0] if size.name == "tiny" else rng.choice(wishes.BRINGS)
    return f"{lead}\n{json.dumps(_specs()[name].to_openai(), ensure_ascii=False)}\n{wishes.NOW}"


@cache
def _specs() -> dict[str, ToolSpec]:
    classes = (*STATEFUL, MATH)
    return {n: tool.schema.spec for name in classes for n, tool in class_tools(REVISION, name).items()}


@cache
def _plain() -> Bfcl:
    """A domain to find gold calls in. Its policy is read by nobody."""
    return Bfcl(REVISION, policy="none", semantics="fixed")


def combination(task: Task) -> tuple[str, ...]:
    """What makes a generated task itself: each request's kind and values."""
    if task.agenda is None or "requests" not in task.agenda:
        raise ValueError(f"task {task.id} was not generated: it has no agenda")
    return tuple(
        " ".join([r["kind"], *(f"{k}={r['slots'][k]}" for k in sorted(r["slots"]))]) for r in task.agenda["requests"]
    )
