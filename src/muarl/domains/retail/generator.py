"""Retail tasks from seeds: who calls, what they want, how they change their mind, and the gold actions.

A task never comes from a benchmark. Train, validation and test differ by the callers' full names, and for exchanges and
item changes by the combination of product and first wanted option too: ``split_of`` sends each to exactly one split.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

from muarl.domains.base import Action, Database, Task
from muarl.domains.drawing import DRAWS, Infeasible, Request, replay_gold, split_of
from muarl.domains.generated import SPLITS
from muarl.domains.retail import catalogue as cat
from muarl.domains.retail.domain import Retail
from muarl.domains.retail.scenario import scenario_text
from muarl.domains.retail.shop import SIZES, Shop, ShopSize, make_shop
from muarl.domains.retail.wishes import WRITES, Draw, draw_request, gold_write

PERSONAS = ("terse", "chatty", "confused", "impatient")

KINDS: Mapping[str, float] = {
    "cancel": 0.16, "return": 0.14, "exchange": 0.17, "modify_items": 0.15, "modify_payment": 0.10,
    "modify_address": 0.08, "question": 0.08, "forbidden": 0.08, "outside": 0.04,
}  # fmt: skip
"""Share of each kind of first request. Doing nothing is right for ``forbidden`` only; so is transferring at once, since
``outside`` wants the caller identified first."""

SECOND_REQUEST = 0.25
WRONG_DETAILS = 0.12
"""How often a caller has a second request, and gives a wrong zip code first."""


def tasks(split: str, count: int, *, size: str = "tiny", seed: int = 0, start: int = 0) -> list[Task]:
    """``count`` tasks of one split, by seed. The same arguments give the same tasks; other seeds give other ones.

    size: "tiny", "small", "medium" or "official" (shop.SIZES). ValueError for an unknown split or size.
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
    shop_size = SIZES[size]
    rng = random.Random(f"retail task {size} {split} {seed} {index}")
    for attempt in range(400 * DRAWS):
        if attempt % 400 == 0:  # a shop may have no place for a kind, and a run must not end for that
            kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
            second = rng.random() < SECOND_REQUEST and kind not in ("forbidden", "outside")
        if shop_size.tasks_per_shop == 1:
            shop, database = _shop(f"{split} {seed} {index} {attempt}", shop_size, split)
        else:
            shop, database = _shared_shop(f"{split} {seed} {index // shop_size.tasks_per_shop}", size, split)
        user = shop.tables["users"][rng.choice(shop.main_users)]
        draw = Draw(rng, shop, user, split)
        try:
            requests = [draw_request(draw, kind, alone=not second)]
            if second:
                other = rng.choice([k for k in WRITES if k != kind] + ["question"])
                requests.append(draw_request(draw, other, alone=False, taken=requests[0].wish.get("order_id")))
                if all(r.final is None and r.answer is None for r in requests):
                    raise Infeasible
            task = _assemble(f"retail-{size}-{split}-{seed}-{index}", draw, requests, database, seed)
            replay_gold(task, _every_tool(), WRITES.values())
            return task
        except Infeasible:
            continue
    raise RuntimeError(
        f"no shop could host retail task {split} {index} of size {size}: is the shop too small for {kind}?"
    )


def _shop(seed: str, size: ShopSize, split: str) -> tuple[Shop, Database]:
    shop = make_shop(seed, size, lambda first, last: split_of(first, last) == split)
    return shop, Database(shop.tables)


@lru_cache(maxsize=8)
def _shared_shop(seed: str, size: str, split: str) -> tuple[Shop, Database]:
    return _shop(seed, SIZES[size], split)


def _gold(draw: Draw, requests: Sequence[Request]) -> tuple[Action, ...]:
    """Look-ups and writes in the order an expert makes them."""
    tables = draw.shop.tables
    name = draw.user["name"]
    actions = [Action("find_user_id_by_name_zip", {**name, "zip": draw.user["address"]["zip"]})]
    for request in requests:
        order_id = request.wish.get("order_id")
        if order_id is None:
            actions.append(
                Action(
                    "transfer_to_human_agents",
                    {"summary": f"The user asks for {request.wish['topic']}."},
                    compare_args=(),
                )
            )
            continue
        if request.unknown or "payment" in request.wish:
            actions.append(Action("get_user_details", {"user_id": draw.user["user_id"]}))
        actions.append(Action("get_order_details", {"order_id": order_id}))
        if "to" in request.wish:
            order = tables["orders"][order_id]
            product = next(i["product_id"] for i in order["items"] if i["name"] == request.wish["items"][0])
            actions.append(Action("get_product_details", {"product_id": product}))
        write = gold_write(request, tables)
        if write is not None:
            actions.append(write)
    return tuple(actions)


def _assemble(task_id: str, draw: Draw, requests: list[Request], database: Database, seed: int) -> Task:
    rng, user = draw.rng, draw.user
    persona = rng.choice(PERSONAS)
    wrong_zip = None
    if rng.random() < WRONG_DETAILS:
        wrong_zip = rng.choice([z for z in cat.ZIPS if z != user["address"]["zip"]])
    agenda = {
        "persona": persona,
        "identity": {**user["name"], "zip": user["address"]["zip"], "email": user["email"], "user_id": user["user_id"]},
        "wrong_zip": wrong_zip,
        "requests": [r.to_agenda() for r in requests],
        "upfront": rng.random() < 0.5,
        "reminds": rng.random() < 0.3,
    }
    changed = any(r.then is not None for r in requests)
    unavailable = any(r.fallback is not None for r in requests)
    unknown = any(r.unknown for r in requests)
    answers = tuple(r.answer for r in requests if r.answer is not None)
    outside = requests[0].intent == "outside"
    return Task(
        id=task_id,
        domain="retail",
        scenario=scenario_text(agenda),
        actions=_gold(draw, requests),
        reward_basis=("DB", "ACTION") if outside else ("DB", "COMMUNICATE") if answers else ("DB",),
        communicate_info=answers,
        database=database,
        agenda=agenda,
        tags={
            "intent": requests[0].intent if len(requests) == 1 else "two_requests",
            "persona": persona,
            "difficulty": 1 + (len(requests) > 1) + changed + unavailable + unknown + (wrong_zip is not None),
            "split": draw.split,
            "seed": seed,
            "changes_mind": changed,
            "feasible": requests[0].intent != "forbidden",
        },
    )


@cache
def _every_tool() -> Retail:
    """A domain to replay gold actions in. Its policy is read by nobody."""
    return Retail(database={}, policy="none", semantics="fixed")


def combination(task: Task) -> tuple[str, ...]:
    """What makes a generated task itself: the caller and each request's kind, items and wanted options."""
    if task.agenda is None:
        raise ValueError(f"task {task.id} was not generated: it has no agenda")
    who = task.agenda["identity"]
    parts = [f"{who['first_name']} {who['last_name']}"]
    for r in task.agenda["requests"]:
        parts.append(" ".join([r["kind"], *r["wish"].get("items", ()), *r["wish"].get("to", ())]))
    return tuple(parts)
