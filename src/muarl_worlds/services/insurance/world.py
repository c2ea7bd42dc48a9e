"""A made world of the insurer: members, policies, claims in every state, and an inspector's free times."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.people import Maker, shift
from muarl_worlds.services.insurance import catalogue as cat
from muarl_worlds.services.insurance.tools import TODAY

STATUSES = (
    "open",
    "open",
    "waiting for documents",
    "waiting for documents",
    "approved",
    "paid",
    "rejected",
    "rejected",
)


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """The tables of one world."""
    tables: dict[str, dict[str, Any]] = {"members": {}, "policies": {}, "claims": {}, "inspections": {}}
    for n in range(1, 45):
        if make.chance(0.7):
            times = sorted(make.rng.sample(cat.TIMES, make.rng.randint(2, 4)))
            tables["inspections"][shift(TODAY, n)] = {"times": times}
    for _ in range(make.people):
        member = {
            "member_id": make.id("member", "M-", 6),
            "name": make.name(),
            "postcode": make.id("postcode", "", 5),
        }
        tables["members"][member["member_id"]] = member
        for kind in make.rng.sample(list(cat.COVERS), make.rng.randint(2, 3)):
            _policy(make, member["member_id"], kind, tables)
    return tables


def _policy(make: Maker, member_id: str, kind: str, tables: dict[str, dict[str, Any]]) -> None:
    rng = make.rng
    possible = cat.COVERS[kind]
    covers = sorted(rng.sample(possible, rng.randint(1 if len(possible) < 4 else 2, len(possible))))
    policy: dict[str, Any] = {
        "policy_id": make.id("policy", "N-", 6),
        "member_id": member_id,
        "kind": kind,
        "status": "active" if make.chance(0.85) else "lapsed",
        "covers": covers,
        "deductible": float(rng.choice(cat.DEDUCTIBLES)),
        "yearly_premium": float(int(make.amount(120, 900))),
        "ends_on": make.date(TODAY, 10, 300),
    }
    tables["policies"][policy["policy_id"]] = policy
    for cause in rng.sample(covers, rng.randint(1, min(2, len(covers)))):
        _claim(make, policy, cause, tables)


def _claim(make: Maker, policy: dict[str, Any], cause: str, tables: dict[str, dict[str, Any]]) -> None:
    rng = make.rng
    status = rng.choice(STATUSES)
    decided = status in ("approved", "paid", "rejected")
    documents = rng.sample(cat.DOCUMENTS, rng.randint(1, 2))
    left = [d for d in cat.DOCUMENTS if d not in documents]
    claim = {
        "claim_id": make.id("claim", "CL-", 5),
        "policy_id": policy["policy_id"],
        "member_id": policy["member_id"],
        "cause": cause,
        "date_of_loss": make.date(TODAY, -200, -90) if decided else make.date(TODAY, -60, -5),
        "amount": float(int(make.amount(150, 9000))),
        "status": status,
        "documents": documents,
        "missing": rng.sample(left, rng.randint(1, 2)) if status == "waiting for documents" else [],
        "decided_on": make.date(TODAY, -85, -2) if decided else None,
        "payout_method": rng.choice(cat.METHODS),
        "inspection": "none",
    }
    tables["claims"][claim["claim_id"]] = claim
