"""Checks of what is played: floors, the expert against its user, audits of it, texts of users, personas, mistakes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt

from muarl.agents.idle import TRANSFERRED, TransferAgent
from muarl.audit.episodes import audit_episode
from muarl.audit.findings import Finding
from muarl.domains.base import Domain
from muarl.domains.checking import CheckReport, NotChecked, Problem, of_task, place_of
from muarl.domains.scripted_expert import SLOPPY
from muarl.domains.tasks import Action, Task
from muarl.rewards.outcome import do_nothing
from muarl.types.chat import ToolSpec
from muarl.types.episode import Episode, StopReason
from muarl.user_errors.errors import RULES, find_user_errors
from muarl.users.agenda_user import PATIENCE
from muarl_tools.checks.environment.samples import CheckContext
from muarl_tools.checks.expert_plays import NEVER_ASKS, REMEDY, Played, asking_cost, expert_plays
from muarl_tools.checks.gold_replay import replayed

FLOOR = 0.15
"""What doing nothing, or always transferring, may earn on average at most."""
SOLVED = 0.98
"""The share of tasks that an expert without mistakes must solve at least."""
ENOUGH = 80
"""Tasks by which a share is judged as it is."""
AUDITED, FEW = 60, 12


def paid(episode: Episode) -> float:
    """The reward; 0 for an episode that broke off."""
    return 0.0 if episode.verdict is None else episode.reward


def floors(context: CheckContext) -> CheckReport:
    """Doing nothing and always transferring earn less than 15%, or that is what an agent learns."""
    tasks = context.playable()
    served = {"do-nothing": _floor(context, tasks, None)}
    transfer = _transfer_tool(context)
    if transfer is not None:
        served["always-transfer"] = _floor(context, tasks, transfer)
    found = []
    remedy = (
        "Make fewer tasks in which nothing is to be done, or let them require an answer: COMMUNICATE in reward_basis, "
        "with communicate_info"
    )
    for name, several in served.items():
        share = len(several) / len(tasks)
        if share >= FLOOR + _slack(len(tasks)):
            intents = Counter(str(task.tags.get("intent", "no intent")) for task in several)
            most, count = intents.most_common(1)[0]
            what = f"{name} earns {share:.1%} of the reward (most of it, {count} of {len(several)}, with {most})"
            found.append(Problem(what, remedy=remedy))
    measured = ", ".join(f"{name} {len(several) / len(tasks):.1%}" for name, several in served.items())
    return CheckReport(f"{measured} of {len(tasks)} tasks", tuple(found))


def _slack(count: int) -> float:
    """By how much more a share of few tasks may be too high by chance: two standard errors."""
    return 0.0 if count >= ENOUGH else 2 * sqrt(FLOOR * (1 - FLOOR) / count)


def _transfer_tool(context: CheckContext) -> ToolSpec | None:
    offered = {spec.name: spec for spec in context.domain.tool_specs()}
    return offered.get(context.environment.rules.transfer_tool(offered) or "")


def _floor(context: CheckContext, tasks: Sequence[Task], transfer: ToolSpec | None) -> list[Task]:
    """The tasks that an agent without skill is paid for. Without a rule-based user nobody speaks to it."""
    if context.environment.rule_based_user is not None:
        transfers = None if transfer is None else TransferAgent(transfer.name)
        played = context.idle_episodes() if transfers is None else context.plays.play(transfers, tasks)
        return [task for task, episode in played if paid(episode) > 0]
    return asyncio.run(_paid(context.domain, tasks, transfer))


async def _paid(domain: Domain, tasks: Sequence[Task], transfer: ToolSpec | None) -> list[Task]:
    if transfer is None:
        return [task for task in tasks if (await do_nothing(domain, task)).reward > 0]
    call = Action(transfer.name, dict.fromkeys(transfer.parameters.get("required", ()), "The user asks for help."))
    found = []
    for task in tasks:
        async with replayed(domain, task, [call]) as done:
            if (await done.score(TRANSFERRED, StopReason.TRANSFER)).reward > 0:
                found.append(task)
    return found


def patience(context: CheckContext) -> CheckReport:
    """A user gives up on an agent that does nothing; no limit has to end the conversation."""
    played = context.idle_episodes()
    found = []
    for task, episode in played:
        if not episode.stop.chosen and episode.stop is not StopReason.INFRASTRUCTURE:
            what = f"its user goes on for {len(episode.messages)} messages with an agent that does nothing"
            found.append(Problem(what, of_task(task), "Let the user say ###STOP### after a few useless answers"))
    longest = max(len(episode.messages) for _, episode in played)
    return CheckReport(f"{len(played)} conversations, at most {longest} messages", (*found, *lost_of(context, played)))


def expert(context: CheckContext) -> CheckReport:
    """The expert without mistakes solves at least 98% of the tasks against the rule-based user."""
    played = context.expert_episodes()
    lost = list(lost_of(context, played))
    failed = [(task, episode) for task, episode in played if paid(episode) < 1 and not episode.error]
    share = 1 - (len(failed) + len(lost)) / len(played)
    told = f"{share:.1%} of {len(played)} tasks"
    if share >= SOLVED and not lost:
        return CheckReport(told)
    place = place_of(context.environment.expert)
    low = Problem(f"the expert{place} solves {told}, and must solve {SOLVED:.0%}") if share < SOLVED else None
    return CheckReport(told, (*([low] if low else []), *lost, *(_failed(*one) for one in failed)))


def _failed(task: Task, episode: Episode) -> Problem:
    parts = [name for name, value in (episode.verdict.breakdown if episode.verdict else {}).items() if value != 1]
    why = f"for {', '.join(parts)}" if parts else f"stopped by {episode.stop.value}"
    last = next((m.content for m in reversed(episode.messages) if m.role == "assistant" and m.content), "nothing")
    return Problem(f"not solved, {why}; it says last: {_short(last)}", of_task(task))


def lost_of(context: CheckContext, played: Played) -> Iterator[Problem]:
    """What broke off."""
    for task, episode in played:
        if episode.error:
            boundary, _, what = episode.error.partition(": ")
            who = {"agent": context.environment.expert, "user": context.environment.rule_based_user}.get(boundary)
            name = {"agent": "the expert", "user": "the rule-based user"}.get(boundary, f"the {boundary}")
            yield Problem(f"{name}{place_of(who)} breaks off: {what}", of_task(task), "Fix the bug")


def conduct(context: CheckContext) -> CheckReport:
    """An audit finds nothing in what the expert without mistakes does, and it speaks or calls, never both."""
    played = context.expert_episodes()[:AUDITED]
    found: dict[str, list[tuple[Task, Finding]]] = {}
    for task, episode in played:
        for finding in findings_of(context, task, episode):
            found.setdefault(finding.rule, []).append((task, finding))
    problems = []
    for rule, several in found.items():
        (first, finding), tasks = several[0], len({task.id for task, _ in several})
        what = f"the audit finds {rule} in {tasks} of {len(played)} conversations of the expert: {finding.text}"
        problems.append(Problem(what, of_task(first), "Let the expert keep the policy, or correct the audit's rules"))
    metrics = {"malformed_calls": "makes calls that cannot be read", "repeated_calls": "repeats calls"}
    for name, what in metrics.items():
        bad = next((t for t, e in played if e.verdict is not None and e.verdict.audit.get(name) and _once(t)), None)
        if bad is not None:
            problems.append(Problem(f"the expert {what}", of_task(bad), "Let it make each call once, and rightly"))
    both = next((t for t, e in played for m in e.messages if m.content and m.tool_calls), None)
    if both is not None:
        problems.append(Problem("the expert speaks and calls in one message", of_task(both), "Let it do one of them"))
    return CheckReport(f"{len(played)} conversations", tuple(problems))


def _once(task: Task) -> bool:
    """Whether the gold actions make each call once."""
    calls = [(action.name, repr(sorted(action.arguments.items()))) for action in task.actions or ()]
    return len(set(calls)) == len(calls)


def findings_of(context: CheckContext, task: Task, episode: Episode) -> list[Finding]:
    """What an audit finds in an episode, notes apart, and what is the verdict's own."""
    domain, rules = context.domain, context.environment.audit_rules(context.domain)
    if context.environment.on_server:  # whose worlds are not made again to look at what was done
        kinds = {name: domain.kind_of(name) for name in domain.tool_names()}
        found = audit_episode(episode, task, rules=replace(rules, kinds=kinds))
    else:
        found = audit_episode(episode, task, domain=domain, rules=rules)
    return [f for f in found if f.severity != "note" and f.layer != "outcome"]


def user_texts(context: CheckContext) -> CheckReport:
    """Nothing that the rule-based user says, to the expert or to an agent that does nothing, is what rules against bad
    users look for."""
    has_expert = context.environment.expert is not None
    served = [(t, e) for t, e in context.expert_episodes() if paid(e) == 1] if has_expert else []
    played = [*served, *context.idle_episodes()]
    tools = context.domain.tool_specs("user")
    found: dict[str, list[tuple[Task, str]]] = {}
    for task, episode in played:
        allowed = [s for s in tools if task.user_tools is None or s.name in task.user_tools]
        for error in find_user_errors(task, episode.messages, user_tools=allowed):
            said = episode.messages[error.turn].content or ""
            found.setdefault(error.rule, []).append((task, f"{error.detail}, in {_short(said)}"))
    place, problems = place_of(context.environment.rule_based_user), []
    remedy = "Say it in other words, or tell it in the scenario: such conversations are dropped from demonstrations"
    for rule, several in found.items():
        first, said = several[0]
        what = f"its user{place} {RULES[rule]}, in {len(several)} of {len(played)} conversations: {said}"
        problems.append(Problem(what, of_task(first), remedy))
    return CheckReport(f"{sum(len(e.messages) for _, e in played)} messages", tuple(problems))


def personas(context: CheckContext) -> CheckReport:
    """The expert serves every persona."""
    split = "validation" if "validation" in context.splits else context.split
    counts: dict[str, tuple[int, int]] = {}
    problems: list[Problem] = []
    for persona in PATIENCE:
        played = context.expert_episodes(split, max(FEW, context.count // 8), persona=persona)
        failed = [(t, e) for t, e in played if paid(e) < 1]
        counts[persona] = (len(failed), len(played))
        problems += [Problem(f"as {persona}, {_failed(t, e).what}", of_task(t)) for t, e in failed]
    failures, total = (sum(column) for column in zip(*counts.values(), strict=True))
    measured = ", ".join(f"{name} {1 - failed / many:.0%}" for name, (failed, many) in counts.items())
    return CheckReport(
        f"{measured} of {total // len(PATIENCE)} tasks", tuple(problems) if failures > 0.02 * total else ()
    )


def same_again(context: CheckContext) -> CheckReport:
    """The same seeds give the same conversation, and other seeds another."""
    tasks = context.playable(count=FEW)
    first, again = (context.plays.play(context.plays.expert(SLOPPY), tasks) for _ in range(2))
    for (task, one), (_, other) in zip(first, again, strict=True):
        if [m.to_json() for m in one.messages] != [m.to_json() for m in other.messages]:
            remedy = "Draw from a random.Random of the seed that they are given, and nothing from anywhere else"
            return CheckReport(
                "", (Problem("expert and user said something else the second time", of_task(task), remedy),)
            )
    return CheckReport(f"{len(tasks)} conversations")


def mistakes(context: CheckContext) -> CheckReport:
    """The mistakes that an expert is told to make cost reward, and audits notice them; none breaks a conversation."""
    clean = context.expert_episodes()
    sloppy = context.expert_episodes(errors=SLOPPY)
    if all(_said(a) == _said(b) for (_, a), (_, b) in zip(clean, sloppy, strict=True)):
        raise NotChecked("the expert makes no mistakes, whatever error_profile says")
    problems = list(lost_of(context, sloppy))
    for task, episode in sloppy:
        if not episode.stop.chosen and not episode.error:
            problems.append(Problem(f"a mistake of the expert ends in {episode.stop.value}", of_task(task)))
    unasked = context.expert_episodes(errors=NEVER_ASKS)[:AUDITED]
    wrote = [(t, e) for (t, e), (_, c) in zip(unasked, clean, strict=False) if _said(e) != _said(c)]
    noticed = sum(any(f.rule == "write-without-consent" for f in findings_of(context, t, e)) for t, e in wrote)
    consent = context.environment.audit_rules(context.domain).consent
    if consent and 2 * noticed < len(wrote):
        told = (
            f"the expert does not ask before it writes in {len(wrote)} conversations, and the audit notices {noticed}"
        )
        problems.append(Problem(told, of_task(wrote[0][0]), "Give AuditRules what the tools are called: spoken"))
    before, after = (sum(paid(e) for _, e in played) / len(played) for played in (clean, sloppy))
    if after >= before and not noticed:
        problems.append(Problem(f"with mistakes the expert earns {after:.1%} and without them {before:.1%}"))
    measured = f"{before:.0%} without, {after:.0%} with"
    return CheckReport(measured + (f"; {noticed} of {len(wrote)} noticed" if consent else ""), tuple(problems))


def asking(context: CheckContext) -> CheckReport:
    """An expert that never asks before it writes loses rewards, in every intent, or an agent learns not to ask."""
    if not context.environment.audit_rules(context.domain).consent:
        raise NotChecked("its policy asks for no consent")
    played = context.expert_episodes(), context.expert_episodes(errors=NEVER_ASKS)
    asked, unasked = (expert_plays(context.domain, (episode for _, episode in one)) for one in played)
    cost = asking_cost([task for task, _ in played[0]], asked, unasked)
    if not cost.due:
        raise NotChecked("no request leads to a write that is to be asked for")
    measured = f"never asking loses {cost.lost} of {cost.due} ({cost.share:.0%})"
    return CheckReport(measured, (Problem(cost.problem, remedy=REMEDY),) if cost.problem else ())


def _said(episode: Episode) -> list[object]:
    return [m.to_json() for m in episode.messages]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 100 else f"{line[:99]}…")
