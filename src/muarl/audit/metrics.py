"""Metrics beyond the reward: consent before writes, authentication, transfers, tool errors and repeated calls.

Pure functions on an episode's messages. Nothing here is part of the reward; a run shows it beside the reward, so that
one can see how an agent came to its score. ``audit.consent`` defines what counts as consent.
``audit.audit_episode`` says where in a conversation each of these things happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muarl.audit.calls import CallRecord, KindOf, agent_calls, as_documented, repeated_calls
from muarl.audit.facts import persons_in
from muarl.audit.fault_recovery import excuses_transfer, figures, recoveries
from muarl.domains.auditing import UNDECLARED, AuditRules, LiveWorld
from muarl.types.episode import FAULTS, Episode

if TYPE_CHECKING:
    from muarl.domains.tasks import Task


def _access(records: Sequence[CallRecord], rules: AuditRules) -> tuple[int, int]:
    """(successful accesses before any authentication, successful accesses to another user than those authenticated).

    Who is authenticated is the user id that the auth tool was asked for, or else the one that it answered.
    """
    served: set[str] = set()
    early = foreign = 0
    for record in records:
        if not record.ok:
            continue
        if record.call.name in rules.auth_tools:
            asked = record.call.arguments.get(rules.person)
            served.update([asked] if isinstance(asked, str) else persons_in(record.result, rules.person))
        elif record.kind != "generic" and record.call.name not in rules.open_tools:
            early += not served
            whose = record.call.arguments.get(rules.person)
            foreign += bool(served) and isinstance(whose, str) and whose not in served
    return early, foreign


def needs_transfer(task: Task, rules: AuditRules = UNDECLARED) -> bool | None:
    """Whether handing over is part of the right answer: True, False, or None where the task does not say.

    True if the gold actions contain a transfer. None if the task has no gold actions, or is marked infeasible
    (``tags["feasible"]`` is False): policy then forbids the request, and a hand-over may be right.
    """
    if task.actions is None:
        return None
    if any(a.name in rules.transfer_tools for a in task.actions):
        return True
    return None if task.tags.get("feasible", True) is False else False


def audit(
    episode: Episode,
    task: Task | None,
    kind_of: KindOf,
    rules: AuditRules = UNDECLARED,
    *,
    world: LiveWorld | None = None,
) -> dict[str, float]:
    """The audit of one episode; counts, as floats, over the agent's side only.

    ``calls``, ``tool_errors`` (calls answered by an error, malformed ones included), ``malformed_calls`` (their text
    was no valid call), ``repeated_calls``, ``writes`` (successful), ``writes_without_consent``, ``transfers``,
    ``needless_transfers`` (0 unless the task is feasible and its gold actions hold none), ``questions`` (messages to
    the user with a question mark). Where the rules name auth tools also ``access_before_authentication`` and
    ``foreign_access`` (successful reads or writes of user data, before authentication, or of another user). Where they
    name tools that search documents, ``searches``; and where they tell which documents hold and the ``world`` is known,
    as the conversation has left it, ``documented`` (writes and answers that hang on documents) and ``grounded`` (those
    that go by the document that holds). Where the world may fail, ``fault_recovery.figures``. A key that does not apply
    is left out rather than 0.

    ``kind_of`` maps a tool's name to "read", "write" or "generic" (``Domain.kind_of``).
    """
    messages = as_documented(episode.messages)
    records = agent_calls(messages, kind_of, rules.spoken)
    writes = [r for r in records if r.consented is not None]
    unasked = sum(not r.consented for r in writes if r.call.name not in rules.free_writes)
    transfers = [r for r in records if r.call.name in rules.transfer_tools and not r.error]
    metrics = {
        "calls": float(len(records)),
        "tool_errors": float(sum(r.error for r in records)),
        "malformed_calls": float(sum(r.call.invalid is not None for r in records)),
        "repeated_calls": float(repeated_calls(records)),
        "writes": float(len(writes)),
        **({"writes_without_consent": float(unasked)} if rules.consent else {}),
        "transfers": float(len(transfers)),
        "questions": float(
            sum(m.role == "assistant" and not m.tool_calls and "?" in (m.content or "") for m in messages)
        ),
    }
    met = recoveries(messages, rules.transfer_tools, kind_of) if FAULTS in episode.tags else []
    if task is not None and (needed := needs_transfer(task, rules)) is not None:
        excused = bool(transfers) and excuses_transfer(met, transfers[0].index)
        metrics["needless_transfers"] = float(bool(transfers) and not needed and not excused)
    if FAULTS in episode.tags:
        metrics |= figures(met)
    if rules.auth_tools:
        early, foreign = _access(records, rules)
        metrics["access_before_authentication"] = float(early)
        metrics["foreign_access"] = float(foreign)
    if rules.search_tools:
        metrics["searches"] = float(sum(r.call.name in rules.search_tools for r in records))
    if rules.grounded is not None and task is not None and world is not None:
        right = list(rules.grounded(task, world, messages))
        metrics |= {"documented": float(len(right)), "grounded": float(sum(right))}
    return metrics
