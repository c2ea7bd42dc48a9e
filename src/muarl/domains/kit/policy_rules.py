"""Which numbered rules of a policy are practised and audited: what declares each, and how many tasks meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from muarl.basics.errors import OwnCodeError
from muarl.domains.checking import CheckReport, KeptRule, Problem, RuleKeeper, RuleTable, place_of
from muarl.domains.generated import Infeasible
from muarl.domains.kit import gold
from muarl.domains.kit.colleague import REQUEST
from muarl.domains.kit.exploring import explored
from muarl.domains.kit.moves import Request
from muarl.domains.kit.requests import split
from muarl.domains.kit.service import Service
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.kit.worlds import shown_user
from muarl.domains.policy_numbers import numbered, numbers_of, whole_rules
from muarl.domains.tasks import Task

IDENTITY, CONSENT, OUTSIDE, AUTHORITY = "identity", "consent", "outside", "authority"
"""What ``Service.rules`` may say of a rule that is kept by the service as a whole."""
HEAD = ("rule", "declared by", "tasks", "audit")
REWARD = "the reward only"
BEYOND = "write-above-authority"
SAID = "–"
NOTHING = "nothing"
LONGEST = 60
"""Characters of a text that the table shows."""


@dataclass(frozen=True)
class Keeper:
    """Something declared that keeps a rule."""

    where: str
    """See ``RuleKeeper``."""
    audit: str | None
    """See ``RuleKeeper``."""
    met: Callable[[TaskOutcomes], bool] | None
    """Whether a task meets it, None where no task can."""
    text: str = ""
    """See ``RuleKeeper``."""
    intent: str = ""
    """The intent whose plan it stands in, with the plan's line."""
    place: str = ""
    """See ``RuleKeeper``."""


@dataclass
class TaskOutcomes:
    """What a task comes to."""

    tools: set[str]
    """The tools of its gold actions."""
    impostor: bool
    outside: bool = False
    """Only a person can help."""
    ends: set[tuple[str, str, str]] = field(default_factory=set)
    """How each of its requests ends as it is first asked: (intent, kind, text of the rule)."""


def check(maker: TaskMaker, tasks: Sequence[Task]) -> CheckReport:
    """The table, and the numbered rules that nothing declared keeps."""
    policy = numbered(_policy(maker.service))
    keepers = declared(maker)
    whole = whole_rules(_policy(maker.service))
    if not keepers:
        unnamed = f"the policy numbers {len(policy)} rules; no declaration names one (refuse_if(..., rule=10))"
        table = RuleTable(tuple(KeptRule(number, whole[number]) for number in policy), 0)
        return CheckReport(unnamed if policy else "the policy numbers no rules", rules=table if policy else None)
    seen = [_seen(maker, task) for task in tasks if _is_of(maker, task)]
    order = [*policy, *(number for number in keepers if number not in policy)]
    rules = tuple(KeptRule(n, whole.get(n, ""), _kept(keepers.get(n, ()), seen)) for n in order)
    problems = [
        Problem(
            f"nothing practises or audits rule {number} of the policy ({_short(text)})",
            remedy=f"Write rule={_code(number)} where a plan or an obligation keeps it, or say in "
            f"Service(rules={{{_code(number)}: '...'}}) what does",
        )
        for number, text in policy.items()
        if number not in keepers
    ]
    problems += [
        Problem(f"the policy has no rule {number}", keeper.intent or keeper.where, "Correct the number, or the policy")
        for number, of_number in keepers.items()
        for keeper in of_number[:1]
        if number not in policy
    ]
    kept_count = sum(number in keepers for number in policy)
    measured = f"{kept_count} of {len(policy)} numbered rules, {len(seen)} tasks"
    return CheckReport(measured, tuple(problems), _rows(rules), RuleTable(rules, len(seen)))


def _kept(keepers: Sequence[Keeper], seen: Sequence[TaskOutcomes]) -> tuple[RuleKeeper, ...]:
    """The keepers of a rule with the number of tasks that meet each."""
    return tuple(
        RuleKeeper(k.where, k.text, k.place, None if k.met is None else sum(map(k.met, seen)), k.audit) for k in keepers
    )


def _rows(rules: Sequence[KeptRule]) -> tuple[tuple[str, ...], ...]:
    """The table for a terminal, in which long texts are cut."""
    rows: list[tuple[str, ...]] = [HEAD]
    for rule in rules:
        for n, keeper in enumerate(rule.keepers):
            audit = SAID if keeper.audit is None else keeper.audit or REWARD
            met = "" if keeper.tasks is None else str(keeper.tasks)
            what = f'{keeper.what} "{_short(keeper.text)}"' if keeper.text else keeper.what
            rows.append((rule.number if n == 0 else "", what, met, audit))
        if not rule.keepers:
            rows.append((rule.number, NOTHING, "", NOTHING))
    return tuple(rows)


def declared(maker: TaskMaker) -> dict[str, list[Keeper]]:
    """By number of a rule what has been declared to keep it."""
    keepers: dict[str, list[Keeper]] = {}
    for numbers, keeper in (*_of_service(maker.service), *_of_plans(maker)):
        for number in numbers:
            keepers.setdefault(number, []).append(keeper)
    return keepers


def _of_service(service: Service) -> Iterator[tuple[tuple[str, ...], Keeper]]:
    writes = {tool for tool, kind in service.tool_kinds.items() if kind == "write"} - set(service.free_writes)
    for number, declaration in service.rules.items():
        if declaration == IDENTITY and service.identity is not None:
            tool = service.identity.tool
            met = partial(_identified, tool)
            keeper = Keeper("identity", "write-before-authentication, access-before-authentication", met)
        elif declaration == CONSENT and service.consent:
            keeper = Keeper("consent", "write-without-consent", lambda task: not writes.isdisjoint(task.tools))
        elif declaration == AUTHORITY and service.limits:
            keeper = Keeper("authority", BEYOND, lambda task: REQUEST in task.tools)
        elif declaration == OUTSIDE and service.outside:
            keeper = Keeper("outside", "", lambda task: task.outside)
        else:
            keeper = Keeper("said:", None, None, declaration)
        yield numbers_of(number), keeper
    for duty in service.obligations:
        audit = f"unsaid-{duty.name}" if duty.say else f"unsaid-{duty.name} (by a judge)"
        met = partial(_calls, duty.tools)
        yield numbers_of(duty.rule), Keeper(f"obligation {duty.name}", audit, met)


def _of_plans(maker: TaskMaker) -> Iterator[tuple[tuple[str, ...], Keeper]]:
    for intent in maker.service.intents:
        exploration = explored(maker.worlds)[intent.name]
        where = f"intent {intent.name}{place_of(intent.plan)}"
        for rule in exploration.rules:
            audit = "ineligible-write" if rule.kind in ("refuse", "transfer") and exploration.writes else ""
            audit = BEYOND if rule.kind == "declined" else audit
            met = partial(_ends, (intent.name, rule.kind, rule.text))
            yield rule.numbers, Keeper(f"{intent.name}: {rule.kind}", audit, met, rule.text, where, rule.place)
        for rule in exploration.notes.cited:
            if rule.kind == "write":
                free = not maker.service.consent or rule.text in maker.service.free_writes
                name, audit = f"{intent.name}: write {rule.text}", "" if free else "write-without-consent"
                met = partial(_writes, intent.name, rule.text)
            else:
                name, audit, met = f"{intent.name}: {rule.kind}", "", partial(_answers, intent.name, rule.kind)
            yield rule.numbers, Keeper(name, audit, met, "", where, rule.place)


def _identified(tool: str, task: TaskOutcomes) -> bool:
    return task.impostor or not tool or tool in task.tools


def _calls(tools: frozenset[str], task: TaskOutcomes) -> bool:
    return not tools.isdisjoint(task.tools)


def _ends(end: tuple[str, str, str], task: TaskOutcomes) -> bool:
    return end in task.ends


def _writes(intent: str, tool: str, task: TaskOutcomes) -> bool:
    return tool in task.tools and any(name == intent for name, _, _ in task.ends)


def _answers(intent: str, kind: str, task: TaskOutcomes) -> bool:
    return any((name, how) == (intent, kind) for name, how, _ in task.ends)


def _policy(service: Service) -> str:
    """The whole policy: that of the tiny size may be a shorter one."""
    plain = service.tables is None or service.rehearsal is not None
    return (service.domain() if plain else service.domain(database={})).policy_text


def _code(number: str) -> str:
    """A number as an author writes it."""
    return number if number.isdigit() else repr(number)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"


def _is_of(maker: TaskMaker, task: Task) -> bool:
    """Whether a task is this service's: environments may play several."""
    asked = {request["kind"] for request in (task.agenda or {}).get("requests", ())}
    return asked <= {"outside", *(intent.name for intent in maker.service.intents)}


def _seen(maker: TaskMaker, task: Task) -> TaskOutcomes:
    """What a task's requests come to, each served by itself."""
    service, agenda = maker.service, task.agenda or {}
    seen = TaskOutcomes({action.name for action in task.actions or ()}, bool(agenda.get("impostor")))
    if seen.impostor:
        return seen
    user = shown_user(service, maker.worlds.domain.world(task), dict(agenda["identity"]))
    if user is None:
        return seen
    answers: dict[str, Any] = {}
    for asked in agenda["requests"]:
        if asked["kind"] == "outside":
            seen.outside = True
        else:
            end = _end(maker, task, user, asked, answers)
            if end is not None:
                seen.ends.add((asked["kind"], end.kind, end.rule))
    return seen


def _end(
    maker: TaskMaker, task: Task, user: Mapping[str, Any], asked: Mapping[str, Any], answers: dict[str, Any]
) -> gold.RequestOutcome | None:
    slots, described = split(asked["goal"])
    request = Request(asked["kind"], {k: v for k, v in slots.items() if k not in described}, described)
    try:
        return gold.run(maker.service, partial(maker.worlds.domain.world, task), user, request, answers)
    except (Infeasible, OwnCodeError):
        return None
