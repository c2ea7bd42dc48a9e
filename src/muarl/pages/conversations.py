"""Whole conversations for the report: who said what, every tool call with its result, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muarl.accounts.metrics import is_success
from muarl.audit.findings import Finding
from muarl.pages.markup import Html, join, tag
from muarl.types.chat import GREETING, STOP_WORDS, Message, ToolCall, ToolFault
from muarl.types.episode import Episode, StopReason

LONG = 360
"""Results of more characters than this are folded."""

STOP_TEXT = {
    StopReason.USER_STOP: "the user ended it",
    StopReason.AGENT_STOP: "the agent was done",
    StopReason.TRANSFER: "transferred to a person",
    StopReason.MAX_TURNS: "too many turns",
    StopReason.TURN_LENGTH: "a turn grew too long",
    StopReason.CONTEXT_FULL: "the context was full",
    StopReason.TOOL_ERRORS: "too many tool errors",
    StopReason.EMPTY_REPLY: "the agent said nothing",
    StopReason.BROKEN_CALL: "a call that cannot be read",
    StopReason.INFRASTRUCTURE: "infrastructure failed",
}

_AUDIT_CHIPS = (
    ("writes_without_consent", "write without consent", "writes without consent", True),
    ("needless_transfers", "needless transfer", "needless transfers", True),
    ("access_before_authentication", "access before authentication", "accesses before authentication", True),
    ("foreign_access", "access to another user", "accesses to other users", True),
    ("tool_errors", "tool error", "tool errors", False),
    ("repeated_calls", "repeated call", "repeated calls", False),
)


def call_text(name: str, arguments: Mapping[str, Any]) -> Html:
    """A call as code: name(key=value, ...)."""
    text = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False, default=str)}" for k, v in arguments.items())
    return join(tag("b", name), tag("span", f"({text})", class_="args"))


def gold_list(actions: Iterable[Mapping[str, Any]] | None) -> Html:
    """A task's gold actions, in order."""
    if actions is None:
        return tag("p", "This task has no gold actions on record.", class_="soft")
    rows = [tag("li", call_text(str(a.get("name", "")), a.get("arguments") or {})) for a in actions]
    if not rows:
        return tag("p", "Nothing: the right answer changes nothing in the database.", class_="soft")
    return tag("ol", rows, class_="gold")


def wanted(
    scenario: object,
    gold: Iterable[Mapping[str, Any]] | None,
    who: str = "user",
    opened: tuple[bool, bool] = (False, False),
) -> Html:
    """What a task asks for: its scenario, and its gold actions unless they are None. ``opened``: which of the two are
    not folded."""
    scenario_parts = tag("summary", f"What the {who} wants"), tag("p", str(scenario), class_="scenario")
    actions = tag("summary", "Gold actions"), gold_list(gold)
    return join(
        tag("details", scenario_parts, open=opened[0]) if scenario else None,
        tag("details", actions, open=opened[1]) if gold is not None else None,
    )


def _same(name: Any, arguments: Mapping[str, Any]) -> str:
    return f"{name} {json.dumps(dict(arguments), sort_keys=True, default=str)}"


def _call(call: ToolCall, result: Message | None, gold: bool, clean: bool) -> Html:
    """``gold``: the call is one of the gold actions. ``clean``: an audit found nothing wrong with it."""
    failed = call.invalid is not None or (result is not None and result.error)
    classes = "call" + (" error" if failed else "") + (" user" if call.requestor == "user" else "")
    whose = "Customer’s tool" if call.requestor == "user" else "Tool call"
    mark = None
    if gold and not failed:
        text = " ✓ matches a gold action" if clean else " matches a gold action"
        mark = tag("span", text, class_="label good" if clean else "label")
    body: list[Html] = [tag("span", whose, class_="label"), join(mark, tag("br"))]
    if call.invalid is not None:
        body.append(tag("span", call.raw or call.name or "(nothing)", class_="args"))
        body.append(tag("div", f"Not a valid call: {call.invalid}", class_="result"))
    else:
        body.append(call_text(call.name, call.arguments))
    if result is not None:
        body.append(_result(result))
    return tag("div", body, class_=classes)


def fault_text(fault: ToolFault) -> str:
    """A simulated system's fault, as people read of it, such as "fault: outage (all tools)"."""
    more = [fault.detail, "" if fault.seconds is None else f"{fault.seconds:g} s"]
    more.append("carried out" if fault.failed and fault.ran and fault.writes else "")
    details = ", ".join(filter(None, more))
    return f"fault: {fault.kind.replace('_', ' ')}{f' ({details})' if details else ''}"


def _result(result: Message) -> Html:
    text = result.content or "(empty)"
    label = tag("span", "Error" if result.error else "Result", class_="label bad" if result.error else "label")
    label = join(label, *(tag("span", fault_text(fault), class_="chip") for fault in result.faults))
    if len(text) <= LONG:
        return tag("div", label, "\n", text, class_="result")
    head = f"{text[:80].rstrip()} … ({len(text):,} characters)"
    return tag("div", label, tag("details", tag("summary", head), tag("div", text, class_="result")), class_="result")


def _say(message: Message, greeting: bool = False) -> Html:
    user = message.role == "user"
    text = message.content or ""
    ended = [w for w in STOP_WORDS if w in text] if user else []
    for word in ended:
        text = text.replace(word, "")
    chips = [tag("span", w.strip("#").lower().replace("-", " "), class_="chip") for w in ended]
    who = "Customer" if user else "Agent"
    return tag(
        "div",
        tag("span", who, class_="who"),
        text.strip() or (None if ended else "(nothing)"),
        [" ", *chips] if chips and text.strip() else chips,
        class_=f"say {'user' if user else 'agent'}{' greeting' if greeting else ''}",
    )


def conversation(
    messages: Sequence[Message],
    gold: Iterable[Mapping[str, Any]] = (),
    notes: Mapping[tuple[int, int], Html] | None = None,
    findings: Iterable[Finding] | None = None,
) -> Html:
    """A conversation from the first message to the last; the system prompt is folded. Calls equal to one of the
    task's ``gold`` actions are marked. ``notes``: what to show after a message's call of that number, or, with -1,
    after what the message says. ``findings``: the audit's; a gold action is shown in green only where they are known
    and hold nothing against it (None: not audited)."""
    said = notes or {}
    wrong = None if findings is None else {(f.message, f.call) for f in findings if f.severity != "note"}
    right = {_same(a.get("name"), a.get("arguments") or {}) for a in gold}
    results = {(m.requestor, m.tool_call_id): m for m in messages if m.role == "tool"}
    answered: set[int] = set()
    out: list[Html] = []
    for index, m in enumerate(messages):
        if m.role == "system":
            out.append(tag("details", tag("summary", "Policy and tools"), tag("pre", m.content or "")))
        elif m.role == "tool":
            if id(m) not in answered:
                out.append(tag("div", _result(m), class_="call"))
        else:
            if m.reasoning:
                thought = tag("summary", f"Thought, {len(m.reasoning):,} characters")
                out.append(tag("details", thought, tag("div", m.reasoning, class_="result"), class_="thought"))
            if m.content or not m.tool_calls:
                out.append(_say(m, greeting=index == 0 and m.content == GREETING))
            out.append(said.get((index, -1), Html("")))
            for number, call in enumerate(m.tool_calls):
                result = results.get((call.requestor, call.id))
                if result is not None:
                    answered.add(id(result))
                clean = wrong is not None and not wrong & {(index, call.name), (index, None)}
                out.append(_call(call, result, _same(call.name, call.arguments) in right, clean))
                out.append(said.get((index, number), Html("")))
    return tag("div", out, class_="talk")


def verdict_chips(episode: Episode) -> Html:
    """Solved or not, why it ended, and what the audit found."""
    chips: list[Html] = []
    if episode.verdict is None:
        chips.append(tag("span", "not scored", class_="chip"))
    else:
        good = is_success(episode.reward)
        chips.append(tag("span", "✓ solved" if good else "✗ failed", class_="chip good" if good else "chip bad"))
    chips.append(tag("span", STOP_TEXT[episode.stop], class_="chip"))
    audit = episode.verdict.audit if episode.verdict is not None else {}
    for key, one, many, grave in _AUDIT_CHIPS:
        if count := int(audit.get(key, 0)):
            chips.append(tag("span", f"{count} {one if count == 1 else many}", class_="chip bad" if grave else "chip"))
    parts = episode.verdict.breakdown if episode.verdict is not None else {}
    if len(parts) > 1:
        chips += [tag("span", f"{name} {value:g}", class_="chip") for name, value in parts.items()]
    note = episode.error or (episode.verdict.note if episode.verdict is not None else None)
    return tag("div", chips, tag("p", note, class_="soft") if note else None)


def choose_tasks(before: Sequence[Episode], after: Sequence[Episode], count: int = 4) -> list[tuple[Episode, Episode]]:
    """Pairs on the same task that show what changed, honestly: gains first, then a remaining failure, then a loss.

    Varies the intent; longer conversations (which show more) come first within a kind. Deterministic.
    """
    first_after: dict[str, Episode] = {}
    for e in after:
        if e.verdict is not None:
            first_after.setdefault(e.task_id, e)
    pairs: dict[str, tuple[Episode, Episode]] = {}
    for e in before:
        if e.verdict is not None and e.task_id in first_after:
            pairs.setdefault(e.task_id, (e, first_after[e.task_id]))
    kinds: dict[str, list[tuple[Episode, Episode]]] = {"gain": [], "failure": [], "loss": [], "kept": []}
    for b, a in sorted(pairs.values(), key=lambda p: (-_worth(p[1]), p[0].task_id)):
        kind = {(False, True): "gain", (False, False): "failure", (True, False): "loss", (True, True): "kept"}
        kinds[kind[is_success(b.reward), is_success(a.reward)]].append((b, a))
    chosen: list[tuple[Episode, Episode]] = []
    for next_kind in ["gain"] * max(1, count - 2) + [
        "failure",
        "loss",
        "gain",
        "kept",
        "failure",
        "loss",
        "gain",
        "kept",
    ]:
        if len(chosen) >= count:
            break
        seen = {c[0].tags.get("intent") for c in chosen}
        pool = [p for p in kinds[next_kind] if p not in chosen]
        fresh = [p for p in pool if p[0].tags.get("intent") not in seen]
        if pool:
            chosen.append((fresh or pool)[0])
    return chosen


def _worth(episode: Episode) -> int:
    """How much a conversation shows: its messages, but endless ones are no pleasure to read."""
    length = len(episode.messages)
    return length if length <= 24 else 24 - length
