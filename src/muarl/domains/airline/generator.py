"""Airline tasks from seeds: who calls, what they want, how they change their mind, and the gold actions.

A task never comes from a benchmark. Train, validation and test differ by the callers' full names, and where a route is
combined with a wanted day or cabin (``wishes``) by that combination too: ``split_of`` sends each to exactly one split.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

from muarl.domains.airline import catalogue as cat
from muarl.domains.airline.domain import Airline, airline_database
from muarl.domains.airline.gold import WRITES, gold_write
from muarl.domains.airline.network import SIZES, Network, NetworkSize, make_network
from muarl.domains.airline.scenario import scenario_text
from muarl.domains.airline.wishes import Draw, draw_request
from muarl.domains.base import Action, Database, Task
from muarl.domains.drawing import DRAWS, Infeasible, Request, replay_gold, split_of
from muarl.domains.generated import SPLITS

PERSONAS = ("terse", "chatty", "confused", "impatient")

KINDS: Mapping[str, float] = {
    "cancel": 0.16, "flights": 0.20, "cabin": 0.13, "bags": 0.10, "passenger": 0.10, "compensation": 0.05,
    "question": 0.06, "forbidden": 0.13, "flown": 0.03, "outside": 0.04,
}  # fmt: skip
"""Share of each kind of first request in tiny worlds; larger ones have ``BOOKING`` besides. Doing nothing is right for
``forbidden`` only; so is transferring at once, since the last two want the caller identified first."""
BOOKING = 0.14
SECONDS = ("cancel", "flights", "cabin", "bags", "passenger", "question")

SECOND_REQUEST = 0.30
SECOND_IF_FORBIDDEN = 0.4
WRONG_DETAILS = 0.12
"""How often a caller has a second request (also after one that is refused), and gives a wrong user id first."""


def tasks(split: str, count: int, *, size: str = "tiny", seed: int = 0, start: int = 0) -> list[Task]:
    """``count`` tasks of one split, by seed. The same arguments give the same tasks; other seeds give other ones.

    size: "tiny", "small", "medium" or "official" (network.SIZES). ValueError for an unknown split or size.
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


def kinds(size: NetworkSize) -> Mapping[str, float]:
    """The share of each kind of first request at a size."""
    if size.pooled:
        return KINDS
    return {kind: share * (1 - BOOKING) for kind, share in KINDS.items()} | {"book": BOOKING}


def make_task(split: str, index: int, *, size: str = "tiny", seed: int = 0) -> Task:
    """Task number ``index`` of a split. Its gold actions have been replayed: every call succeeded."""
    network_size = SIZES[size]
    rng = random.Random(f"airline task {size} {split} {seed} {index}")
    shares = kinds(network_size)
    for attempt in range(600 * DRAWS):
        if attempt % 600 == 0:  # a network may have no place for a kind, and a run must not end for that
            kind = rng.choices(list(shares), list(shares.values()))[0]
            second = kind not in ("flown", "outside") and rng.random() < (
                SECOND_IF_FORBIDDEN if kind == "forbidden" else SECOND_REQUEST
            )
        if network_size.tasks_per_network == 1:
            network = _network(f"{split} {seed} {index} {attempt}", network_size, split)
            database = None
        else:
            group = index // network_size.tasks_per_network
            network, database = _shared_network(f"{split} {seed} {group}", size, split)
        user = network.tables["users"][rng.choice(network.main_users)]
        draw = Draw(rng, network, user, split)
        try:
            requests = [draw_request(draw, kind, alone=not second)]
            if second:
                other = rng.choice([k for k in SECONDS if k != kind])
                requests.append(draw_request(draw, other, alone=False, taken=requests[0].wish.get("reservation_id")))
                if all(r.final is None and r.answer is None for r in requests):
                    raise Infeasible
            base = airline_database(network.tables) if database is None else database
            task = _assemble(f"airline-{size}-{split}-{seed}-{index}", draw, requests, base, seed)
            replay_gold(task, _every_tool(), WRITES.values())
            return task
        except Infeasible:
            continue
    raise RuntimeError(
        f"no airline could host task {split} {index} of size {size}: is the network too small for {kind}?"
    )


def _network(seed: str, size: NetworkSize, split: str) -> Network:
    return make_network(seed, size, lambda first, last: split_of(first, last) == split)


@lru_cache(maxsize=8)
def _shared_network(seed: str, size: str, split: str) -> tuple[Network, Database]:
    network = _network(seed, SIZES[size], split)
    return network, airline_database(network.tables)


def _gold(draw: Draw, requests: Sequence[Request]) -> tuple[Action, ...]:
    """Look-ups and writes in the order an expert makes them."""
    actions = [Action("get_user_details", {"user_id": draw.user["user_id"]})]
    for request in requests:
        reservation_id = request.wish.get("reservation_id")
        if reservation_id is not None:
            actions.append(Action("get_reservation_details", {"reservation_id": reservation_id}))
        if request.kind == "outside" or request.intent == "flown":
            about = request.wish.get("topic", "cancelling a trip that has begun")
            summary = {"summary": f"The customer wants to talk about {about}."}
            actions.append(Action("transfer_to_human_agents", summary, compare_args=()))
        write = gold_write(request, draw.tables, draw.user)
        if write is not None:
            if request.final is not None and request.final.get("reservation_id", reservation_id) != reservation_id:
                actions.append(Action("get_reservation_details", {"reservation_id": request.final["reservation_id"]}))
            actions.append(write)
    return tuple(actions)


def _assemble(task_id: str, draw: Draw, requests: list[Request], database: Database, seed: int) -> Task:
    rng, user = draw.rng, draw.user
    persona = rng.choice(PERSONAS)
    wrong_id = _mistaken(draw) if rng.random() < WRONG_DETAILS else None
    agenda = {
        "persona": persona,
        "identity": {**user["name"], "user_id": user["user_id"]},
        "wrong_id": wrong_id,
        "requests": [r.to_agenda() for r in requests],
        "upfront": rng.random() < 0.5,
        "reminds": rng.random() < 0.3,
    }
    changed = any(r.then is not None for r in requests)
    unavailable = any(r.fallback is not None for r in requests)
    unknown = any(r.unknown for r in requests)
    answers = tuple(r.answer for r in requests if r.answer is not None)
    transfer = any(r.kind == "outside" or r.intent == "flown" for r in requests)
    return Task(
        id=task_id,
        domain="airline",
        scenario=scenario_text(agenda),
        actions=_gold(draw, requests),
        reward_basis=("DB", "ACTION") if transfer else ("DB", "COMMUNICATE") if answers else ("DB",),
        communicate_info=answers,
        database=database,
        agenda=agenda,
        tags={
            "intent": requests[0].intent if len(requests) == 1 else "two_requests",
            "persona": persona,
            "difficulty": 1 + (len(requests) > 1) + changed + unavailable + unknown + (wrong_id is not None),
            "split": draw.split,
            "seed": seed,
            "changes_mind": changed,
            "feasible": requests[0].intent != "forbidden" or len(requests) > 1,
        },
    )


def _mistaken(draw: Draw) -> str:
    """A user id that differs from the caller's in the number, and is nobody's."""
    head = draw.user["user_id"].rsplit("_", 1)[0]
    while True:
        number = draw.rng.choice(cat.NUMBERS) if draw.tiny else draw.rng.randint(1000, 9999)
        if f"{head}_{number}" not in draw.tables["users"]:
            return f"{head}_{number}"


@cache
def _every_tool() -> Airline:
    """A domain to replay gold actions in. Its policy is read by nobody."""
    return Airline(database={}, policy="none", semantics="fixed")


def combination(task: Task) -> tuple[str, ...]:
    """What makes a generated task itself: the caller and each request's kind, reservation and wanted things."""
    if task.agenda is None:
        raise ValueError(f"task {task.id} was not generated: it has no agenda")
    who = task.agenda["identity"]
    parts = [f"{who['first_name']} {who['last_name']}"]
    for r in task.agenda["requests"]:
        wish = r["wish"]
        named = [
            str(wish[s]) for s in ("reservation_id", "origin", "destination", "date", "cabin", "bags") if s in wish
        ]
        parts.append(" ".join([r["kind"], *named]))
    return tuple(parts)
