"""Telecom tasks from seeds: who calls, what is wrong or wanted, how they change their mind, and the gold actions.

A task never comes from a benchmark. Train, validation and test differ by the callers' full names, and compositions of
several faults, together with the persona, occur in one split only.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

from muarl.chat import ToolCall
from muarl.domains.base import Action, Domain, Task, World
from muarl.domains.database import Database
from muarl.domains.drawing import DRAWS, Infeasible, split_of
from muarl.domains.generated import SPLITS
from muarl.domains.telecom import catalogue as cat
from muarl.domains.telecom.customers import SIZES, Carrier, CarrierSize, make_carrier
from muarl.domains.telecom.domain import Telecom
from muarl.domains.telecom.faults import FAULTS, PROBLEMS, Call, act, breaking
from muarl.domains.telecom.records import telecom_database
from muarl.domains.telecom.scenario import scenario_text
from muarl.domains.telecom.wishes import Draw, Request, draw_request

PERSONAS = ("terse", "chatty", "confused", "impatient")

KINDS: Mapping[str, float] = {
    "no_service": 0.22, "mobile_data": 0.22, "mms": 0.16, "refuel": 0.11, "roaming": 0.05, "pay": 0.06, "suspend": 0.04,
    "question": 0.06, "forbidden": 0.05, "outside": 0.03,
}  # fmt: skip
"""Share of each kind of first request. Doing nothing is right for ``forbidden`` only; so is transferring at once, since
wherever a transfer is right the caller must be identified first."""

SECOND: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(PROBLEMS, ("refuel", "pay", "question")),
    "refuel": ("roaming", "pay", "suspend", "question"),
    "roaming": ("refuel", "pay", "question"),
    "pay": ("refuel", "roaming", "suspend", "question"),
    "suspend": ("pay", "question"),
    "question": ("refuel", "roaming", "pay", "suspend"),
}
"""What may be asked for beside a first request."""

SECOND_REQUEST = 0.3
WRONG_DETAILS = 0.12
NO_NUMBER = 0.1
"""How often a caller has a second request, gives a wrong phone number first, and knows none at all (but a name and a
date of birth, and has one line only)."""
MOST_FAULTS: Mapping[str, int] = {"tiny": 3, "small": 4, "medium": 5, "official": 6}


def tasks(split: str, count: int, *, size: str = "tiny", seed: int = 0, start: int = 0) -> list[Task]:
    """``count`` tasks of one split, by seed. The same arguments give the same tasks; other seeds give other ones.

    size: "tiny", "small", "medium" or "official" (customers.SIZES). ValueError for an unknown split or size.
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
    """Task number ``index`` of a split. Its gold actions have been replayed: see ``check_gold``."""
    carrier_size = SIZES[size]
    rng = random.Random(f"telecom task {size} {split} {seed} {index}")
    for attempt in range(400 * DRAWS):
        if attempt % 400 == 0:  # a carrier may have no place for a kind, and a run must not end for that
            kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
            second = rng.random() < SECOND_REQUEST and kind in SECOND
            persona = rng.choice(PERSONAS)
        if carrier_size.tasks_per_carrier == 1:
            carrier, database = _carrier(f"{split} {seed} {index} {attempt}", carrier_size, split)
        else:
            carrier, database = _shared_carrier(
                f"{split} {seed} {index // carrier_size.tasks_per_carrier}", size, split
            )
        customer = carrier.tables["customers"][rng.choice(carrier.main_customers)]
        line = carrier.tables["lines"][rng.choice(customer["line_ids"])]
        draw = Draw(rng, carrier, customer, line, split, persona)
        try:
            requests = [draw_request(draw, kind, alone=not second, most_faults=MOST_FAULTS[size])]
            if second:
                requests.append(draw_request(draw, rng.choice(SECOND[kind]), alone=False))
            task = _assemble(f"telecom-{size}-{split}-{seed}-{index}", draw, requests, database, seed)
            check_gold(task)
            return task
        except Infeasible:
            continue
    raise RuntimeError(f"no carrier could host telecom task {split} {index} of size {size}: is {kind} too rare?")


def _carrier(seed: str, size: CarrierSize, split: str) -> tuple[Carrier, Database]:
    carrier = make_carrier(seed, size, lambda first, last: split_of(first, last) == split)
    return carrier, telecom_database(carrier.tables)


@lru_cache(maxsize=8)
def _shared_carrier(seed: str, size: str, split: str) -> tuple[Carrier, Database]:
    return _carrier(seed, SIZES[size], split)


def _identify(draw: Draw, by_name: bool) -> Action:
    who = draw.customer
    if by_name:
        return act("assistant", "get_customer_by_name", full_name=who["full_name"], dob=who["date_of_birth"])
    return act("assistant", "get_customer_by_phone", phone_number=draw.line["phone_number"])


def _gold(draw: Draw, requests: Sequence[Request], by_name: bool) -> tuple[Action, ...]:
    """The look-ups and deeds in the order an expert makes them; of a hand-over only what it takes."""
    first = _identify(draw, by_name)
    if requests[0].hands_over:
        summary = f"The user asks for {requests[0].wish.get('topic', 'help that I cannot give')}."
        return first, Action("transfer_to_human_agents", {"summary": summary}, compare_args=())
    look = act("assistant", "get_details_by_id", id=draw.line["line_id"])
    return first, look, *(a for r in requests for a in (*_look(draw, r), *r.gold))


def _look(draw: Draw, request: Request) -> list[Action]:
    """What must be looked up to answer a question."""
    if request.kind != "question":
        return []
    topic = request.wish["topic"]
    if topic == "usage":
        return [act("assistant", "get_data_usage", **draw.place().owner())]
    return [
        act("assistant", "get_details_by_id", id=draw.line["plan_id"] if topic == "price" else request.wish["bill"])
    ]


def _assertions(requests: Sequence[Request]) -> tuple[Call, ...]:
    """All that must hold in the end. Infeasible if requests get in each other's way, or only databases can tell."""
    if any(r.checks is None for r in requests):
        raise Infeasible
    usage = any(FAULTS[n].group == "usage" for n in requests[0].names)
    if usage and len(requests) > 1 and (requests[1].kind == "refuel" or requests[1].wish.get("topic") == "usage"):
        raise Infeasible
    if len(requests) > 1 and requests[1].kind == "refuel":
        first = [c for c in requests[0].checks or () if c["func_name"] != "assert_data_refueling_amount"]
        return (*first, *(requests[1].checks or ()))
    return tuple(c for r in requests for c in r.checks or ())


def _assemble(task_id: str, draw: Draw, requests: list[Request], database: Database, seed: int) -> Task:
    rng, who, phone = draw.rng, draw.customer, draw.line["phone_number"]
    by_name = len(who["line_ids"]) == 1 and rng.random() < NO_NUMBER
    wrong = rng.random() < WRONG_DETAILS and not by_name
    taken = {line["phone_number"] for line in draw.carrier.tables["lines"].values()}
    agenda = {
        "persona": draw.persona,
        "identity": {"name": who["full_name"], "phone": None if by_name else phone, "dob": who["date_of_birth"]},
        "wrong_phone": rng.choice([p for p in cat.PHONES if p not in taken]) if wrong else None,
        "requests": [r.to_agenda() for r in requests],
        "upfront": rng.random() < 0.5,
        "reminds": rng.random() < 0.3,
    }
    first = requests[0]
    problem = first.kind in PROBLEMS
    answers = tuple(r.answer for r in requests if r.answer is not None)
    basis = ["ENV_ASSERTION" if problem else "DB"]
    basis += ["ACTION"] if first.hands_over else []
    basis += ["COMMUNICATE"] if answers else []
    changes = any(r.then is not None for r in requests)
    hard = (len(requests) > 1, changes, any(r.fallback for r in requests), wrong, by_name, len(first.names) > 1)
    return Task(
        id=task_id,
        domain="telecom",
        scenario=scenario_text(agenda),
        actions=_gold(draw, requests, by_name),
        reward_basis=tuple(basis),
        communicate_info=answers,
        env_assertions=_assertions(requests) if problem else (),
        initial_actions=tuple(breaking(first.names, draw.place(), bool(first.wish.get("abroad")))),
        database=database,
        agenda=agenda,
        tags={
            "intent": first.intent if len(requests) == 1 else "two_requests",
            "persona": draw.persona,
            "difficulty": 1 + sum(hard),
            "split": draw.split,
            "seed": seed,
            "changes_mind": changes,
            "feasible": first.intent != "forbidden",
            "faults": "|".join(first.names),
        },
    )


@cache
def _every_tool() -> Telecom:
    """A domain to replay gold actions in. Its policy is read by nobody."""
    return Telecom(database={}, phone={}, policy="none", semantics="fixed")


def check_gold(task: Task, domain: Domain | None = None) -> None:
    """Replay the gold actions in a fresh world. Raises Infeasible if a call fails, or if they prove nothing.

    Where assertions decide, something is wrong before the last writing action, and nothing after it; where a transfer
    is right, they hold from beginning to end. Where the databases decide, they change exactly if there are writes.
    """
    domain = domain or _every_tool()
    world = domain.world(task)
    before = world.digest()
    hands_over = "ACTION" in task.reward_basis
    actions = task.actions or ()
    writes = [n for n, a in enumerate(actions) if domain.kind_of(a.name) == "write"]
    if hands_over and not _holds(task, world):
        raise Infeasible
    for number, action in enumerate(actions):
        if task.env_assertions and writes[-1:] == [number] and _holds(task, world):
            raise Infeasible
        if world.call(action.requestor, ToolCall("gold", action.name, action.arguments, action.requestor)).error:
            raise Infeasible
    if not _holds(task, world) or (not task.env_assertions and bool(writes) == (world.digest() == before)):
        raise Infeasible
    if not (writes or hands_over or task.communicate_info or not task.tags["feasible"]):
        raise Infeasible  # all wishes are dropped: nothing would be right


def _holds(task: Task, world: World) -> bool:
    """Whether all assertions of a task hold in a world."""
    for assertion in task.env_assertions:
        try:
            kit = world.toolkit(assertion["env_type"])
            if getattr(kit, assertion["func_name"])(**assertion["arguments"]) is not True:
                return False
        except ValueError:  # an assertion about a bill that is no longer overdue
            return False
    return True


def combination(task: Task) -> tuple[str, ...]:
    """What makes a generated task itself: the caller, the faults with the persona, and each request with its wish."""
    if task.agenda is None:
        raise ValueError(f"task {task.id} was not generated: it has no agenda")
    parts = [task.agenda["identity"]["name"], f"{task.tags['faults']} {task.tags['persona']}"]
    for r in task.agenda["requests"]:
        parts.append(" ".join([r["kind"], *(f"{k}={v}" for k, v in r["wish"].items() if v is not None)]))
    return tuple(parts)
