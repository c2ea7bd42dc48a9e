"""What is wrong with a task's gold actions: they fail, change nothing, break the policy, or use what nobody knows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from muarl.domains.checking import CheckFinding, Fix, Level
from muarl.domains.task_rules import Breach
from muarl.language.facts import dates
from muarl_tools.checks.tasks.checked_task import CheckedTask, GoldStep, asked, leaves

FREE_TEXT = 3
"""Values of so many words or more, without a digit, are the agent's own wording."""
_CODE = re.compile(r"[A-Z]{2,3}")
"""What states, countries and airports are called in records, and in no other place: people say them in full."""


def gold_actions(checked: CheckedTask) -> Iterator[CheckFinding]:
    """All of it, action by action."""
    for step in checked.steps:
        if step.kind == "unknown":
            yield _unknown_tool(checked, step)
        elif step.failed is not None:
            yield _failing(checked, step)
    yield from _effects(checked)
    for step in checked.writes:
        if step.failed is None:
            yield from _forbidden(checked, step)
            yield from _other_person(checked, step)
            yield from _people_named(checked, step)
            yield from _invented(checked, step)


def _unknown_tool(checked: CheckedTask, step: GoldStep) -> CheckFinding:
    side = "agent" if step.action.requestor == "assistant" else "user"
    evidence = f"{step}: the {side} has no tool of that name"
    return checked.found("gold-unknown-tool", "error", evidence, "Name a tool that there is, or add it to the domain")


def _failing(checked: CheckedTask, step: GoldStep) -> CheckFinding:
    searched = step.action.name in checked.source.audit.auth_tools
    counts = "ACTION" in checked.task.reward_basis and not searched
    level: Level = "error" if step.kind == "write" else "warning" if counts else "note"
    remedy = "Fix the arguments or the tool" if not searched else "Fine where the scenario means the search to miss"
    drop = (Fix("drop", index=step.index),) if level == "warning" else ()
    return checked.found("gold-fails", level, f"{step}: {step.failed}", remedy, *drop)


def _effects(checked: CheckedTask) -> Iterator[CheckFinding]:
    """Writes that change nothing: one alone, or all of them together."""
    done = [s for s in checked.writes if s.failed is None]
    silent = [s for s in done if not s.changed]
    users = any(s.kind == "write" and s.action.requestor == "user" for s in checked.steps)
    if checked.writes and not users and checked.ending == checked.world().digest():
        evidence = "after all gold actions the database is as it was, so that doing nothing has the right end state"
        rest = " and ".join(str(s) for s in checked.writes[:2])
        level: Level = "error" if "DB" in checked.task.reward_basis else "note"
        yield checked.found("gold-no-effect", level, f"{evidence} ({rest})", "Give the task another goal, or say "
                    "that a refusal is right by leaving the writes out")  # fmt: skip
        return
    for step in silent:
        remedy = "Leave the action out, or give it arguments that change something"
        yield checked.found("gold-no-effect", "note", f"{step} changes nothing", remedy,
                    Fix("drop", index=step.index))  # fmt: skip


def _forbidden(checked: CheckedTask, step: GoldStep) -> Iterator[CheckFinding]:
    name = step.action.name
    occasion = checked.occasion(step.index)
    for rules in (checked.source.audit.forbids, checked.source.rules.forbids):
        why = asked(rules[name], occasion) if name in rules else None
        if why is not None:
            # Where a claim of the user's would allow it, nobody but the author knows which of the two is wrong.
            claims = [f for f in checked.source.rules.claims if f.tool == name]
            sure = all(asked(rules[name], replace(occasion, said=f"{occasion.said} {f.says}")) for f in claims)
            yield checked.found("gold-breaks-policy", "error", f"{step}: {why}", "Leave the action out, or "
                        "change the scenario or the record so that the policy allows it",
                        Fix("drop", index=step.index, settled=sure))  # fmt: skip
            return
    breaches = checked.source.rules.breaches
    breach: Breach | None = asked(breaches[name], occasion) if name in breaches else None
    if breach is not None:
        fixes = () if breach.instead is None else (Fix("arguments", dict(breach.instead), step.index, True),)
        remedy = "Let the action be what the policy asks for, and fit the scenario to it"
        yield checked.found("gold-breaks-policy", "error", f"{step}: {breach.why}", remedy, *fixes)


def _other_person(checked: CheckedTask, step: GoldStep) -> Iterator[CheckFinding]:
    if checked.person is None or not checked.source.audit.one_person:
        return
    for resource in checked.source.audit.resources:
        for key in resource.named(step.action.arguments):
            owner = checked.owner(resource, key)
            if owner is not None and owner != checked.person:
                evidence = f"{step}: {key} belongs to {owner}, and the scenario is about {checked.person}"
                yield checked.found("gold-other-person", "error", evidence, "Name a record of the scenario's user")
                return


# values that somebody must know


def _people_named(checked: CheckedTask, step: GoldStep) -> Iterator[CheckFinding]:
    """Persons among the arguments (with first and last name): unknown ones, and others than the database has."""
    if not checked.own_records:
        return
    known = [row for record in checked.own_records for row in _persons(record)]
    text = checked.task.scenario.lower()
    for named, path in _placed(step.action.arguments):
        first, last = str(named["first_name"]), str(named["last_name"])
        same = [k for k in known if (k["first_name"], k["last_name"]) == (first, last)]
        births = {k["dob"] for k in same if k.get("dob")}
        told = {day for day, _ in dates(checked.task.scenario)}
        born = named.get("dob")
        spoken = isinstance(born, str) and bool({day for day, _ in dates(born)} & told)
        names = {first.lower(), last.lower()}
        said = names & set(re.findall(r"[a-z'’-]+", text))
        new = said - {str(k[f]).lower() for k in known for f in ("first_name", "last_name")}
        if not same and said != names and not new:
            evidence = f"{step}: {first} {last} is neither in the scenario nor known of its user"
            yield checked.found("gold-invented", "error", evidence, "Name a person whom the scenario or the user's "
                        "profile has")  # fmt: skip
        elif births and born is not None and born not in births and not spoken:
            right = sorted(births)[0]
            changed = _with(step.action.arguments, path, {**named, "dob": right})
            evidence = f"{step}: {first} {last} was born on {right} by the user's profile, not on {born}"
            yield checked.found("gold-contradicts", "error", evidence, "Use the date that the profile has, or tell "
                        "the other one in the scenario",
                        *((Fix("arguments", changed, step.index, True),) if len(births) == 1 else ()))  # fmt: skip


def _persons(value: Any) -> Iterator[dict[str, Any]]:
    """Persons within a record; the record's own name goes with its date of birth."""
    if isinstance(value, Mapping):
        own = value.get("name")
        if isinstance(own, Mapping) and {"first_name", "last_name"} <= set(own):
            yield {**own, "dob": value.get("dob")}
        elif {"first_name", "last_name"} <= set(value) and "dob" in value:
            yield dict(value)
        for inner in value.values():
            yield from _persons(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _persons(inner)


def _placed(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[dict[str, Any], tuple[Any, ...]]]:
    if isinstance(value, Mapping):
        if path and {"first_name", "last_name"} <= set(value):
            yield dict(value), path
        for name, inner in value.items():
            yield from _placed(inner, (*path, name))
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _placed(inner, (*path, number))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of nested arguments with one place changed."""
    if not path:
        return new
    if isinstance(value, Mapping):
        return {k: _with(v, path[1:], new) if k == path[0] else v for k, v in value.items()}
    return [_with(v, path[1:], new) if n == path[0] else v for n, v in enumerate(value)]


def _invented(checked: CheckedTask, step: GoldStep) -> Iterator[CheckFinding]:
    """Text among the arguments that comes from nowhere: it is not in the scenario, the user's records, the records
    that belong to nobody, earlier results, the tools' interface or the policy. Arguments that are not compared may be
    in the agent's own words."""
    if not checked.own_records:
        return
    compared = step.action.compare_args
    given = [v for name, v in step.action.arguments.items() if compared is None or name in compared]
    inside = {id(v) for named, _ in _placed(step.action.arguments) for v in named.values()}
    strange = [
        value
        for value in leaves(given)
        if isinstance(value, str) and id(value) not in inside and not _given(checked, step, value)
    ]
    if strange:
        told = ", ".join(map(repr, dict.fromkeys(strange)))
        evidence = f"{step}: nothing tells the agent {told}"
        yield checked.found("gold-invented", "warning", evidence, "Tell it in the scenario, or take it from the "
                    "user's records")  # fmt: skip


def _given(checked: CheckedTask, step: GoldStep, value: str) -> bool:
    plain = _plain(value)
    worded = len(value.split()) >= FREE_TEXT and not re.search(r"\d", value)
    if len(plain) < 2 or worded or plain in ("yes", "no"):
        return True
    texts = [checked.task.scenario, *(s.result for s in checked.steps[: step.index])]
    if plain in interface(checked) or any(plain in _plain(text) for text in texts):
        return True
    days = {day for day, _ in dates(value)}
    if days and days & {day for day, _ in dates(checked.task.scenario)}:
        return True
    words = set(re.findall(r"[a-z0-9]+", checked.task.scenario.lower()))
    if all(word in words for word in re.findall(r"[a-z0-9]+", value.lower())):
        return True
    return value in own_values(checked) or _shared(checked, value) or bool(_CODE.fullmatch(value))


def own_values(checked: CheckedTask) -> set[Any]:
    """The values within the user's records."""
    return {v for record in checked.own_records for v in leaves(record) if isinstance(v, (str, int, float))}


def _shared(checked: CheckedTask, value: str) -> bool:
    """Whether a record that belongs to nobody has a value, or is called so."""
    kept = checked.source.kept
    if "shared values" not in kept:
        owned = {r.table for r in checked.source.audit.resources}
        rows = [dict(checked.tables[table].scan()) for table in checked.tables if table not in owned]
        kept["shared values"] = frozenset(v for row in rows for v in leaves(row) if isinstance(v, str))
    return value in kept["shared values"]


def interface(checked: CheckedTask) -> str:
    """The policy and the tools' documentation, in plain letters and digits."""
    kept = checked.source.kept
    if "interface" not in kept:
        specs = [json.dumps(spec.to_openai(), ensure_ascii=False) for spec in checked.domain.tool_specs()]
        kept["interface"] = _plain("\n".join([checked.domain.policy_text, *specs]))
    found: str = kept["interface"]
    return found


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())
