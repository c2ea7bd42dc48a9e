"""Communication obligations: what the domain's author declares as having to be said."""

from __future__ import annotations

from collections.abc import Iterator

from muarl.audit.findings import Finding
from muarl.audit.scene import Scene, Step
from muarl.domains.auditing import Obligation
from muarl.episode import StopReason
from muarl.patterns import search


def find(scene: Scene) -> Iterator[Finding]:
    """What was owed and not said, as far as patterns can tell."""
    for step, duty in owed(scene):
        if duty.say and not is_met(scene, step, duty):
            name = step.record.call.name
            where = {"before": "before", "after": "after", "around": "around"}[duty.when]
            text = f"Not said {where} {name}: {duty.text}"
            yield Finding("communication", f"unsaid-{duty.name}", duty.weight, step.record.index, text, name)


def owed(scene: Scene) -> Iterator[tuple[Step, Obligation]]:
    """Each obligation with the call that brings it; once, where several calls of one message or one run bring it."""
    last: dict[str, int] = {}
    for step in scene.own:
        record = step.record
        if not record.ok or not (record.wrote or record.kind == "generic"):
            continue
        for duty in step.due:
            before = last.get(duty.name)
            last[duty.name] = record.index
            # Calls that nothing was said between are one change to the user, who is told of it once.
            if before is not None and not scene.said_between(before, record.index):
                continue
            if duty.when == "after" and _cut(scene, record.index):
                continue
            yield step, duty


def window(scene: Scene, step: Step, duty: Obligation) -> tuple[int, int]:
    """Between which messages it must be said: from the tool's call before to its next one, or to this call."""
    index, name = step.record.index, step.record.call.name
    same = [s.record.index for s in scene.steps if s.record.call.name == name and s.record.ok]
    earlier = [i for i in same if i < index and scene.told_before(index, i)]
    later = [i for i in same if i > index and scene.told_before(i, index)]
    begin = earlier[-1] if earlier and duty.when != "after" else index if duty.when == "after" else -1
    # What is said after the call may come with the next one, so its end is open.
    end = index if duty.when == "before" else len(scene.messages) if not later or duty.when == "after" else later[0]
    return begin, end


def is_met(scene: Scene, step: Step, duty: Obligation) -> bool:
    """Whether the agent's words in the window match all that must be said."""
    begin, end = window(scene, step, duty)
    words = scene.said_between(begin, end)
    return all(search(p, words, ignore_case=True) is not None for p in duty.say)


def _cut(scene: Scene, index: int) -> bool:
    """Whether the conversation ended with the call, so that nothing could be said after it."""
    stop, rest = scene.episode.stop, scene.messages[index + 1 :]
    if any(m.role == "assistant" for m in rest):
        return False
    cut = stop.truncated or stop in (StopReason.TRANSFER, StopReason.INFRASTRUCTURE)
    return cut or all(m.role == "tool" for m in rest)
