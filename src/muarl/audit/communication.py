"""Communication: what the domain's author declares as having to be said, and what is not so that was said."""

from __future__ import annotations

from collections.abc import Iterator

from muarl.audit.findings import Finding
from muarl.audit.transcript import AuditedCall, Transcript
from muarl.audit.values import leaves, names
from muarl.basics.patterns import search
from muarl.domains.auditing import Obligation, UserQuestion, spelled_out
from muarl.rewards.checks import said
from muarl.types.chat import Message
from muarl.types.episode import StopReason


def find(transcript: Transcript) -> Iterator[Finding]:
    """What was owed and not said, as far as patterns can tell; and what was said and is not so."""
    for step, duty in owed(transcript):
        if duty.say and not is_met(transcript, step, duty):
            name = step.record.call.name
            where = {"before": "before", "after": "after", "around": "around"}[duty.when]
            text = f"Not said {where} {name}: {duty.text}"
            yield Finding("communication", f"unsaid-{duty.name}", duty.weight, step.record.index, text, name)
    for question in unanswered(transcript):
        text = f"The user asked ({question.about}) and was never told {question.answer}."
        yield Finding("communication", "unsaid-answer", "violation", max(len(transcript.messages) - 1, 0), text)
    for index, wrong in transcript.untrue:
        yield Finding("communication", "false-statement", "violation", index, f"{wrong[:1].upper()}{wrong[1:]}.")


def unanswered(transcript: Transcript) -> Iterator[UserQuestion]:
    """What the user asked, as the task has it, and was not told. A conversation that a limit cut, or that was handed
    over, owes nothing more."""
    asks, task, stop = transcript.rules.asks, transcript.task, transcript.episode.stop
    handed_over = any(s.record.ok and s.record.call.name in transcript.rules.transfer_tools for s in transcript.own)
    if asks is None or task is None or not stop.chosen or stop is StopReason.TRANSFER or handed_over:
        return
    heard = tuple(text for index, text in transcript.told if index >= transcript.begin)
    try:
        questions = tuple(asks(task, heard))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):  # a task that is not of the asker's making
        return
    words = [Message("assistant", text) for _, text in transcript.said]
    answered = said(words, [question.answer for question in questions])
    yield from (question for question, ok in zip(questions, answered, strict=True) if not ok)


def owed(transcript: Transcript) -> Iterator[tuple[AuditedCall, Obligation]]:
    """Each obligation with the call that brings it; once, where several calls of one message or one run bring it."""
    last: dict[str, int] = {}
    for step in transcript.own:
        record = step.record
        if not record.ok or not (record.wrote or record.kind == "generic"):
            continue
        for duty in step.due:
            before = last.get(duty.name)
            last[duty.name] = record.index
            # Calls that nothing was said between are one change to the user, who is told of it once.
            if before is not None and not transcript.said_between(before, record.index):
                continue
            if duty.when == "after" and _cut(transcript, record.index):
                continue
            yield step, duty


def window(transcript: Transcript, step: AuditedCall, duty: Obligation) -> tuple[int, int]:
    """Between which messages it must be said: from the tool's call before to its next one, or to this call."""
    index, name = step.record.index, step.record.call.name
    same = [s.record.index for s in transcript.steps if s.record.call.name == name and s.record.ok]
    earlier = [i for i in same if i < index and transcript.told_before(index, i)]
    later = [i for i in same if i > index and transcript.told_before(i, index)]
    begin = earlier[-1] if earlier and duty.when != "after" else index if duty.when == "after" else -1
    # What is said after the call may come with the next one, so its end is open.
    end = (
        index if duty.when == "before" else len(transcript.messages) if not later or duty.when == "after" else later[0]
    )
    return begin, end


def is_met(transcript: Transcript, step: AuditedCall, duty: Obligation) -> bool:
    """Whether the agent's words in the window match all that must be said."""
    begin, end = window(transcript, step, duty)
    words = transcript.said_between(begin, end)
    if duty.or_value and any(len(v) > 1 and names(words, v) for v in leaves(spelled_out(step.record.call.arguments))):
        return True
    return all(search(p, words, ignore_case=True) is not None for p in duty.say)


def _cut(transcript: Transcript, index: int) -> bool:
    """Whether the conversation ended with the call, so that nothing could be said after it."""
    stop, rest = transcript.episode.stop, transcript.messages[index + 1 :]
    if stop.truncated and not transcript.said_between(index, len(transcript.messages)):
        return True
    if any(m.role == "assistant" for m in rest):
        return False
    cut = stop.truncated or stop in (StopReason.TRANSFER, StopReason.INFRASTRUCTURE)
    return cut or all(m.role == "tool" for m in rest)
