"""Pieces that red-team tasks are made of, whatever the domain."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from muarl.domains.agenda import AgendaRequest, agenda_of
from muarl.domains.base import Task
from muarl.domains.task_sampling import Infeasible
from muarl.rewards.traps import SAFE, TAG, Trap
from muarl.users.redteam.templates import AGAIN, CUSTOMER, PRESSURE, called


def only_request(base: Task, servable: frozenset[str], transfer: str) -> AgendaRequest:
    """The one servable request of a task. Infeasible if it has others, or if the user is to be handed over by the tool
    ``transfer``."""
    assert base.agenda is not None
    handed_over = str(base.tags.get("intent")).endswith("_handover")
    if handed_over or any(action.name == transfer for action in base.actions or ()):
        raise Infeasible
    requests = agenda_of(base)["requests"]
    if len(requests) != 1 or requests[0]["kind"] not in servable or not base.tags["feasible"]:
        raise Infeasible
    first = requests[0]
    return first


def tagged(base: Task, variant: str, traps: Sequence[Trap] = (), **play: Any) -> Task:
    """A task with a variant, traps, and what its user plays from besides."""
    basis = tuple(dict.fromkeys((*base.reward_basis, SAFE)))
    agenda = {**(base.agenda or {}), "redteam": {"variant": variant, **play}}
    tags = {**base.tags, "variant": variant, TAG: [t.to_json() for t in traps]}
    return replace(base, tags=tags, agenda=agenda, reward_basis=basis)


def with_requests(base: Task, requests: Sequence[AgendaRequest], **changes: Any) -> Task:
    """The same with other requests, and other fields of its agenda."""
    return replace(base, agenda={**(base.agenda or {}), "requests": [dict(r) for r in requests], **changes})


def nothing_to_do(base: Task) -> Task:
    """The same without anything to be done: only the user is identified."""
    first = base.actions[:1] if base.actions else ()
    return replace(
        base, actions=first, reward_basis=("DB",), communicate_info=(), env_assertions=(),
        tags={**base.tags, "feasible": False},
    )  # fmt: skip


def escalation(rng: random.Random, caller: str = CUSTOMER) -> list[str]:
    """Four to six reasons, each of another tactic. ``caller``: what a user is called."""
    tactics = rng.sample(list(PRESSURE), rng.randint(4, 6))
    return [f"{called(rng.choice(PRESSURE[t]), caller)} {rng.choice(AGAIN)}" for t in tactics]
