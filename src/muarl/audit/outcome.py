"""Task outcome: what of the verdict's components failed, and the turn at which it began to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muarl.audit.findings import Finding
from muarl.audit.transcript import Transcript
from muarl.domains.tasks import Action, Task
from muarl.rewards.checks import acted, said
from muarl.types.chat import ToolCall
from muarl.types.episode import StopReason

STATE = ("DB", "ENV_ASSERTION", "GOAL")
"""Components that the state of the world decides."""

_UNMET = {
    "DB": "The final database differs from the expected one.",
    "ENV_ASSERTION": "An assertion about the final state of the environment fails.",
    "GOAL": "The goal was not reached in the final state.",
    "COMMUNICATE": "The agent did not say required information.",
    "ACTION": "A required action was not taken.",
    "NL_ASSERTION": "A natural-language assertion fails.",
}


def find(transcript: Transcript) -> Iterator[Finding]:
    """What went wrong with the task; nothing where no verdict says."""
    episode, verdict = transcript.episode, transcript.episode.verdict
    if verdict is None or episode.stop is StopReason.INFRASTRUCTURE or verdict.reward >= 1:
        return
    last = max(len(transcript.messages) - 1, 0)
    if episode.stop.truncated:
        yield _finding(
            "unfinished", last, f"The conversation was truncated ({_words(episode.stop)}), so it earned nothing."
        )
        return
    failed = [name for name, value in verdict.breakdown.items() if value < 1]
    task = transcript.task
    for name in failed:
        if name in STATE and task is not None and task.actions:
            yield from _state(transcript, task, name, last)
        elif name == "COMMUNICATE" and task is not None and task.communicate_info:
            stated = said(transcript.messages, task.communicate_info)
            missing = [text for text, ok in zip(task.communicate_info, stated, strict=True) if not ok]
            yield _finding("not-told", _last_said(transcript, last), f"The user was never told {_listed(missing)}.")
        elif name == "ACTION" and task is not None and task.actions:
            made = acted(transcript.messages, task.actions)
            missing = [a.name for a, ok in zip(task.actions, made, strict=True) if not ok]
            yield _finding("action-missing", last, f"What the task needs was never done: {_listed(missing)}.")
        else:
            yield _finding("wrong-outcome", last, _UNMET.get(name, f"The verdict's part {name} failed."))
    if not failed:
        yield _finding("wrong-outcome", last, verdict.note or "The task was not done.")


def _state(transcript: Transcript, task: Task, name: str, last: int) -> Iterator[Finding]:
    """The first write that the task does not ask for; else what was not written."""
    expected = [a for a in task.actions or () if _writes(transcript, a.name)]
    left = list(expected)
    for step in transcript.writes:
        match = next((a for a in left if _same(a, step.record.call)), None)
        if match is not None:
            left.remove(match)
            continue
        alike = [a for a in expected if a.name == step.record.call.name]
        why = _difference(alike, step.record.call)
        text = f"{step.record.call.name} is the first change that the right answer does not hold{why}."
        yield _finding("wrong-write", step.record.index, text, step.record.call.name)
        return
    mine = [a for a in left if a.requestor == "assistant"]
    if mine:
        what = _listed([f"{a.name}({_arguments(a)})" for a in mine])
        yield _finding("missing-write", last, f"The conversation ended without {what}.")
    else:
        yield _finding("wrong-outcome", last, _UNMET.get(name, f"The verdict's part {name} failed."))


def _writes(transcript: Transcript, name: str) -> bool:
    try:
        return transcript.kind_of(name) == "write"
    except Exception:  # a gold action without a tool
        return False


def _same(action: Action, call: ToolCall) -> bool:
    return action.name == call.name and _plain(action.arguments) == _plain(call.arguments)


def _plain(value: Any) -> str:
    return json.dumps(_numbers(value), sort_keys=True, default=str)


def _numbers(value: Any) -> Any:
    """1 and 1.0 are the same to a person; arguments that are not given and null ones, too."""
    if isinstance(value, Mapping):
        return {k: _numbers(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_numbers(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _difference(alike: Sequence[Action], call: ToolCall) -> str:
    if not alike:
        return ""
    nearest = min(alike, key=lambda a: len(_unlike(a, call)))
    unlike = _unlike(nearest, call)
    if not unlike:
        return ": it was made once too often"
    name = unlike[0]
    return f": {name} is {_short(call.arguments.get(name))} and should be {_short(nearest.arguments.get(name))}"


def _unlike(action: Action, call: ToolCall) -> list[str]:
    names = dict.fromkeys([*action.arguments, *call.arguments])
    return [n for n in names if _plain(action.arguments.get(n)) != _plain(call.arguments.get(n))]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _arguments(action: Action) -> str:
    return ", ".join(f"{k}={_short(v)}" for k, v in list(action.arguments.items())[:2])


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(names[:3])
    return f"{text} and {len(names) - 3} more" if len(names) > 3 else text or "what it must be"


def _last_said(transcript: Transcript, last: int) -> int:
    return transcript.said[-1][0] if transcript.said else last


def _words(stop: StopReason) -> str:
    return stop.value.replace("_", " ")


def _finding(rule: str, message: int, text: str, call: str | None = None) -> Finding:
    return Finding("outcome", rule, "violation", message, text, call)
