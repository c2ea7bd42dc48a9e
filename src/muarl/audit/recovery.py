"""Recovery: changed requests, hand-overs with a summary, getting out of what does not work, and systems that fail."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from muarl.audit.calls import fingerprint
from muarl.audit.fault_recovery import FaultRecovery, excuses_transfer, recoveries
from muarl.audit.findings import Finding, Severity
from muarl.audit.metrics import needs_transfer
from muarl.audit.transcript import AuditedCall, Transcript
from muarl.audit.values import is_identifier, leaves, method_in, methods_in, names, others_alike
from muarl.language.consent import changes_request, is_affirmative

AGAIN = 3
"""The same call failing so often, with nothing done in between, is a finding."""
PATIENCE = 6
"""The same where a system fails that may come back."""

_SUMMARY = ("summary", "reason", "message", "notes", "note", "description", "details", "issue", "context")
_SAYS_NOTHING = frozenset({
    "a", "about", "agent", "an", "and", "asked", "asking", "asks", "assist", "assistance", "be", "been", "by",
    "call", "caller", "can", "cannot", "case", "client", "contact", "customer", "for", "from", "further", "guest",
    "has", "have", "he", "help", "her", "him", "his", "human", "i", "in", "is", "issue", "it", "its", "member",
    "more", "my", "need", "needed", "needs", "of", "on", "operator", "or", "patient", "person", "please", "problem",
    "query", "question", "request", "requested", "requests", "requires", "she", "someone", "something", "speak",
    "support", "talk", "that", "the", "their", "them", "they", "this", "to", "transfer", "transferred",
    "transferring", "unable", "unknown", "urgent", "user", "want", "wants", "was", "with", "n", "none", "na", "test",
    "could", "not", "resolved", "solved", "here",
})  # fmt: skip
_COUNTED = re.compile(r"[$€£]?\s?(\d+(?:\.\d+)?)\s*([a-z]{2,})?", re.IGNORECASE)
_WANTS_PERSON = re.compile(
    r"\b(?:human|real person|(?:talk|speak|connect|transfer|escalate)[^.?!]{0,30}\b(?:agent|person|someone|somebody"
    r"|manager|supervisor|representative|colleague)|supervisor|manager|representative)\b",
    re.IGNORECASE,
)


def find(transcript: Transcript) -> Iterator[Finding]:
    """What was handled badly once things went otherwise than planned."""
    for step in transcript.writes:
        if (why := _old_request(step)) is not None:
            name = step.record.call.name
            yield _finding(
                "changed-wish-ignored", step, f"{name} wrote {why} although the user had changed the request."
            )
    faults = recoveries(transcript.messages, transcript.rules.transfer_tools, transcript.kind_of)
    yield from _transfers(transcript, faults)
    yield from _circles(transcript)
    yield from _faults(transcript, faults)


def _old_request(step: AuditedCall) -> str | None:
    """What of a write is the old request, where the user's latest message changes it and nothing was proposed since."""
    record = step.record
    answer = record.answer or ""
    if (
        not record.fresh
        or not record.proposals
        or is_affirmative(answer, "\n".join(record.proposals))
        or not changes_request(answer)
    ):
        return None
    proposal = "\n".join(record.proposals)
    written = list(leaves(dict(record.call.arguments)))
    if any(v.lower() in _counted(answer) or (is_identifier(v) and names(answer, v)) for v in written):
        return None  # the new request was written
    for value in written:
        if names(answer, value):
            continue
        if (method := method_in(value)) is not None:
            if method in methods_in(proposal) and (other := methods_in(answer) - {method}):
                return f"the {method} instead of the {min(other)}"
        elif is_identifier(value):
            if names(proposal, value) and (others := others_alike(value, answer)):
                return f"{value} instead of {min(others)}"
        elif (other_amount := _other_amount(value, proposal, answer)) is not None:
            return f"{value} instead of {other_amount}"
    return None


def _other_amount(value: str, proposal: str, answer: str) -> str | None:
    """Another number of the same thing ("3 nights", then "4 nights"; "$20", then "$10")."""
    if not re.fullmatch(r"\d+(?:\.\d+)?", value):
        return None
    before, now = _counts(proposal), _counts(answer)
    for what, number in now.items():
        if before.get(what) == float(value) != number:
            return f"{number:g}"
    return None


def _counted(text: str) -> set[str]:
    return {f"{number:g}" for number in _counts(text).values()}


def _counts(text: str) -> dict[str, float]:
    """Numbers in a text by what they count: the word behind them without its plural, or the sign before them."""
    counts: dict[str, float] = {}
    for match in _COUNTED.finditer(text):
        sign = match.group().lstrip()[0]
        what = sign if sign in "$€£" else (match.group(2) or "").lower().rstrip("s")
        if what:
            counts[what] = float(match.group(1))
    return counts


def _faults(transcript: Transcript, faults: Sequence[FaultRecovery]) -> Iterator[Finding]:
    """Writes repeated blindly, failures that the user never heard of, and giving up at the first one."""
    failed: set[str] = set()
    for one in faults:
        if one.message < transcript.begin:
            continue
        name, first = one.call.name, fingerprint(one.call) not in failed
        failed.add(fingerprint(one.call))
        if one.repeated_at is not None:
            text = f"{name} timed out, and was called again without a look at whether it had been carried out."
            yield Finding("recovery", "blind-repeat", "violation", one.repeated_at, text, name)
        lost = one.fault.writes and not (one.tried_again or one.solved or one.checked)
        if lost and not (one.told or one.handed_over):
            text = f"{name} failed ({one.fault.kind}), was not made again, and the user was not told."
            yield Finding("recovery", "failure-not-told", "violation", one.message, text, name)
        passing = one.fault.kind in ("outage", "undocumented_error") or (
            one.fault.kind == "latency" and not one.fault.writes
        )
        if first and passing and one.handed_over and not (one.tried_again or one.solved):
            text = f"{name} failed ({one.fault.kind}), and the user was handed over without another try."
            yield Finding("recovery", "no-second-try", "note", one.message, text, name)


def _transfers(transcript: Transcript, faults: Sequence[FaultRecovery]) -> Iterator[Finding]:
    rules, task = transcript.rules, transcript.task
    handed = [s for s in transcript.own if s.record.call.name in rules.transfer_tools and not s.record.error]
    for step in handed:
        summary = next((str(step.record.call.arguments[n]) for n in _SUMMARY if n in step.record.call.arguments), None)
        if summary is None and step.record.call.arguments:
            summary = " ".join(leaves(dict(step.record.call.arguments)))
        if not says_something(summary or ""):
            text = f"The hand-over's summary ({summary!r}) does not describe the problem."
            yield _finding("handover-without-summary", step, text)
    if not handed:
        return
    needed = None if task is None else needs_transfer(task, rules)
    first = handed[0]
    if excuses_transfer(faults, first.record.index):
        return
    if needed is False:
        yield _finding(
            "needless-transfer", first, "The conversation was transferred, though the task could be done here."
        )
    elif needed is None and task is None:
        tried = any(
            s.record.ok and s.record.kind != "generic" for s in transcript.own if s.record.index < first.record.index
        )
        if not tried and not _WANTS_PERSON.search(transcript.told_before(first.record.index)):
            text = (
                "The conversation was transferred before anything was tried, and the user had not asked for a person."
            )
            yield _finding("untried-transfer", first, text, "note")


def says_something(summary: str) -> bool:
    """Whether a summary has at least three words, one of them more than what every hand-over says."""
    words = [w.removesuffix("'s") for w in re.findall(r"[\w#$'-]+", summary.lower().replace("’", "'"))]
    return len(words) >= 3 and any(w not in _SAYS_NOTHING and len(w) > 1 for w in words)


def _circles(transcript: Transcript) -> Iterator[Finding]:
    """The same call, failing again and again, with no other call that worked in between."""
    failed: Counter[str] = Counter()
    for step in transcript.own:
        record = step.record
        if not record.error:
            failed.clear()
            continue
        key = f"{fingerprint(record.call)} {record.fault is not None}"
        failed[key] += 1
        passing = record.fault is not None and record.fault.detail != "for good"
        if failed[key] == (most := PATIENCE if passing else AGAIN):
            text = f"{record.call.name or 'A call'} failed {most} times in the same way, and was made again unchanged."
            yield _finding("repeated-failing-call", step, text)


def _finding(rule: str, step: AuditedCall, text: str, severity: Severity = "violation") -> Finding:
    return Finding("recovery", rule, severity, step.record.index, text, step.record.call.name or None)
