"""Other end states that the policy allows a task to have, as far as the domain declares what a scenario must settle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from muarl.domains.checking import CheckFinding, Fix, Level
from muarl.domains.gold import why_failed
from muarl.domains.task_rules import Claim, OpenChoice
from muarl.types.chat import ToolCall
from muarl_tools.checks.tasks.checked_task import CheckedTask, GoldStep, asked

_BRANCH = re.compile(
    r"\bif\b|otherwise|unless|in case|not possible|n.t (?:possible|available)|refuse|insist|persist|accept|agree"
    r"|then you|only (?:want|if|when)|transfer|thank|end the (?:conversation|call)",
    re.IGNORECASE,
)
"""Words with which a scenario says what its user does where something cannot be had."""
LISTED = 3
"""Other ways that evidence names."""


def open_choices(checked: CheckedTask) -> Iterator[CheckFinding]:
    """What the scenario leaves open."""
    for step in checked.writes:
        if step.failed is None:
            for choice in checked.source.rules.choices:
                if step.action.name in choice.tools:
                    yield from _choice(checked, step, choice)
    for claim in checked.source.rules.claims:
        yield from _claim(checked, claim)
    yield from _workarounds(checked)
    refusal = not any(s.changed for s in checked.steps)
    if refusal and checked.task.actions is not None and not _BRANCH.search(checked.task.scenario):
        evidence = "no gold action changes anything, and the scenario has no word on what the user does when refused"
        yield checked.found("no-fallback", "note", evidence, "Say what the user accepts instead, and when they stop")


def _choice(checked: CheckedTask, step: GoldStep, choice: OpenChoice) -> Iterator[CheckFinding]:
    occasion = checked.occasion(step.index)
    others = asked(lambda o: list(choice.others(o)), occasion) or []
    allowed = [told for arguments, told in others if not choice.tried or _possible(checked, step, arguments)]
    if not allowed:
        return
    more = f" and {len(allowed) - LISTED} more" if len(allowed) > LISTED else ""
    evidence = f"{step}: the scenario does not rule out {'; '.join(allowed[:LISTED])}{more} ({choice.name})"
    settle = asked(choice.settle, occasion)
    fixes = (Fix("say", settle),) if settle else ()
    yield checked.found("undecided", choice.weight, evidence, "Say in the scenario which is meant", *fixes)


def _possible(checked: CheckedTask, step: GoldStep, arguments: Mapping[str, Any]) -> bool:
    """Whether the call with other arguments succeeds, is allowed by the policy, and leads to another state."""
    world = checked.world_before(step.index)
    name, side = step.action.name, step.action.requestor
    result = world.call(side, ToolCall("other", name, dict(arguments), side))
    if why_failed(result) is not None:
        return False
    gold = checked.world_before(step.index)
    gold.call(side, ToolCall("gold", name, dict(step.action.arguments), side))
    if gold.digest() == world.digest():
        return False
    occasion = checked.occasion(step.index, call=ToolCall("other", name, dict(arguments), side))
    rules = checked.source.audit.forbids, checked.source.rules.forbids, checked.source.rules.breaches
    return all(name not in by or asked(by[name], occasion) is None for by in rules)


def _claim(checked: CheckedTask, claim: Claim) -> Iterator[CheckFinding]:
    """What the policy allows with a claim that the user may make, and not without it."""
    text = checked.task.scenario
    if not claim.wanted.search(text) or claim.settled.search(text):
        return
    forbids = checked.source.audit.forbids.get(claim.tool)
    ids = dict.fromkeys(a.arguments[claim.key] for a in checked.task.actions or () if claim.key in a.arguments)
    for one in ids if forbids is not None else ():
        call = ToolCall("what-if", claim.tool, {claim.key: one})
        bare = checked.occasion(0, call=call)
        without, claimed = asked(forbids, bare), asked(forbids, replace(bare, said=f"{text} {claim.says}"))
        if without is None or claimed is not None:
            continue
        made = any(a.name == claim.tool and a.arguments.get(claim.key) == one for a in checked.task.actions or ())
        evidence = (
            f"{claim.tool} of {one} is {'right' if made else 'wrong'} by the gold actions, and allowed exactly if "
        )
        denies = () if made else (Fix("say", claim.denies),)
        yield checked.found("fact-undecided", "warning", f"{evidence}the user claims {claim.name}, of which the "
                    "scenario says nothing", "Say in the scenario whether it is so", *denies)  # fmt: skip
        return


def _workarounds(checked: CheckedTask) -> Iterator[CheckFinding]:
    text = checked.task.scenario
    named = {v for a in checked.task.actions or () for v in a.arguments.values() if isinstance(v, str)}
    for way in checked.source.rules.workarounds:
        if not way.wanted.search(text) or way.settled.search(text):
            continue
        for key in sorted(named):
            record = checked.record(way.table, key)
            if record is None or not asked(way.applies, record):
                continue
            if any(s.action.name in way.tools for s in checked.writes):
                continue
            evidence = f"the change of {key} is refused by the gold actions, and {key} {way.about}"
            level: Level = "warning"
            yield checked.found("undecided", level, f"{evidence}, which the scenario does not rule out ({way.name})",
                        "Say in the scenario whether the user would do that", Fix("say", way.denies))  # fmt: skip
