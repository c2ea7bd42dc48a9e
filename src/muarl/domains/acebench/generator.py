"""ACEBench-like tasks from seeds: who calls, what they want, how they change their mind, and the gold actions.

A task never comes from the benchmark, and nobody and nothing in its worlds does. Every request belongs to one split, by
the caller, the kind and the wanted things (``wishes.request_key``). Everything is in English.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import cache

from muarl.chat import ToolCall
from muarl.domains.acebench import catalogue as cat
from muarl.domains.acebench.callers import caller_text
from muarl.domains.acebench.desk import GeneratedAce, initial_data
from muarl.domains.acebench.errands import ERRANDS, totalled
from muarl.domains.acebench.gold import FOOD, TRANSFER, gold
from muarl.domains.acebench.reading import refusal
from muarl.domains.acebench.trips import TRIPS
from muarl.domains.acebench.wishes import SECONDS, Draw, Drawer, clash, draw_request, kinds, request_key
from muarl.domains.acebench.worlds import SIZES, Family, World, make_world
from muarl.domains.base import Task
from muarl.domains.drawing import DRAWS, Infeasible, Request, split_of
from muarl.domains.generated import SPLITS

PERSONAS = ("terse", "chatty", "confused", "impatient")
FAMILIES: dict[Family, float] = {"phone": 0.58, "travel": 0.42}
"""How often a task is about a phone or a travel desk."""

SECOND_REQUEST = 0.28
SECOND_IF_FORBIDDEN = 0.4
WRONG_DETAILS = 0.12
TOTAL = 0.5
"""How often a caller has a second request (also after one that is refused), gives a wrong password first, and wants
somebody to be told what an order comes to (if a message is the second request; not in tiny worlds)."""


def tasks(split: str, count: int, *, size: str = "tiny", seed: int = 0, start: int = 0) -> list[Task]:
    """``count`` tasks of one split, by seed. The same arguments give the same tasks; other seeds give other ones.

    size: "tiny", "small", "medium" or "official" (worlds.SIZES). ValueError for an unknown split or size.
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
    """Task number ``index`` of a split. Its gold actions have been replayed: every call succeeded."""
    world_size = SIZES[size]
    rng = random.Random(f"acebench task {size} {split} {seed} {index}")
    for attempt in range(600 * DRAWS):
        if attempt % 600 == 0:  # worlds may have no place for a kind, and a run must not end for that
            family = rng.choices(list(FAMILIES), list(FAMILIES.values()))[0]
            shares = kinds(family, tiny=world_size.tiny)
            kind = rng.choices(list(shares), list(shares.values()))[0]
            alone = kind in ("flown", "outside", "todo") or rng.random() >= (
                SECOND_IF_FORBIDDEN if kind == "forbidden" else SECOND_REQUEST
            )
        world = make_world(family, f"{split} {seed} {index} {attempt}", world_size)
        try:
            task = _assemble(f"acebench-{size}-{split}-{seed}-{index}", rng, world, split, kind, alone, seed)
            replay(task)
            return task
        except Infeasible:
            continue
    raise RuntimeError(f"no world could host task {split} {index} of size {size}: is it too small for {kind}?")


def _requests(draw: Draw, kind: str) -> list[Request]:
    drawers: dict[str, Drawer] = dict(ERRANDS if draw.world.family == "phone" else TRIPS)
    requests = [draw_request(drawers, draw, kind)]
    if not draw.alone:
        other = draw.rng.choice([k for k in SECONDS[draw.world.family] if k != kind])
        if kind == "order" and other == "send" and not draw.tiny and draw.rng.random() < TOTAL:
            requests.append(_total(draw, requests[0]))
        else:
            requests.append(draw_request(drawers, draw, other, taken=requests))
        if all((r.final is None or r.final.get("drop")) and r.answer is None for r in requests):
            raise Infeasible
    return requests


def _total(draw: Draw, order: Request) -> Request:
    for _ in range(60):
        request = totalled(draw, order)
        mine = split_of(*request_key(draw.world.me, request.kind, request.wish)) == draw.split
        if mine and not clash(request, order):
            return request
    raise Infeasible


def _assemble(task_id: str, rng: random.Random, world: World, split: str, kind: str, alone: bool, seed: int) -> Task:
    requests = _requests(Draw(rng, world, split, alone), kind)
    asks_password = world.family == "travel" or any(r.kind in FOOD for r in requests)
    wrong = _mistaken(rng, world) if asks_password and rng.random() < WRONG_DETAILS else None
    agenda = {
        "persona": rng.choice(PERSONAS),
        "identity": _identity(world),
        "tells": ["name", "password"] if asks_password else ["name"],
        "wrong_password": wrong,
        "requests": [r.to_agenda() for r in requests],
        "upfront": rng.random() < 0.5 or any("filled" in r.wish and r.kind == "send" for r in requests),
        "reminds": rng.random() < 0.3,
    }
    changed = any(r.then is not None for r in requests)
    unavailable = any(r.fallback is not None for r in requests)
    unknown = any(r.unknown for r in requests)
    answers = tuple(r.answer for r in requests if r.answer is not None)
    actions = gold(world, requests)
    transfer = any(a.name == TRANSFER for a in actions)
    return Task(
        id=task_id,
        domain="acebench",
        scenario=caller_text(agenda),
        actions=actions,
        reward_basis=("DB", "ACTION") if transfer else ("DB", "COMMUNICATE") if answers else ("DB",),
        communicate_info=answers,
        initial_data=initial_data(world),
        agenda=agenda,
        tags={
            "intent": requests[0].intent if len(requests) == 1 else "two_requests",
            "family": world.family,
            "language": "en",
            "persona": agenda["persona"],
            "difficulty": 1 + (len(requests) > 1) + changed + unavailable + unknown + (wrong is not None),
            "split": split,
            "seed": seed,
            "changes_mind": changed,
            "feasible": requests[0].intent != "forbidden" or len(requests) > 1,
        },
    )


def _identity(world: World) -> dict[str, str]:
    if world.family == "phone":
        return {"name": world.me, "password": world.password}
    name = world.state["Travel"]["users"][world.me]["user_name"]
    return {"name": name, "user_id": world.me, "password": world.password}


def _mistaken(rng: random.Random, world: World) -> str:
    """A password that differs from the caller's in the number."""
    word = world.password.rstrip("0123456789")
    others = [p for p in cat.PASSWORDS[: cat.TINY_PASSWORDS] if p.startswith(word) and p != world.password]
    return rng.choice(others) if world.size.tiny else f"{word}{rng.randint(10000, 99999)}"


@cache
def _every_tool() -> GeneratedAce:
    """A domain to replay gold actions in. Its policies are read by nobody."""
    return GeneratedAce()


def replay(task: Task) -> None:
    """Replay the gold actions in a fresh world. Infeasible if a tool refuses one, or if the writes leave no trace."""
    live = _every_tool().world(task)
    before = live.digest()
    for action in task.actions or ():
        result = live.call("assistant", ToolCall("gold", action.name, action.arguments))
        if result.error or refusal(result.content) is not None:
            raise Infeasible
    if bool(live.writes) == (live.digest() == before):
        raise Infeasible


def combination(task: Task) -> tuple[str, ...]:
    """What makes a generated task itself: the caller and each request's kind and wanted things."""
    if task.agenda is None:
        raise ValueError(f"task {task.id} was not generated: it has no agenda")
    who = task.agenda["identity"]
    me = who.get("user_id", who["name"])
    return tuple("|".join(request_key(me, r["kind"], r["wish"])) for r in task.agenda["requests"])
